/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_run.h: the writers of reports, and the parts of a run document that they share.
 */
#ifndef GATE_REPORT_REPORT_RUN_H
#define GATE_REPORT_REPORT_RUN_H

#include <stdbool.h>
#include <stddef.h>

#include "gate/base/alloc.h"
#include "gate/base/buf.h"
#include "gate/document/document.h"
#include "gate/report/report.h"
#include "gate/report/report_units.h"

#define REPORT_NAME_MAX 48
#define REPORT_MAX_PROVIDERS 6 /* that get columns of their own */

/* Writes a text from outside as a format has it. */
typedef void (*report_put_fn)(const char *text, struct buf *out);

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

/* The same for a terminal, and the cases of which only the own shape was looked at, each as a line.
 */
void left_out_write_lines(const struct left_out_sums *sums, struct buf *out);

#define COVERED_OPS 32 /* at most; more are left out */

/* Of the ops whose cases say what they covered, by name. Starts as {0}. */
struct covered_sums {
    size_t n;
    struct covered_op {
        char name[65];
        struct document_covered all;
        int64_t pairs, pairs_of; /* the most that one case had */
    } of[COVERED_OPS];
};

/* `verify`: of the case's candidate; NULL is fine. */
void covered_add(struct covered_sums *sums, const char *op, const struct document_verify *verify);

/* How often each class of values, shapes, layouts and launches was checked, by op, and pairs of
 * classes of shapes; NULL: documents do not say. The caller's (table_free). */
struct table *covered_table(const struct covered_sums *sums);

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
    bool any_stored;    /* a baseline's time is its record */
    struct left_out_sums left_out;
    struct covered_sums covered;
    const char *link; /* the dashboard's address; NULL: not known */
};

void report_run_read(const struct document *document, const struct report_style *style,
                     struct report_run *out);

/* Parts of an arm; NULL when it has none or is NULL. */
const struct document_timing *report_timing(const struct document_arm *arm);
const struct document_verify *report_verify(const struct document_arm *arm);

/* Printed instead of a number: why an arm has no timing. "-": it does not support the problem. */
const char *report_no_timing(const struct document_arm *arm);

/* p50 of the baseline: measured in this run, else (*stored) the recorded one. 0: no baseline. */
double report_baseline_ns(const struct document_case *c, bool *stored);

/* The case cannot detect a change of its threshold on this machine, and no larger change was
 * found. */
bool report_is_unresolved(const struct report_run *run, const struct document_case *c);

/* Did it pass without an interval, as both sides are one file, or run one machine code? */
bool report_is_same_code(const struct document_case *c);

/* What cases were compared with as a name for tables: "baseline", a file without its folder, or 12
 * digits of a commit. Not escaped. */
const char *report_against(const char *against, char out[REPORT_NAME_MAX]);

/* "+9.31 % regression": the outcome of the second comparison for a case; nothing without one. */
void report_warning(const struct document_case *c, struct buf *out);

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

/* Addresses of the dashboard's pages; `link` is its own. */
void report_link_run(const char *link, const char *uuid, struct buf *out);
void report_link_change(const char *link, const char *change, struct buf *out);
void report_link_case(const char *link, const char *id, const char *device_model, struct buf *out);

/* ---- a page for people ---- */

struct page {
    const struct report_run *run;
    const struct document *d; /* the run's */
    const struct report_style *style;
    bool markdown;
    report_put_fn text, code;                      /* write words of others; an id or a command */
    const struct document_case **cases;            /* in the order of the page */
    size_t n_cases;                                /* that are shown, */
    const struct document_calibrated **calibrated; /* and calibrated ones, worst first */
    size_t n_calibrated;
    struct buf *out;
};

#define PAGE_WARNING_SIGN "\xe2\x9a\xa0\xef\xb8\x8f "

enum term_colour page_colour(enum verdict v);
const char *page_mark(enum verdict v); /* in Markdown */

/* The id of a case; in Markdown it leads to its page where there is a dashboard. */
void page_put_case(const struct page *p, const struct document_case *c, struct buf *out);

/* Writes a table, and frees it. */
void page_put_table(const struct page *p, struct table *t);

/* Does the second comparison warn of it? */
bool page_warns(const struct document_case *c);

/* The table of the cases, and that of a calibration with its summary. */
void page_cases(const struct page *p);
void page_calibration(const struct page *p);

/* What is said of all cases, and what marks in the table mean. */
void page_sentences(const struct page *p);
void page_legend(const struct page *p);

/* For qsort(): unresolved, then by false fails, then by MDE. */
int page_compare_calibrated(const void *a, const void *b);

/* ---- formats ---- */

/* What a format writes. */
typedef void report_writer(const struct document *document, const struct report_style *style,
                           struct buf *out);
report_writer report_page, report_junit;

/* Text of XML, or the value of an attribute in double quotes. */
void report_xml(const char *text, struct buf *out);

#endif
