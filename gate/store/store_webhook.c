/* SPDX-License-Identifier: Apache-2.0 */
/* store_webhook.c: see store_webhook.h. */
#include "gate/store/store_webhook.h"

#include "gate/store/store_private.h"

static bool id_row(struct query *q, void *call)
{
    *(int64_t *)call = column_int(q, 0);
    return true;
}

enum gate_status store_webhook_mark(struct store *s, const char *target, int64_t *event_id,
                                    struct gate_error *err)
{
    *event_id = -1;
    struct query q = query_begin(s, "SELECT value FROM meta WHERE key = 'webhook ' || ?1");
    bind_text(&q, target);
    return store_each_row(s, &q, id_row, event_id, err);
}

enum gate_status store_newest_event(struct store *s, int64_t *event_id, struct gate_error *err)
{
    *event_id = 0;
    struct query q = query_begin(s, "SELECT coalesce(max(id), 0) FROM alert_event");
    return store_each_row(s, &q, id_row, event_id, err);
}

struct mark {
    struct store *store;
    const char *target;
    int64_t event_id;
};

static enum gate_status put_mark(void *context, struct gate_error *err)
{
    const struct mark *m = context;
    struct query q =
        query_begin(m->store, "INSERT INTO meta (key, value) VALUES ('webhook ' || ?1, ?2) "
                              "ON CONFLICT (key) DO UPDATE SET value = excluded.value");
    bind_text(&q, m->target);
    bind_int(&q, m->event_id);
    return store_finish(m->store, &q, err);
}

enum gate_status store_put_webhook_mark(struct store *s, const char *target, int64_t event_id,
                                        struct gate_error *err)
{
    struct mark m = {s, target, event_id};
    return store_atomically(s, put_mark, &m, err);
}
