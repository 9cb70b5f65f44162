/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/tools/sample_put.h"

#include "gate/base/json.h"

bool sample_read(const cJSON *run, struct document *out, struct field_fault *fault)
{
    struct buf text;
    buf_init(&text, STORE_MAX_DOCUMENT);
    json_write(run, false, &text);
    bool good = document_take(text.data, text.len, out, fault);
    buf_release(&text);
    return good;
}

enum gate_status sample_put_text(struct store *s, const cJSON *run, const char *text, size_t len,
                                 bool *existed, struct gate_error *err)
{
    struct document d;
    struct field_fault fault;
    if (!sample_read(run, &d, &fault))
        return gate_fail(err, GATE_IO, "%s: %s", fault.pointer, fault.message);
    enum gate_status status = store_put_run(s, &d, text, len, existed, err);
    document_release(&d);
    return status;
}

enum gate_status sample_put(struct store *s, const cJSON *run, bool *existed,
                            struct gate_error *err)
{
    struct buf text;
    bool ignored;
    buf_init(&text, STORE_MAX_DOCUMENT);
    json_write(run, false, &text);
    enum gate_status status =
        sample_put_text(s, run, text.data, text.len, existed ? existed : &ignored, err);
    buf_release(&text);
    return status;
}
