/* SPDX-License-Identifier: Apache-2.0 */
/*
 * effort.h: how long each case of a process is sampled for.
 *
 * Eight rounds (four, where these leave no doubt) are enough for most kernels; in a few,
 * neighbouring samples differ so much that the process itself does not know its d to 0.1 %. More
 * rounds help these and are lost on the others, so the time that a process may spend beyond its
 * eight rounds is one pot, which goes where the process before saw the widest intervals: all are
 * brought down to one level, the lowest that the pot pays for.
 */
#ifndef GATE_RUN_EFFORT_H
#define GATE_RUN_EFFORT_H

#include <stddef.h>

#define EFFORT_POT_MS 400.0  /* of a process, for all cases of the suite; a part has its share */
#define EFFORT_CASE_MS 300.0 /* of it, for one case */

/* What a process saw of a case. */
struct effort {
    double half_width; /* of the interval of the ratio, over it; 0: not known */
    double samples;    /* of an arm */
    double replay_ns;  /* how long one lasts */
};

/* Time that eight rounds take, with the rests between them. */
double effort_rounds_ms(const struct effort *e);

/* Time beyond them after which the half-width would be `level`, since it shrinks by the root of the
 * samples; at most EFFORT_CASE_MS. */
double effort_wanted_ms(const struct effort *e, double level);

/* The lowest level, MEASURE_HALF_WIDTH or more, that this pot brings all of these to, within 1 %;
 * infinite where even 100 % is too much: then nothing is wanted. */
double effort_level(const struct effort *efforts, size_t n, double pot_ms);

#endif
