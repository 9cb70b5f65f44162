#include "effort.h"

#include <math.h>

#include "worker/measure.h"

#define SAMPLES_OF_A_ROUND 4.0 /* of both arms together */
#define WITH_RESTS 1.2

static double round_ms(const struct effort *e)
{
    return SAMPLES_OF_A_ROUND * e->replay_ns * 1e-6 * WITH_RESTS;
}

double effort_rounds_ms(const struct effort *e)
{
    return MEASURE_ROUNDS * round_ms(e);
}

double effort_wanted_ms(const struct effort *e)
{
    double widths = e->half_width / EFFORT_HALF_WIDTH;
    double rounds = e->samples / 2 * widths * widths;
    return fmin(fmax(rounds - MEASURE_ROUNDS, 0) * round_ms(e), EFFORT_CASE_MS);
}

double effort_share(double sum_ms)
{
    return sum_ms > EFFORT_POT_MS ? EFFORT_POT_MS / sum_ms : 1;
}
