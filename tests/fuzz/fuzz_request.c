/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_request.c: the target of a GET, and all that it may name: the API, the badges, the feed. The
 * store has a small history, so that names of the seeds are there.
 */
#include <stdlib.h>
#include <string.h>

#include "gate/base/json.h"
#include "tests/fuzz/edits.h"
#include "tests/fuzz/history.h"
#include "server/api/api_call.h"
#include "server/api/route.h"

static struct store *store;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    static const struct sample_plan plan = {.seed = 7, .n_runs = 6, .n_cases = 2, .n_devices = 2};
    store = fuzz_history(&plan, plan.n_runs);
    return 0;
}

/* What request.h promises of the parts of a target that it let in. */
static void expect_clean(const char *text)
{
    for (const char *p = text; *p; p++)
        fuzz_expect((unsigned char)*p >= 0x20 && *p != 0x7f, "no control character", text);
}

static void check_parts(const struct request *r)
{
    if (r->fault_status) {
        fuzz_expect((r->fault_status == 400 || r->fault_status == 414) && r->fault != NULL,
                    "a fault with a reason", r->target);
        return;
    }
    fuzz_expect(r->path[0] == '/', "a path", r->path);
    expect_clean(r->path);
    fuzz_expect(r->n_parameters <= REQUEST_MAX_PARAMETERS, "few parameters", r->target);
    for (size_t i = 0; i < r->n_parameters; i++) {
        expect_clean(r->parameters[i].name);
        expect_clean(r->parameters[i].value);
        fuzz_expect(request_parameter(r, r->parameters[i].name) == r->parameters[i].value,
                    "each name once", r->parameters[i].name);
    }
}

/* 503 and 500 would be the store's or the server's fault, which no address may cause. */
static void check_reply(const struct request *r, const struct reply *reply)
{
    struct gate_error err = {0};
    cJSON *json = NULL;
    fuzz_expect(reply->status == 200 || reply->status == 400 || reply->status == 404,
                "status 200, 400 or 404", r->target);
    if (!reply->type || !strstr(reply->type, "json") || reply->constant)
        return;
    fuzz_expect(json_parse("answer", reply->body.data, reply->body.len, GATE_IO, &json, &err) ==
                    GATE_OK,
                "an answer in JSON", err.message);
    cJSON_Delete(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct request r;
    struct reply reply;
    char *target = malloc(size + 1);
    memcpy(target, data, size);
    target[size] = '\0';
    request_parse(&r, target);
    check_parts(&r);
    reply_init(&reply);
    const char *rest;
    const struct route *route = r.fault_status ? NULL : route_find("GET", r.path, &rest);
    bool asked = route && route->get && !api_refuse_parameters(route, &r, &reply);
    if (asked)
        api_get(route, rest, store, &(struct api_site){.main_branch = "main", .speaker = ""}, &r,
                NULL, &reply);
    if (asked)
        check_reply(&r, &reply);
    reply_release(&reply);
    free(target);
    return 0;
}
