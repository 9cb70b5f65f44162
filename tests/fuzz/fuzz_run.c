/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_run.c: POST /api/v1/runs without the server: the body is taken apart and checked, packed,
 * and stored; then the store is asked for everything that the API shows. Each input finds the same
 * store: what it wrote is undone.
 */
#include <stdlib.h>
#include <string.h>

#include "gate/base/alloc.h"
#include "gate/base/json.h"
#include "tests/fuzz/edits.h"
#include "tests/fuzz/history.h"
#include "server/api/api_call.h"
#include "server/api/route.h"
#include "server/ops/log.h"
#include "server/watch/alerts.h"

static const struct sample_plan plan = {.seed = 7, .n_runs = 6, .n_cases = 2, .n_devices = 1};
static cJSON *good;
static struct store *store;
static const struct identity somebody = {.id = "0123456789ab"};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    log_setup(LOG_LEVEL_ERROR, false);
    store = fuzz_history(&plan, plan.n_runs - 1);
    good = sample_run(&plan, plan.n_runs - 1);
    return 0;
}

static void expect_json(const struct reply *reply)
{
    struct gate_error err = {0};
    cJSON *json = NULL;
    if (!reply->type || !strstr(reply->type, "json") || reply->constant)
        return;
    fuzz_expect(json_parse("answer", reply->body.data, reply->body.len, GATE_IO, &json, &err) ==
                    GATE_OK,
                "an answer in JSON", err.message);
    cJSON_Delete(json);
}

/* The batch that is open is a read transaction too: the handler is called without one. */
static void ask(const char *target)
{
    static struct request request;
    struct reply reply;
    request_parse(&request, target);
    reply_init(&reply);
    struct call c = {.store = store,
                     .site = {.main_branch = "main", .speaker = ""},
                     .request = &request,
                     .reply = &reply,
                     .emit = {.out = &reply.body}};
    const struct route *route = route_find("GET", request.path, &c.rest);
    c.query = route ? route->query : NULL;
    fuzz_expect(route && route->get && route->get(&c) == GATE_OK, target, c.err.message);
    fuzz_expect(!reply.body.failed, target, "an answer that is too long");
    fuzz_expect(reply.status == 200, target, reply.body.data ? reply.body.data : "no answer");
    expect_json(&reply);
    reply_release(&reply);
}

static void read_all(const char *uuid, const struct buf *text)
{
    static const char *const targets[] = {
        "/api/v1/runs",          "/api/v1/runs?format=csv",  "/api/v1/cases",
        "/api/v1/leaderboard",   "/api/v1/cases?format=csv", "/api/v1/baselines",
        "/api/v1/baselines/log", "/api/v1/devices",          "/api/v1/calibrations",
        "/api/v1/alerts",
    };
    struct gate_error err = {0};
    bool more = true;
    RELEASED_BY(buf_release) struct buf stored = buf_of(STORE_MAX_DOCUMENT);
    fuzz_expect(store_document(store, uuid, &stored, &err) == GATE_OK, "the run that was stored",
                err.message);
    fuzz_expect(stored.len == text->len && memcmp(stored.data, text->data, text->len) == 0,
                "the document as it came", stored.data);
    while (more) {
        fuzz_expect(alerts_look(store, "main", 100, &more, &err) == GATE_OK, "a look at what came",
                    err.message);
    }
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
        ask(targets[i]);
}

/* Whatever was let in by the checks must not look like a failure of the database. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf text;
    struct reply reply;
    struct gate_error err = {0};
    buf_init(&text, STORE_MAX_DOCUMENT);
    edits_text(good, data, size, &text);
    reply_init(&reply);
    struct api_write w = {.store = store,
                          .who = &somebody,
                          .body = text.data ? text.data : "",
                          .len = text.len,
                          .reply = &reply};
    fuzz_expect(store_begin(store, &err) == GATE_OK, "a batch", err.message);
    fuzz_expect(api_ingest_run.write(&w) == GATE_OK, "an answer of the document's own",
                w.err.message);
    expect_json(&reply);
    if (reply.status == 201) {
        cJSON *document = NULL;
        json_parse("document", text.data, text.len, GATE_IO, &document, &err);
        read_all(json_string(document, "uuid", ""), &text);
        cJSON_Delete(document);
    } else {
        fuzz_expect(reply.status == 400 || reply.status == 413, "a refusal",
                    reply.body.data ? reply.body.data : "no answer");
    }
    store_end(store, GATE_INTERNAL, NULL);
    reply_release(&reply);
    buf_release(&text);
    return 0;
}
