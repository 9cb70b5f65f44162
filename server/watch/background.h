/* SPDX-License-Identifier: Apache-2.0 */
/*
 * background.h: the one thread that does what no request waits for: it looks at new runs, drops
 * samples that have become old, revokes tokens that have expired, and sends webhooks.
 *
 * It takes its turn to write like every request, in slices of a tenth of a second.
 */
#ifndef SERVER_WATCH_BACKGROUND_H
#define SERVER_WATCH_BACKGROUND_H

#include "server/writer/writer.h"

struct background;

struct background_options {
    const char *db;
    const char *main_branch; /* whose runs raise alerts */
    int64_t keep_samples_ms; /* raw samples of older runs are dropped; 0: never */
    const char *webhook;     /* NULL: none */
    const char *webhook_secret;
    struct writer *writer; /* outlives it */
};

enum gate_status background_open(const struct background_options *options, struct background **out,
                                 struct gate_error *err);
/* Nothing is done, and no alert logged, before. */
enum gate_status background_start(struct background *b, struct gate_error *err);
/* Takes as long as the slice or the delivery that is under way. NULL is fine. */
void background_close(struct background *b);

/* A run was stored. */
void background_wake(struct background *b);
/* How long ago the thread last showed that it goes on. */
int64_t background_silent_ms(const struct background *b);

#endif
