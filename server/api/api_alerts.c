/* SPDX-License-Identifier: Apache-2.0 */
/* api_alerts.c: GET and POST of alerts; see api.h and api_write.h. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/api/alert_json.h"
#include "server/api/api_call.h"
#include "server/api/api_write.h"
#include "gate/base/clock.h"
#include "gate/base/json.h"
#include "gate/base/utf8.h"

#define ALERTS_DEFAULT 200
#define ALERTS_MAX 1000

/* ---- the list ---- */

static void put_alert(struct emit *e, const struct store_alert *row)
{
    emit_row_begin(e);
    emit_alert_members(e, row);
    emit_row_end(e);
}

static bool list_row(void *context, const struct store_alert *row)
{
    struct page *p = context;
    if (!page_has_room(p, "%" PRId64, row->id))
        return false;
    put_alert(&p->call->emit, row);
    return true;
}

static enum gate_status put_counts(struct call *c, const struct alert_filter *filter)
{
    int64_t counts[ALERT_STATES] = {0};
    enum gate_status status = store_alert_counts(c->store, filter, counts, &c->err);
    emit_key(&c->emit, "counts");
    emit_open(&c->emit, '{');
    for (int i = 0; i < ALERT_STATES; i++)
        emit_integer_member(&c->emit, alert_state_name((enum alert_state)i), counts[i]);
    emit_close(&c->emit, '}');
    int64_t causes = 0;
    if (!status)
        status =
            store_open_causes(c->store, filter->device_model, filter->case_id, &causes, &c->err);
    emit_integer_member(&c->emit, "causes", causes);
    return status;
}

static bool read_filter(struct call *c, struct alert_filter *out)
{
    const char *states[ALERT_STATES], *kinds[ALERT_KINDS];
    for (int i = 0; i < ALERT_STATES; i++)
        states[i] = alert_state_name((enum alert_state)i);
    for (int i = 0; i < ALERT_KINDS; i++)
        kinds[i] = alert_kind_name((enum alert_kind)i);
    return read_word(c, "state", states, ALERT_STATES, -1, &out->state) &&
           read_word(c, "kind", kinds, ALERT_KINDS, -1, &out->kind) &&
           read_device(c, false, &out->device_model) && read_case(c, false, &out->case_id);
}

/* Whole groups: the page is full with the group that reaches its limit. */
struct grouped {
    struct page page;
    struct alert_filter filter;
    int64_t n;
    enum gate_status status;
};

static bool member_row(void *context, const struct store_alert *row)
{
    struct grouped *g = context;
    put_alert(&g->page.call->emit, row);
    g->n++;
    return true;
}

static bool leader_row(void *context, const struct store_alert *leader)
{
    struct grouped *g = context;
    struct call *c = g->page.call;
    if (g->n >= g->page.limit) {
        g->page.n = g->page.limit + 1; /* there is another page */
        return false;
    }
    snprintf(g->page.next, sizeof g->page.next, "%" PRId64, leader->id);
    g->status =
        store_alert_group(c->store, &g->filter, leader->id, ALERTS_MAX, member_row, g, &c->err);
    return !g->status;
}

static enum gate_status put_groups(struct grouped *g, int64_t before)
{
    struct call *c = g->page.call;
    enum gate_status status =
        store_alerts(c->store, &g->filter, true, before, g->page.limit + 1, leader_row, g, &c->err);
    return g->status ? g->status : status;
}

enum gate_status get_alerts(struct call *c)
{
    struct grouped grouped = {.page = {.call = c}};
    struct alert_filter *filter = &grouped.filter;
    struct page *page = &grouped.page;
    int64_t before, groups;
    if (!read_format(c) || !read_filter(c, filter) || !read_number(c, "groups", 0, 0, 1, &groups) ||
        !read_limit(page, ALERTS_DEFAULT, ALERTS_MAX) ||
        !read_number(c, "after", INT64_MAX, 1, INT64_MAX, &before))
        return GATE_OK;
    list_open(c, "alerts");
    enum gate_status status = groups ? put_groups(&grouped, before)
                                     : store_alerts(c->store, filter, false, before,
                                                    page->limit + 1, list_row, page, &c->err);
    if (page_end(page) && !status)
        status = put_counts(c, filter);
    if (list_lacks_header(c))
        put_alert(&c->emit, &(struct store_alert){.case_id = "",
                                                  .device_model = "",
                                                  .provider = "",
                                                  .contract = "",
                                                  .run_uuid = "",
                                                  .commit = "",
                                                  .parent = "",
                                                  .machine = "",
                                                  .before_commit = "",
                                                  .subject = "",
                                                  .author = "",
                                                  .before_subject = "",
                                                  .before_author = "",
                                                  .assignee = "",
                                                  .evidence = "",
                                                  .reason = "",
                                                  .who = ""});
    list_close(c);
    return status;
}

