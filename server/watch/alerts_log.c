/* SPDX-License-Identifier: Apache-2.0 */
/* alerts_log.c: what the log says of alerts; see alerts.h. */
#include <stdio.h>
#include <string.h>

#include "server/api/api_call.h"
#include "server/api/rows.h"
#include "server/ops/log.h"
#include "server/watch/alerts.h"

#define MAX_GROUPS 10 /* that a turn has lines of the log for */

/* A group, and how many of its alerts were opened and closed lately. */
struct moved_group {
    int64_t alert_id; /* the newest of those */
    int64_t n_opened, n_closed;
    int64_t n_open; /* now */
};

struct moved_groups {
    struct moved_group group[MAX_GROUPS + 1];
    size_t n;
};

static bool group_row(void *context, const struct store_row *row)
{
    struct moved_groups *m = context;
    m->group[m->n++] = (struct moved_group){
        .alert_id = store_integer_of(row, "alert_id"),
        .n_opened = store_integer_of(row, "n_opened"),
        .n_closed = store_integer_of(row, "n_closed"),
        .n_open = store_integer_of(row, "n_open"),
    };
    return m->n <= MAX_GROUPS;
}

static void log_step(const struct store_row *alert, const char *state, int64_t n_alerts)
{
    struct log_line line;
    log_begin(&line, LOG_LEVEL_INFO, "alerts");
    log_word(&line, "state", state);
    log_text(&line, "group", store_text_of(alert, "group"));
    log_number(&line, "alerts", n_alerts);
    log_word(&line, "kind", store_text_of(alert, "kind"));
    log_text(&line, "case", store_text_of(alert, "case"));
    log_text(&line, "device", store_text_of(alert, "device"));
    if (!strcmp(state, "closed")) {
        log_word(&line, "as", store_text_of(alert, "state"));
        log_text(&line, "who", store_text_of(alert, "who"));
        log_text(&line, "reason", store_text_of(alert, "reason"));
    }
    log_text(&line, "text", store_text_of(alert, "text"));
    log_end(&line);
}

static bool log_group(void *context, const struct store_row *alert)
{
    const struct moved_group *g = context;
    bool was_open = g->n_open - g->n_opened + g->n_closed > 0;
    if (!was_open && g->n_opened > 0)
        log_step(alert, "opened", g->n_opened);
    if (g->n_open == 0 && g->n_closed > 0)
        log_step(alert, "closed", g->n_closed);
    return true;
}

static bool newest_row(void *context, const struct store_row *row)
{
    *(int64_t *)context = store_integer_of(row, "newest_event");
    return false;
}

void alerts_log(struct alerts_log *l, struct store *s)
{
    static const struct rows_value none[] = {{NULL, NULL}};
    struct call call = {.store = s};
    struct moved_groups moved = {.n = 0};
    char after[24], ids[24];
    const struct rows_value values[] = {{"after", after}, {"ids", ids}, {NULL, NULL}};
    int64_t newest = 0;
    enum gate_status status = rows_select(&call, "webhook.sql", none, newest_row, &newest);
    snprintf(after, sizeof after, "%lld", (long long)l->event_id);
    if (!status && l->begun && newest > l->event_id && log_wants(LOG_LEVEL_INFO))
        status = rows_select(&call, "alert_groups.sql", values, group_row, &moved);
    for (size_t i = 0; i < moved.n && i < MAX_GROUPS && !status; i++) {
        snprintf(ids, sizeof ids, "[%lld]", (long long)moved.group[i].alert_id);
        /* What cannot be read of one group is no reason to leave out the others. */
        if (rows_select(&call, "alerts.sql", values, log_group, &moved.group[i]) != GATE_OK)
            log_message(LOG_LEVEL_ERROR, "%s", call.err.message);
    }
    if (!status && moved.n > MAX_GROUPS)
        log_message(LOG_LEVEL_INFO, "alerts of more groups were opened or closed: see the page");
    if (status)
        log_message(LOG_LEVEL_ERROR, "%s", call.err.message);
    else
        *l = (struct alerts_log){.begun = true, .event_id = newest};
}
