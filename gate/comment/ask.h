/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ask.h: one question to GitHub's or GitLab's interface.
 */
#ifndef GATE_COMMENT_ASK_H
#define GATE_COMMENT_ASK_H

#include <cjson/cJSON.h>

#include "gate/base/error.h"
#include "gate/tracker/http_client.h"

#define COMMENT_ANSWER_MAX ((size_t)64 << 20) /* 100 comments of GitHub's longest, escaped */

/*
 * Sends `body` (JSON; NULL: none). *out is the answer's JSON, the caller's. GATE_IO: it was
 * refused, with the service's own words, or there is no answer; answer->status is 0 then. Whether
 * asking again may help, comment_may_pass() says.
 */
enum gate_status comment_ask(struct http_client *client, const char *method, const char *path,
                             const cJSON *body, struct http_answer *answer, cJSON **out,
                             struct gate_error *err);

bool comment_may_pass(const struct http_answer *answer);

#endif
