/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool.h: what is to be sent to a tracking server and is not there yet.
 *
 *     <spool>/<server>/<time>-<uuid>.run         a run document, as gzip
 *     <spool>/<server>/<time>-<sha256>.library   empty: that artifact of the cache
 *     <spool>/<server>/refused/<the same name>   what the server will never take, and
 *     <spool>/<server>/refused/<name>.reason     why not
 *
 * <spool> is $GATE_SPOOL, else $XDG_STATE_HOME/kernel-gate/spool, else
 * $HOME/.local/state/kernel-gate/spool; <server> is the server's address with '+' for '/' and '%'
 * for ':'. <time> has 13 digits, of the run, so that names in order are the oldest first.
 *
 * An entry is written whole (temporary file, sync, rename) and taken away when the server said that
 * it has it. Entries are never dropped to make room: a full spool takes no more, and says so. Any
 * number of processes may use it at once: sending twice what is known by its uuid does no harm.
 */
#ifndef GATE_TRACKER_SPOOL_H
#define GATE_TRACKER_SPOOL_H

#include <stddef.h>
#include <stdint.h>

#include "gate/base/buf.h"
#include "gate/base/error.h"
#include "gate/base/paths.h"

#define SPOOL_MAX_ENTRIES 1000
#define SPOOL_MAX_BYTES ((int64_t)1 << 30)
#define SPOOL_MAX_ENTRY ((size_t)80 << 20) /* bytes of one */

struct spool {
    char path[PATHS_MAX];    /* of the server's folder */
    char refused[PATHS_MAX]; /* of the folder in it */
};

enum spool_kind { SPOOL_RUN, SPOOL_LIBRARY, SPOOL_KINDS };

struct spool_entry {
    enum spool_kind kind;
    char id[65];   /* the uuid, or the SHA-256 */
    char name[96]; /* of the file */
};

/* The spool of a server, made with mode 0700 if need be. GATE_ENVIRONMENT: no variable says where,
 * or everybody can write to it; GATE_IO: it cannot be made. */
enum gate_status spool_open(const char *url, struct spool *out, struct gate_error *err);

/*
 * Adds an entry; one that is there already stays as it is. `bytes` of a library are none.
 * GATE_NO_VERDICT: the spool is full, refused entries included; GATE_IO: it cannot be written.
 */
enum gate_status spool_put(const struct spool *s, enum spool_kind kind, int64_t time_ms,
                           const char *id, const void *bytes, size_t n, struct gate_error *err);

/* All entries, oldest first; *out is the caller's (free()). What has another name is left alone. */
enum gate_status spool_list(const struct spool *s, struct spool_entry **out, size_t *n,
                            struct gate_error *err);

/* The bytes of an entry, appended. GATE_NO_VERDICT: another process has sent it meanwhile. */
enum gate_status spool_read(const struct spool *s, const struct spool_entry *e, struct buf *out,
                            struct gate_error *err);

/* The entry is where it shall be. */
enum gate_status spool_remove(const struct spool *s, const struct spool_entry *e,
                              struct gate_error *err);

/* The server will never take it: it is moved to refused/, with the reason beside it. */
enum gate_status spool_refuse(const struct spool *s, const struct spool_entry *e,
                              const char *reason, struct gate_error *err);

#endif
