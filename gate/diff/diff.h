/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff.h: the instructions of a kernel, as nvdisasm of the CUDA toolkit prints them (listing.c),
 * and the kernels of two libraries side by side, without a GPU (diff.c).
 */
#ifndef GATE_DIFF_DIFF_H
#define GATE_DIFF_DIFF_H

#include "gate/base/buf.h"
#include "gate/library/machine_code.h"
#include "gate/report/report.h"

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
 * `old`
 * (`of_old`); instructions correspond by their opcodes. "" where that is not known. */
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

/* ---- two libraries ---- */

enum diff_change { DIFF_SAME, DIFF_CHANGED, DIFF_ADDED, DIFF_REMOVED, DIFF_CHANGES };

struct diff_side {
    const struct machine_kernel *kernel; /* NULL: the library has none of that name */
    char sha256[65];
    struct resources resources;
    struct listing listing; /* once it was read */
};

/* One kernel for one architecture. */
struct diff_row {
    enum diff_change change;
    struct diff_side new, old;
    char shown[400];            /* the kernel's name for a reader; empty until diff_demangle() */
    char why[LISTING_WHY_SIZE]; /* its listings are not known; empty: they are, or were not asked
                                   for */
};

struct diff {
    struct diff_row *rows; /* by architecture and name */
    size_t n, count[DIFF_CHANGES];
    char why[400]; /* no listing is known */
};

/*
 * Kernels are the same when their machine code has the same hash. `architecture`: 0, or the one
 * that is looked at alone. The caller's (diff_release); it holds as long as both libraries.
 * GATE_USAGE: no kernel is left, or there are too many.
 */
enum gate_status diff_libraries(const struct machine_code *new, const struct machine_code *old,
                                unsigned architecture, struct diff *out, struct gate_error *err);
void diff_release(struct diff *d);

/* Reads the listings of kernels that are not the same, where `all` is true those of the others too
 * (as `new`). What cannot be had is said in `why`, and is no failure. */
enum gate_status diff_read_listings(struct diff *d, bool all, struct gate_error *err);

/* Puts C++ names in the form of their source, by cu++filt or c++filt; where neither is found they
 * stay as they are in the file. */
void diff_demangle(struct diff *d);

/* Kernels of the same code are counted and, where `all` is true, listed too. */
void diff_write(const struct diff *d, bool all, const struct report_style *style, struct buf *out);
/* Of each kernel whose listing was read, the instructions that occur more or less often and those
 * that make up its time, and with `sides` the changed lines, the old beside the new. Where
 * they are not known, why. */
void diff_write_instructions(const struct diff *d, bool sides, const struct report_style *style,
                             struct buf *out);
void diff_write_json(const struct diff *d, struct buf *out); /* always all */

#endif
