/* SPDX-License-Identifier: Apache-2.0 */
/* alerts_log.c: what the log says of alerts; see alerts.h. */
#include "gate/store/store_alert.h"
#include "gate/store/store_webhook.h"
#include "server/api/alert_json.h"
#include "server/ops/log.h"
#include "server/watch/alerts.h"

#define MAX_GROUPS 10 /* that a turn has lines of the log for */

static void begin_line(struct log_line *line, const char *state, const struct store_alert *alert,
                       int64_t n_alerts)
{
    char group[ALERT_MAX_GROUP];
    log_begin(line, LOG_LEVEL_INFO, "alerts");
    log_word(line, "state", state);
    log_text(line, "group", alert_group(alert, group));
    log_number(line, "alerts", n_alerts);
    log_word(line, "kind", alert_kind_name(alert->kind));
    log_text(line, "case", alert->case_id);
    log_text(line, "device", alert->device_model);
}

static void end_line(struct log_line *line, const struct store_alert *alert)
{
    char text[ALERT_MAX_SENTENCE];
    log_text(line, "text", alert_sentence(alert, text));
    log_end(line);
}

static bool log_group(void *context, const struct store_alert *alert)
{
    const struct store_alert_group *g = context;
    struct log_line line;
    bool was_open = g->n_open - g->n_opened + g->n_closed > 0;
    if (!was_open && g->n_opened > 0) {
        begin_line(&line, "opened", alert, g->n_opened);
        end_line(&line, alert);
    }
    if (g->n_open == 0 && g->n_closed > 0) {
        begin_line(&line, "closed", alert, g->n_closed);
        log_word(&line, "as", alert_state_name(alert->state));
        log_text(&line, "who", alert->who);
        log_text(&line, "reason", alert->reason);
        end_line(&line, alert);
    }
    return true;
}

/* What cannot be read of one group is no reason to leave out the others. */
static enum gate_status log_groups(const struct alerts_log *l, struct store *s,
                                   struct gate_error *err)
{
    struct store_alert_group group[MAX_GROUPS + 1];
    size_t n;
    bool found;
    enum gate_status status =
        store_alert_groups_moved(s, l->event_id, group, MAX_GROUPS + 1, &n, err);
    for (size_t i = 0; i < n && i < MAX_GROUPS && !status; i++) {
        struct gate_error why = {0};
        if (store_find_alert(s, group[i].alert_id, log_group, &group[i], &found, &why) != GATE_OK)
            log_message(LOG_LEVEL_ERROR, "%s", why.message);
    }
    if (!status && n > MAX_GROUPS)
        log_message(LOG_LEVEL_INFO, "alerts of more groups were opened or closed: see the page");
    return status;
}

void alerts_log(struct alerts_log *l, struct store *s)
{
    struct gate_error err = {0};
    int64_t newest = 0;
    enum gate_status status = store_newest_event(s, &newest, &err);
    if (!status && l->begun && newest > l->event_id && log_wants(LOG_LEVEL_INFO))
        status = log_groups(l, s, &err);
    if (status)
        log_message(LOG_LEVEL_ERROR, "%s", err.message);
    else
        *l = (struct alerts_log){.begun = true, .event_id = newest};
}
