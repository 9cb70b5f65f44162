/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decide.h: from paired measurements to a verdict. Pure: numbers and a policy in, a verdict out.
 *
 * The unit of replication is the process: launches within one sharpen its own figure and say
 * nothing about the next process (Kalibera and Jones, Rigorous Benchmarking in Reasonable Time,
 * 2013). A process measures candidate and baseline on the same buffers in turns and gives one
 * number for a case: d, the median over pairs of ln(candidate / baseline). d > 0 is slower. From
 * eight processes on, the effect of the order of the two sides is removed (decide_balance()).
 *
 * Stages. A first sequence is looked at after 5, 8, 12, 16 and 20 processes, and stops at the first
 * look with a clear outcome:
 *   pass       the upper bound of median(d) is below ln(1 + T). Before the last look the processes
 *              must also resolve T (decide_mde() <= T): by chance, five noisy values all lie below
 *              a bound once in 32 times, and more processes reveal it;
 *   suspicion  median(d) > ln(1 + T), the lower bound > ln(1 + T / 2), and the excess is more than
 *              the floor;
 *   faster     (mirrored, and a pass as well) median(d) < -ln(1 + T), the upper bound
 *              < -ln(1 + T / 2), and the gain is more than the floor;
 * and no verdict after 20. Bounds are order statistics, the k-th smallest and largest with
 * k = 1, 1, 2, 3, 4 (one-sided error 0.031, 0.0039, 0.0032, 0.0021, 0.0013 a look). If processes
 * were lost, n lies between two looks: then the k of the smaller look applies, which gives the
 * wider interval.
 *
 * Confirmation. After a pause, a second sequence of fresh processes confirms a suspicion; also a
 * faster case, if the baseline is to follow it or both libraries are the same:
 *   both agree                              the outcome stands, if adjudication attributes it to
 *                                           the code
 *   suspected, then a clear pass            pass; the reason names the suspicion
 *   only the second is faster               no improvement
 *   the second is still open after 20       no verdict on a suspicion; a faster case passes
 *                                           unconfirmed, since its first sequence was a pass
 *   faster, then suspected                  no verdict
 *
 * Adjudication attributes a difference to the code if all of this holds:
 *   - the two are neither the same file nor the same machine code for this case;
 *   - the control kernel stayed flat: it moved by at most DECIDE_CONTROL_FLAT; or its movement
 *     cannot be the reason: if all of it, in the direction that would make the difference, is taken
 *     from the nearer end of the interval of both sequences, what is left is still over the
 *     threshold;
 *   - SM cycles agree: the median of the cycle ratios of both sequences is above ln(1 + T / 2),
 *     mirrored for faster.
 * Missing evidence counts as an objection: a control that was not timed in both sequences, or a
 * device that counts cycles but gave them in less than half of the processes. A slowdown of more
 * than DECIDE_CLOCK_RANGE times needs no cycles, since no clock causes it. A slower case that fails
 * adjudication is `environment`. A faster one passes, or is `environment` if the two are the same.
 */
#ifndef GATE_DECIDE_DECIDE_H
#define GATE_DECIDE_DECIDE_H

#include <stdbool.h>
#include <stddef.h>

#include "gate/decide/stats.h"

/* ---- what is said of a case and of a run ---- */

/* The history stores these numbers. */
enum verdict {
    VERDICT_PASS,
    VERDICT_REGRESSION,
    VERDICT_IMPROVEMENT,
    VERDICT_WRONG,
    VERDICT_NO_VERDICT,
    VERDICT_ENVIRONMENT,
    VERDICT_COUNT
};

extern const char *const verdict_names[VERDICT_COUNT + 1]; /* NULL ends them */

/* "" where there is none of that number. */
const char *verdict_name(enum verdict v);

/* Exit code of a run from the number of cases with each verdict: the first of wrong (2), regression
 * (1), environment (4), no-verdict (3) that occurs, else 0. */
int verdict_exit_code(const size_t counts[VERDICT_COUNT]);

/* The verdict of a run with that exit code: the verdict that led to it; pass for 0. */
enum verdict verdict_of_run(const size_t counts[VERDICT_COUNT]);

/* ---- what a sequence says ---- */

#define DECIDE_FIRST_LOOK 5
#define DECIDE_LAST_LOOK 20
#define DECIDE_MAX_PROCESSES 64 /* in one sequence */

/* The look after n processes; 0 when that was the last. */
size_t decide_look_after(size_t n);

/*
 * Median of n values with its bounds at the ranks of decide.h; for n below 5, the whole range. `d`
 * need not be sorted. n is 1 to DECIDE_MAX_PROCESSES; for any other n the result is all 0.
 */
