/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listing.h: the instructions of a kernel, as nvdisasm of the CUDA toolkit prints them.
 */
#ifndef GATE_LIBRARY_LISTING_H
#define GATE_LIBRARY_LISTING_H

#include "gate/base/buf.h"
#include "gate/library/machine_code.h"

#define LISTING_SOURCE_SIZE 120
#define LISTING_WHY_SIZE 200

struct listing {
    char **line;   /* "@P0 LDG.E R2, desc[UR4][R2.64]", without addresses */
    char **source; /* of each "gemm.cu:120"; "": the library has no line information there */
    size_t n;
    struct buf text;              /* that all of them lie in */
    char at[LISTING_SOURCE_SIZE]; /* while it is read */
};

struct listing_wanted {
    const struct machine_kernel *kernel;
    struct listing *out; /* empty where it cannot be read */
    bool is_new;         /* the library */
    char *why;           /* it cannot be read, of LISTING_WHY_SIZE; the caller's */
};

/* Reads kernels of one cubin at once: most of what nvdisasm takes is its start. GATE_ENVIRONMENT:
 * there is none. GATE_USAGE: it does not read these kernels. */
enum gate_status listing_read(const struct listing_wanted *wanted, size_t n,
                              struct gate_error *err);
void listing_release(struct listing *l);

/* What an instruction does, "LDG" of the above; at most size - 1 characters, letters, digits and
 * '_' alone. */
void listing_opcode(const char *line, char *out, size_t size);

/* Where in the source the first instruction with this opcode lies that only `new` has, or only
 * `old` (`of_old`); instructions correspond by their opcodes. "" where that is not known. */
void listing_source(const struct listing *old, const struct listing *new, const char *opcode,
                    bool of_old, char out[LISTING_SOURCE_SIZE]);

/* The lines that only one of them has, side by side; false where too many differ. */
bool listing_compare(const struct listing *old, const struct listing *new, struct buf *out);

/* ---- how often each instruction occurs in a kernel, and in what it is compared with ---- */

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
