/*
 * report_run.h: what the report writers read from a run document, and the writers themselves.
 */
#ifndef GATE_REPORT_RUN_H
#define GATE_REPORT_RUN_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "decide.h"
#include "report.h"

#define REPORT_MAX_PROVIDERS 6 /* that get columns of their own */

/* All pointers are into the document. */
struct report_run {
    const cJSON *document, *git, *device, *cases;
    size_t n_cases;
    size_t counts[VERDICT_COUNT];
    const char *providers[REPORT_MAX_PROVIDERS]; /* in order of appearance */
    size_t n_providers;
    bool more_providers; /* there are others, without columns */
    bool warm;           /* a candidate's inputs did not exceed the cache */
};

void report_run_read(const cJSON *document, struct report_run *out);

/* The "verdict" member of a case or of the document. */
enum verdict report_verdict(const cJSON *object);

/* Order for "worst first": wrong, regression, environment, no-verdict, improvement, pass. */
int report_severity(enum verdict v);

/* Pass and improvement are good. */
bool report_is_good(enum verdict v);

/* The arm of the candidate or of a provider; NULL: none. */
const cJSON *report_candidate(const cJSON *one_case);
const cJSON *report_provider(const cJSON *one_case, const char *provider);

/* Members of an arm; NULL when null or when `arm` is. */
const cJSON *report_timing(const cJSON *arm);
const cJSON *report_verify(const cJSON *arm);

/* p50 over the best's, or 0 when there is nothing to compare. */
double report_change(const cJSON *one_case);

/* How many times faster than the provider the candidate is, or 0 when one was not timed. */
double report_speed_up(const cJSON *one_case, const cJSON *provider_arm);

/* In place of a number: why an arm has no timing. "-": it does not serve the problem. */
const char *report_no_timing(const cJSON *arm);

/* "12 pass, 1 regression", most severe last; "no cases". */
void report_counts(const struct report_run *run, struct buf *out);

/* "5c3f01a2b9d4, changed (main)", "not in git"; not escaped. */
void report_commit(const struct report_run *run, struct buf *out);

void report_text(const struct report_run *run, const struct report_style *style, struct buf *out);
void report_markdown(const struct report_run *run, struct buf *out);
void report_junit(const struct report_run *run, struct buf *out);

#endif
