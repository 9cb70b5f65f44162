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

enum gate_status store_newest_run(struct store *s, int64_t *run_id, struct gate_error *err)
{
    *run_id = 0;
    struct query q = query_begin(s, "SELECT coalesce(max(id), 0) FROM run");
    return store_each_row(s, &q, id_row, run_id, err);
}

static bool text_row(struct query *q, void *call)
{
    buf_puts(call, column_text(q, 0));
    return true;
}

enum gate_status store_webhook_silences(struct store *s, const char *target, struct buf *out,
                                        bool *found, struct gate_error *err)
{
    struct query q = query_begin(s, "SELECT value FROM meta WHERE key = 'silences ' || ?1");
    bind_text(&q, target);
    buf_clear(out);
    enum gate_status status = store_each_row(s, &q, text_row, out, err);
    *found = out->len > 0;
    return status;
}

struct mark {
    struct store *store;
    const char *kind, *target;
    const char *text; /* NULL: the number */
    int64_t event_id;
};

static enum gate_status put_mark(void *context, struct gate_error *err)
{
    const struct mark *m = context;
    struct query q =
        query_begin(m->store, "INSERT INTO meta (key, value) VALUES (?1 || ' ' || ?2, ?3) "
                              "ON CONFLICT (key) DO UPDATE SET value = excluded.value");
    bind_text(&q, m->kind);
    bind_text(&q, m->target);
    if (m->text)
        bind_text(&q, m->text);
    else
        bind_int(&q, m->event_id);
    return store_finish(m->store, &q, err);
}

enum gate_status store_put_webhook_mark(struct store *s, const char *target, int64_t event_id,
                                        struct gate_error *err)
{
    struct mark m = {s, "webhook", target, NULL, event_id};
    return store_atomically(s, put_mark, &m, err);
}

enum gate_status store_put_webhook_silences(struct store *s, const char *target, const char *text,
                                            struct gate_error *err)
{
    struct mark m = {s, "silences", target, text, 0};
    return store_atomically(s, put_mark, &m, err);
}
