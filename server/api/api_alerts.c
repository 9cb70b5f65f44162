/* SPDX-License-Identifier: Apache-2.0 */
/* api_alerts.c: one alert, and what is done with alerts; see api_call.h and api_write.h. The list
 * is alerts.sql. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "server/api/api_call.h"
#include "server/api/api_write.h"
#include "server/api/rows.h"
#include "gate/base/clock.h"
#include "gate/base/json.h"
#include "gate/base/utf8.h"
#include "gate/store/store_alert.h"

/* Writes the alert with its log; *found is false when there is none, and the body is half of one.
 */
static enum gate_status put_whole(struct call *c, int64_t id, bool *found)
{
    char ids[32];
    int n = 0;
    const struct rows_value values[] = {{"ids", ids}, {NULL, NULL}};
    snprintf(ids, sizeof ids, "[%" PRId64 "]", id);
    emit_open(&c->emit, '{');
    enum gate_status status = rows_put(c, "alerts.sql", values, true, &n);
    *found = n > 0;
    if (!status)
        status = rows_select(c, "alert_log.sql", values, rows_put_json, &c->emit);
    emit_close(&c->emit, '}');
    buf_putc(c->emit.out, '\n');
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
        status = put_whole(c, id, &found);
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

static enum gate_status put_selection(struct call *c, const struct asked_action *asked)
{
    struct buf ids;
    buf_init(&ids, 32 * IDS_MAX);
    for (size_t i = 0; i < asked->n; i++)
        buf_printf(&ids, "%s%" PRId64, i == 0 ? "[" : ",", asked->ids[i]);
    buf_putc(&ids, ']');
    const struct rows_value values[] = {{"ids", ids.data}, {NULL, NULL}};
    rows_begin(c, "alerts");
    enum gate_status status = rows_put(c, "alerts.sql", values, false, NULL);
    rows_end(c);
    rows_close(c);
    buf_release(&ids);
    return status;
}

static enum gate_status act(struct api_write *w, struct asked_action *asked)
{
    struct call c = {.store = w->store, .reply = w->reply};
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
    emit_init(&c.emit, &w->reply->body);
    status = asked->is_one ? put_whole(&c, asked->ids[0], &found) : put_selection(&c, asked);
    if (status)
        w->err = c.err;
    emit_release(&c.emit);
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