/* ---- one alert ---- */

static bool one_row(void *context, const struct store_alert *row)
{
    struct emit *e = context;
    emit_open(e, '{');
    emit_alert_members(e, row);
    return true;
}

static bool event_row(void *context, const struct store_alert_event *row)
{
    struct emit *e = context;
    emit_open(e, '{');
    emit_alert_event_members(e, row);
    emit_close(e, '}');
    return true;
}

/* Writes the alert with its log; *found is false, and nothing is written, when there is none. */
static enum gate_status put_whole(struct store *store, int64_t id, struct emit *e, bool *found,
                                  struct gate_error *err)
{
    enum gate_status status = store_find_alert(store, id, one_row, e, found, err);
    if (status || !*found)
        return status;
    emit_key(e, "log");
    emit_open(e, '[');
    status = store_alert_log(store, id, event_row, e, err);
    emit_close(e, ']');
    emit_close(e, '}');
    buf_putc(e->out, '\n');
    return status;
}

static bool no_alert(struct reply *reply)
{
    reply_problem(reply, 404, "No alert has this number.");
    return false;
}

static int64_t id_of(const char *rest)
{
    return strlen(rest) <= 18 ? parse_count(rest) : -1;
}

enum gate_status get_alert(struct call *c)
{
    bool found = false;
    int64_t id = id_of(c->rest);
    enum gate_status status = GATE_OK;
    if (id > 0)
        status = put_whole(c->store, id, &c->emit, &found, &c->err);
    if (!status && !found)
        no_alert(c->reply);
    return status;
}

/* ---- what is done with alerts ---- */

#define IDS_MAX 1000

struct asked_action {
    struct alert_action action;
    bool is_one; /* of an address of its own; else of a selection */
    char reason[4 * ALERT_MAX_REASON + 1];
    char assignee[4 * ALERT_MAX_ASSIGNEE + 1];
    size_t n;
    int64_t ids[IDS_MAX];
};

static bool refuse(struct api_write *w, const char *path, const char *message)
{
    reply_fault(w->reply, 400, path, message);
    return false;
}

static bool read_state(struct api_write *w, const cJSON *document, struct asked_action *asked)
{
    struct alert_action *action = &asked->action;
    action->has_state = json_member(document, "state");
    if (action->has_state && !alert_state_of(json_string(document, "state", ""), &action->to))
        return refuse(w, "/state", "must be new, acknowledged, accepted, fixed or ignored");
    if (!action->has_state && !json_member(document, "assignee"))
        return refuse(w, "", "must have a state, an assignee, or both");
    return true;
}

static bool read_reason(struct api_write *w, const cJSON *document, struct asked_action *asked)
{
    const struct alert_action *action = &asked->action;
    const cJSON *reason = json_member(document, "reason");
    if (reason && !cJSON_IsString(reason))
        return refuse(w, "/reason", "must be a string");
    const char *text = reason ? reason->valuestring : "";
    text += strspn(text, " \t\r\n");
    if (utf8_length(text) > ALERT_MAX_REASON)
        return refuse(w, "/reason", "is too long");
    if (text[0] == '\0' && action->has_state &&
        (action->to == ALERT_ACCEPTED || action->to == ALERT_IGNORED))
        return refuse(w, "/reason", "is needed for this state");
    snprintf(asked->reason, sizeof asked->reason, "%s", text);
    return true;
}

static bool read_assignee(struct api_write *w, const cJSON *document, struct asked_action *asked)
{
    const cJSON *assignee = json_member(document, "assignee");
    if (!assignee)
        return true;
    if (!cJSON_IsNull(assignee) && !cJSON_IsString(assignee))
        return refuse(w, "/assignee", "must be a string, or null");
    const char *text = cJSON_IsString(assignee) ? assignee->valuestring : "";
    if (utf8_length(text) > ALERT_MAX_ASSIGNEE)
        return refuse(w, "/assignee", "is too long");
    if (cJSON_IsString(assignee) && (text[0] == '\0' || text[0] == ' '))
        return refuse(w, "/assignee", "must begin with a character that is seen");
    snprintf(asked->assignee, sizeof asked->assignee, "%s", text);
    asked->action.assignee = asked->assignee;
    return true;
}

