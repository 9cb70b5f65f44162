/*
 * changepoint.h: where the level of a series changed. Pure: numbers in, change points out.
 *
 * Method: E-divisive (Matteson and James, "A nonparametric approach for multiple change point
 * analysis of multivariate data", JASA 2014) over the newest CHANGEPOINT_WINDOW values, with
 * Student's t in place of permutations, as Hunter does (Fleming et al., ICPE 2023), so that equal
 * input gives equal output. A split that survives must also be large enough, nearly separate the
 * two sides, and be improbable by ranks alone: a t-test at the best of many splits is not a t-test,
 * and a series with a second, slower mode fools it. CUSUM (Page, 1954) watches the segment as a
 * whole for what a window is too short for, a slow drift.
 *
 * Values are natural logarithms of times, one a run, oldest first: a shift of 0.01 is 1 %. Where
 * numbers must not be compared (other contract, other epoch) the caller starts a new stretch with
 * changepoint_start(). A change point is young, and may move or vanish, until CHANGEPOINT_SETTLED
 * values lie behind it; then it is settled, and what lies before it is forgotten.
 *
 * test_changepoint_rates.c measures how often noise alone raises a change point.
 */
#ifndef SERVER_WATCH_CHANGEPOINT_H
#define SERVER_WATCH_CHANGEPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHANGEPOINT_WINDOW 50                        /* values that a split is searched in */
#define CHANGEPOINT_SETTLED (CHANGEPOINT_WINDOW / 2) /* values behind it that settle one */
#define CHANGEPOINT_TAIL (3 * CHANGEPOINT_WINDOW)    /* newest values of a segment that count */
#define CHANGEPOINT_MIN_SEGMENT 3
#define CHANGEPOINT_MIN_SHIFT 0.01
#define CHANGEPOINT_MAX (CHANGEPOINT_WINDOW / CHANGEPOINT_MIN_SEGMENT)

struct changepoint {
    int64_t position; /* of the first value of the new level, counted from the stretch's start */
    double before, after; /* medians of the segments on both sides */
    double p;             /* of Student's t, two-sided, autocorrelation allowed for */
    bool settled;
    bool drift; /* a slow one: position is where it began; the next segment begins with the newest
                   CHANGEPOINT_SETTLED values */
};

/*
 * The end of a series that is watched. A segment lies between changes that were told. A change that
 * is too small to be told cuts the values that are compared, but not the segment, so that many
 * small steps add up to one that is told.
 */
struct changepoint_tail {
    int64_t segment; /* position where the segment starts */
    int64_t cut;     /* position where its last level starts; at or behind `segment` */
    int64_t first;   /* position of value[0]; at or behind `cut` */
    size_t n, n_reference;
    double reference[CHANGEPOINT_SETTLED]; /* the first values of the segment */
    double value[CHANGEPOINT_TAIL];        /* the newest ones */
};

/* A new stretch; `position` is that of its first value. */
void changepoint_start(struct changepoint_tail *t, int64_t position);

/*
 * As if all values of a segment had been appended up to `first`, the position of the next one that
 * is pushed: `reference` holds the segment's first CHANGEPOINT_SETTLED values, or as many as there
 * are before `first`, which is `cut` or the position of the newest value but CHANGEPOINT_TAIL - 1,
 * whichever is later.
 */
void changepoint_resume(struct changepoint_tail *t, int64_t segment, const double *reference,
                        size_t n_reference, int64_t cut, int64_t first);

/* Takes a value without a look: for what was looked at before. */
void changepoint_push(struct changepoint_tail *t, double value);

/*
 * Takes the next value and looks. Writes the change points that are young, or settle just now,
 * oldest first, to out[CHANGEPOINT_MAX] and returns their number. Costs
 * O(CHANGEPOINT_WINDOW^2) and no memory: 3 to 10 us on a 2020s x86 core.
 */
size_t changepoint_append(struct changepoint_tail *t, double value, struct changepoint *out);

/*
 * Of less than a tail: true when changepoint_append() of the last of these values finds nothing and
 * cuts nothing. `newest` are the newest CHANGEPOINT_WINDOW ones, or all of a segment that has
 * fewer; `start`, the first CHANGEPOINT_SETTLED of the segment, is NULL in that case only.
 */
bool changepoint_is_quiet(const double *newest, size_t n, const double *start);

#endif
