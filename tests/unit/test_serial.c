/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serial.c: which recorded graphs are launches one after the other.
 */
#include <string.h>

#include "gate/device/serial.h"
#include "tests/unit/unit.h"

/* Nodes are digits; an edge is a pair of them, with a '!' where it is an early one; the last nodes
 * of each launch end with a '|'. */
static const struct {
    const char *edges, *last;
    uint32_t nodes;
    enum serial expected;
    unsigned at; /* the launch at fault */
} cases[] = {
    {"20 03 31", "2|3|1|", 4, SERIAL, 0}, /* a chain */
    {"20 03 31", "2|31|", 4, SERIAL, 0},
    /* 0 forks to 1 and 2, which 3 joins; so do 4 to 7. */
    {"01 02 13 23 34 45 46 57 67", "3|7|", 8, SERIAL, 0},
    /* Launches of one node on a stream of their own, 1, 3 and 5, joined by 0, 2 and 4: as it should
     * be, and where the third waits for the end of the first alone. */
    {"10 03 32 02 25 54 24", "0|2|4|", 6, SERIAL, 0},
    {"10 03 32 02 05 54 24", "0|2|4|", 6, SERIAL_OVERLAPS, 2},
    /* 1 waits for nothing, and 2 joins it to 0. */
    {"02 12", "0|2|", 3, SERIAL_OVERLAPS, 1},
    /* 1 is of the first launch, but only the second one waits for it. */
    {"01 02 23 14 34", "2|4|", 5, SERIAL_OVERLAPS, 1},
    /* Of several last nodes all are waited for. */
    {"02 12 03 13", "01|23|", 4, SERIAL, 0},
    {"02 12 03", "01|23|", 4, SERIAL_OVERLAPS, 1},
    {"02 12 03 03", "01|23|", 4, SERIAL_OVERLAPS, 1},
    /* A stream that has been joined stays among the last nodes, and may do so for ever. */
    {"01 02 12", "0|01|012|", 3, SERIAL, 0},
    {"01", "0|0|1|", 2, SERIAL_NOTHING, 1},
    {"01", "|001|", 2, SERIAL_NOTHING, 0},
    /* What comes after all launches, as the gate's own delay, must wait for the last one. */
    {"01 12", "0|1|", 3, SERIAL, 0},
    {"01 02", "0|1|", 3, SERIAL_OVERLAPS, 2},
    /* An early edge may not lead to another launch. */
    {"01! 12 23!", "1|3|", 4, SERIAL, 0},
    {"23! 01 12!", "1|3|", 4, SERIAL_EARLY, 1},
    {"23! 01 12!", "0|1|2|3|", 4, SERIAL_EARLY, 2},
    {"12! 01 23!", "0|1|2|3|", 4, SERIAL_EARLY, 2},
    /* What is no graph. */
    {"01 12 21", "0|2|", 3, SERIAL_ODD, 1},
    {"01 91", "0|2|", 3, SERIAL_ODD, 0},
    {"01 09", "0|2|", 3, SERIAL_ODD, 0},
    {"01 12 21", "0|3|", 3, SERIAL_ODD, 0},
};

TEST(graphs)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct serial_edge edges[16];
        uint32_t last[16];
        size_t ends[16], n = 0;
        unsigned launch = 0;
        struct serial_graph g = {cases[i].nodes, edges, 0, 0, last, ends};
        for (const char *at = cases[i].edges; *at; at += strspn(at, "! ")) {
            edges[g.n_edges].from = (uint32_t)(*at++ - '0');
            edges[g.n_edges].to = (uint32_t)(*at++ - '0');
            edges[g.n_edges++].early = *at == '!';
        }
        for (const char *at = cases[i].last; *at; at++)
            if (*at == '|')
                ends[g.n_launches++] = n;
            else
                last[n++] = (uint32_t)(*at - '0');
        enum serial found = serial_check(&g, &launch);
        if (found != cases[i].expected || (found != SERIAL && launch != cases[i].at))
            fail_msg("%s: %d at launch %u", cases[i].edges, (int)found, launch);
    }
}

/* ---- against every pair of nodes ---- */

enum { NODES_MAX = 9, LAUNCHES_MAX = 4, GRAPHS = 200000 };

struct made {
    struct serial_edge edges[NODES_MAX * NODES_MAX];
    uint32_t last[NODES_MAX * LAUNCHES_MAX];
    size_t ends[LAUNCHES_MAX];
    unsigned before[NODES_MAX]; /* a bit for each node that comes before this one */
    struct serial_graph g;
};

static uint64_t random_state;

static unsigned below(unsigned n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(random_state >> 33) % n;
}

/* Edges lead upwards and are dense, as else hardly any graph is serial. */
static void make(struct made *m)
{
    const unsigned nodes = 1 + below(NODES_MAX), launches = 1 + below(LAUNCHES_MAX);
    const unsigned edges_of_8 = 3 + below(6);
    m->g = (struct serial_graph){nodes, m->edges, 0, launches, m->last, m->ends};
    for (uint32_t v = 0; v < nodes; v++) {
        m->before[v] = 0;
        for (uint32_t u = 0; u < v; u++)
            if (below(8) < edges_of_8) {
                m->edges[m->g.n_edges++] = (struct serial_edge){u, v, false};
                m->before[v] |= m->before[u] | 1u << u;
            }
    }
    size_t n = 0;
    for (unsigned i = 0; i < launches; i++) {
        const unsigned reach = nodes * (i + 1) / launches;
        for (unsigned j = 1 + below(2); j-- > 0 && reach;)
            m->last[n++] = reach - 1 - below(reach < 2 ? reach : 2);
        m->ends[i] = n;
    }
}

/* Each node of a launch must come after all of the launch before. */
static enum serial by_pairs(const struct made *m)
{
    unsigned done = 0, all = (1u << m->g.n_nodes) - 1, previous = 0;
    enum serial found = SERIAL;
    for (unsigned i = 0, at = 0; i <= m->g.n_launches; i++) {
        unsigned own = i == m->g.n_launches ? all & ~done : 0;
        for (; i < m->g.n_launches && at < m->ends[i]; at++)
            own |= (m->before[m->last[at]] | 1u << m->last[at]) & ~done;
        if (own == 0 && i < m->g.n_launches)
            return SERIAL_NOTHING;
        for (unsigned v = 0; v < m->g.n_nodes; v++)
            if (own >> v & 1 && (m->before[v] & previous) != previous)
                found = SERIAL_OVERLAPS;
        done |= own;
        previous = own;
    }
    return found;
}

TEST(it_finds_what_a_look_at_each_pair_does)
{
    unsigned of_kind[SERIAL_ODD + 1] = {0}, launch;
    struct made m;
    random_state = 4;
    for (int i = 0; i < GRAPHS; i++) {
        make(&m);
        const enum serial expected = by_pairs(&m);
        assert_int_equal(serial_check(&m.g, &launch), expected);
        of_kind[expected]++;
    }
    assert_true(of_kind[SERIAL] > GRAPHS / 20 && of_kind[SERIAL_OVERLAPS] > GRAPHS / 20);
}
