/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.h: the history, one SQLite file.
 *
 * Both `gate` and `gate-server` write to it, one process at a time; readers do not wait for a
 * writer (WAL). A run is stored in one transaction, whole or not at all. The store keeps the run
 * document as it came, and its numbers a second time, in the columns that queries need. A row that
 * a callback receives is valid only during that call. The callback must not use the same store.
 * When it returns false, the query ends and succeeds.
 */
#ifndef GATE_STORE_STORE_H
#define GATE_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/base/buf.h"
#include "gate/base/error.h"
#include "gate/decide/decide.h"

#define STORE_APPLICATION_ID 0x4b474831 /* "KGH1" */
#define STORE_SCHEMA_VERSION 7

struct store;

enum store_mode {
    STORE_READ_ONLY, /* the file must exist */
    STORE_UPDATE,    /* written; it must exist */
    STORE_READ_WRITE /* created when it does not */
};

/* The longest document that is stored; a longer one is refused before anything is written. */
#define STORE_MAX_DOCUMENT ((size_t)64 << 20)

/*
 * Opens the file and checks that it is one of ours (application_id) and of a schema version that
 * this program knows. GATE_IO with a message otherwise; a file that is refused is not written to.
 * An older version is brought up to date, in whatever mode, and a copy of it is left beside it. A
 * store belongs to one thread at a time; open one for each thread that needs it. Writers of several
 * processes take turns by a lock on PATH-lock.
 */
enum gate_status store_open(const char *path, enum store_mode mode, struct store **out,
                            struct gate_error *err);
void store_close(struct store *s); /* NULL is fine */

/* Sets how long a write waits for other processes that write; else 15 s. */
void store_set_patience(struct store *s, int ms);
/* Did the last write fail because another process wrote for longer than that? */
bool store_is_busy(const struct store *s);
/* Can it be written to? Commits a change of nothing but store_state(). */
enum gate_status store_probe(struct store *s, struct gate_error *err);

/* Sets how many bytes of the file SQLite may keep in memory; its default is 2 MB. */
void store_cache_pages(struct store *s, size_t bytes);

struct document; /* gate/document/document.h */

/*
 * Stores a run document, whose bytes are `text`. A run whose uuid is there already changes nothing
 * and sets *existed.
 */
enum gate_status store_put_run(struct store *s, const struct document *document, const char *text,
                               size_t len, bool *existed, struct gate_error *err);

/*
 * The same in steps, so that the longest one, store_pack(), need not hold up other writers.
 */
enum store_put_outcome {
    STORE_PUT_CREATED,
    STORE_PUT_EXISTED, /* a run of this uuid is there, of the same bytes */
    STORE_PUT_DIFFERS, /* it is there, of other bytes; it stays as it is */
    STORE_PUT_REFUSED  /* with a failure: it is the document's own, and will be so again */
};
struct store_packed; /* store_pack.h */
enum gate_status store_put_packed(struct store *s, const struct document *document,
                                  const struct store_packed *packed,
                                  enum store_put_outcome *outcome, struct gate_error *err);

/*
 * What is written between the two happens or, where `status` says that it failed, nothing of it: it
 * is durable when store_end() returns GATE_OK. Parts may be nested: one that fails leaves no trace,
 * and the others stay. The outermost one holds the turn to write, so keep it short.
 */
enum gate_status store_begin(struct store *s, struct gate_error *err);
enum gate_status store_end(struct store *s, enum gate_status status, struct gate_error *err);

/* Which times of a track may be compared. */
struct store_series {
    char provider[65]; /* "": none */
    char contract[65];
};

struct store_run {
    char uuid[40]; /* "": there is none */
    char device_model[68];
    int64_t time_ms;
};

/* A time that was verified, or that another tool measured. 0 is not known. */
struct store_point {
    const char *case_id, *device_model;
    int64_t time_ms;
    const char *run_uuid;
    const char *commit;
    const char *provider;
    const char *role; /* "candidate" or "provider" */
    const char *kernel;
    const char *contract;
    const char *verdict; /* the case's; providers have none of their own, nor have leaders */
    double p50_ns, tflops, gbps;
    double p50_lo_ns, p50_hi_ns, p90_ns, baseline_p50_ns; /* leaders have none */
    bool dirty; /* with changes that the commit does not have */
};

