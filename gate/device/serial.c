/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serial.c: see serial.h.
 *
 * Edges lead from a launch to itself or to a later one, by the way nodes are given to launches. So
 * all of launch i ends before all of launch i + 1 begins if and only if there is an edge from each
 * node that ends i (none of i comes after it) to each one that begins i + 1: a longer way round
 * would have to lead through a node of one of the two.
 */
#include "gate/device/serial.h"

#include <stdlib.h>

#include "gate/base/alloc.h"

struct walk {
    const struct serial_graph *g;
    size_t *into;       /* into[v] to into[v + 1]: where in `from` the nodes before v are */
    uint32_t *from;     /* ends of edges */
    uint32_t *launch;   /* by node */
    uint32_t *waiting;  /* a stack of nodes whose predecessors are not yet claimed */
    uint32_t *counted;  /* by node: 1 + the node that it was last counted for */
    uint32_t *n_ends;   /* by launch */
    uint32_t *n_begins; /* by launch */
    bool *goes_on;      /* by node: one of its launch comes after it */
};

static bool is_in_range(const struct serial_graph *g)
{
    size_t n_last = g->n_launches ? g->last_end[g->n_launches - 1] : 0;
    for (size_t e = 0; e < g->n_edges; e++)
        if (g->edges[e].from >= g->n_nodes || g->edges[e].to >= g->n_nodes)
            return false;
    for (size_t i = 0; i < n_last; i++)
        if (g->last[i] >= g->n_nodes)
            return false;
    return true;
}

/* Sorts the edges by where they lead. */
static void index_edges(struct walk *w)
{
    const struct serial_graph *g = w->g;
    for (size_t e = 0; e < g->n_edges; e++)
        w->into[(size_t)g->edges[e].to + 2]++;
    for (size_t v = 2; v <= (size_t)g->n_nodes + 1; v++)
        w->into[v] += w->into[v - 1];
    for (size_t e = 0; e < g->n_edges; e++)
        w->from[w->into[(size_t)g->edges[e].to + 1]++] = g->edges[e].from;
}

/* Gives the launch `node` and all before it that are nobody's yet; returns how many. */
static uint32_t claim(struct walk *w, uint32_t node, unsigned launch)
{
    uint32_t n = 0, deep = 0;
    if (w->launch[node] != w->g->n_launches)
        return 0;
    w->launch[node] = launch;
    w->waiting[deep++] = node;
    for (; deep; n++) {
        uint32_t v = w->waiting[--deep];
        for (size_t i = w->into[v]; i < w->into[(size_t)v + 1]; i++)
            if (w->launch[w->from[i]] == w->g->n_launches) {
                w->launch[w->from[i]] = launch;
                w->waiting[deep++] = w->from[i];
            }
    }
    return n;
}

static enum serial claim_all(struct walk *w, unsigned *launch)
{
    const struct serial_graph *g = w->g;
    size_t at = 0;
    for (uint32_t v = 0; v < g->n_nodes; v++)
        w->launch[v] = g->n_launches;
    for (unsigned i = 0; i < g->n_launches; i++) {
        uint32_t n = 0;
        for (; at < g->last_end[i]; at++)
            n += claim(w, g->last[at], i);
        if (n == 0) {
            *launch = i;
            return SERIAL_NOTHING;
        }
    }
    return SERIAL;
}

/* Which nodes go on within their launch; the first launch that an early edge leads to is at fault.
 */
static enum serial look_at_edges(struct walk *w, unsigned *launch)
{
    const struct serial_graph *g = w->g;
    enum serial found = SERIAL;
    for (size_t e = 0; e < g->n_edges; e++) {
        const struct serial_edge *edge = &g->edges[e];
        uint32_t to = w->launch[edge->to];
        if (w->launch[edge->from] == to)
            w->goes_on[edge->from] = true;
        else if (edge->early && (found == SERIAL || to < *launch)) {
            found = SERIAL_EARLY;
            *launch = to;
        }
    }
    return found;
}

/* Of how many ends of the launch before its own `v` comes right after; -1: it begins nothing. */
static int64_t ends_before(struct walk *w, uint32_t v)
{
    int64_t n = 0;
    for (size_t i = w->into[v]; i < w->into[(size_t)v + 1]; i++) {
        uint32_t u = w->from[i];
        if (w->launch[u] == w->launch[v])
            return -1;
        if (w->launch[u] + 1 != w->launch[v] || w->goes_on[u] || w->counted[u] == v + 1)
            continue;
        w->counted[u] = v + 1;
        n++;
    }
    return n;
}

static enum serial look_at_begins(struct walk *w, unsigned *launch)
{
    const struct serial_graph *g = w->g;
    enum serial found = SERIAL;
    for (uint32_t v = 0; v < g->n_nodes; v++)
        w->n_ends[w->launch[v]] += !w->goes_on[v];
    for (uint32_t v = 0; v < g->n_nodes; v++) {
        uint32_t own = w->launch[v];
        int64_t before = ends_before(w, v);
        w->n_begins[own] += before >= 0;
        if (before < 0 || own == 0 || before == w->n_ends[own - 1])
            continue;
        if (found == SERIAL || own < *launch)
            *launch = own;
        found = SERIAL_OVERLAPS;
    }
    for (unsigned i = 0; i < g->n_launches && found == SERIAL; i++)
        if (w->n_ends[i] == 0 || w->n_begins[i] == 0) {
            found = SERIAL_ODD;
            *launch = i;
        }
    return found;
}

enum serial serial_check(const struct serial_graph *g, unsigned *launch)
{
    const size_t nodes = g->n_nodes, launches = (size_t)g->n_launches + 1;
    struct walk w = {.g = g};
    *launch = 0;
    if (!is_in_range(g))
        return SERIAL_ODD;
    w.into = xcalloc(nodes + 2, sizeof *w.into);
    w.from = xcalloc(g->n_edges, sizeof *w.from);
    w.launch = xcalloc(nodes, sizeof *w.launch);
    w.waiting = xcalloc(nodes, sizeof *w.waiting);
    w.counted = xcalloc(nodes, sizeof *w.counted);
    w.n_ends = xcalloc(launches, sizeof *w.n_ends);
    w.n_begins = xcalloc(launches, sizeof *w.n_begins);
    w.goes_on = xcalloc(nodes, sizeof *w.goes_on);
    index_edges(&w);
    enum serial found = claim_all(&w, launch);
    if (found == SERIAL)
        found = look_at_edges(&w, launch);
    if (found == SERIAL)
        found = look_at_begins(&w, launch);
    free(w.into);
    free(w.from);
    free(w.launch);
    free(w.waiting);
    free(w.counted);
    free(w.n_ends);
    free(w.n_begins);
    free(w.goes_on);
    return found;
}
