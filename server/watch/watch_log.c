/* SPDX-License-Identifier: Apache-2.0 */
/* watch_log.c: see watch_log.h. */
#include "server/watch/watch_log.h"

#include "gate/store/store_alert.h"
#include "gate/store/store_webhook.h"
#include "server/api/alert_json.h"
#include "server/ops/log.h"

#define MAX_GROUPS 10 /* that a commit has lines for */

static void begin(struct log_line *line, const char *state, const struct store_alert *alert,
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

/* A group that had alerts opened or closed, and its lines, which are not written yet. */
struct group_lines {
    struct store_alert_group group;
    struct log_line opened, closed;
};

static bool prepare(void *context, const struct store_alert *alert)
{
    struct group_lines *t = context;
    const struct store_alert_group *g = &t->group;
    bool was_open = g->n_open - g->n_opened + g->n_closed > 0;
    if (!was_open && g->n_opened > 0)
        begin(&t->opened, "opened", alert, g->n_opened);
    if (g->n_open == 0 && g->n_closed > 0) {
        begin(&t->closed, "closed", alert, g->n_closed);
        log_word(&t->closed, "as", alert_state_name(alert->state));
        log_text(&t->closed, "who", alert->who);
        log_text(&t->closed, "reason", alert->reason);
    }
    return true;
}

static void write_lines(struct group_lines *t)
{
    log_end(&t->opened);
    log_end(&t->closed);
}

static void drop_lines(struct group_lines *t)
{
    log_drop(&t->opened);
    log_drop(&t->closed);
}

/* All lines or, where one of them cannot be made, none: the next call begins anew. */
static enum gate_status log_groups(const struct watch_log *l, struct store *s,
                                   struct gate_error *err)
{
    struct store_alert_group group[MAX_GROUPS + 1];
    struct group_lines lines[MAX_GROUPS];
    size_t n, n_read = 0;
    bool found;
    enum gate_status status =
        store_alert_groups_moved(s, l->event_id, group, MAX_GROUPS + 1, &n, err);
    for (; n_read < n && n_read < MAX_GROUPS && !status; n_read++) {
        lines[n_read] = (struct group_lines){.group = group[n_read]};
        status = store_find_alert(s, group[n_read].alert_id, prepare, &lines[n_read], &found, err);
    }
    for (size_t i = 0; i < n_read; i++)
        (status ? drop_lines : write_lines)(&lines[i]);
    if (!status && n > MAX_GROUPS)
        log_message(LOG_LEVEL_INFO, "alerts of more groups were opened or closed: see the page");
    return status;
}

void watch_log_groups(struct watch_log *l, struct store *s)
{
    struct gate_error err = {0};
    int64_t newest = 0;
    enum gate_status status = store_newest_event(s, &newest, &err);
    if (!status && l->begun && newest > l->event_id && log_wants(LOG_LEVEL_INFO))
        status = log_groups(l, s, &err);
    if (status)
        log_message(LOG_LEVEL_ERROR, "%s", err.message);
    else
        *l = (struct watch_log){.begun = true, .event_id = newest};
}
