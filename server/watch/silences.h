/* SPDX-License-Identifier: Apache-2.0 */
/*
 * silences.h: which silences a receiver was told of.
 *
 * What is measured no longer follows from the history alone (silences.sql). So that each is told
 * once, the names of those that were told and last are kept, with the receiver; one that ends and
 * begins again is told again. A new receiver is told of those that come.
 */
#ifndef SERVER_WATCH_SILENCES_H
#define SERVER_WATCH_SILENCES_H

#include "gate/store/store.h"
#include "server/api/api_call.h"

struct silences;

enum gate_status silences_open(struct store *s, const char *target, const char *main_branch,
                               struct silences **out, struct gate_error *err);
void silences_close(struct silences *l); /* NULL is fine */

/* Writes the next one as a member of the object that is open in c->emit; *found: there is one.
 * Without new runs it asks nothing. */
enum gate_status silences_next(struct silences *l, struct call *c, bool *found);
/* The receiver has it. */
void silences_took(struct silences *l);

bool silences_are_saved(const struct silences *l);
enum gate_status silences_save(struct silences *l, struct store *s, struct gate_error *err);

#endif
