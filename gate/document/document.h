/* SPDX-License-Identifier: Apache-2.0 */
/*
 * document.h: a run document (gate/formats/run.schema.json), the record of one run. `gate run`
 * writes it; the history stores it, reports read it, and `gate push` sends it to the server.
 *
 * Members have the names of their keys. A value that is not known is NAN (numbers), -1 (counts),
 * NULL (texts) or UNKNOWN (yes or no); a part that may be missing has a `has_` member. Times that
 * end in _ms are since 1970 (UTC); ratios are candidate / other.
 */
#ifndef GATE_DOCUMENT_DOCUMENT_H
#define GATE_DOCUMENT_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/base/buf.h"
#include "gate/base/error.h"
#include "gate/decide/stats.h"
#include "gate/document/fields.h"
#include "gate/decide/verdict.h"

enum document_device_kind { DEVICE_HOST, DEVICE_CUDA };
enum document_role { ROLE_CANDIDATE, ROLE_BASELINE, ROLE_PROVIDER };
enum document_mode { MODE_UNKNOWN = -1, MODE_PAIRED, MODE_NUMBER, MODE_NONE };
enum document_stage { STAGE_FIRST, STAGE_CONFIRMATION, DOCUMENT_STAGES };

extern const char *const document_roles[], *const document_modes[], *const document_stages[];

#define DOCUMENT_FIRST_PARENTS_MAX 256

struct document_commit {
    const char *commit;
    int64_t time_ms; /* of its committer, since 1970 UTC */
};

struct document_git {
    const char *commit, *branch, *parent, *subject, *author; /* author: of the commit, a name */
    bool dirty;
    const char *base, *change, *job;
    const char *merge_base;                /* with `base` */
    struct document_commit *first_parents; /* the commit, its first parent, that one's, ... */
    size_t n_first_parents;
};

struct document_device {
    int kind; /* enum document_device_kind */
    const char *model, *name, *uuid;
    int64_t sm_count, l2_bytes, memory_bytes;
    const char *capability, *driver, *runtime;
    int64_t power_limit_mw, sm_clock_max_mhz; /* 0: not known */
};

#define DOCUMENT_LIBRARIES_MAX 16

struct document_library {
    int role; /* enum document_role */
    const char *provider, *version, *file, *sha256;
    const char *code_sha256; /* machine_code_of_file(); NULL: not known */
};

/* A case that does not count: the candidate has no kernel for it, and the suite comes with the
 * gate. */
struct document_not_served {
    const char *id;
};

/* A provider that was asked for and is not on this machine. */
struct document_absent {
    const char *provider, *reason;
};

/* A part of a suite that was measured apart from the others. */
struct document_shard {
    int64_t index, count, cases; /* 1 to count; cases: of the whole suite */
    const char *suite_sha256;
    double *positions; /* of its cases in the suite, from 0 */
    size_t n_positions;
};

struct document_policy {
    double threshold, host_threshold; /* host_threshold: of a call of launch() */
    const char *base;     /* the branch that HEAD left at `against`; NULL: that is no merge base */
    const char **changed; /* thresholds that the change widened or narrowed, as sentences */
    size_t n_changed;
    const char *against, *warn_against; /* warn_against: what `warning` of each case is about */
};

/* ---- cases ---- */

/* As it was on record before the run. */
struct document_baseline {
    double p50_ns;
    const char *commit;
    int64_t time_ms;
    const char *library_sha256, *made_by;
    double again_ns; /* of its library in this run */
    enum yes_no off;
};

#define DOCUMENT_PROCESSES_MAX 64 /* of a case */

struct document_process {
    int stage; /* enum document_stage */
    bool swapped;
    double p50_ns, half_width, baseline_p50_ns;
    double log_ratio, log_ratio_cycles, log_ratio_p90; /* ln of candidate over baseline */
    double log_ratio_calls, log_ratio_fresh;
    double control_ns;
};

/* One of several outputs of an op. */
struct document_output {
    const char *name;
    double rel_fro;
};

#define DOCUMENT_OUTPUTS_MAX 12 /* of an op */

/* How often verification checked a class; the names are those of the members. */
struct document_covered_values {
    int64_t random_normal, random_uniform, exact_integers, exact_cancellation;
    int64_t exact_powers_of_two, nan_and_infinity, nan_and_infinity_in_second, nan_in_second;
    int64_t constant, zeros, one_value, retrieval, score_ramp, low_scores, huge_masked_keys;
    int64_t shifted_scores, stretched_scores, faint_keys, exact_largest;
};

struct document_covered_shapes {
    int64_t small, as_large, giant;
};

struct document_covered_layouts {
    int64_t dense, padded_rows, wide_rows, odd_rows, heads_side_by_side, heads_apart, far_rows;
    int64_t unmapped_beside;
};

struct document_covered_launches {
    int64_t of_checks, in_a_row, on_the_case;
};

struct document_covered {
    struct document_covered_values values;
    struct document_covered_shapes shapes;
    struct document_covered_layouts layouts;
    struct document_covered_launches launches;
};

