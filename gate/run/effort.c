/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/run/run.h"

#include <math.h>

#include "gate/worker/measure.h"

#define SAMPLES_OF_A_ROUND 4.0 /* of both arms together */
#define WITH_RESTS 1.2
#define LEVEL_STEP 1.01

static double round_ms(const struct effort *e)
{
    return SAMPLES_OF_A_ROUND * e->replay_ns * 1e-6 * WITH_RESTS;
}

double effort_rounds_ms(const struct effort *e)
{
    return MEASURE_ROUNDS * round_ms(e);
}

double effort_wanted_ms(const struct effort *e, double level)
{
    double widths = e->half_width / level;
    double rounds = e->samples / 2 * widths * widths;
    return fmin(fmax(rounds - MEASURE_ROUNDS, 0) * round_ms(e), EFFORT_CASE_MS);
}

double effort_level(const struct effort *efforts, size_t n, double pot_ms)
{
    for (double level = MEASURE_HALF_WIDTH; level < 1; level *= LEVEL_STEP) {
        double sum_ms = 0;
        for (size_t i = 0; i < n; i++)
            sum_ms += effort_wanted_ms(&efforts[i], level);
        if (sum_ms <= pot_ms)
            return level;
    }
    return INFINITY;
}
