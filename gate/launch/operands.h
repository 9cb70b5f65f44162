/* SPDX-License-Identifier: Apache-2.0 */
/*
 * operands.h: the device memory of one input set of a problem.
 */
#ifndef GATE_LAUNCH_OPERANDS_H
#define GATE_LAUNCH_OPERANDS_H

#include <stdbool.h>
#include <stdint.h>

#include "gate/device/device.h"
#include "gate/cases/problem.h"
#include "gate/cases/suite.h"

/* Bytes that are no tensor's before the first and, at least, behind each. */
struct operands_zones {
    size_t before, behind;
};

struct operands {
    struct kg_args args; /* tensors and stream are filled in; the workspace is the launch's */
    struct problem_tensor in[KG_MAX_TENSORS], out[KG_MAX_TENSORS];
    struct operands_zones zones;
};

#define OPERANDS_RED_ZONE 4096

/* What is verified lies in red zones, what is timed has gaps. */
static const struct operands_zones operands_red_zones = {OPERANDS_RED_ZONE, OPERANDS_RED_ZONE};
static const struct operands_zones operands_gaps = {0, 256};

/* Bytes of one set of dense tensors, each aligned to 256 bytes. */
size_t operands_bytes(const struct kg_problem *p, struct operands_zones zones);

/* The set at `memory`, which is operands_bytes() long, aligned to 256 bytes, and stays the
 * caller's. The contents are garbage. */
struct operands operands_at(struct device *d, const struct kg_problem *p, void *memory,
                            struct operands_zones zones);

/* Fills the red zones, or the gaps, with a byte. */
enum gate_status operands_fill_zones(struct device *d, const struct operands *o, unsigned char byte,
                                     struct gate_error *err);

/* Says in `text` which of them is not filled with that byte any more; "": none. */
enum gate_status operands_check_zones(struct device *d, const struct operands *o,
                                      unsigned char byte, char *text, size_t size,
                                      struct gate_error *err);

/* The same for the red zones before and behind a piece of memory, which is told as `what`. */
enum gate_status operands_check_around(struct device *d, const void *begin, size_t bytes,
                                       const char *what, unsigned char byte, char *text,
                                       size_t size, struct gate_error *err);

/* One hash over each `each` spans of n * each. */
enum gate_status operands_hash_spans(struct device *d, const struct device_span *spans, size_t n,
                                     size_t each, uint64_t *hashes, struct gate_error *err);

/* One hash over all inputs of a set, or over all outputs of each of n sets of one problem. */
enum gate_status operands_hash_inputs(struct device *d, const struct operands *o, uint64_t *hash,
                                      struct gate_error *err);
enum gate_status operands_hash_outputs(struct device *d, const struct operands *sets, size_t n,
                                       uint64_t *hashes, struct gate_error *err);

/* What no launch may write: each input, and then what lies behind each tensor. */
#define OPERANDS_KEPT_MAX (3 * KG_MAX_TENSORS)
unsigned operands_kept(const struct operands *o);
/* Hashes of these of n sets of one problem, operands_kept() of each set. */
enum gate_status operands_hash_kept(struct device *d, const struct operands *sets, size_t n,
                                    uint64_t *hashes, struct gate_error *err);
/* Says which one it is, and for a zone filled with `byte` how much of it was written. */
enum gate_status operands_describe_kept(struct device *d, const struct operands *o, unsigned which,
                                        unsigned char byte, char *text, size_t size,
                                        struct gate_error *err);

/* Fills input i, `count` elements with what lies between its rows: with normal numbers, scales, or
 * any of what the file of a user's op allows; `exact`: with the integers of PROBE_INTEGERS. `id`:
 * the case's, NULL for another problem than a case's. */
enum gate_status operands_fill_input(struct device *d, const struct kg_problem *p, unsigned i,
                                     const struct kg_tensor *t, int64_t count, bool exact,
                                     const char *id, uint64_t seed, struct gate_error *err);

/* Fills each input from `seed`, or with the case's literal values; restores outputs. Inputs that
 * say how much work there is follow from the case's id alone, so that each run times the same work.
 */
enum gate_status operands_fill(struct device *d, const struct suite_case *c, struct operands *o,
                               uint64_t seed, struct gate_error *err);

/* Bytes that make a NaN, and a large finite number, of every dtype: what was not written shows. */
enum { POISON_NAN = 0xff, POISON_LARGE = 0x5a };

/* Gives outputs that are updated in place the contents that they begin with: those of a set, or of
 * any arguments whose outputs are `outputs`. */
enum gate_status operands_restore(struct device *d, const struct operands *o,
                                  struct gate_error *err);
enum gate_status operands_restore_args(struct device *d, const struct problem_tensor *outputs,
                                       const struct kg_args *args, struct gate_error *err);

/* Fills outputs with a byte, but restores these. */
enum gate_status operands_poison(struct device *d, struct operands *o, unsigned char byte,
                                 struct gate_error *err);

/* ---- fingerprints of a kernel's verified outputs, by operands_hash_outputs() ----
 *
 * They hold for one case, seed and device, in every process: the process that verified a kernel
 * reports them, and the others compare the outputs of what they time with them.
 */

/* Input contents that are verified; timed launches work on these and no others. */
#define VERIFY_SEEDS 3

struct fingerprints {
    bool known; /* all of them */
    uint64_t of[VERIFY_SEEDS];
};

#endif