struct document_verify {
    bool ok;
    int64_t seeds;
    double rel_fro;
    struct document_output *outputs; /* of an op with several; NULL: it is not known of each */
    size_t n_outputs;
    double limit, max_abs;
    double allclose_1e2, allclose_1e3; /* shares of elements */
    int64_t nonfinite;
    const char *message;
    int64_t checks, skipped, refused, not_served, not_guarded, too_large;
    int64_t values, shapes, layouts, launches, pairs, pairs_of;
    bool has_covered;
    struct document_covered covered;
    const char *why_not_guarded, *not_declared;
    enum yes_no own_shape_only;
    const char *vendor;
    double vendor_ratio;
    const char *verified_in; /* the run that did; NULL: this one */
};

struct document_sensor {
    double before, after;
};

#define DOCUMENT_KERNELS_MAX 16
#define LAUNCHES_TEXT_MAX 4000
#define DOCUMENT_KERNEL_NAME_SIZE 1001 /* of a name that is longer the beginning is kept */

/* A kernel that the launch runs; figures as `gate diff` has them. */
struct document_kernel {
    const char *name, *code_sha256;
    const char *grid, *block; /* "132 x 1 x 1" */
    int64_t launches, shared_bytes, registers, stack, local_stores, local_loads, barriers, code;
};

struct document_timing {
    double p50_ns, p50_lo_ns, p50_hi_ns, p10_ns, p90_ns;
    int64_t processes;
    double spread;
    int64_t samples, launches_per_sample, input_sets;
    bool cold;
    double tflops, gbps, ceiling, measured_ceiling, sm_clock_mhz;
    int64_t registers, shared_bytes, spill_bytes;
    const char *code_sha256;
    enum yes_no same_code;
    double throttled_power_ns, throttled_thermal_ns;
    bool has_power_w, has_temperature_c;
    struct document_sensor power_w, temperature_c;
    double single_p50_ns, single_p90_ns;
    int64_t single_samples;
    bool has_ratio_to_candidate;
    struct estimate ratio_to_candidate; /* candidate over this arm */
    double ratio_cycles, ratio_p90;
    double call_ns, ratio_calls; /* of launch() on the host */
    double ratio_fresh;
    struct document_kernel *kernels;
    size_t n_kernels;
    const char *launches;    /* what a call of launch() runs (revision.h); NULL: not known */
    const char *samples_ns;  /* base64 of little-endian float32 */
    const char *measured_in; /* of a provider: the run that did; NULL: this one */
};

struct document_arm {
    const char *provider;
    int role; /* enum document_role */
    const char *kernel;
    bool has_verify, has_timing;
    struct document_verify verify;
    struct document_timing timing;
};

/* A hardware counter of a kernel on both sides. */
struct document_counter {
    int64_t kernel;             /* place among the names */
    int counter;                /* of counters.h */
    double candidate, baseline; /* percent, bytes, a number or a ratio */
    double moved;               /* |ln of their ratio|, little values left out */
};

/* For a regression: the counters of ncu, sorted by how much they moved; or why there are none. */
struct document_counters {
    const char *message;
    const char **kernels; /* mangled names, of those that both sides launch */
    size_t n_kernels;
    struct document_counter *moved;
    size_t n_moved;
};

#define DOCUMENT_OPCODE_SIZE 24

/* An instruction that occurs more or less often in a kernel than in the baseline's. */
struct document_instruction {
    int64_t kernel; /* place among the names */
    int64_t loop;   /* in this one alone, by their order; 0: in the whole kernel */
    const char *opcode;
    int64_t candidate, baseline;
    const char *source; /* "gemm.cu:120" of the first one that is new or gone; NULL: not known */
};

/* For a regression: the kernels whose code changed, and their changed instructions; or why this is
 * not known. */
struct document_instructions {
    const char *message;
    const char **kernels; /* the candidate's mangled names */
    size_t n_kernels;
    struct document_instruction *changed; /* by kernel and loop, what matters most first */
    size_t n_changed;
};

#define DOCUMENT_NODES_MAX 16

/* A node of the candidate's launch, and its share of the slowdown. */
struct document_node {
    const char *name;
    const char *message; /* why that is not known */
    bool has_carries;
    struct estimate carries; /* a ratio: 1.05 for 5 % */
};

/* For a regression: the node of the launch that causes it; or why this is not known. */
struct document_blame {
    const char *message;
    bool has_slowdown;
    struct estimate slowdown; /* candidate over baseline, in the same process */
    struct document_node *nodes;
    size_t n_nodes;
    const char **baseline; /* the names of its nodes, where they do not correspond */
    size_t n_baseline;
};

/* What a second comparison found, which decides nothing. */
struct document_warning {
    int verdict; /* enum verdict */
    const char *reason;
    bool has_ratio;
    struct estimate ratio;
    double mde;
};

