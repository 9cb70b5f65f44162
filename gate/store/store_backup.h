/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_backup.h: a copy of the history while it is in use, and the way back.
 */
#ifndef GATE_STORE_STORE_BACKUP_H
#define GATE_STORE_STORE_BACKUP_H

#include "gate/store/store.h"
#include "gate/store/store_care.h"

struct store_backup;

/*
 * Copies the file as it is to `path`, which must not exist; until it is whole it is PATH.part. The
 * writer does it in steps between its writes, which the copy then has too. Another process does it
 * in one step (n_pages -1), during which it sees one state; in smaller steps it would begin anew
 * with every write. store_state() of a copy is never that of another. End it whatever comes back: a
 * copy that is not done is removed.
 */
enum gate_status store_backup_begin(struct store *s, const char *path, struct store_backup **out,
                                    struct gate_error *err);
enum gate_status store_backup_step(struct store_backup *b, int n_pages, bool *done,
                                   struct gate_error *err);
void store_backup_end(struct store_backup *b); /* NULL is fine */

/*
 * Copies a backup to `path`, which must not exist, if store_check() finds nothing in it. GATE_IO,
 * after the faults were told, when it does.
 */
enum gate_status store_restore(const char *backup, const char *path, store_fault_fn fn,
                               void *context, struct gate_error *err);

#endif