struct estimate decide_bounds(const double *d, size_t n);

/*
 * Minimum detectable effect: the smallest threshold T (0.005 is 0.5 %) that a look at n processes
 * with this deviation resolves. In 99 % of sequences each bound lies within r deviations of the
 * middle (r is 2.88 for five processes, 1.71 for 20). For unchanged code the upper bound must stay
 * below T, and for a slowdown of T the lower one above T / 2, so T = 2 r deviations. Hence in 99 %
 * of sequences unchanged code stays below T, the whole interval of a slowdown of T is above T / 2,
 * and a slowdown of 1.25 T is suspected; at T itself the median is above T in half of them. 0 for n
 * below 2.
 */
double decide_mde_of(double deviation, size_t n);

/*
 * The same for these n processes. Their deviation is the distance between their bounds divided by
 * its mean for normal values (for five, the range over d2, Tippett 1925), so a few outliers beyond
 * the bounds do not matter. Beyond 20 processes the result is too large rather than too small.
 */
double decide_mde(const double *d, size_t n);

/*
 * d without the effect of the order of the two sides, as out[0] to out[n - 1]; d itself if
 * `swapped` is NULL or a role has fewer than DECIDE_ROLE_MIN processes. n is at most
 * DECIDE_MAX_PROCESSES.
 *
 * The side whose kernels are loaded, recorded and started first gains or loses time for the whole
 * life of the process: the place of the code changed a decode kernel of 13 us by 0.27 %. Every
 * other process swaps the roles, so that this effect has the opposite sign in one half of the
 * processes. This is a crossover trial, and the effect of the order is estimated and removed (Senn,
 * Cross-over Trials in Clinical Research, 2002). The remaining values are stretched by
 * sqrt(n / (n - 2)), because two figures were estimated from n values: in simulation the bounds
 * then contain the middle as often as without the correction.
 */
#define DECIDE_ROLE_MIN 4 /* the least number that shows the effect of the order */
void decide_balance(const double *d, const bool *swapped, size_t n, double *out);

/* Can this be d of a process? A ratio of a million or a NaN cannot. */
bool decide_is_measured(double d);

/* ---- the rule ---- */

#define DECIDE_CONTROL_FLAT 0.005
#define DECIDE_CLOCK_RANGE 10.0 /* an H200's clock goes from 345 to 1980 MHz */

/* A relative error above this multiple of the baseline's is a regression, at any speed. */
#define DECIDE_ERROR_JUMP 2.0

/* One sequence of processes: d of each, in time and in SM cycles. */
struct decide_sequence {
    const double *d;
    const double
        *log_ratio_cycles; /* NULL: cycles were not measured (the host); NaN: in that process */
    const bool *swapped;   /* the baseline came first in this process; NULL: not known */
    size_t n;
};

struct decide_input {
    struct decide_sequence first, confirmation; /* confirmation.n is 0 until it is asked for */
    double threshold;                           /* T: 0.02 is 2 % */
    double baseline_p50_ns; /* of the baseline in this run: turns the excess into time */
    double floor_ns;        /* an excess up to this is not seen: timer step, 30 cycles */
    double control_drift;   /* relative change of the control between the two sequences; NaN: not
                               timed in both */
    bool counts_cycles;     /* the device has a counter of cycles, so they must be there */
    const char *other;      /* what reasons call the baseline, which may be any library */
    const char *same;    /* why candidate and baseline are an A/A control of this run, such as "are
                            the same file" or "run the same machine code"; NULL: they differ */
    bool confirm_faster; /* the baseline is to follow an improvement */
};

enum decide_next {
    DECIDE_DONE,
    DECIDE_MORE_FIRST, /* the first sequence goes on to `next_n` processes */
    DECIDE_CONFIRM,    /* the confirmation goes on (or starts) to `next_n` processes */
};

struct decision {
    enum decide_next next;
    size_t next_n;
    enum verdict verdict;  /* final when done; else the verdict if no more processes follow */
    struct estimate ratio; /* exp of median and bounds of all processes of the deciding sequence */
    double mde; /* decide_mde() of the deciding sequence, at least the floor; 0: unknown */
    double confirmed_ratio; /* exp(median) of the confirmation; 0: none */
    char reason[400];       /* one sentence with its figures */
};

/*
 * The confirmation decides once it has DECIDE_FIRST_LOOK processes, the first sequence until then.
 * It asks for more processes until the last look; the caller limits how often a lost process is
 * replaced. Impossible input (no process or too many, a figure that is not finite or off by a
 * factor of a million, a policy out of range) gives no verdict, with the fault as the reason;
 * `ratio` and all other members are then 0.
 */
struct decision decide(const struct decide_input *in);

#endif