static bool read_ids(struct api_write *w, const cJSON *document, struct asked_action *asked)
{
    const cJSON *ids = json_member(document, "ids"), *id = NULL;
    if (asked->is_one)
        return true;
    if (!cJSON_IsArray(ids) || cJSON_GetArraySize(ids) < 1 || cJSON_GetArraySize(ids) > IDS_MAX)
        return refuse(w, "/ids", "must be an array of 1 to 1000 numbers of alerts");
    cJSON_ArrayForEach (id, ids) {
        double value = cJSON_IsNumber(id) ? id->valuedouble : 0;
        if (!(value >= 1 && value <= 9007199254740991.0) || value != floor(value))
            return refuse(w, "/ids", "must be an array of 1 to 1000 numbers of alerts");
        asked->ids[asked->n++] = (int64_t)value;
    }
    return true;
}

static bool has_other_members(const cJSON *document, const struct asked_action *asked)
{
    static const char *const names[] = {"state", "reason", "assignee", "ids"};
    const cJSON *member = NULL;
    cJSON_ArrayForEach (member, document) {
        size_t i = 0, n = asked->is_one ? 3 : 4;
        while (i < n && strcmp(member->string, names[i]) != 0)
            i++;
        if (i == n)
            return true;
    }
    return false;
}

static bool read_document(struct api_write *w, const cJSON *document, struct asked_action *asked)
{
    if (!cJSON_IsObject(document))
        return refuse(w, "", "must be an object");
    if (has_other_members(document, asked))
        return refuse(w, "",
                      asked->is_one ? "may have a state, a reason and an assignee alone"
                                    : "may have ids, a state, a reason and an assignee "
                                      "alone");
    return read_state(w, document, asked) && read_reason(w, document, asked) &&
           read_assignee(w, document, asked) && read_ids(w, document, asked);
}

static bool selected_row(void *context, const struct store_alert *row)
{
    put_alert(context, row);
    return true;
}

static enum gate_status put_selection(struct store *store, const struct asked_action *asked,
                                      struct emit *e, struct gate_error *err)
{
    enum gate_status status = GATE_OK;
    bool found;
    emit_open(e, '{');
    emit_key(e, "alerts");
    emit_open(e, '[');
    for (size_t i = 0; i < asked->n && !status; i++)
        status = store_find_alert(store, asked->ids[i], selected_row, e, &found, err);
    emit_close(e, ']');
    emit_close(e, '}');
    buf_putc(e->out, '\n');
    return status;
}

static enum gate_status act(struct api_write *w, struct asked_action *asked)
{
    struct emit e;
    enum alert_step step;
    int64_t refused = 0;
    bool found;
    asked->action.now_ms = clock_wall_ms();
    enum gate_status status = store_act_on_alerts(w->store, asked->ids, asked->n, &asked->action,
                                                  &step, &refused, &w->err);
    if (status)
        return status;
    if (step == STEP_NO_ALERT && asked->is_one)
        no_alert(w->reply);
    else if (step == STEP_NO_ALERT)
        reply_problem(w->reply, 404, "There is no alert %" PRId64 "; nothing was changed.",
                      refused);
    else if (step == STEP_REFUSED)
        reply_problem(w->reply, 409,
                      "From its present state alert %" PRId64
                      " cannot go to '%s'; nothing was changed.",
                      refused, alert_state_name(asked->action.to));
    if (step != STEP_DONE)
        return GATE_OK;
    emit_init(&e, &w->reply->body, EMIT_JSON);
    status = asked->is_one ? put_whole(w->store, asked->ids[0], &e, &found, &w->err)
                           : put_selection(w->store, asked, &e, &w->err);
    emit_release(&e);
    return status;
}

/* False: it was refused. */
static bool read_body(struct api_write *w, struct asked_action *asked)
{
    struct gate_error err = {0};
    cJSON *document = NULL;
    asked->action.who = w->who->name;
    asked->action.reason = asked->reason;
    if (asked->is_one) {
        asked->ids[asked->n++] = id_of(w->rest);
        if (asked->ids[0] <= 0)
            return no_alert(w->reply);
    }
    if (json_parse("body", w->body, w->len, GATE_USAGE, &document, &err) != GATE_OK)
        return refuse(w, "", err.message);
    bool good = read_document(w, document, asked);
    cJSON_Delete(document);
    return good;
}

static enum gate_status post_alert(struct api_write *w)
{
    struct asked_action asked = {.is_one = true};
    return read_body(w, &asked) ? act(w, &asked) : GATE_OK;
}

static enum gate_status post_alerts(struct api_write *w)
{
    struct asked_action asked = {0};
    return read_body(w, &asked) ? act(w, &asked) : GATE_OK;
}

const struct write_handler api_alert_action = {
    .max_body = (size_t)16 << 10,
    .write = post_alert,
};

const struct write_handler api_alerts_action = {
    .max_body = (size_t)32 << 10,
    .write = post_alerts,
};
