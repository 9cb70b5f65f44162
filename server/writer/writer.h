/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer.h: the one thread that writes the database.
 *
 * Jobs go through two threads: the first prepares them (inflates, parses, checks), the second runs
 * them on the store, as many as wait in one batch, and tells them after the commit. So what is told
 * as done is on the disk, and a slow disk costs one sync for many. The queue is bounded: who comes
 * when it is full is turned away at once.
 */
#ifndef SERVER_WRITER_WRITER_H
#define SERVER_WRITER_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/store/store.h"

#define WRITER_MAX_JOBS 64u

struct writer;

/*
 * One write. It and its context belong to the writer from writer_submit() until done() is called,
 * which is always, once, and on the writer's thread or on that of prepare().
 */
struct writer_job {
    void *context;
    /* Optional. False: it is done already, nothing is to be stored. */
    bool (*prepare)(void *context);
    /* Optional. On the store, in a batch. When it fails it must have changed nothing; the other
     * jobs of the batch are kept. */
    enum gate_status (*run)(void *context, struct store *store, struct gate_error *err);
    /* `status` is run()'s, or that of the commit which failed and took it along. */
    void (*done)(void *context, enum gate_status status, const struct gate_error *err);

    size_t bytes; /* about what it holds in memory; prepare() may correct it */

    struct writer_job *next; /* the writer's */
    enum gate_status status;
    struct gate_error err;
};

enum writer_left {
    WRITER_NONE_LEFT,
    WRITER_MORE_LEFT,
    WRITER_LATE, /* there is more, and it has waited for too long */
};

/*
 * Work between jobs, in a batch of its own: after commits and once in a period, and again while
 * there is more left. While there are jobs, also such as are being prepared, it is called once in a
 * second; but when it is late it takes turns with them: what a batch of jobs took, it is called for
 * three times as long.
 */
typedef enum gate_status (*writer_chore)(void *context, struct store *store, enum writer_left *left,
                                         struct gate_error *err);

struct writer_options {
    const char *db;     /* created or migrated when that is needed */
    writer_chore chore; /* or NULL */
    /* On the writer's thread, outside of a batch: at the start and after each commit; or NULL. */
    void (*committed)(void *context, struct store *store);
    void *context; /* of both */
    int64_t period_ms;
};

enum gate_status writer_open(const struct writer_options *options, struct writer **out,
                             struct gate_error *err);

/* Room for one job, to be followed by writer_submit(). False: the queue is full, or closing. */
bool writer_reserve(struct writer *w);
void writer_submit(struct writer *w, struct writer_job *job);

/* Takes no more jobs and ends those that it has. It may still be asked things. */
void writer_drain(struct writer *w);
/* The same, and closes the store. NULL is fine. */
void writer_close(struct writer *w);

/* Jobs that wait or are under way. */
unsigned writer_jobs(struct writer *w);
/* Did its last write fail? It tries by itself whether it can write again. */
bool writer_is_failing(struct writer *w);
/* How long ago its thread last showed that it goes on. */
int64_t writer_silent_ms(struct writer *w);

#endif
