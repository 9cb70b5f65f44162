/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer.h: one store that writes, and whose turn it is to use it.
 *
 * Threads take turns in the order in which they asked. Whoever has the turn writes, commits, and
 * gives it back. Other processes that write the same file are kept apart by the store itself.
 */
#ifndef SERVER_WRITER_WRITER_H
#define SERVER_WRITER_WRITER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "gate/store/store.h"

struct writer;

/* A condition that is waited for by the monotonic clock, and a time of that. */
void monotonic_cond_init(pthread_cond_t *cond);
struct timespec monotonic_in_ms(int64_t ms);

/* Opens the file, and creates or upgrades it where that is needed. */
enum gate_status writer_open(const char *db, struct writer **out, struct gate_error *err);
/* Nobody has the turn or waits for it. NULL is fine. */
void writer_close(struct writer *w);

/* The store, until writer_give(); NULL: the turn did not come within that time. */
struct store *writer_take(struct writer *w, int64_t wait_ms);
/* `status`: whether the last write of the turn was committed. */
void writer_give(struct writer *w, enum gate_status status);

/* Threads that have the turn or wait for it. */
unsigned writer_waiting(struct writer *w);
/* Did the last write fail, other than because another process had the file for long? */
bool writer_is_failing(struct writer *w);

#endif
