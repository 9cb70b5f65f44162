/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_run.h: the writers of reports, and the parts of a run document that they share.
 */
#ifndef GATE_REPORT_REPORT_RUN_H
#define GATE_REPORT_REPORT_RUN_H

#include <stdbool.h>
#include <stddef.h>

#include "gate/base/buf.h"
#include "gate/document/covered.h"
#include "gate/document/document.h"
#include "gate/report/report.h"
#include "gate/report/report_table.h"
#include "gate/report/report_units.h"

#define REPORT_NAME_MAX 48
#define REPORT_MAX_PROVIDERS 6   /* that get columns of their own */
#define REPORT_MAX_UNRESOLVED 10 /* cases that are named as unresolved; the others are counted */

/* ---- what verification left out and covered; older documents lack this information ---- */

#define REPORT_MAX_OWN_SHAPE 10 /* cases that are named; the others are counted */

/* Sums over cases; the texts are the documents'. */
struct left_out_sums {
    int64_t not_served, refused, not_guarded, too_large;
    const char *why_not_guarded; /* of the first case that has some; NULL: not known */
    const char *not_declared;    /* likewise; NULL: nothing */
    const char *own_shape[REPORT_MAX_OWN_SHAPE]; /* ids */
    int64_t own_shape_only;
    bool most; /* no tier looks at more, so none is recommended */
};

/* `verify`: of the case's candidate; NULL is fine. `sums` starts as {0}. */
void left_out_add(struct left_out_sums *sums, const char *id, const struct document_verify *verify);

/* "12 edge shapes not served, 3 guards not offered (...), 44 shapes too large for their probes (see
 * 'gate verify --tier nightly')"; nothing if all checks were made. Not escaped. */
void left_out_write(const struct left_out_sums *sums, struct buf *out);

/* "2 cases were looked at on their own shape alone, since the kernel takes no other: A, B", each
 * written by `put`; nothing when there is none. */
void left_out_write_own_shape(const struct left_out_sums *sums,
                              void (*put)(const char *text, struct buf *out), struct buf *out);

/* What was covered, by class and op, and pairs of classes of shapes; NULL: documents do not say.
 * The caller's (table_free). */
struct table *covered_table(const struct covered_sums *sums);

/* Both for a terminal, each as a line. */
void left_out_write_lines(const struct left_out_sums *sums, struct buf *out);

/* ---- the run ---- */

/* All pointers are into the document. */
struct report_run {
    const struct document *document;
    size_t counts[VERDICT_COUNT], warned[VERDICT_COUNT];
    size_t n_unresolved; /* cases whose minimum detectable effect is over their threshold */
    const char *providers[REPORT_MAX_PROVIDERS]; /* in order of appearance */
    size_t n_providers;
    bool more_providers; /* there are others, without columns */
    size_t n_remembered; /* cases that an earlier run verified */
    bool vendors_remembered;
    size_t n_same_code; /* by report_is_same_code() */
    bool warm;          /* a candidate's inputs did not exceed the cache */
    struct left_out_sums left_out;
    struct covered_sums covered;
    const char *link; /* the dashboard's address; NULL: not known */
};

/* "read 4530, copy 4250 GB/s; fp16 835, bf16 850, ... TFLOP/s", or why this is not known. False:
 * nothing was appended. */
bool report_ceilings(const struct document *d, struct buf *out);
bool report_has_ceilings(const struct document *d); /* rates, and not why there are none */

void report_run_read(const struct document *document, struct report_run *out);

/* A case whose reason is shown: it did not pass, or its baseline's record is off. */
bool report_is_told(const struct document_case *c);

/* What cases were compared with as a name for tables: "baseline", a file without its folder, or 12
 * digits of a commit. Not escaped. */
const char *report_against(const char *against, char out[REPORT_NAME_MAX]);

/* "+9.31 % regression": the outcome of the second comparison for a case. */
void report_warning(const struct document_case *c, struct buf *out);
bool report_warns(const struct document_case *c);

/* A reason that many cases without a verdict share, such as a missing baseline, is printed once. */
#define REPORT_REASONS_MAX 16

struct report_reasons {
    size_t n;
    struct report_reason {
        enum verdict verdict;
        const char *reason;
        size_t n_cases; /* 0: it was said */
    } of[REPORT_REASONS_MAX];
};

void report_reasons_count(const struct report_run *run, struct report_reasons *out);

/* The number of cases that share the reason of this one; 0: it was printed before. */
size_t report_reasons_take(struct report_reasons *r, const struct document_case *c);

#define REPORT_NOT_SERVED_MAX 6

/* Order for "worst first": wrong, regression, environment, no-verdict, improvement, pass. */
int report_severity(enum verdict v);

/* The arm of a provider; NULL: none. */
const struct document_arm *report_provider(const struct document_case *c, const char *provider);

/* Parts of an arm; NULL when it has none or is NULL. */
const struct document_timing *report_timing(const struct document_arm *arm);
const struct document_verify *report_verify(const struct document_arm *arm);

/* Candidate over baseline as the verdict rests on it, or 0 when there is nothing to compare. */
double report_change(const struct document_case *c);

