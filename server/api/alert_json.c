/* SPDX-License-Identifier: Apache-2.0 */
/* alert_json.c: see alert_json.h. */
#include "server/api/alert_json.h"

#include <math.h>
#include <stdio.h>

#include "gate/report/report_units.h"

const char *alert_group(const struct store_alert *alert, char out[ALERT_MAX_GROUP])
{
    if (alert->commit[0])
        snprintf(out, ALERT_MAX_GROUP, "%s..%s", alert->before_commit, alert->commit);
    else
        snprintf(out, ALERT_MAX_GROUP, "%s", alert->run_uuid);
    return out;
}

/* What happened, behind "CASE on DEVICE ". */
static void describe(const struct store_alert *a, char *out, size_t size)
{
    char change[UNITS_MAX], from[UNITS_MAX], to[UNITS_MAX];
    const char *how = a->kind == ALERT_IMPROVEMENT ? "faster" : "slower";
    if (a->kind == ALERT_WRONG) {
        snprintf(out, size, "is wrong");
        return;
    }
    if (a->kind == ALERT_ERROR) {
        snprintf(out, size, "is less accurate: %s %.3g to %.3g",
                 a->by_vendor ? "error over the vendor's" : "relative error", a->before, a->after);
        return;
    }
    units_duration(a->before, from);
    units_duration(a->after, to);
    if (a->kind == ALERT_REGRESSION && a->change <= 0) /* a verdict on its error */
        snprintf(out, size, "is a regression: %s to %s", from, to);
    else
        snprintf(out, size, "is %s %s: %s to %s", units_percent(fabs(a->change), change), how, from,
                 to);
}

const char *alert_sentence(const struct store_alert *a, char out[ALERT_MAX_SENTENCE])
{
    char what[200];
    bool has_commit = a->commit[0] != '\0', is_machine = a->machine[0] != '\0';
    describe(a, what, sizeof what);
    snprintf(out, ALERT_MAX_SENTENCE, "%.160s on %.64s %s%s%.*s%s", a->case_id, a->device_model,
             what,
             is_machine   ? " since another machine measures: "
             : has_commit ? " since commit "
                          : "",
             is_machine ? 64 : 12, is_machine ? a->machine : a->commit,
             a->kind == ALERT_REGRESSION && a->is_over_now ? ", now over the threshold" : "");
    return out;
}

void emit_alert_members(struct emit *e, const struct store_alert *alert)
{
    bool in_ns = alert->kind != ALERT_ERROR;
    bool has_change = alert->kind != ALERT_WRONG;
    char group[ALERT_MAX_GROUP], sentence[ALERT_MAX_SENTENCE];
    emit_integer_member(e, "id", alert->id);
    emit_string_member(e, "case", alert->case_id);
    emit_string_member(e, "device", alert->device_model);
    emit_known_string(e, "provider", alert->provider);
    emit_string_member(e, "contract", alert->contract);
    emit_string_member(e, "kind", alert_kind_name(alert->kind));
    emit_string_member(e, "state", alert_state_name(alert->state));
    emit_integer_member(e, "time_ms", alert->time_ms);
    emit_string_member(e, "run", alert->run_uuid);
    emit_known_string(e, "commit", alert->commit);
    emit_known_string(e, "subject", alert->subject);
    emit_known_string(e, "author", alert->author);
    emit_known_string(e, "parent", alert->parent);
    emit_known_string(e, "machine", alert->machine);
    emit_known_string(e, "before_commit", alert->before_commit);
    emit_known_string(e, "before_subject", alert->before_subject);
    emit_known_string(e, "before_author", alert->before_author);
    emit_string_member(e, "group", alert_group(alert, group));
    emit_string_member(e, "text", alert_sentence(alert, sentence));
    emit_key(e, "change");
    if (has_change)
        emit_real(e, alert->change);
    else
        emit_null(e);
    emit_known_real(e, "before_ns", in_ns ? alert->before : 0.0);
    emit_known_real(e, "after_ns", in_ns ? alert->after : 0.0);
    emit_known_real(e, "before_error", in_ns ? 0.0 : alert->before);
    emit_known_real(e, "after_error", in_ns ? 0.0 : alert->after);
    emit_bool_member(e, "by_vendor", alert->by_vendor);
    emit_bool_member(e, "confirmed", alert->confirmed);
    emit_known_string(e, "evidence", alert->evidence);
    emit_string_member(e, "reason", alert->reason);
    emit_string_member(e, "who", alert->who);
    emit_known_string(e, "assignee", alert->assignee);
    emit_integer_member(e, "updated_ms", alert->updated_ms);
    emit_key(e, "closed_ms");
    if (alert->closed_ms > 0)
        emit_integer(e, alert->closed_ms);
    else
        emit_null(e);
}

void emit_alert_event_members(struct emit *e, const struct store_alert_event *event)
{
    emit_integer_member(e, "time_ms", event->time_ms);
    emit_string_member(e, "who", event->who);
    emit_known_string(e, "from", event->from);
    emit_string_member(e, "to", event->to);
    emit_string_member(e, "reason", event->reason);
}
