/* SPDX-License-Identifier: Apache-2.0 */
/* baseline_chain.c: see baseline_chain.h. */
#include "gate/store/baseline_chain.h"

#include <math.h>
#include <string.h>

/* How many baselines are older. */
static size_t place_of(const struct baseline_chain *c, int64_t ms)
{
    size_t n = c->n;
    while (n > 0 && c->link[n - 1].ms >= ms)
        n--;
    return n;
}

void chain_add(struct baseline_chain *c, const struct chain_point *p)
{
    size_t at = place_of(c, p->baseline_ms);
    if (at < c->n && c->link[at].ms == p->baseline_ms)
        return;
    if (c->n == CHAIN_MAX) {
        if (at == 0)
            return;
        memmove(&c->link[0], &c->link[1], --at * sizeof c->link[0]);
    } else {
        memmove(&c->link[at + 1], &c->link[at], (c->n++ - at) * sizeof c->link[0]);
    }
    c->link[at] = (struct chain_link){.ms = p->baseline_ms, .revision = p->baseline_revision};
}

/* Is the run nearer to the one that became the next baseline than the one that is known? */
static bool is_better(const struct chain_link *link, const struct chain_link *next,
                      const struct chain_point *p)
{
    if (link->ratio <= 0 || next->ms != link->next_ms)
        return link->ratio <= 0 || next->ms < link->next_ms;
    return p->time_ms <= next->ms || link->run_ms > next->ms;
}

void chain_tie(struct baseline_chain *c, const struct chain_point *p)
{
    size_t at = place_of(c, p->baseline_ms);
    if (at == c->n || c->link[at].ms != p->baseline_ms || p->revision == 0 || !(p->ratio > 0))
        return;
    struct chain_link *link = &c->link[at];
    for (size_t i = at + 1; i < c->n; i++) {
        if (c->link[i].revision == p->revision && is_better(link, &c->link[i], p)) {
            link->next_ms = c->link[i].ms;
            link->run_ms = p->time_ms;
            link->ratio = p->ratio;
        }
    }
}

/* The next baseline of the same commit; NULL: there is none. */
static const struct chain_link *same_code(const struct baseline_chain *c, size_t at)
{
    for (size_t i = at + 1; i < c->n && c->link[at].revision != 0; i++) {
        if (c->link[i].revision == c->link[at].revision)
            return &c->link[i];
    }
    return NULL;
}

void chain_end(struct baseline_chain *c)
{
    int64_t n_parts = 0;
    for (size_t at = c->n; at-- > 0;) {
        struct chain_link *link = &c->link[at];
        bool is_tied = link->ratio > 0;
        const struct chain_link *next = is_tied ? chain_find(c, link->next_ms) : same_code(c, at);
        link->part = next ? next->part : n_parts++;
        link->level = next ? next->level - (is_tied ? log(link->ratio) : 0) : 0;
    }
}

const struct chain_link *chain_find(const struct baseline_chain *c, int64_t baseline_ms)
{
    size_t at = place_of(c, baseline_ms);
    return at < c->n && c->link[at].ms == baseline_ms ? &c->link[at] : NULL;
}
