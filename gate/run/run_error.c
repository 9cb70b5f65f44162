/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_error.c: how accurate the candidate is, beside the baseline.
 *
 * A result within its limits may still be much less accurate than what it replaces: that is a
 * regression like a slowdown, which someone may want and then accepts. The first process verifies
 * candidate and baseline on the same inputs, so that unchanged code gives the same error to the
 * bit, and the vendor's own error cancels. An error is not compared with less than what rounding
 * the outputs alone comes to: below it there is nothing but luck.
 *
 * Where the baseline's library is not at hand, its error is that on record, of other inputs. What
 * the inputs did to it is known by the vendor's kernel, where one was beside both, and what is left
 * is luck that many outputs even out.
 *
 * Of an op with several outputs each is compared with itself too: the worst of a gradient hides
 * what became of the others.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gate/base/utf8.h"
#include "gate/run/run.h"

/* Relative Frobenius error of a result that is rounded once, in units of the dtype's last place:
 * measured, 0.41; the worst of few elements is up to 1. */
#define ROUNDED_SHARE 0.41

/* What the inputs of this run do to errors, over what those of the record did, by the vendor's. */
static double input_effect(const struct baseline_entry *baseline,
                           const struct document_verify *candidate)
{
    if (!candidate || !candidate->vendor)
        return 1;
    double own = candidate->rel_fro;
    double over_vendor = candidate->vendor_ratio;
    bool same_vendor = baseline->vendor && !strcmp(candidate->vendor, baseline->vendor);
    return same_vendor && over_vendor > 0 && baseline->vendor_ratio > 0 && baseline->rel_fro > 0
               ? own / over_vendor / (baseline->rel_fro / baseline->vendor_ratio)
               : 1;
}

/* Of an output, or the worst of all if it is NULL; NaN: it is not known. */
static double error_of(const char *output, double all, const struct document_output *outputs,
                       size_t n)
{
    for (size_t i = 0; i < n && output; i++)
        if (!strcmp(outputs[i].name, output))
            return outputs[i].rel_fro;
    return output ? NAN : all;
}

static double verified_error(const struct document_verify *v, const char *output)
{
    return !v || v->seeds <= 0 ? NAN : error_of(output, v->rel_fro, v->outputs, v->n_outputs);
}

static const struct document_verify *verify_of(const struct run_case *c, enum document_role role)
{
    const struct document_arm *arm = run_arm(c, role);
    return arm && arm->has_verify ? &arm->verify : NULL;
}

/* The candidate's error beside the one that it is compared with. */
struct held {
    const char *output; /* NULL: the worst of all */
    double own, ratio;  /* NaN: not known */
};

/*
 * On the same inputs unchanged code has the same error of all outputs together. A single output may
 * be of a few elements, and then another order of its sums, as good, has another error by luck.
 */
static struct held hold(const struct run *run, const struct run_case *c, const char *output,
                        double n, double least)
{
    const struct baseline_entry *b = &c->baseline;
    const struct document_verify *candidate = verify_of(c, ROLE_CANDIDATE);
    struct held h = {output, verified_error(candidate, output), NAN};
    bool paired = c->record.mode == MODE_PAIRED;
    double other = NAN;
    if (paired)
        other = verified_error(verify_of(c, ROLE_BASELINE), output);
    else if (c->record.mode == MODE_NUMBER)
        other = error_of(output, b->rel_fro, b->outputs, b->n_outputs) * input_effect(b, candidate);
    if (!paired || output) /* what luck may make of n outputs: four standard deviations of the
                              logarithm of a ratio of two such errors */
        other *= exp(4 * sqrt(2 / n));
    if (h.own >= 0 && other >= 0)
        h.ratio = run_same_library(run, c) ? 1 : h.own / fmax(other, least);
    return h;
}

/* Of all outputs together and each of several: the one whose error has grown most. */
static struct held worst(const struct run *run, const struct run_case *c)
{
    const struct kg_problem *p = &c->about->problem;
    struct problem_tensor tensors[PROBLEM_MAX_TENSORS], *outputs = tensors + p->n_in;
    double elements[PROBLEM_MAX_TENSORS], least[PROBLEM_MAX_TENSORS]; /* of each output */
    double fewest = INFINITY, most = 0;
    problem_tensors(p, tensors);
    for (unsigned i = 0; i < p->n_out; i++) {
        elements[i] = (double)problem_tensor_elements(&outputs[i]);
        /* What rounding alone comes to; what it takes from 8 bits is no error, see
         * storage_nearest(). */
        const uint32_t dtype = outputs[i].dtype;
        const struct dtype *row = kg_dtype_bits(dtype) > 8 ? dtype_stored(dtype) : dtype_of(p);
        least[i] = ldexp(ROUNDED_SHARE + 1 / sqrt(elements[i]), -(int)row->mantissa - 1);
        fewest = fmin(fewest, elements[i]);
        most = fmax(most, least[i]);
    }
    struct held h = hold(run, c, NULL, fewest, most);
    if (c->result.outcome != CASE_MEASURED)
        h.ratio = NAN;
    for (unsigned i = p->n_out; i-- > 0 && !isnan(h.ratio);) {
        const struct held one = hold(run, c, outputs[i].name, elements[i], least[i]);
        if (one.ratio > h.ratio)
            h = one;
    }
    return h;
}

double run_error_ratio(const struct run *run, const struct run_case *c)
{
    double ratio = worst(run, c).ratio;
    return isnan(ratio) ? 0 : ratio;
}

bool run_error_jumped(const struct run *run, const struct run_case *c)
{
    return worst(run, c).ratio > DECIDE_ERROR_JUMP;
}

void run_judge_error(const struct run *run, struct run_case *c)
{
    const struct held h = worst(run, c);
    char speed[sizeof c->reason], output[64] = "";
    if (h.ratio > DECIDE_ERROR_JUMP) {
        c->record.verdict = VERDICT_REGRESSION;
        if (h.output)
            snprintf(output, sizeof output, " of output '%s'", h.output);
        snprintf(speed, sizeof speed, "%s", c->reason);
        snprintf(c->reason, sizeof c->reason,
                 "less accurate: the relative error%s is %.3g, %.3g times what %s %s, over the %g "
                 "times that pass%s. Its speed: %.500s",
                 output, h.own, h.ratio, run->policy.other,
                 c->record.mode == MODE_PAIRED ? "has on the same inputs" : "has by its record",
                 DECIDE_ERROR_JUMP,
                 run->against_sha256 ? "" : "; 'gate baseline accept' takes it, with a reason",
                 speed);
    } else if (isnan(h.ratio) && c->result.outcome == CASE_MEASURED &&
               c->record.mode != MODE_NONE) { /* said: nobody shall take it for right */
        utf8_join(c->note, sizeof c->note, "; ", "accuracy is not compared: %s %s",
                  isnan(h.own) ? "the candidate" : run->policy.other,
                  !isnan(h.own) && c->record.mode == MODE_NUMBER ? "has no error on record"
                                                                 : "was not verified");
    }
}
