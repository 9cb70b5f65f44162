/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_foreign.c: the files of other tools. The first byte says which tool. */
#include <string.h>

#include "gate/base/clock.h"
#include "gate/document/document.h"
#include "gate/foreign/foreign.h"
#include "tests/fuzz/edits.h"

/* Of the tools whose files are JSON. */
static const char *const good_texts[] = {
    [FOREIGN_NVBENCH] =
        "{\"meta\":{\"version\":{\"nvbench\":{\"string\":\"0.1.0\"}}},"
        "\"devices\":[{\"id\":0,\"name\":\"NVIDIA H200\"},{\"id\":1,\"name\":\"L4\"}],"
        "\"benchmarks\":[{\"name\":\"copy\",\"states\":[{\"device\":1,\"is_skipped\":false,"
        "\"axis_values\":[{\"name\":\"N\",\"type\":\"int64\",\"value\":\"8\"}],\"summaries\":["
        "{\"tag\":\"nv/cold/time/gpu/mean\",\"data\":[{\"name\":\"value\",\"value\":\"1e-05\"}]},"
        "{\"tag\":\"nv/cold/sample_size\",\"data\":[{\"name\":\"value\",\"value\":9}]}]},"
        "{\"device\":0,\"is_skipped\":true,\"summaries\":null}]}]}",
    [FOREIGN_PYTEST] =
        "{\"machine_info\":{\"node\":\"h\",\"cpu\":{\"brand_raw\":\"AMD EPYC\"}},"
        "\"commit_info\":{\"id\":\"0123456789abcdef0123456789abcdef01234567\","
        "\"branch\":\"main\",\"dirty\":true},\"datetime\":\"2026-03-01T12:00:00.5+02:00\","
        "\"version\":\"4.0.0\",\"benchmarks\":[{\"fullname\":\"a::b[1]\","
        "\"stats\":{\"median\":1e-5,\"rounds\":5,\"iterations\":2}}]}",
    [FOREIGN_GOOGLE] =
        "{\"context\":{\"date\":\"2026-03-01T12:00:00Z\",\"host_name\":\"h\"},\"benchmarks\":["
        "{\"name\":\"a\",\"run_name\":\"a\",\"real_time\":1,\"time_unit\":\"us\"},"
        "{\"name\":\"a\",\"run_name\":\"a\",\"real_time\":2,\"time_unit\":\"ms\"},"
        "{\"name\":\"a_median\",\"run_name\":\"a\",\"run_type\":\"aggregate\","
        "\"aggregate_name\":\"median\",\"real_time\":3,\"time_unit\":\"s\"},"
        "{\"name\":\"b\",\"error_occurred\":true}]}",
};

/* What is taken can be stored. */
static enum gate_status use(void *context, const struct buf *text, struct gate_error *err)
{
    struct document d;
    struct field_fault fault = {.of_key = false};
    (void)context;
    (void)err;
    fuzz_expect(document_take(text->data, text->len, &d, &fault), "a document", fault.message);
    /* A date before 2015 or in the future is the document's check to find. */
    fuzz_expect(document_check(&d, clock_wall_ms(), &fault) || !strcmp(fault.pointer, "/time_ms"),
                "a document that can be stored", fault.message);
    document_release(&d);
    return GATE_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static cJSON *good[FOREIGN_JUNIT];
    struct gate_error err = {0};
    struct buf text;
    const struct origin origin = {.who = "a@b"};
    if (size == 0)
        return 0;
    const enum foreign_tool tool = (enum foreign_tool)(FOREIGN_NVBENCH + data[0] % FOREIGN_CSV);
    buf_init(&text, (size_t)1 << 20);
    if (tool < FOREIGN_JUNIT) {
        good[tool] = good[tool] ? good[tool] : cJSON_Parse(good_texts[tool]);
        edits_text(good[tool], data + 1, size - 1, &text);
    } else {
        buf_append(&text, data + 1, size - 1);
    }
    struct foreign_file file = {
        .tool = tool, .name = "file", .text = text.data ? text.data : "", .len = text.len};
    enum gate_status status = foreign_read(&file, &err);
    file.time_ms = file.time_ms ? file.time_ms : 1700000000000;
    file.model = "host-x";
    file.origin = &origin;
    if (status || foreign_documents(&file, use, NULL, &err))
        fuzz_expect(!strncmp(err.message, "file:", 5), "a place", err.message);
    foreign_release(&file);
    buf_release(&text);
    return 0;
}
