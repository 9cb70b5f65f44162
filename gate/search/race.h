/* SPDX-License-Identifier: Apache-2.0 */
/*
 * race.h: which of many candidates is faster than a library, and the risk that it is luck.
 *
 * The unit is the process, as in decide.h: d is its ln(candidate / other), and a run brings
 * several. The race may choose by whatever it has seen; the winner of a race is its luckiest, too,
 * so none of its values speak for it. It is confirmed by new processes alone, which know nothing of
 * the choice (Cox, A note on data-splitting for the evaluation of significance levels, 1975).
 *
 * In the confirmation each process bets against "the gain is no more than half of what is asked
 * for": then d < -ln(1 + gain / 2) happens in at most every other process, and the product of the
 * bets is a martingale that ever reaches 1 / p with a probability of at most p, however long it is
 * looked at (Ville 1939; Shafer et al., Test martingales, Bayes factors and p-values, 2011). The
 * k-th candidate that is confirmed may spend risk / 2^k, which adds up to `risk` over the search. A
 * search that goes on counts on: a candidate keeps its number and the runs of its confirmation,
 * which are no runs of the race, so none of them chooses.
 *
 * Repeated launches of one input are what is timed, so a candidate that leaves work out where its
 * result is there already would win. It goes out when that is seen, and none wins that has not
 * shown its gain on fresh inputs and destroyed outputs as well.
 */
#ifndef GATE_SEARCH_RACE_H
#define GATE_SEARCH_RACE_H

#include <stdbool.h>
#include <stddef.h>

#include "gate/base/error.h"
#include "gate/decide/stats.h"

#define RACE_RUN_VALUES 40   /* the most that a run brings: two sequences of decide.h */
#define RACE_VALUES 400      /* of a candidate in the race */
#define RACE_CONFIRMATIONS 3 /* more, after the last run of the race */
#define RACE_CONFIRMATION_RUNS 6

/* The odds of luck: wins of the candidate among processes. */
struct race_luck {
    size_t n, wins;
    double least; /* the least that p has been; 1 before the first process */
};

void race_luck_add(struct race_luck *l, bool win);

enum racer_state {
    RACER_IN,
    RACER_BEATEN, /* by others, or by the gain that is asked for */
    RACER_WRONG,
    RACER_FAILED, /* no run came about */
};

struct racer {
    enum racer_state state;
    const char *why; /* it went out though it looked faster; NULL: it did not */
    size_t n, runs;
    size_t confirmation;           /* its number in the whole search; 0: it was not confirmed yet */
    double d[RACE_VALUES], median; /* 0 of none */
};

/* What a run of one candidate says: of RACER_IN the values. */
struct race_run {
    enum racer_state state;
    size_t n;
    double d[RACE_RUN_VALUES];
    double fresh[RACE_RUN_VALUES]; /* as in race_fresh_of(); NaN: not measured */
};

/* Does a candidate do its whole work? */
enum race_fresh {
    RACE_FRESH_OPEN, /* it is not known */
    RACE_FRESH_GAINS,
    RACE_FRESH_IDLES, /* it leaves work out where its result is there already */
};

/*
 * By the rule of `gate run`, with the gain as its threshold: fresh[i] is ln of what process i took
 * on fresh inputs and destroyed outputs over repeated ones, of the candidate over the other. It
 * gains when that is less than the gain, or when what is left of d is more than the gain.
 */
enum race_fresh race_fresh_of(const double *d, const double *fresh, size_t n, double gain);

struct race_rules {
    double gain; /* that is asked for: 0.01 is 1 % of time */
    double risk; /* over the whole search */
};

/*
 * Measures candidate i anew, for the race (confirmation 0) or for the confirmation of this number.
 * A failure ends the race, RACER_FAILED the candidate alone.
 */
typedef enum gate_status race_measure(void *context, size_t i, size_t confirmation,
                                      struct race_run *out, struct gate_error *err);

struct race {
    struct race_rules rules;
    struct racer *racers;
    size_t n;
    race_measure *measure;
    bool (*goes_on)(void *context); /* false: the race has taken its time, or its number of runs */
    void *context;
    size_t confirmed; /* candidates, in earlier calls as well */
    size_t n_since;   /* of these after the last run of the race: up to RACE_CONFIRMATIONS */
};

struct race_end {
    bool won;
    size_t winner;
    size_t confirmations;  /* of the whole search */
    double risk;           /* that the winner is luck, over the whole search */
    struct estimate ratio; /* of its confirmation: median and range of its processes */
    size_t processes;      /* of its confirmation */
};

/* One run of candidate i, and what follows from it. */
enum gate_status race_look(struct race *r, size_t i, struct gate_error *err);

/* Successive halving (Jamieson and Talwalkar, 2016): all in, each is run once more, and the faster
 * half stays, until one is left. `order` has each candidate once. */
enum gate_status race_halve(struct race *r, const size_t *order, struct gate_error *err);

/* The fastest that is in, and others where it was luck, while the race may confirm more. */
enum gate_status race_confirm(struct race *r, struct race_end *out, struct gate_error *err);

#endif
