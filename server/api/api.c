/* api.c: finds the handler of an address, and its tag; see api.h. */
#include "api.h"

#include <stdio.h>
#include <string.h>

#include "api_private.h"
#include "ops/log.h"

#define PREFIX "/api/v1/"

static const struct route routes[] = {
    {"runs",
     {"device", "commit", "branch", "main", "verdict", "limit", "after", "format"},
     get_runs},
    {"runs/", {"case", "format"}, get_document},
    {"cases",
     {"device", "branch", "main", "op", "dtype", "verdict", "q", "sort", "limit", "after",
      "format"},
     get_cases},
    {"trends",
     {"case", "device", "provider", "contract", "branch", "from", "to", "from_commit", "to_commit",
      "order", "points", "columns", "raw", "limit", "after", "format"},
     get_trends},
    {"compare", {"a", "b", "device", "format"}, get_compare},
    {"leaderboard", {"device", "branch", "main", "limit", "after", "format"}, get_leaderboard},
    {"bests", {"device", "limit", "after", "format"}, get_bests},
    {"bests/log", {"device", "case", "limit", "after", "format"}, get_best_log},
    {"devices", {"branch", "main", "format"}, get_devices},
    {"branches", {"limit", "format"}, get_branches},
    {"calibrations", {"device", "limit", "after", "format"}, get_calibrations},
    {"alerts", {"state", "device", "case", "kind", "limit", "after", "format"}, get_alerts},
    {"alerts/", {NULL}, get_alert},
    {"openapi.json", {NULL}, get_openapi},
};

const struct route *api_routes(size_t *n)
{
    *n = sizeof(routes) / sizeof(routes[0]);
    return routes;
}

bool api_owns(const char *path)
{
    return strncmp(path, "/api/", 5) == 0 || strcmp(path, "/api") == 0;
}

static const struct route *find_route(const char *path, const char **rest)
{
    if (strncmp(path, PREFIX, strlen(PREFIX)) != 0)
        return NULL;
    path += strlen(PREFIX);
    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
        size_t len = strlen(routes[i].path);
        bool takes_rest = routes[i].path[len - 1] == '/';
        if (strncmp(path, routes[i].path, len) == 0 && (takes_rest || path[len] == '\0')) {
            *rest = path + len;
            return &routes[i];
        }
    }
    return NULL;
}

static bool has_parameter(const struct route *route, const char *name)
{
    for (size_t i = 0; i < API_MAX_NAMES && route->parameters[i]; i++) {
        const char *other = route->parameters[i];
        if (other[0] == name[0] && strcmp(other, name) == 0)
            return true;
    }
    return false;
}

/* The first parameter that the route does not have, or NULL. */
static const char *unknown_parameter(const struct route *route, const struct request *request)
{
    for (size_t i = 0; i < request->n_parameters; i++) {
        if (!has_parameter(route, request->parameters[i].name))
            return request->parameters[i].name;
    }
    return NULL;
}

bool api_parameters_are_known(struct call *c, const struct route *route)
{
    const char *unknown = unknown_parameter(route, c->request);
    if (unknown)
        reply_problem(c->reply, 400, "The parameter '%s' is not known here.",
                      is_name(unknown, "_-", 64) ? unknown : "...");
    return !unknown;
}

void api_get(struct store *store, const char *main_branch, const struct request *request,
             struct reply *reply)
{
    struct call c = {
        .store = store, .main_branch = main_branch, .request = request, .reply = reply};
    const struct route *route = find_route(request->path, &c.rest);
    if (!route) {
        reply_problem(reply, 404, "There is no such address in the API.");
        return;
    }
    if (!api_parameters_are_known(&c, route))
        return;
    emit_init(&c.emit, &reply->body, EMIT_JSON);
    buf_init(&c.rows, REPLY_MAX_BODY);
    enum gate_status status = store_read_begin(store, &c.err);
    if (status == GATE_OK) {
        status = route->get(&c);
        store_read_end(store);
    }
    if (status != GATE_OK) {
        log_message(LOG_LEVEL_ERROR, "%s", c.err.message);
        reply_problem(reply, 503, "The database cannot be read now; the server's log says why.");
    } else if (reply->body.failed) {
        reply_problem(reply, 500, "The answer is too long.");
    }
    emit_release(&c.emit);
    buf_release(&c.rows);
}
