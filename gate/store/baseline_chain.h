/* SPDX-License-Identifier: Apache-2.0 */
/*
 * baseline_chain.h: the ratios that a case's runs had to different baselines, as one series. Pure.
 *
 * One baseline is linked to the next by the ratio that the run had which became it: the newest one
 * of its commit before it was stored, else the newest one. A baseline whose commit was not compared
 * with the one before is the same library, measured anew, where the commit is the same; else the
 * link is not known, and the chain has another part.
 */
#ifndef GATE_STORE_BASELINE_CHAIN_H
#define GATE_STORE_BASELINE_CHAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHAIN_MAX 256 /* baselines, the newest ones */

/* A run's result that was compared with a baseline. */
struct chain_point {
    int64_t time_ms;
    int64_t revision;          /* of the run; 0: none */
    int64_t baseline_ms;       /* when that became the baseline */
    int64_t baseline_revision; /* of what commit; 0: not known */
    double ratio;              /* over the baseline, from pairs */
};

struct chain_link {
    int64_t ms, revision;
    double level; /* ln of this baseline over the newest one of its part */
    int64_t part; /* 0: the newest */
    /* the run that became a newer baseline */
    int64_t next_ms, run_ms;
    double ratio; /* 0: there was none */
};

struct baseline_chain {
    struct chain_link link[CHAIN_MAX]; /* oldest first */
    size_t n;
};

/* First all points with chain_add(), oldest first; then, in the same order, with chain_tie(). */
void chain_add(struct baseline_chain *c, const struct chain_point *p);
void chain_tie(struct baseline_chain *c, const struct chain_point *p);
void chain_end(struct baseline_chain *c);

/* NULL: it is older than all that there was room for. */
const struct chain_link *chain_find(const struct baseline_chain *c, int64_t baseline_ms);

#endif
