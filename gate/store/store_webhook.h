/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_webhook.h: what was delivered to whom: steps of alerts, and silences, in the same file as
 * the history.
 */
#ifndef GATE_STORE_STORE_WEBHOOK_H
#define GATE_STORE_STORE_WEBHOOK_H

#include "gate/base/buf.h"
#include "gate/store/store.h"

/* The newest event that was delivered to a target (a name of its address); -1: none is known. */
enum gate_status store_webhook_mark(struct store *s, const char *target, int64_t *event_id,
                                    struct gate_error *err);
/* The newest event there is, 0: none. */
enum gate_status store_newest_event(struct store *s, int64_t *event_id, struct gate_error *err);
/* A write of its own, or a part of the batch that is open. */
enum gate_status store_put_webhook_mark(struct store *s, const char *target, int64_t event_id,
                                        struct gate_error *err);

/* The same of what is silent, a text of the caller's; *found. */
enum gate_status store_webhook_silences(struct store *s, const char *target, struct buf *out,
                                        bool *found, struct gate_error *err);
enum gate_status store_put_webhook_silences(struct store *s, const char *target, const char *text,
                                            struct gate_error *err);
/* The newest run that came; 0: none. */
enum gate_status store_newest_run(struct store *s, int64_t *run_id, struct gate_error *err);

#endif
