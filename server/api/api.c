/* SPDX-License-Identifier: Apache-2.0 */
/* api.c: calls the handler of a route; see api_call.h. */

#include <string.h>

#include "server/api/api_call.h"
#include "server/api/rows.h"
#include "server/ops/log.h"

bool api_refuse_parameters(const struct route *route, const struct request *request,
                           struct reply *reply)
{
    for (size_t i = 0; i < request->n_parameters; i++) {
        const char *name = request->parameters[i].name;
        bool is_known = route->query && rows_takes(route->query, name);
        for (size_t k = 0; k < ROUTE_MAX_PARAMETERS && route->parameters[k] && !is_known; k++)
            is_known = !strcmp(route->parameters[k], name);
        if (is_known)
            continue;
        reply_problem(reply, 400, "The parameter '%s' is not known here.",
                      is_name(name, "_-", 64) ? name : "...");
        return true;
    }
    return false;
}

/* Tagged by the address in the state that the store has now: the same after a restart. */
static enum gate_status answer(const struct route *route, struct call *c, const char *if_none_match)
{
    struct store_state state;
    enum gate_status status = store_state(c->store, &state, &c->err);
    if (status)
        return status;
    struct etag tag =
        etag_of_texts((const char *[]){c->site.speaker, state.text, c->request->target}, 3);
    if (etag_is_named(&tag, if_none_match)) {
        c->reply->status = 304;
        c->reply->varies = true;
    } else {
        status = route->get(c);
    }
    if (!status && c->reply->status < 400)
        c->reply->etag = tag;
    return status;
}

void api_get(const struct route *route, const char *rest, struct store *store,
             const struct api_site *site, const struct request *request, const char *if_none_match,
             struct reply *reply)
{
    struct call c = {.store = store,
                     .site = *site,
                     .request = request,
                     .query = route->query,
                     .rest = rest,
                     .reply = reply,
                     .emit = {.out = &reply->body}};
    enum gate_status status = store_read_begin(store, &c.err);
    if (!status) {
        status = answer(route, &c, if_none_match);
        store_read_end(store);
    }
    if (status) {
        log_message(LOG_LEVEL_ERROR, "%s", c.err.message);
        reply_problem(reply, 503, "The database cannot be read now; the server's log says why.");
        reply->retry_after = 1;
    } else if (reply->body.failed) {
        reply_problem(reply, 500, "The answer is too long.");
    }
}
