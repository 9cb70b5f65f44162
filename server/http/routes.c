/* SPDX-License-Identifier: Apache-2.0 */
/* routes.c: see route.h. The first row that fits is taken, and the last fits all. */

#include <string.h>

#include "server/api/api_call.h"
#include "server/api/rows.h"
#include "server/http/http_private.h"

#define API "/api/v1/"

/* Out of the database, with the parameters that it takes. */
#define READ(path_, rest_, what_, get_, ...)                                                       \
    {                                                                                              \
        .method = "GET", .path = path_, .rest = rest_, .scope = TOKEN_READ, .what = what_,         \
        .get = get_, .parameters = {                                                               \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define READ_LONG(path_, rest_, what_, get_, ...)                                                  \
    {                                                                                              \
        .method = "GET", .path = path_, .rest = rest_, .scope = TOKEN_READ, .what = what_,         \
        .get = get_, .is_long = true, .parameters = {                                              \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
/* A list: server/queries/QUERY.sql. */
#define LIST(path_, what_, query_)                                                                 \
    {                                                                                              \
        .method = "GET", .path = path_, .scope = TOKEN_READ, .what = what_, .get = rows_get,       \
        .query = query_ ".sql"                                                                     \
    }
/* Out of the program itself. */
#define ANSWER(path_, rest_, scope_, what_, answer_)                                               \
    {                                                                                              \
        .method = "GET", .path = path_, .rest = rest_, .scope = scope_, .what = what_,             \
        .answer = answer_                                                                          \
    }
#define WRITE(method_, path_, rest_, scope_, what_, write_)                                        \
    {                                                                                              \
        .method = method_, .path = path_, .rest = rest_, .scope = scope_, .what = what_,           \
        .write = write_                                                                            \
    }

/* clang-format off */
static const struct route routes[] = {
    LIST(API "runs", "runs, newest first",
         "runs"),
    WRITE("POST", API "runs", NULL, TOKEN_INGEST, "stores a run document, once", &api_ingest_run),
    READ_LONG(API "runs/", "UUID",
         "the document of a run as it was stored; with format=csv its cases, with format=markdown "
         "its report", get_document,
         "case", "format"),
    LIST(API "cases", "each case with its newest result",
         "cases"),
    READ(API "trends", NULL,
         "the points of one case, oldest first, in buckets where there are many", get_trends,
         "case", "device", "provider", "contract", "branch", "from", "to", "from_commit",
         "to_commit", "order", "points", "columns", "raw", "limit", "after", "format"),
    READ_LONG(API "compare", NULL, "two runs, or the newest runs of two commits, case by case",
         get_compare, "a", "b", "device", "format"),
    LIST(API "leaderboard", "the lowest verified p50 of each provider, and that of the newest run",
         "leaderboard"),
    LIST(API "baselines", "the baseline that the newest run of each case had",
         "baselines"),
    LIST(API "baselines/log", "how the baselines changed, newest first",
         "baselines_log"),
    LIST(API "devices", "device models with their newest run and their epochs",
         "devices"),
    LIST(API "branches", "the branches of the newest runs, and which of them is the main branch",
         "branches"),
    LIST(API "calibrations", "results of `gate calibrate`, newest first",
         "calibrations"),
    LIST(API "coverage", "the coverage of verification over all runs, by device model and op",
         "coverage"),
    LIST(API "accuracy", "cases by how much their error grew in 30 days",
         "accuracy"),
    LIST(API "machines", "GPUs and hosts, and the smallest slowdown that they detect",
         "machines"),
    LIST(API "changes", "merge requests that are open, as far as runs tell",
         "changes"),
    LIST(API "pushes", "runs of merge requests, newest first",
         "pushes"),
    LIST(API "vendor", "how each case of the main branch stood beside the best vendor, run by run",
         "vendor"),
    LIST(API "controls", "the control kernel of each machine's newest run, and of runs before it",
         "controls"),
    LIST(API "silences", "what was measured regularly and is no longer",
         "silences"),
    LIST(API "alerts", "alerts, newest first",
         "alerts"),
    READ(API "alerts/", "ID", "an alert with its log", get_alert, NULL),
    WRITE("POST", API "alerts", NULL, TOKEN_ADMIN,
          "changes up to 1,000 alerts (`ids`) as below, all or none", &api_alerts_action),
    WRITE("POST", API "alerts/", "ID", TOKEN_ADMIN,
          "changes the state or the assignee of an alert", &api_alert_action),
    ANSWER(API "artifacts/", "SHA256", TOKEN_READ, "a library", http_get_artifact),
    WRITE("PUT", API "artifacts/", "SHA256", TOKEN_ARTIFACT,
          "stores a library under its SHA-256", NULL),
    READ(API "counters", NULL, "what each hardware counter of a run document means", get_counters,
         NULL),
    ANSWER(API "whoami", NULL, TOKEN_READ, "the scopes of the token in the request",
           http_get_whoami),
    READ(API "openapi.json", NULL, "this table for programs, as OpenAPI", get_openapi, NULL),
    READ("/badge/", "DEVICE[/CASE].svg",
         "a picture of the newest result on the main branch; `.json`: the same for shields.io",
         get_badge, NULL),
    READ("/feed.atom", NULL, "the newest alerts, for feed readers", get_feed, "device", "case"),
    ANSWER("/metrics", NULL, TOKEN_READ, "Prometheus, or OpenMetrics by Accept", http_get_metrics),
    ANSWER("/healthz", NULL, 0, "the process answers", http_get_health),
    ANSWER("/readyz", NULL, 0, "database, writer and 256 MiB of free disk are there",
           http_get_ready),
    ANSWER("/", "FILE", 0, "the page", http_get_asset),
};
/* clang-format on */
#define N_ROUTES (sizeof routes / sizeof routes[0])

const struct route *route_find(const char *method, const char *path, const char **rest)
{
    if (!strcmp(method, "HEAD"))
        method = "GET";
    for (size_t i = 0; i < N_ROUTES; i++) {
        size_t len = strlen(routes[i].path);
        *rest = path + len;
        if (!strcmp(routes[i].method, method) && !strncmp(path, routes[i].path, len) &&
            (path[len] == '\0' || routes[i].rest))
            return &routes[i];
    }
    return NULL;
}

const struct route *route_at(size_t i)
{
    return i < N_ROUTES ? &routes[i] : NULL;
}

const char *route_methods(const char *path)
{
    const char *rest;
    if (route_find("POST", path, &rest))
        return "GET, HEAD, POST";
    return route_find("PUT", path, &rest) ? "GET, HEAD, PUT" : "GET, HEAD";
}

void routes_write(struct buf *out)
{
    buf_puts(out, "| method | address | token | what |\n| --- | --- | --- | --- |\n");
    for (size_t i = 0; i < N_ROUTES; i++) {
        const struct route *r = &routes[i];
        char scope[AUTH_MAX_SCOPES] = "none";
        if (r->scope != 0)
            auth_scope_text(r->scope, scope);
        buf_printf(out, "| %s | `%s%s` | %s | %s |\n", r->method, r->path, r->rest ? r->rest : "",
                   scope, r->what);
    }
}
