/*
 * run_error.c: how accurate the candidate is, beside the best.
 *
 * A result within its limits may still be much less accurate than what it replaces: that is a
 * regression like a slowdown, which someone may want and then accepts. The first process verifies
 * candidate and best on the same inputs, so that unchanged code gives the same error to the bit,
 * and the vendor's own error cancels. An error is not held against less than what rounding the
 * outputs alone comes to: below it there is nothing but luck.
 *
 * Where the best's library is not at hand, its error is that on record, of other inputs. What the
 * inputs did to it is known by the vendor's kernel, where one was beside both, and what is left is
 * luck that many outputs even out.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "run.h"

/* Relative Frobenius error of a result that is rounded once, in units of the dtype's last place:
 * measured, 0.41; the worst of few elements is up to 1. */
#define ROUNDED_SHARE 0.41

static double unit_roundoff(uint32_t dtype)
{
    return dtype == KG_F16 ? 0x1p-11 : dtype == KG_BF16 ? 0x1p-8 : 0x1p-24;
}

/* Of the smallest output. */
static double fewest_elements(const struct kg_problem *p)
{
    struct problem_tensor tensors[PROBLEM_MAX_TENSORS];
    double n = INFINITY;
    for (unsigned i = problem_tensors(p, tensors); i-- > 0;)
        if (tensors[i].is_output)
            n = fmin(n, (double)problem_tensor_elements(&tensors[i]));
    return n;
}

/* What rounding n outputs comes to. */
static double least_error(uint32_t dtype, double n)
{
    return unit_roundoff(dtype) * (ROUNDED_SHARE + 1 / sqrt(n));
}

/*
 * What the best on record would have had on the inputs of this run, at the most: four standard
 * deviations of the logarithm of a ratio of two errors of n outputs.
 */
static double recorded_error(const struct best_error *best, const cJSON *candidate, double n)
{
    double own = json_number(candidate, "rel_fro", 0);
    double over_vendor = json_number(candidate, "vendor_ratio", 0);
    bool same_vendor = !strcmp(json_string(candidate, "vendor", ""), best->vendor);
    double error = same_vendor && over_vendor > 0 && best->vendor_ratio > 0
                       ? best->vendor_ratio * own / over_vendor
                       : best->rel_fro;
    return error * exp(4 * sqrt(2 / n));
}

/* The error that the candidate's is held against; NaN: none. */
static double error_to_beat(const struct run_case *c, const cJSON *candidate, double n)
{
    const cJSON *best = json_member(run_arm(c, "best"), "verify");
    if (c->mode == RUN_NUMBER && c->best.error.known)
        return recorded_error(&c->best.error, candidate, n);
    if (c->mode == RUN_PAIRED && json_number(best, "seeds", 0) > 0)
        return json_number(best, "rel_fro", NAN);
    return NAN;
}

double run_error_ratio(const struct run *run, const struct run_case *c)
{
    const struct kg_problem *p = &c->about->problem;
    const cJSON *candidate = json_member(run_arm(c, "candidate"), "verify");
    double n = fewest_elements(p), own = json_number(candidate, "rel_fro", NAN);
    double other = error_to_beat(c, candidate, n);
    if (c->result.outcome != CASE_MEASURED || !(own >= 0 && other >= 0))
        return 0;
    return run_same_library(run, c) ? 1 : own / fmax(other, least_error(p->dtype, n));
}

bool run_error_jumped(const struct run *run, const struct run_case *c)
{
    return run_error_ratio(run, c) > DECIDE_ERROR_JUMP;
}

void run_judge_error(const struct run *run, struct run_case *c)
{
    char speed[sizeof c->reason];
    double ratio = run_error_ratio(run, c);
    if (!(ratio > DECIDE_ERROR_JUMP))
        return;
    c->verdict = VERDICT_REGRESSION;
    snprintf(speed, sizeof speed, "%s", c->reason);
    snprintf(c->reason, sizeof c->reason,
             "less accurate: the relative error is %.3g, %.3g times what %s %s, over the %g "
             "times that pass%s. Its speed: %.500s",
             json_number(json_member(run_arm(c, "candidate"), "verify"), "rel_fro", 0), ratio,
             run->policy.other,
             c->mode == RUN_PAIRED ? "has on the same inputs" : "has by its record",
             DECIDE_ERROR_JUMP,
             run->against_sha256 ? "" : "; 'gate best accept' takes it, with a reason", speed);
}
