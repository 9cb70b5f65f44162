/* SPDX-License-Identifier: Apache-2.0 */
/* fetch.c: see tracker.h. */
#include "gate/tracker/tracker.h"

#include <stdio.h>

#include "gate/baseline/artifact.h"
#include "gate/base/backoff.h"

#define PATIENCE_S 10.0 /* for trying again; a run waits for this */
#define TIMEOUT_S 600

/* GATE_OK: there is an answer, of whatever status. */
static enum gate_status ask(struct fetch *f, const char *sha256, struct http_answer *answer,
                            struct gate_error *err)
{
    char path[128];
    struct backoff backoff = backoff_start(PATIENCE_S);
    snprintf(path, sizeof path, "/api/v1/artifacts/%s", sha256);
    const struct http_request get = {.method = "GET", .path = path, .timeout_s = TIMEOUT_S};
    for (unsigned n = 1;; n++) {
        enum gate_status status = http_client_ask(f->client, &get, answer, err);
        bool may_pass = status ? status == GATE_IO : answer->status == 429 || answer->status >= 500;
        double delay = backoff_delay(&backoff, n, status ? 0 : (double)answer->retry_after);
        if (!may_pass || delay < 0)
            return status;
        backoff_sleep(delay);
    }
}

static enum gate_status take(const struct fetch *f, const char *sha256,
                             const struct http_answer *answer, char path[PATHS_MAX],
                             struct gate_error *err)
{
    if (answer->status == 404)
        return gate_fail(err, GATE_NO_VERDICT, "%s has no library %.16s...", f->remote.url, sha256);
    if (answer->status != 200)
        return gate_fail(err, GATE_IO, "%s answers %d%s", f->remote.url, answer->status,
                         answer->status == 401 || answer->status == 403
                             ? ": it wants a token, or another one"
                             : "");
    return artifact_put_bytes(&answer->body, sha256, path, err);
}

enum gate_status fetch_library(struct fetch *f, const char *sha256, char path[PATHS_MAX],
                               struct gate_error *err)
{
    struct http_answer answer;
    struct gate_error why;
    if (f->failure.status)
        return gate_fail(err, f->failure.status, "%s", f->failure.message);
    enum gate_status status = GATE_OK;
    if (!f->client)
        status = remote_resolve(&f->choice, &f->remote, &f->failure);
    if (!status && !f->client)
        status = http_client_open(&f->remote, &f->client, &f->failure);
    if (status)
        return gate_fail(err, status, "%s", f->failure.message);
    http_answer_init(&answer, ARTIFACT_MAX_BYTES);
    status = ask(f, sha256, &answer, &why);
    if (status)
        gate_fail(&f->failure, gate_fail(err, status, "%s", why.message), "%s", why.message);
    else
        status = take(f, sha256, &answer, path, err);
    http_answer_release(&answer);
    return status;
}

void fetch_release(struct fetch *f)
{
    http_client_close(f->client);
    *f = (struct fetch){0};
}
