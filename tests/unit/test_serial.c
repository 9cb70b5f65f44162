/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serial.c: which recorded graphs are launches one after the other.
 */
#include <stdlib.h>

#include "gate/device/serial.h"
#include "tests/unit/unit.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Edges, last nodes and where those of each launch end, as arrays; `at` is the launch at fault. */
#define ASSERT_FOUND(expected, at, nodes, edges, last, ends)                                       \
    do {                                                                                           \
        unsigned launch_ = 0;                                                                      \
        const struct serial_graph g_ = {nodes, edges, COUNT(edges), COUNT(ends), last, ends};      \
        assert_int_equal(serial_check(&g_, &launch_), expected);                                   \
        if ((expected) != SERIAL)                                                                  \
            assert_int_equal(launch_, at);                                                         \
    } while (0)

TEST(a_chain_is_serial)
{
    static const struct serial_edge edges[] = {{2, 0, 0}, {0, 3, 0}, {3, 1, 0}};
    static const uint32_t last[] = {2, 3, 1};
    static const size_t each[] = {1, 2, 3}, in_two[] = {1, 3};
    ASSERT_FOUND(SERIAL, 0, 4, edges, last, each);
    ASSERT_FOUND(SERIAL, 0, 4, edges, last, in_two);
}

/* 0 forks to 1 and 2, which 3 joins; so do 4 to 7. */
TEST(what_forks_and_joins_within_a_launch_is_right)
{
    static const struct serial_edge edges[] = {{0, 1, 0}, {0, 2, 0}, {1, 3, 0},
                                               {2, 3, 0}, {3, 4, 0}, {4, 5, 0},
                                               {4, 6, 0}, {5, 7, 0}, {6, 7, 0}};
    static const uint32_t last[] = {3, 7};
    static const size_t ends[] = {1, 2};
    ASSERT_FOUND(SERIAL, 0, 8, edges, last, ends);
}

/* Launches of one node on a stream of their own, 1, 3 and 5, joined by 0, 2 and 4: as it should be,
 * and where the third waits for the end of the first alone. */
TEST(a_stream_that_waits_for_an_older_event_overlaps)
{
    static const struct serial_edge right[] = {{1, 0, 0}, {0, 3, 0}, {3, 2, 0}, {0, 2, 0},
                                               {2, 5, 0}, {5, 4, 0}, {2, 4, 0}};
    static const struct serial_edge older[] = {{1, 0, 0}, {0, 3, 0}, {3, 2, 0}, {0, 2, 0},
                                               {0, 5, 0}, {5, 4, 0}, {2, 4, 0}};
    static const uint32_t last[] = {0, 2, 4};
    static const size_t ends[] = {1, 2, 3};
    ASSERT_FOUND(SERIAL, 0, 6, right, last, ends);
    ASSERT_FOUND(SERIAL_OVERLAPS, 2, 6, older, last, ends);
}

/* 1 waits for nothing, and 2 joins it to 0. */
TEST(a_stream_that_waits_for_nothing_overlaps)
{
    static const struct serial_edge edges[] = {{0, 2, 0}, {1, 2, 0}};
    static const uint32_t last[] = {0, 2};
    static const size_t ends[] = {1, 2};
    ASSERT_FOUND(SERIAL_OVERLAPS, 1, 3, edges, last, ends);
}

/* 1 is of the first launch, but only the second one waits for it. */
TEST(work_that_is_joined_a_launch_late_overlaps)
{
    static const struct serial_edge edges[] = {
        {0, 1, 0}, {0, 2, 0}, {2, 3, 0}, {1, 4, 0}, {3, 4, 0}};
    static const uint32_t last[] = {2, 4};
    static const size_t ends[] = {1, 2};
    ASSERT_FOUND(SERIAL_OVERLAPS, 1, 5, edges, last, ends);
}

