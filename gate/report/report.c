/* report.c: see report.h. */
#include "gate/report/report.h"

#include <string.h>

#include "gate/base/json.h"
#include "gate/report/report_run.h"

static void write_json(const struct report_run *run, const struct report_style *style,
                       struct buf *out)
{
    (void)style;
    json_write(run->document, true, out);
}

static void write_csv(const struct report_run *run, const struct report_style *style,
                      struct buf *out)
{
    (void)style;
    report_csv_header(out);
    report_csv_rows(run->document, out);
}

static const struct {
    const char *name;
    report_writer *write;
} formats[] = {
    [REPORT_TEXT] = {"text", report_text},    [REPORT_MARKDOWN] = {"markdown", report_markdown},
    [REPORT_JSON] = {"json", write_json},     [REPORT_CSV] = {"csv", write_csv},
    [REPORT_JUNIT] = {"junit", report_junit},
};

bool report_format_parse(const char *name, enum report_format *out)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (!strcmp(formats[i].name, name)) {
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
    run.link = style->link && style->link[0] ? style->link : NULL;
    formats[format].write(&run, style, out);
}
