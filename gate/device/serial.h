/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serial.h: do the launches in a recorded graph come one after the other?
 *
 * Pure. What a launch may do within itself is its own affair: fork, join, overlap.
 */
#ifndef GATE_DEVICE_SERIAL_H
#define GATE_DEVICE_SERIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct serial_edge {
    uint32_t from, to;
    bool early; /* `to` need not wait until `from` has ended */
};

struct serial_graph {
    uint32_t n_nodes;
    const struct serial_edge *edges;
    size_t n_edges;
    unsigned n_launches;
    const uint32_t *last; /* the nodes that each launch ended with, in the order of the launches */
    const size_t *last_end; /* by launch: where in `last` its own end */
};

enum serial {
    SERIAL,
    SERIAL_NOTHING,  /* the launch left no node */
    SERIAL_OVERLAPS, /* a node of the launch need not wait for all of the launch before */
    SERIAL_EARLY,    /* an edge into the launch is an early one */
    SERIAL_ODD, /* this is no graph: an index is out of range, or a launch has no begin or end */
};

/*
 * A node belongs to the first launch whose last nodes are it or come after it; what comes after all
 * of them is taken for one launch more. On failure *launch is the first launch at fault. Takes time
 * in proportion to nodes and edges.
 */
enum serial serial_check(const struct serial_graph *g, unsigned *launch);

#endif