/* Half of that ratio's interval; negative: there is none. */
double report_half_width(const struct document_case *c);

/* p50 of the baseline: measured in this run, else (*stored) the recorded one. 0: no baseline. */
double report_baseline_ns(const struct document_case *c, bool *stored);

/* The case cannot detect a change of its threshold on this machine, and no larger change was
 * found. */
bool report_is_unresolved(const struct report_run *run, const struct document_case *c);

/* Did it pass without an interval, as both sides are one file, or run one machine code? */
bool report_is_same_code(const struct document_case *c);

/* How many times faster than the provider the candidate is, or 0 when one was not timed. */
double report_speed_up(const struct document_case *c, const struct document_arm *provider_arm);

/* Printed instead of a number: why an arm has no timing. "-": it does not support the problem. */
const char *report_no_timing(const struct document_arm *arm);

/* "12 pass, 1 regression", most severe last. */
void report_put_counts(const size_t counts[VERDICT_COUNT], struct buf *out);

/* The same of the run; "no cases". */
void report_counts(const struct report_run *run, struct buf *out);

#define REPORT_ACCEPT_MAX 80
/* The command that makes a slowdown the baseline, "gate baseline accept CASE --run ..."; false: the
 * run has no regression against a stored baseline, or is a part. */
bool report_accept(const struct report_run *run, char out[REPORT_ACCEPT_MAX]);

/* Did something disturb a run on a CPU, where it is mostly other programs? `chrt -f 1` helps. */
bool report_was_disturbed(const struct report_run *run);

/* "5c3f01a2b9d4, changed (main) subject, by author", "not known"; not escaped. */
void report_commit(const struct report_run *run, struct buf *out);

/* "contract paired-graph-v3, epoch ..., 10 processes, control drift 0.12 %, against baseline", as
 * far as the document has it; not escaped. */
void report_conditions(const struct report_run *run, struct buf *out);

/*
 * The evidence below a case's reason, in order, one line each: the result of each fresh process of
 * a stage, "+9.31 +9.28 +9.35 %" ("-": a process without a comparison), p90 and calls of launch()
 * compared with the baseline's, "+1.20 % (+0.85 to +1.55 %)", and the statements below. `figures`
 * are plain ASCII.
 */
typedef void (*report_evidence_fn)(void *context, const char *name, bool figures,
                                   const char *words);
void report_each_evidence(const struct document_case *c, report_evidence_fn put, void *context);

/* A text of a library's file or of a document, without characters that a terminal or Markdown
 * interprets. */
void report_safe_name(const char *text, struct buf *out);

/* Writes a text from outside as a format has it. */
typedef void (*report_put_fn)(const char *text, struct buf *out);

/* Addresses of the dashboard's pages; `link` is its own. */
void report_link_run(const char *link, const char *uuid, struct buf *out);
void report_link_change(const char *link, const char *change, struct buf *out);
void report_link_case(const char *link, const char *id, const char *device_model, struct buf *out);

/* ---- the results of `gate calibrate` as the rows of a table ---- */

#define CALIBRATION_MAX_SHARES 16

struct calibration {
    const struct document_calibrated *
        *cases; /* worst first: unresolved, then by false fails, then by MDE */
    size_t n_cases, n_resolved;
    double shares[CALIBRATION_MAX_SHARES]; /* of time that was added, ascending */
    double red[CALIBRATION_MAX_SHARES], decisions[CALIBRATION_MAX_SHARES]; /* of all cases */
    size_t n_shares;
};

/* False: out of memory. */
bool calibration_read(const struct document_calibration *calibration, struct calibration *out);
void calibration_release(struct calibration *c);

/* "unchanged" for 0, else "+2.5 %". */
const char *calibration_share_name(double share, char out[UNITS_MAX]);

/*
 * "99.64 %" of decisions were red; never rounded to 0 or 100 when it is not. "-": none were made
 * at that share.
 */
const char *calibration_rate(double red, double decisions, char out[UNITS_MAX]);
const char *calibration_case_rate(const struct document_calibrated *c, double share,
                                  char out[UNITS_MAX]);

/* One line for each case that lacks processes, with the reason, for at most
 * CALIBRATION_MAX_INCOMPLETE of them; `put` writes the text. Nothing if all are complete. */
#define CALIBRATION_MAX_INCOMPLETE 20
void calibration_incomplete(const struct document_calibration *calibration, const char *bullet,
                            void (*put)(const char *text, struct buf *out), struct buf *out);

/* "38 of 40 cases resolve 2 %; red: unchanged 0 % (0 of 40000 decisions), +2.5 % 99.98 %". */
void calibration_summary(const struct calibration *c, double threshold, struct buf *out);

/* ---- formats ---- */

/* What a format writes. */
typedef void report_writer(const struct report_run *run, const struct report_style *style,
                           struct buf *out);
/* report_write_early() in a format. */
void report_markdown_early(int exit_code, const char *message, struct buf *out);
void report_junit_early(int exit_code, const char *message, struct buf *out);
void report_csv_early(int exit_code, const char *message, struct buf *out);

report_writer report_text, report_markdown, report_junit;

#endif
