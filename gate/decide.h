/*
 * decide.h: from measurements to a verdict. Pure: numbers and a policy in, a verdict out.
 *
 * The rule: p50 is held against the stored best's. A case over the threshold is measured again in
 * fresh processes, since the spread between processes is larger than any interval taken within one.
 * The process with the lowest p50 is the one that the machine disturbed least; a case is a
 * regression only when the whole interval of that one, out of DECIDE_LOOKS, is over the threshold.
 */
#ifndef GATE_DECIDE_H
#define GATE_DECIDE_H

#include <stdbool.h>
#include <stddef.h>

#include "stats.h"

#define DECIDE_LOOKS 3 /* processes before a case is red */

enum verdict {
    VERDICT_PASS,
    VERDICT_IMPROVEMENT,
    VERDICT_REGRESSION,
    VERDICT_WRONG,
    VERDICT_NO_VERDICT,
    VERDICT_ENVIRONMENT,
    VERDICT_COUNT
};

struct decide_input {
    const struct estimate *p50_ns; /* of each process that measured the case */
    size_t n_processes;            /* at least 1 */
    double best_p50_ns;            /* 0: no comparable best */
    double threshold;              /* 0.02 is 2 % */
};

struct decision {
    enum verdict verdict;
    bool more;             /* a further process may change the verdict */
    struct estimate ratio; /* p50 over the best's; all 0 without a best */
    char reason[256];      /* one sentence with its figures */
};

struct decision decide(const struct decide_input *in);

const char *verdict_name(enum verdict v);

/* Exit code of a run from how many cases have each verdict: the first of wrong (2), regression (1),
 * environment (4), no-verdict (3) that occurs, else 0. */
int verdict_exit_code(const size_t counts[VERDICT_COUNT]);

/* The verdict of a run with that exit code: the verdict that led to it; pass for 0. */
enum verdict verdict_of_run(const size_t counts[VERDICT_COUNT]);

#endif