/* The first launch ends with 0 and 1, the second one with 2 and 3. */
TEST(several_last_nodes_are_all_waited_for)
{
    static const struct serial_edge all[] = {{0, 2, 0}, {1, 2, 0}, {0, 3, 0}, {1, 3, 0}};
    static const struct serial_edge some[] = {{0, 2, 0}, {1, 2, 0}, {0, 3, 0}};
    static const struct serial_edge twice[] = {{0, 2, 0}, {1, 2, 0}, {0, 3, 0}, {0, 3, 0}};
    static const uint32_t last[] = {0, 1, 2, 3};
    static const size_t ends[] = {2, 4};
    ASSERT_FOUND(SERIAL, 0, 4, all, last, ends);
    ASSERT_FOUND(SERIAL_OVERLAPS, 1, 4, some, last, ends);
    ASSERT_FOUND(SERIAL_OVERLAPS, 1, 4, twice, last, ends);
}

/* A stream that has been joined stays among the last nodes, and may do so for ever. */
TEST(last_nodes_of_launches_before_do_not_count_again)
{
    static const struct serial_edge edges[] = {{0, 1, 0}, {0, 2, 0}, {1, 2, 0}};
    static const uint32_t last[] = {0, 0, 1, 0, 1, 2};
    static const size_t ends[] = {1, 3, 6};
    ASSERT_FOUND(SERIAL, 0, 3, edges, last, ends);
}

TEST(a_launch_without_a_node_left_nothing)
{
    static const struct serial_edge edges[] = {{0, 1, 0}};
    static const uint32_t last[] = {0, 0, 1};
    static const size_t ends[] = {1, 2, 3}, none_first[] = {0, 3};
    ASSERT_FOUND(SERIAL_NOTHING, 1, 2, edges, last, ends);
    ASSERT_FOUND(SERIAL_NOTHING, 0, 2, edges, last, none_first);
}

/* As the gate's own delay: it must wait for the last launch. */
TEST(what_comes_after_all_launches_is_one_more)
{
    static const struct serial_edge after[] = {{0, 1, 0}, {1, 2, 0}},
                                    beside[] = {{0, 1, 0}, {0, 2, 0}};
    static const uint32_t last[] = {0, 1};
    static const size_t ends[] = {1, 2};
    ASSERT_FOUND(SERIAL, 0, 3, after, last, ends);
    ASSERT_FOUND(SERIAL_OVERLAPS, 2, 3, beside, last, ends);
}

TEST(an_early_edge_may_not_lead_to_another_launch)
{
    static const struct serial_edge within[] = {{0, 1, 1}, {1, 2, 0}, {2, 3, 1}};
    static const struct serial_edge across[] = {{2, 3, 1}, {0, 1, 0}, {1, 2, 1}};
    static const uint32_t in_two[] = {1, 3}, each[] = {0, 1, 2, 3};
    static const size_t two[] = {1, 2}, four[] = {1, 2, 3, 4};
    ASSERT_FOUND(SERIAL, 0, 4, within, in_two, two);
    ASSERT_FOUND(SERIAL_EARLY, 1, 4, across, in_two, two);
    ASSERT_FOUND(SERIAL_EARLY, 2, 4, across, each, four);
}

TEST(what_is_no_graph_is_odd)
{
    static const struct serial_edge round[] = {{0, 1, 0}, {1, 2, 0}, {2, 1, 0}};
    static const struct serial_edge far_from[] = {{0, 1, 0}, {9, 1, 0}};
    static const struct serial_edge far_to[] = {{0, 1, 0}, {0, UINT32_MAX, 0}};
    static const uint32_t last[] = {0, 2}, far_last[] = {0, 3};
    static const size_t ends[] = {1, 2};
    ASSERT_FOUND(SERIAL_ODD, 1, 3, round, last, ends);
    ASSERT_FOUND(SERIAL_ODD, 0, 3, far_from, last, ends);
    ASSERT_FOUND(SERIAL_ODD, 0, 3, far_to, last, ends);
    ASSERT_FOUND(SERIAL_ODD, 0, 3, round, far_last, ends);
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
