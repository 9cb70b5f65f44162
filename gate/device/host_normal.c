/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_normal.c: the ziggurat.
 *
 * Marsaglia and Tsang, "The ziggurat method for generating random variables", Journal of
 * Statistical Software 5(8), 2000: the curve is covered by layers of one area; 98 numbers of 100
 * fall where a layer lies wholly under the curve, and cost one multiplication. As Doornik asks for
 * ("An improved ziggurat method", 2005), a layer and the place in it are drawn from different bits.
 */
#include "gate/device/host.h"

#include <math.h>
#include <stdbool.h>

#include "gate/base/seed.h"
static const double TAIL = 3.442619855899;      /* where the lowest of 128 layers ends, */
static const double AREA = 9.91256303526217e-3; /* and their area; both from the papers */

static double curve(double x)
{
    return exp(-0.5 * x * x);
}

/* In (0, 1): neither 0, whose logarithm is infinite, nor 1. */
static double next_unit(struct host_normal *n)
{
    return ((double)(seed_next(&n->state) >> 12) + 0.5) * 0x1p-52;
}

void host_normal_seed(struct host_normal *n, uint64_t seed)
{
    n->state = seed;
    n->state = seed_next(&n->state); /* neighbouring seeds would walk one sequence */
    n->edge[0] = AREA / curve(TAIL); /* as if the tail were a part of its rectangle */
    n->edge[1] = TAIL;
    for (int i = 2; i < NORMAL_LAYERS; i++)
        n->edge[i] = sqrt(-2 * log(AREA / n->edge[i - 1] + curve(n->edge[i - 1])));
    n->edge[NORMAL_LAYERS] = 0;
    for (int i = 0; i < NORMAL_LAYERS; i++)
        n->inner[i] = n->edge[i + 1] / n->edge[i];
    for (int i = 0; i <= NORMAL_LAYERS; i++)
        n->height[i] = curve(n->edge[i]);
}

/* Beyond TAIL: Marsaglia, "Generating a variable from the tail of the normal distribution", 1964.
 */
static double next_of_tail(struct host_normal *n)
{
    double x;
    double y;
    do {
        x = log(next_unit(n)) / TAIL;
        y = log(next_unit(n));
    } while (-2 * y < x * x);
    return TAIL - x;
}

/* Between the layer's two edges the curve is asked. */
static bool is_under_curve(struct host_normal *n, unsigned layer, double x)
{
    double low = n->height[layer];
    double high = n->height[layer + 1];
    return low + next_unit(n) * (high - low) < curve(x);
}

double host_normal_next(struct host_normal *n)
{
    for (;;) {
        uint64_t bits = seed_next(&n->state);
        unsigned layer = bits & (NORMAL_LAYERS - 1);
        double place = (double)((int64_t)bits >> 11) * 0x1p-52; /* in [-1, 1) */
        double x = place * n->edge[layer];
        if (fabs(place) < n->inner[layer])
            return x;
        if (layer == 0)
            return copysign(next_of_tail(n), place);
        if (is_under_curve(n, layer, x))
            return x;
    }
}
