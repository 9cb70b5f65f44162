/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/baseline/baseline_write.h"

#include "gate/base/json.h"

/* An object whose members are all numbers. */
static void write_numbers(const cJSON *object, struct buf *out)
{
    const cJSON *item;
    buf_putc(out, '{');
    cJSON_ArrayForEach (item, object) {
        buf_printf(out, "%s\"%s\": ", item != object->child ? ", " : "", item->string);
        json_write_number(item->valuedouble, out);
    }
    buf_putc(out, '}');
}

/* An object whose members are all numbers, strings, objects of numbers, true or null, on one line.
 */
static void write_line(const cJSON *object, struct buf *out)
{
    const cJSON *item;
    buf_putc(out, '{');
    cJSON_ArrayForEach (item, object) {
        buf_printf(out, "%s\"%s\": ", item != object->child ? ", " : "", item->string);
        if (cJSON_IsNumber(item)) {
            json_write_number(item->valuedouble, out);
        } else if (cJSON_IsString(item)) {
            buf_putc(out, '"');
            json_escape(item->valuestring, out);
            buf_putc(out, '"');
        } else if (cJSON_IsObject(item)) {
            write_numbers(item, out);
        } else {
            buf_puts(out, cJSON_IsTrue(item) ? "true" : "null");
        }
    }
    buf_putc(out, '}');
}

static void write_member(const cJSON *document, const char *key, struct buf *out)
{
    buf_printf(out, "  \"%s\": \"", key);
    json_escape(json_string(document, key, ""), out);
    buf_puts(out, "\",\n");
}

/* Only where there is one: most files have none. */
static void write_trends(const cJSON *document, struct buf *out)
{
    const cJSON *trends = cJSON_GetObjectItemCaseSensitive(document, "trends"), *trend, *run;
    if (!trends || !trends->child)
        return;
    buf_puts(out, "  \"trends\": {");
    cJSON_ArrayForEach (trend, trends) {
        buf_puts(out, "\n    \"");
        json_escape(trend->string, out);
        buf_puts(out, "\": [");
        cJSON_ArrayForEach (run, trend) {
            buf_puts(out, "\n      ");
            write_line(run, out);
            buf_puts(out, run->next ? "," : "\n    ]");
        }
        buf_puts(out, trend->next ? "," : "\n  },\n");
    }
}

void baseline_write(const cJSON *document, struct buf *out)
{
    const cJSON *item;
    buf_puts(out, "{\n");
    write_member(document, "schema", out);
    write_member(document, "device_model", out);
    write_member(document, "contract", out);
    buf_puts(out, "  \"cases\": {");
    cJSON_ArrayForEach (item, cJSON_GetObjectItemCaseSensitive(document, "cases")) {
        buf_puts(out, "\n    \"");
        json_escape(item->string, out);
        buf_puts(out, "\": ");
        write_line(item, out);
        buf_puts(out, item->next ? "," : "\n  ");
    }
    buf_puts(out, "},\n");
    write_trends(document, out);
    buf_puts(out, "  \"log\": [");
    cJSON_ArrayForEach (item, cJSON_GetObjectItemCaseSensitive(document, "log")) {
        buf_puts(out, "\n    ");
        write_line(item, out);
        buf_puts(out, item->next ? "," : "\n  ");
    }
    buf_puts(out, "]\n}\n");
}
