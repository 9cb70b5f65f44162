/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/diff/loops.h"

#include <stdlib.h>
#include <string.h>

/* A listing comes from a file that nobody vouches for. */
#define STEPS_MAX ((size_t)1 << 17)
#define SWEEPS_MAX 2000

struct finder {
    struct loops_step *steps;
    size_t n;
    bool *seen;     /* of one walk */
    size_t *queue;  /* of one walk */
    size_t *size;   /* of the loop that a step is in so far; 0: it is in none */
    size_t *header; /* and where that begins */
    unsigned n_sweeps;
};

static void visit(struct finder *f, size_t at, size_t but, size_t *n_queue)
{
    if (at >= f->n || at == but || f->seen[at])
        return;
    f->seen[at] = true;
    f->queue[(*n_queue)++] = at;
}

/* Marks what the first instruction leads to without `but`. */
static void walk(struct finder *f, size_t but)
{
    size_t n_queue = 0;
    memset(f->seen, 0, f->n * sizeof *f->seen);
    visit(f, 0, but, &n_queue);
    while (n_queue) {
        size_t at = f->queue[--n_queue];
        visit(f, f->steps[at].target, but, &n_queue);
        if (f->steps[at].falls)
            visit(f, at + 1, but, &n_queue);
    }
}

/* Marks those that lead to a branch which closes the loop of `header`; false: there is none. */
static bool mark_ends(struct finder *f, size_t header)
{
    bool any = false;
    walk(f, header);
    for (size_t i = 0; i < f->n; i++) {
        const struct loops_step *s = &f->steps[i];
        f->seen[i] = s->target == header && i >= header && !f->seen[i] && (i > header || s->falls);
        any |= f->seen[i];
    }
    return any;
}

static bool leads_on(const struct finder *f, size_t at, size_t header)
{
    const struct loops_step *s = &f->steps[at];
    return (s->falls && at + 1 < f->n && at + 1 != header && f->seen[at + 1]) ||
           (s->target < f->n && s->target != header && f->seen[s->target]);
}

/* The body: what leads there without the header, and that. */
static void mark_body(struct finder *f, size_t header)
{
    bool more = true;
    f->seen[header] = true;
    while (more && f->n_sweeps < SWEEPS_MAX) {
        more = false;
        f->n_sweeps++;
        for (size_t i = f->n; i-- > 0;)
            if (!f->seen[i] && leads_on(f, i, header))
                f->seen[i] = more = true;
    }
}

static void take_loop(struct finder *f, size_t header)
{
    size_t size = 0;
    bool works = false;
    if (!mark_ends(f, header))
        return;
    mark_body(f, header);
    for (size_t i = 0; i < f->n; i++) {
        size += f->seen[i];
        works |= f->seen[i] && f->steps[i].works;
    }
    for (size_t i = 0; works && i < f->n; i++)
        if (f->seen[i] && (!f->size[i] || f->size[i] > size)) {
            f->size[i] = size;
            f->header[i] = header;
        }
}

/* A header is in its own loop, or in none that counts. */
static size_t number(struct finder *f)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++)
        if (f->size[i] && f->header[i] == i)
            f->steps[i].loop = ++n;
    for (size_t i = 0; i < f->n; i++)
        if (f->size[i])
            f->steps[i].loop = f->steps[f->header[i]].loop;
    return n;
}

size_t loops_find(struct loops_step *steps, size_t n)
{
    struct finder f = {.steps = steps,
                       .n = n,
                       .seen = calloc(n + 1, sizeof *f.seen),
                       .queue = calloc(n + 1, sizeof *f.queue),
                       .size = calloc(n + 1, sizeof *f.size),
                       .header = calloc(n + 1, sizeof *f.header)};
    size_t n_loops = LOOPS_NOWHERE;
    bool *is_header = calloc(n + 1, sizeof *is_header);
    for (size_t i = 0; i < n && is_header; i++) {
        steps[i].loop = 0;
        if (steps[i].target <= i)
            is_header[steps[i].target] = true;
    }
    if (is_header && f.seen && f.queue && f.size && f.header) {
        for (size_t i = 0; i < n && n <= STEPS_MAX && f.n_sweeps < SWEEPS_MAX; i++)
            if (is_header[i])
                take_loop(&f, i);
        n_loops = number(&f);
    }
    free(is_header);
    free(f.seen);
    free(f.queue);
    free(f.size);
    free(f.header);
    return n_loops;
}
