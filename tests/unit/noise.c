/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/noise.h"

#include <math.h>

#include "gate/base/seed.h"
#define SLOW_MODE 0.04
#define DRIFT_SPAN 20 /* processes */

void rng_seed(struct rng *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++)
        r->s[i] = seed_next(&seed);
    r->has_spare = false;
}

static uint64_t rotate_left(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

uint64_t rng_next(struct rng *r)
{
    uint64_t *s = r->s;
    uint64_t result = rotate_left(s[0] + s[3], 23) + s[0], t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

double rng_uniform(struct rng *r)
{
    return ((double)(rng_next(r) >> 11) + 0.5) * 0x1p-53;
}

size_t rng_below(struct rng *r, size_t n)
{
    return (size_t)(rng_uniform(r) * (double)n);
}

/* Box and Muller, 1958. */
double rng_normal(struct rng *r)
{
    if (r->has_spare) {
        r->has_spare = false;
        return r->spare;
    }
    double radius = sqrt(-2 * log(rng_uniform(r))), angle = 2 * M_PI * rng_uniform(r);
    r->spare = radius * sin(angle);
    r->has_spare = true;
    return radius * cos(angle);
}

/* A normal value over the root of a chi-square of four degrees: -2 ln of two uniform values. */
double rng_student4(struct rng *r)
{
    double chi_square = -2 * log(rng_uniform(r) * rng_uniform(r));
    return rng_normal(r) / sqrt(chi_square / 4);
}

void noise_init(struct noise *n, const struct noise_model *model, double change, uint64_t seed)
{
    *n = (struct noise){.model = model, .change = log1p(change)};
    rng_seed(&n->rng, seed);
}

static double innovation(struct noise *n)
{
    return n->model->sd * (n->model->heavy ? rng_student4(&n->rng) : rng_normal(&n->rng));
}

void noise_begin(struct noise *n)
{
    n->index = 0;
    n->slope = 0;
    if (n->model->drift > 0)
        n->slope = (rng_uniform(&n->rng) < 0.5 ? -1 : 1) * n->model->drift / DRIFT_SPAN;
    n->offset = n->model->offset > 0 ? n->model->offset * rng_normal(&n->rng) : 0;
    n->previous = innovation(n);
}

double noise_next(struct noise *n)
{
    const struct noise_model *m = n->model;
    /* The spread of an AR(1) process stays that of its innovations by this weight. */
    double spread = m->memory * n->previous + sqrt(1 - m->memory * m->memory) * innovation(n);
    double d = n->change + n->offset + spread + n->slope * (double)n->index;
    if (m->slow_share > 0 && rng_uniform(&n->rng) < m->slow_share)
        d += log1p(SLOW_MODE);
    d += n->index % 2 == 0 ? m->first_slot : -m->first_slot;
    n->previous = spread;
    n->index++;
    return d;
}