struct document_case {
    const char *id, *op, *dtype;
    int verdict; /* enum verdict */
    const char *reason;
    bool has_baseline;
    struct document_baseline baseline;
    int mode; /* enum document_mode */
    double mde;
    bool has_ratio, has_ratio_p90, has_ratio_calls;
    struct estimate ratio, ratio_p90, ratio_calls;
    double error_ratio;
    enum yes_no same_library, same_code;
    bool has_warning, has_counters, has_blame, has_instructions;
    struct document_warning warning;
    struct document_blame blame;
    struct document_counters counters;
    struct document_instructions instructions;
    struct document_process *processes;
    size_t n_processes;
    double threshold;      /* of its own */
    const char *op_sha256; /* of the definition of a user's op; NULL: it is built in */
    struct document_arm *arms;
    size_t n_arms;
};

/* The rates that the gate's own kernels reached on the device in this run, or why they are not
 * known. */
struct document_ceilings {
    const char *message;
    double read_gbps, copy_gbps; /* copy: bytes read and written */
    double fp16_tflops, bf16_tflops, tf32_tflops, fp32_tflops;
    const char *measured_in; /* the run that did; NULL: this one */
};

/* ---- calibration ---- */

struct document_injected {
    double share;
    double *log_ratio; /* of each process */
    size_t n_log_ratio;
    int64_t decisions, red, pass, no_verdict;
};

struct document_calibrated {
    const char *id;
    double mde;
    bool resolved;
    struct document_injected *injected;
    size_t n_injected;
};

struct document_incomplete {
    const char *id;
    int64_t processes, wanted;
    int verdict; /* enum verdict */
    const char *reason;
};

struct document_calibration {
    int64_t processes;
    struct document_calibrated *cases;
    size_t n_cases;
    struct document_incomplete *incomplete;
    size_t n_incomplete;
};

/* ---- the whole ---- */

struct document {
    const char *schema, *uuid;
    int64_t time_ms, duration_ms;
    const char *gate_version;
    struct document_git git;
    const char *who, *suite;
    struct document_device device;
    enum yes_no users_checked, launch_order_checked;
    struct document_library *libraries;
    size_t n_libraries;
    struct document_absent *absent;
    size_t n_absent;
    const char *contract;
    struct document_policy policy;
    bool has_shard;
    struct document_shard shard;
    const char *seed;
    int verdict; /* enum verdict */
    int64_t exit_code;
    const char *epoch;
    int64_t thinned_ms; /* when a store dropped the samples */
    double control_drift;
    int64_t n_processes;
    const char *not_stored; /* why neither history nor baselines have it; NULL: they may */
    bool has_ceilings;
    struct document_ceilings ceilings;
    bool has_calibration;
    struct document_calibration calibration;
    struct document_case *cases;
    size_t n_cases;
    struct document_not_served *not_served;
    size_t n_not_served;
    struct document_not_served *filtered; /* left out by --filter */
    size_t n_filtered;
    struct fields_taken taken; /* that the texts are part of; all zero: they are the maker's */
};

/*
 * Reads a document from a text, of which it keeps no part. If run.schema.json does not allow it,
 * returns false with the first fault, as fields_take() does. out->taken.bytes is set even then.
 * Release the document if the result is true.
 */
bool document_take(const char *text, size_t len, struct document *out, struct field_fault *fault);

/* The same for a text that begins on line `first_line` of the file `name`. Returns `status` with
 * "NAME:LINE:COLUMN: /pointer: fault" if it does not fit. */
enum gate_status document_parse(const char *name, unsigned first_line, const char *text, size_t len,
                                enum gate_status status, struct document *out,
                                struct gate_error *err);

/* The same for a file. GATE_IO: it cannot be read, or does not fit. */
enum gate_status document_load(const char *path, struct document *out, struct gate_error *err);
void document_release(struct document *d);

/*
 * Did another tool measure the run (gate/foreign), or the case? Nothing was verified, and there is
 * no verdict. The contract of such a run is "foreign-TOOL", its cases are "foreign/TOOL/...".
 */
#define DOCUMENT_FOREIGN "foreign"
bool document_is_foreign(const struct document *d);
bool document_case_is_foreign(const struct document_case *c);

/* The first arm with that role; NULL if none has, for example after the worker died. */
const struct document_arm *document_find_arm(const struct document_arm *arms, size_t n,
                                             enum document_role role);
const struct document_arm *document_candidate(const struct document_case *c);

/* The old kernel to compare with the i-th new one: the one with its name, or the only one if both
 * sides have a single kernel. NULL if there is none. */
const struct document_kernel *document_kernel_of(const struct document_timing *old,
                                                 const struct document_timing *new, size_t i);

/* Writes the document, and the parts that also occur in messages of a worker. */
extern const struct shape document_shape, document_output_shape, document_device_shape,
    document_library_shape, document_absent_shape, document_arm_shape, document_blame_shape,
    document_calibrated_shape, document_case_shape, document_ceilings_shape, document_covered_shape,
    document_process_shape, document_timing_shape;

bool document_same_device(const struct document_device *a, const struct document_device *b);
bool document_same_library(const struct document_library *a, const struct document_library *b);

/* Removes all cases with other ids, also from the calibration. */
void document_keep_case(struct document *d, const char *id);

/* Appends the document as JSON on one line, with a newline. */
void document_write(const struct document *d, struct buf *out);

#endif
