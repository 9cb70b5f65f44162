/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_outbox.h: what `gate push` is to send to a server, and what it has sent.
 *
 * A run is known by its uuid; a library, which lies in the artifact cache, by its SHA-256. `server`
 * is the server's address. A mark outlives the process: what waits is sent by a later push.
 */
#ifndef GATE_STORE_STORE_OUTBOX_H
#define GATE_STORE_STORE_OUTBOX_H

#include "gate/store/store.h"

enum store_outbox_kind { OUTBOX_RUN, OUTBOX_LIBRARY, OUTBOX_KINDS };

struct store_outbox_entry {
    enum store_outbox_kind kind;
    char id[65];
};

enum store_outbox_list {
    OUTBOX_WAITING, /* what is to be sent */
    OUTBOX_UNKNOWN, /* runs that neither wait, nor were sent or refused */
};

/* It waits from now on, also if it was sent or refused before. `time_ms` is the run's. */
enum gate_status store_outbox_put(struct store *s, const char *server, enum store_outbox_kind kind,
                                  const char *id, int64_t time_ms, struct gate_error *err);

/* Oldest first, of each run before its library. *out is the caller's (free()). */
enum gate_status store_outbox_read(struct store *s, const char *server, enum store_outbox_list list,
                                   struct store_outbox_entry **out, size_t *n,
                                   struct gate_error *err);

/* The server has it, or will never take it for this reason (NULL: it has it). */
enum gate_status store_outbox_settle(struct store *s, const char *server,
                                     const struct store_outbox_entry *entry, const char *reason,
                                     struct gate_error *err);

#endif
