/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mix.h: how often each instruction occurs in a kernel, and in each of its loops.
 *
 * An instruction counts in the innermost loop that it is in. Loops of two kernels are compared by
 * their order, and only where both have as many.
 */
#ifndef GATE_DIFF_MIX_H
#define GATE_DIFF_MIX_H

#include "gate/diff/listing.h"

#define MIX_OPCODE_SIZE 24
#define MIX_ROWS_MAX 2000

struct mix_row {
    size_t loop; /* from 1; 0: the whole kernel */
    char opcode[MIX_OPCODE_SIZE];
    size_t new, old;
};

struct mix {
    struct mix_row rows[MIX_ROWS_MAX]; /* by loop and name; NOP fills up and is left out */
    size_t n;
    size_t n_new, n_old; /* loops */
};

/* Of both, or of the one that is there (the other is NULL). */
void mix_count(const struct listing *new, const struct listing *old, struct mix *out);

/* What makes up a kernel's time: arithmetic and its tensor cores, access to memory. */
bool mix_is_work(const char *opcode);

/* Those, and barriers. */
bool mix_is_watched(const char *opcode);

/* Keeps the rows that differ: by loop, those that are watched and the largest change first. */
void mix_keep_changes(struct mix *m);

#endif
