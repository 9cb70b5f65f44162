/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/comment/ask.h"

#include <string.h>

#include "gate/base/json.h"
#include "gate/base/term.h"

#define TIMEOUT_S 60

static enum gate_status refused(const char *method, const char *path,
                                const struct http_answer *answer, const cJSON *said,
                                struct gate_error *err)
{
    const char *message = json_string(said, "message", json_string(said, "error", ""));
    struct buf safe;
    buf_init(&safe, 8192);
    term_puts(message, &safe);
    gate_fail(err, GATE_IO, "%s %.300s was refused with %d%s%.200s%s", method, path, answer->status,
              safe.len ? ": " : "", safe.len ? safe.data : "",
              answer->status == 401   ? "; the token is not valid"
              : answer->status == 403 ? "; the token may not do that"
              : answer->status == 404 ? "; it does not exist, or the token may not read it"
                                      : "");
    buf_release(&safe);
    return GATE_IO;
}

enum gate_status comment_ask(struct http_client *client, const char *method, const char *path,
                             const cJSON *body, struct http_answer *answer, cJSON **out,
                             struct gate_error *err)
{
    struct buf text;
    cJSON *said = NULL;
    buf_init(&text, COMMENT_ANSWER_MAX);
    if (body)
        json_write(body, false, &text);
    const struct http_request request = {.method = method,
                                         .path = path,
                                         .type = body ? "application/json" : NULL,
                                         .body = text.data,
                                         .len = text.len,
                                         .timeout_s = TIMEOUT_S};
    answer->status = 0;
    enum gate_status status = text.failed
                                  ? gate_fail(err, GATE_INTERNAL, "out of memory for a comment")
                                  : http_client_ask(client, &request, answer, err);
    bool good = !status && (answer->status == 200 || answer->status == 201);
    if (!status) {
        enum gate_status parsed =
            json_parse("the service's answer", answer->body.data ? answer->body.data : "",
                       answer->body.len, GATE_IO, &said, good ? err : NULL);
        status = good ? parsed : refused(method, path, answer, said, err);
    }
    if (status) {
        cJSON_Delete(said);
        said = NULL;
    }
    *out = said;
    buf_release(&text);
    return status;
}

bool comment_may_pass(const struct http_answer *answer)
{
    return answer->status == 0 || answer->status == 429 || answer->status >= 500 ||
           (answer->status == 403 && answer->retry_after > 0);
}
