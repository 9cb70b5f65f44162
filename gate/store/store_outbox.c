/* SPDX-License-Identifier: Apache-2.0 */
/* store_outbox.c: what `gate push` sends; see store.h. */
#include "gate/store/store_private.h"

#include <stdio.h>
#include <string.h>

#include "gate/base/alloc.h"

static const char *const kinds[OUTBOX_KINDS] = {"run", "library"};

enum gate_status store_outbox_put(struct store *s, const char *server, enum store_outbox_kind kind,
                                  const char *id, int64_t time_ms, struct gate_error *err)
{
    return store_change(
        s,
        "INSERT INTO outbox (server, kind, id, time_ms, state, reason) "
        "VALUES (?1, ?2, ?3, ?4, 'waiting', '') "
        "ON CONFLICT DO UPDATE SET state = 'waiting', reason = ''",
        CELLS(cell_text(server), cell_text(kinds[kind]), cell_text(id), cell_integer(time_ms)),
        NULL, err);
}

enum gate_status store_outbox_settle(struct store *s, const char *server,
                                     const struct store_outbox_entry *entry, const char *reason,
                                     struct gate_error *err)
{
    return store_change(s,
                        "UPDATE outbox SET state = iif(?4 IS NULL, 'sent', 'refused'),"
                        " reason = coalesce(?4, '') WHERE server = ?1 AND kind = ?2 AND id = ?3",
                        CELLS(cell_text(server), cell_text(kinds[entry->kind]),
                              cell_text(entry->id), cell_text(reason)),
                        NULL, err);
}

enum gate_status store_outbox_read(struct store *s, const char *server, enum store_outbox_list list,
                                   struct store_outbox_entry **out, size_t *n,
                                   struct gate_error *err)
{
    struct store_outbox_entry *entries = NULL;
    size_t room = 0;
    *n = 0;
    struct query q =
        query_begin(s,
                    list == OUTBOX_WAITING ? "SELECT kind, id FROM outbox "
                                             "WHERE server = ?1 AND state = 'waiting' "
                                             "ORDER BY time_ms, kind DESC, id"
                                           : "SELECT 'run', r.uuid FROM run r WHERE NOT EXISTS"
                                             " (SELECT 1 FROM outbox o WHERE o.server = ?1"
                                             "  AND o.kind = 'run' AND o.id = r.uuid) "
                                             "ORDER BY r.time_ms, r.uuid",
                    CELLS(cell_text(server)));
    while (query_row(&q)) {
        if (*n == room) {
            room = 2 * room + 16;
            entries = xrealloc(entries, room, sizeof *entries);
        }
        struct store_outbox_entry *entry = &entries[(*n)++];
        entry->kind = strcmp(column_text(&q, 0), kinds[OUTBOX_RUN]) ? OUTBOX_LIBRARY : OUTBOX_RUN;
        snprintf(entry->id, sizeof entry->id, "%s", column_text(&q, 1));
    }
    *out = entries;
    return query_done(s, &q, err);
}
