/* SPDX-License-Identifier: Apache-2.0 */
/* fetch.c: see tracker.h. */
#include "gate/tracker/tracker.h"

#include <stdio.h>

#include "gate/baseline/artifact.h"

#define PATIENCE_S 10.0 /* for trying again; a run waits for this */
#define TIMEOUT_S 600

enum gate_status fetch_library(struct fetch *f, const char *sha256, char path[PATHS_MAX],
                               struct gate_error *err)
{
    char address[128];
    struct http_answer answer = {0};
    if (!f->failure.status && !f->is_open)
        f->is_open = !remote_resolve(&f->choice, &f->remote, &f->failure);
    enum gate_status status = f->failure.status;
    snprintf(address, sizeof address, "/api/v1/artifacts/%s", sha256);
    const struct http_request get = {
        .method = "GET", .path = address, .timeout_s = TIMEOUT_S, .patience_s = PATIENCE_S};
    buf_init(&answer.body, ARTIFACT_MAX_BYTES);
    if (!status)
        status = http_client_ask(&f->remote, &get, &answer, &f->failure);
    if (status)
        gate_fail(err, status, "%s", f->failure.message);
    else if (answer.status == 200)
        status = artifact_put_bytes(&answer.body, sha256, path, err);
    else if (answer.status == 404)
        status =
            gate_fail(err, GATE_NO_VERDICT, "%s has no library %.16s...", f->remote.url, sha256);
    else
        status = gate_fail(err, GATE_IO, "%s answers %d%s", f->remote.url, answer.status,
                           answer.status == 401 || answer.status == 403
                               ? ": it wants a token, or another one"
                               : "");
    buf_release(&answer.body);
    return status;
}
