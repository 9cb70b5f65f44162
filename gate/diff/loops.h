/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loops.h: the loops of a listing.
 *
 * A branch back to an instruction that every way to it leads through closes a loop (Aho, Lam, Sethi
 * and Ullman, Compilers, 2006, 9.6); its body is what reaches the branch without that instruction.
 * Where a kernel jumps by a table (BRX), ways are unknown, and a branch back is taken for a loop.
 */
#ifndef GATE_DIFF_LOOPS_H
#define GATE_DIFF_LOOPS_H

#include <stdbool.h>
#include <stddef.h>

#define LOOPS_NOWHERE ((size_t)-1)

struct loops_step {
    size_t target; /* of its branch; LOOPS_NOWHERE: it has none */
    bool falls;    /* the next instruction may follow */
    bool works;    /* a loop without any such instruction only waits, and counts as none */
    size_t loop;   /* that it is in, the innermost one, numbered from 1 as they begin; 0: none */
};

/* Fills in `loop`; of a listing beyond all measure not all are found. The number of loops;
 * LOOPS_NOWHERE: out of memory. */
size_t loops_find(struct loops_step *steps, size_t n);

#endif
