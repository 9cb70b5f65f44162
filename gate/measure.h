/*
 * measure.h: how long does it take?
 *
 * Contract graph-v1 (CUDA) and loop-v1 (host). All arms run in one process on the same buffers.
 * R input sets rotate so that one sample touches at least three times the L2; where time or memory
 * forbids it R is 1 and the sample is labelled warm. One sample is one replay of N recorded serial
 * launches, N a multiple of R, 1 to 2 ms long (longer kernels: N = 1). After about 5 ms of work the
 * device rests in low-power fills, so that its power limit is not what is measured.
 *
 * Rounds go forth and back over the arms (A B B A), and neighbouring samples are paired for the
 * ratio, which a change of the clock between rounds leaves alone. At least MEASURE_ROUNDS rounds,
 * then more until the ratio's interval is narrow or the budget is spent. Intervals are order
 * statistics.
 *
 * Beside it single cold launches are timed, one by one: their p50 and p90 are what a caller sees
 * who launches once.
 */
#ifndef GATE_MEASURE_H
#define GATE_MEASURE_H

#include "arm.h"

#define MEASURE_ROUNDS 20
#define MEASURE_CONFIDENCE 0.99

struct measure_policy {
    double budget_ns;        /* for the rounds of one case */
    double single_budget_ns; /* for its single launches */
};

const char *measure_contract(const struct device *d);

/*
 * Measures the first n arms (n >= 1, arms[0] the candidate), all of them verified on this problem;
 * fills their `measurement` and sets `timed`. `seed` is that of verify_arms(), whose set 0 is set 0
 * here: afterwards *first holds set 0 with the outputs that arms[0]'s last timed launch wrote, for
 * a last look; it is the caller's (operands_free). GATE_WRONG: a launch failed, cannot be recorded,
 * or takes a time that cannot be (work hidden on another stream, faster than the chip); the guilty
 * arm's verification says so.
 */
enum gate_status measure_arms(struct device *d, const struct suite_case *c, uint64_t seed,
                              const struct measure_policy *policy, struct arm *arms, unsigned n,
                              struct operands *first, struct gate_error *err);

/* The least time the problem can take on a device with these peaks, in ns; 0: not known. */
double measure_floor_ns(const struct kg_problem *p, const struct device_peaks *peaks);

#endif
