/*
 * run_rows.h: what the tables take of the cases of a run document. Texts are the document's.
 */
#ifndef GATE_HISTORY_RUN_ROWS_H
#define GATE_HISTORY_RUN_ROWS_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/base/json.h"
#include "gate/history/store.h"

#define RUN_NO_COUNT INT64_MIN /* not in the document */

/* A timing that counts: it is of the candidate or of a provider, and verified. Numbers are 0 where
 * they are not known. */
struct run_arm {
    const char *provider;
    const char *kernel;
    int index; /* its place in the document; one provider may have two arms */
    bool is_candidate;
    double p50_ns, p50_lo_ns, p50_hi_ns, p10_ns, p90_ns;
    double tflops, gbps, ceiling, sm_clock_mhz;
    double ratio_to_candidate; /* the candidate's over this one, from pairs */
    double rel_fro;            /* NAN: not known */
    double vendor_ratio;       /* its error over the vendor's; NAN: not known */
    int64_t registers, shared_bytes, spill_bytes;
};

/* What a case was compared with, as it was on record. */
struct run_baseline {
    bool is_there;
    double p50_ns;
    const char *commit;
    int64_t stored_ms;
    const char *made_by;
};

struct run_case {
    struct run_case *next;
    const char *id, *op, *dtype, *reason;
    int verdict;      /* its place in store_verdict_name() */
    double threshold; /* of its own */
    bool is_paired;   /* the ratio is, with the baseline's library in the same processes */
    double ratio, ratio_lo, ratio_hi, mde;
    double control_ns;      /* median over the processes */
    double baseline_p50_ns; /* as measured in this run, else as on record */
    const char *peer;       /* the provider that is hardest to beat */
    double peer_ratio;      /* the candidate's p50 over its */
    struct run_baseline baseline;
    const struct run_arm *candidate; /* the first; NULL: none that counts */
    size_t n_arms;
    struct run_arm arms[];
};

struct run_rows {
    struct run_case *first, *last;
    size_t n;
    int n_verdicts[STORE_N_VERDICTS]; /* by their places */
};

/* Of a document that document_read() accepts; false when memory is short. To be released. */
bool run_rows_read(struct run_rows *r, const cJSON *document);
void run_rows_release(struct run_rows *r);

#endif
