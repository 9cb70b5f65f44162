/* SPDX-License-Identifier: Apache-2.0 */
/* api_alerts.c: GET and POST of alerts; see api.h and api_write.h. */
#include <inttypes.h>
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
    if (!page_takes(p, "%" PRId64, row->id))
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
    return status;
}

static bool take_filter(struct call *c, struct alert_filter *out)
{
    const char *states[ALERT_STATES], *kinds[ALERT_KINDS];
    for (int i = 0; i < ALERT_STATES; i++)
        states[i] = alert_state_name((enum alert_state)i);
    for (int i = 0; i < ALERT_KINDS; i++)
        kinds[i] = alert_kind_name((enum alert_kind)i);
    return take_word(c, "state", states, ALERT_STATES, -1, &out->state) &&
           take_word(c, "kind", kinds, ALERT_KINDS, -1, &out->kind) &&
           take_device(c, false, &out->device_model) && take_case(c, false, &out->case_id);
}

enum gate_status get_alerts(struct call *c)
{
    struct alert_filter filter;
    struct page page = {.call = c};
    int64_t before;
    if (!take_format(c) || !take_filter(c, &filter) ||
        !take_limit(&page, ALERTS_DEFAULT, ALERTS_MAX) ||
        !take_number(c, "after", INT64_MAX, 1, INT64_MAX, &before))
        return GATE_OK;
    list_open(c, "alerts");
    enum gate_status status =
        store_alerts(c->store, &filter, before, page.limit + 1, list_row, &page, &c->err);
    if (page_end(&page) && !status)
        status = put_counts(c, &filter);
    if (list_lacks_header(c))
        put_alert(&c->emit, &(struct store_alert){.case_id = "",
                                                  .device_model = "",
                                                  .provider = "",
                                                  .contract = "",
                                                  .run_uuid = "",
                                                  .commit = "",
                                                  .before_commit = "",
                                                  .subject = "",
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
    reply_problem(reply, 404, "There is no alert of this number.");
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

/* ---- a step ---- */

struct asked_step {
    int64_t id;
    enum alert_state to;
    char reason[4 * ALERT_MAX_REASON + 1];
};

static bool refuse(struct api_write *w, const char *path, const char *message)
{
    reply_fault(w->reply, 400, path, message);
    return false;
}

static bool take_reason(struct api_write *w, const cJSON *document, struct asked_step *step)
{
    const cJSON *reason = cJSON_GetObjectItemCaseSensitive(document, "reason");
    if (reason && !cJSON_IsString(reason))
        return refuse(w, "/reason", "must be a string");
    const char *text = reason ? reason->valuestring : "";
    size_t blank = strspn(text, " \t\r\n");
    if (utf8_length(text) > ALERT_MAX_REASON)
        return refuse(w, "/reason", "is too long");
    if (text[blank] == '\0' && (step->to == ALERT_ACCEPTED || step->to == ALERT_IGNORED))
        return refuse(w, "/reason", "is needed for this state");
    snprintf(step->reason, sizeof step->reason, "%s", text + blank);
    return true;
}

static bool take_document(struct api_write *w, const cJSON *document, struct asked_step *step)
{
    const cJSON *member = NULL;
    if (!cJSON_IsObject(document))
        return refuse(w, "", "must be an object");
    cJSON_ArrayForEach (member, document) {
        if (strcmp(member->string, "state") != 0 && strcmp(member->string, "reason") != 0)
            return refuse(w, "", "has a member that is neither 'state' nor 'reason'");
    }
    if (!alert_state_of(json_string(document, "state", ""), &step->to))
        return refuse(w, "/state", "must be new, acknowledged, accepted, fixed or ignored");
    return take_reason(w, document, step);
}

static bool prepare_step(struct api_write *w)
{
    struct gate_error err = {0};
    cJSON *document = NULL;
    struct asked_step *step = calloc(1, sizeof *step);
    w->state = step;
    if (!step) {
        reply_problem(w->reply, 503, "The server is out of memory.");
        return false;
    }
    w->state_bytes = sizeof *step;
    step->id = id_of(w->rest);
    if (step->id <= 0)
        return no_alert(w->reply);
    if (json_parse("body", w->body, w->len, GATE_USAGE, &document, &err) != GATE_OK)
        return refuse(w, "", err.message);
    bool good = take_document(w, document, step);
    cJSON_Delete(document);
    return good;
}

static enum gate_status take_step(struct api_write *w, struct store *store, struct gate_error *err)
{
    const struct asked_step *asked = w->state;
    struct emit e;
    enum alert_step step;
    bool found;
    enum gate_status status = store_step_alert(store, asked->id, asked->to, w->who->name,
                                               asked->reason, clock_wall_ms(), &step, err);
    if (status)
        return status;
    if (step == STEP_NO_ALERT) {
        no_alert(w->reply);
        return GATE_OK;
    }
    if (step == STEP_REFUSED) {
        reply_problem(w->reply, 409, "From its present state the alert cannot go to '%s'.",
                      alert_state_name(asked->to));
        return GATE_OK;
    }
    emit_init(&e, &w->reply->body, EMIT_JSON);
    status = put_whole(store, asked->id, &e, &found, err);
    emit_release(&e);
    return status;
}

static void release_step(struct api_write *w)
{
    free(w->state);
    w->state = NULL;
}

const struct write_handler api_alert_step = {
    .may_gzip = false,
    .max_body = (size_t)16 << 10,
    .prepare = prepare_step,
    .run = take_step,
    .release = release_step,
};
