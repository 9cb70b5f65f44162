/* SPDX-License-Identifier: Apache-2.0 */
/* api_alerts.c: one alert, and what is done with alerts; see api_call.h. The list
 * is alerts.sql. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "server/api/api_call.h"
#include "server/api/rows.h"
#include "gate/base/clock.h"
#include "gate/base/json.h"
#include "gate/base/utf8.h"
#include "gate/store/store_alert.h"

#define IDS_MAX 1000
#define IDS_SIZE (IDS_MAX * sizeof "9007199254740991" + sizeof "]") /* as a JSON array */

/* Writes the alert with its log; *found is false when there is none, and the body is half of one.
 */
static enum gate_status put_whole(struct call *c, const char *ids, bool *found)
{
    int n = 0;
    const struct rows_value values[] = {{"ids", ids}, {NULL, NULL}};
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

/* "[7]" of the path's rest "7"; false: it is no number of an alert. */
static bool read_id(const char *rest, char ids[IDS_SIZE])
{
    int64_t id = strlen(rest) <= 18 ? parse_count(rest) : -1;
    snprintf(ids, IDS_SIZE, "[%" PRId64 "]", id);
    return id > 0;
}

enum gate_status get_alert(struct call *c)
{
    bool found = false;
    char ids[IDS_SIZE];
    enum gate_status status = GATE_OK;
    if (read_id(c->rest, ids))
        status = put_whole(c, ids, &found);
    if (!status && !found)
        no_alert(c->reply);
    return status;
}

/* ---- what is done with alerts ---- */

struct asked_action {
    struct alert_action action;
    bool is_one; /* of an address of its own; else of a selection */
    char reason[4 * ALERT_MAX_REASON + 1];
    char assignee[4 * ALERT_MAX_ASSIGNEE + 1];
    char ids[IDS_SIZE];
};

static bool refuse(struct api_write *w, const char *path, const char *message)
{
    reply_fault(w->reply, 400, path, message);
    return false;
}

static bool read_ids(struct api_write *w, const cJSON *document, struct asked_action *asked)
{
    const cJSON *ids = json_member(document, "ids"), *id = NULL;
    size_t len = 0;
    if (!cJSON_IsArray(ids) || cJSON_GetArraySize(ids) < 1 || cJSON_GetArraySize(ids) > IDS_MAX)
        return refuse(w, "/ids", "must be an array of 1 to 1000 numbers of alerts");
    cJSON_ArrayForEach (id, ids) {
        double value = cJSON_IsNumber(id) ? id->valuedouble : 0;
        if (!(value >= 1 && value <= 9007199254740991.0) || value != floor(value))
            return refuse(w, "/ids", "must be an array of 1 to 1000 numbers of alerts");
        len += (size_t)snprintf(asked->ids + len, sizeof asked->ids - len, "%s%.0f",
                                len == 0 ? "[" : ",", value);
    }
    snprintf(asked->ids + len, sizeof asked->ids - len, "]");
    return true;
}

static bool read_document(struct api_write *w, const cJSON *document, struct asked_action *asked)
{
    struct alert_action *action = &asked->action;
    const cJSON *reason = json_member(document, "reason"), *member = NULL;
    const cJSON *assignee = json_member(document, "assignee");
    bool has_others = false;
    if (!cJSON_IsObject(document))
        return refuse(w, "", "must be an object");
    cJSON_ArrayForEach (member, document)
        has_others |= !rows_is_one_of(member->string, asked->is_one ? "state reason assignee"
                                                                    : "ids state reason assignee");
    if (has_others)
        return refuse(w, "",
                      asked->is_one ? "may have a state, a reason and an assignee alone"
                                    : "may have ids, a state, a reason and an assignee "
                                      "alone");
    action->has_state = json_member(document, "state");
    if (action->has_state && !alert_state_of(json_string(document, "state", ""), &action->to))
        return refuse(w, "/state", "must be new, acknowledged, accepted, fixed or ignored");
    if (!action->has_state && !assignee)
        return refuse(w, "", "must have a state, an assignee, or both");
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
    if (assignee) {
        if (!cJSON_IsNull(assignee) && !cJSON_IsString(assignee))
            return refuse(w, "/assignee", "must be a string, or null");
        text = cJSON_IsString(assignee) ? assignee->valuestring : "";
        if (utf8_length(text) > ALERT_MAX_ASSIGNEE)
            return refuse(w, "/assignee", "is too long");
        if (cJSON_IsString(assignee) && (text[0] == '\0' || text[0] == ' '))
            return refuse(w, "/assignee", "must begin with a character that is seen");
        snprintf(asked->assignee, sizeof asked->assignee, "%s", text);
        action->assignee = asked->assignee;
    }
    return asked->is_one || read_ids(w, document, asked);
}

static enum gate_status act(struct api_write *w, struct asked_action *asked)
{
    struct call c = {.store = w->store, .reply = w->reply, .emit = {.out = &w->reply->body}};
    enum alert_step step;
    int64_t refused = 0;
    bool found;
    asked->action.now_ms = clock_wall_ms();
    enum gate_status status =
        store_act_on_alerts(w->store, asked->ids, &asked->action, &step, &refused, &w->err);
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
    if (asked->is_one) {
        status = put_whole(&c, asked->ids, &found);
    } else {
        rows_begin(&c, "alerts");
        status =
            rows_put(&c, "alerts.sql",
                     (const struct rows_value[]){{"ids", asked->ids}, {NULL, NULL}}, false, NULL);
        rows_end(&c);
        rows_close(&c);
    }
    if (status)
        w->err = c.err;
    return status;
}

/* False: it was refused. */
static bool read_body(struct api_write *w, struct asked_action *asked)
{
    struct gate_error err = {0};
    cJSON *document = NULL;
    asked->action.who = w->who->name;
    asked->action.reason = asked->reason;
    if (asked->is_one && !read_id(w->rest, asked->ids))
        return no_alert(w->reply);
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
