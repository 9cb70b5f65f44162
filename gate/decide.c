#include "decide.h"

#include <stdio.h>

static const char *const verdict_names[VERDICT_COUNT] = {
    [VERDICT_PASS] = "pass",
    [VERDICT_IMPROVEMENT] = "improvement",
    [VERDICT_REGRESSION] = "regression",
    [VERDICT_WRONG] = "wrong",
    [VERDICT_NO_VERDICT] = "no-verdict",
    [VERDICT_ENVIRONMENT] = "environment",
};

/* A wrong result beats everything; see the exit codes in base/error.h. */
static const struct {
    enum verdict verdict;
    int exit_code;
} precedence[] = {
    {VERDICT_WRONG, 2},
    {VERDICT_REGRESSION, 1},
    {VERDICT_ENVIRONMENT, 4},
    {VERDICT_NO_VERDICT, 3},
};

const char *verdict_name(enum verdict v)
{
    return verdict_names[v];
}

int verdict_exit_code(const size_t counts[VERDICT_COUNT])
{
    for (size_t i = 0; i < sizeof precedence / sizeof precedence[0]; i++)
        if (counts[precedence[i].verdict])
            return precedence[i].exit_code;
    return 0;
}

enum verdict verdict_of_run(const size_t counts[VERDICT_COUNT])
{
    for (size_t i = 0; i < sizeof precedence / sizeof precedence[0]; i++)
        if (counts[precedence[i].verdict])
            return precedence[i].verdict;
    return VERDICT_PASS;
}

static double percent(double ratio)
{
    return (ratio - 1) * 100;
}

/* The process whose p50 is lowest: the one least disturbed by the machine. */
static struct estimate least_disturbed(const struct decide_input *in)
{
    struct estimate best = in->p50_ns[0];
    for (size_t i = 1; i < in->n_processes; i++)
        if (in->p50_ns[i].value < best.value)
            best = in->p50_ns[i];
    return best;
}

struct decision decide(const struct decide_input *in)
{
    struct decision d = {.verdict = VERDICT_NO_VERDICT};
    if (in->best_p50_ns <= 0) {
        snprintf(d.reason, sizeof d.reason, "no comparable best is stored for this case");
        return d;
    }
    struct estimate p50 = least_disturbed(in);
    d.ratio = (struct estimate){p50.value / in->best_p50_ns, p50.lo / in->best_p50_ns,
                                p50.hi / in->best_p50_ns};
    double limit = 1 + in->threshold;
    bool last_look = in->n_processes >= DECIDE_LOOKS;
    if (d.ratio.hi < 1 - in->threshold) {
        d.verdict = VERDICT_IMPROVEMENT;
        snprintf(d.reason, sizeof d.reason, "p50 is %.2f %% under the best [%.2f, %.2f]",
                 -percent(d.ratio.value), -percent(d.ratio.hi), -percent(d.ratio.lo));
    } else if (d.ratio.hi <= limit) {
        d.verdict = VERDICT_PASS;
        snprintf(d.reason, sizeof d.reason, "p50 is %+.2f %% from the best [%+.2f, %+.2f]",
                 percent(d.ratio.value), percent(d.ratio.lo), percent(d.ratio.hi));
    } else if (d.ratio.lo > limit) {
        d.verdict = VERDICT_REGRESSION;
        d.more = !last_look;
        snprintf(d.reason, sizeof d.reason,
                 "p50 is %+.2f %% from the best [%+.2f, %+.2f] in the fastest of %zu processes, "
                 "over the threshold of %.2f %%",
                 percent(d.ratio.value), percent(d.ratio.lo), percent(d.ratio.hi), in->n_processes,
                 in->threshold * 100);
    } else {
        d.more = !last_look;
        snprintf(d.reason, sizeof d.reason,
                 "the interval [%+.2f, %+.2f] %% of p50 over the best holds the threshold of "
                 "%.2f %% after %zu processes",
                 percent(d.ratio.lo), percent(d.ratio.hi), in->threshold * 100, in->n_processes);
    }
    return d;
}
