/* SPDX-License-Identifier: Apache-2.0 */
/*
 * baseline_file.h: a file of baselines, as gate/formats/baseline.schema.json publishes it. Members
 * have the names of their keys; what is not known is as in document.h.
 */
#ifndef GATE_BASELINE_BASELINE_FILE_H
#define GATE_BASELINE_BASELINE_FILE_H

#include <stdint.h>

#include "gate/document/document.h"

struct file_entry {
    const char *device_model, *contract, *case_id; /* in listings alone */
    double p50_ns, p50_lo_ns, p50_hi_ns, p90_ns, control_ns, spread;
    const char *kernel, *commit, *run_uuid;
    int64_t time_ms;
    const char *epoch, *library_sha256, *code_sha256;
    enum yes_no dirty;
    double rel_fro;
    bool has_outputs;
    struct document_outputs outputs;
    const char *vendor;
    double vendor_ratio;
    const char **suites;
    size_t n_suites;
};

struct file_case {
    const char *id;
    struct file_entry entry;
};

struct file_evidence {
    int64_t time_ms;
    const char *run_uuid, *commit;
    double ratio, lo, hi, again;
};

struct file_trend {
    const char *id; /* of the case */
    struct file_evidence *runs;
    size_t n_runs;
};

struct file_change {
    const char *device_model; /* in listings alone */
    int64_t time_ms;
    const char *case_id;
    int action; /* enum baseline_action */
    double from_ns, to_ns;
    const char *reason, *author, *commit, *run_uuid;
};

struct baseline_file {
    const char *schema, *device_model, *contract;
    struct file_case *cases; /* sorted by id, like the trends */
    size_t n_cases;
    struct file_trend *trends;
    size_t n_trends;
    struct file_change *log;
    size_t n_log;
};

/* listed_...: with the members that only listings have. */
extern const struct shape baseline_file_shape, baseline_entry_shape, baseline_listed_entry_shape,
    baseline_listed_change_shape;

/* Appends the file: one line a case, a run of a trend, and a change. */
void baseline_file_write(const struct baseline_file *f, struct buf *out);

#endif
