/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mix.h: how often each instruction occurs in a kernel, and in what it is compared with.
 */
#ifndef GATE_DIFF_MIX_H
#define GATE_DIFF_MIX_H

#include "gate/diff/listing.h"

#define MIX_OPCODE_SIZE 24
#define MIX_ROWS_MAX 500

struct mix_row {
    char opcode[MIX_OPCODE_SIZE];
    size_t new, old;
};

/* NOP, which fills up, is left out. */
struct mix {
    struct mix_row rows[MIX_ROWS_MAX];
    size_t n,
        n_changed; /* the changed ones come first: work before the rest, large changes first */
};

/* Of both, or of the one that is there (the other is NULL, and nothing counts as changed). */
void mix_count(const struct listing *new, const struct listing *old, struct mix *out);

#endif
