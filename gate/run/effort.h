/*
 * effort.h: how long each case of a process is sampled for.
 *
 * Eight rounds (four, where these leave no doubt) are enough for most kernels; in a few,
 * neighbouring samples differ so much that the process itself does not know its d to 0.1 %. More
 * rounds help these and are lost on the others, so the time that a process may spend beyond its
 * eight rounds is one pot, which is shared out by what the process before saw. A whole run stays as
 * long as it was, to within five pots.
 */
#ifndef GATE_RUN_EFFORT_H
#define GATE_RUN_EFFORT_H

#define EFFORT_HALF_WIDTH 0.001 /* of d within a process, that more rounds are taken for */
#define EFFORT_POT_MS 250.0     /* of a process, for all of its cases */
#define EFFORT_CASE_MS 60.0     /* of it, for one case */

/* What a process saw of a case. */
struct effort {
    double half_width; /* of the interval of the ratio, over it; 0: not known */
    double samples;    /* of an arm */
    double replay_ns;  /* how long one lasts */
};

/* Time that eight rounds take, with the rests between them. */
double effort_rounds_ms(const struct effort *e);

/* Time beyond them after which the half-width would be EFFORT_HALF_WIDTH, since it shrinks by the
 * root of the samples; at most EFFORT_CASE_MS. */
double effort_wanted_ms(const struct effort *e);

/* The share of each wish that the pot has for wishes of this sum: 1, or less for all alike. */
double effort_share(double sum_ms);

#endif