/* Names a state of the store: as long as it is the same, every query has the same answer. */
struct store_state {
    char text[112];
};

typedef bool (*store_point_fn)(void *context, const struct store_point *row);
typedef bool (*store_document_fn)(void *context, const char *text, size_t len);

/* The newest run of a branch on a device model, NULL: of any. */
enum gate_status store_newest_run(struct store *s, const char *branch, const char *device_model,
                                  struct store_run *out, struct gate_error *err);
/*
 * One run, by its uuid (a unique prefix of at least 4 characters will do), or by a prefix of at
 * least 7 digits of its commit: then the newest run of that on the device model (NULL: on any).
 * GATE_USAGE when there is no such run, or more than one.
 */
enum gate_status store_find_run(struct store *s, const char *name, const char *device_model,
                                struct store_run *out, struct gate_error *err);
/* Newest first, timed and verified points of one case on one device model. A baseline that was
 * measured beside the candidate has no points of its own: it is baseline_p50_ns of the candidate's.
 */
enum gate_status store_trend(struct store *s, const char *case_id, const char *device_model,
                             int64_t limit, store_point_fn fn, void *context,
                             struct gate_error *err);
/* The newest run of a case on each device model (NULL: any). */
typedef bool (*store_newest_fn)(void *context, const char *device_model, const char *run_uuid);
enum gate_status store_newest(struct store *s, const char *case_id, const char *device_model,
                              store_newest_fn fn, void *context, struct gate_error *err);
/* For each case, device model (NULL: any) and provider the lowest verified p50 of the newest
 * contract, by case, device model and time. */
enum gate_status store_leaderboard(struct store *s, const char *device_model, store_point_fn fn,
                                   void *context, struct gate_error *err);
/* The document of one run; GATE_USAGE when there is none of that uuid (a unique prefix of at
 * least 4 characters will do). */
enum gate_status store_document(struct store *s, const char *uuid, struct buf *out,
                                struct gate_error *err);
/* All documents, oldest first. */
enum gate_status store_documents(struct store *s, store_document_fn fn, void *context,
                                 struct gate_error *err);
enum gate_status store_state(struct store *s, struct store_state *out, struct gate_error *err);

/* Everything that is read between the two calls is of one state of the store. */
enum gate_status store_read_begin(struct store *s, struct gate_error *err);
void store_read_end(struct store *s);

/* ---- what a history of years needs: less to keep, to know that it is sound, copies ---- */

/*
 * Drops the raw samples (samples_ns) from documents of runs that began before `before_ms`, at most
 * max_runs of them, each in a write of its own; all else stays, and the document says when
 * (thinned_ms). *n_thinned is less than max_runs when nothing is left to do. The file does not get
 * shorter: the room is used for what comes.
 */
enum gate_status store_thin(struct store *s, int64_t before_ms, int64_t now_ms, int64_t max_runs,
                            int64_t *n_thinned, struct gate_error *err);

/* One fault, as a line of text. */
typedef void (*store_fault_fn)(void *context, const char *fault);

/*
 * Looks for damage: SQLite's own checks, then what the tables tell of each other, then whether each
 * document is there and has the bytes that came. Reads the whole file. GATE_OK, also when there are
 * faults: *n_faults of them were told, and no more than 100.
 */
enum gate_status store_check(struct store *s, store_fault_fn fn, void *context, int *n_faults,
                             struct gate_error *err);

/*
 * Copies the file as it is, in one state, to `path`, which must not exist. Until it is whole it is
 * PATH.part, which does not stay. store_state() of a copy is never that of another.
 */
enum gate_status store_backup(struct store *s, const char *path, struct gate_error *err);

/*
 * Copies a backup to `path`, which must not exist, if store_check() finds nothing in it. GATE_IO,
 * after the faults were told, when it does.
 */
enum gate_status store_restore(const char *backup, const char *path, store_fault_fn fn,
                               void *context, struct gate_error *err);

/*
 * ---- what `gate push` is to send to a server, and what it has sent ----
 *
 * A run is known by its uuid; a library, which lies in the artifact cache, by its SHA-256. `server`
 * is the server's address. A mark outlives the process: what waits is sent by a later push.
 */
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
