/* report.c: see report.h. */
#include "report.h"

#include <string.h>

#include "base/json.h"
#include "report_run.h"

bool report_format_parse(const char *name, enum report_format *out)
{
    static const char *const names[] = {
        [REPORT_TEXT] = "text", [REPORT_MARKDOWN] = "markdown", [REPORT_JSON] = "json",
        [REPORT_CSV] = "csv",   [REPORT_JUNIT] = "junit",
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(names[i], name) == 0) {
            *out = (enum report_format)i;
            return true;
        }
    }
    return false;
}

void report_write(const cJSON *run_document, enum report_format format,
                  const struct report_style *style, struct buf *out)
{
    struct report_run run;
    report_run_read(run_document, &run);
    switch (format) {
    case REPORT_TEXT:
        report_text(&run, style, out);
        break;
    case REPORT_MARKDOWN:
        report_markdown(&run, out);
        break;
    case REPORT_JSON:
        json_write(run_document, true, out);
        break;
    case REPORT_CSV:
        report_csv_header(out);
        report_csv_rows(run_document, out);
        break;
    case REPORT_JUNIT:
        report_junit(&run, out);
        break;
    }
}
