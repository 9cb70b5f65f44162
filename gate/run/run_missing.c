/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_missing.c: cases that have a baseline from this suite, and that the suite has no more. Nobody
 * measures them, so their slowdown would never be seen: such a run is incomplete.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/document/fields_table.h"
#include "gate/run/run.h"

struct search {
    struct run *run;
    bool failed; /* out of memory */
};

static bool is_of_suite(const struct baseline_entry *e, const char *suite)
{
    for (size_t i = 0; i < e->n_suites; i++)
        if (!strcmp(e->suites[i], suite))
            return true;
    return false;
}

static bool has_case(const struct suite *suite, const char *id)
{
    for (size_t i = 0; i < suite->n_cases; i++)
        if (!strcmp(suite->cases[i].id, id))
            return true;
    return false;
}

/* The name that the id has at *at, which moves behind it; NULL: it is none of these. */
static const char *take_name(const char *const *names, const char **at)
{
    size_t n = strcspn(*at, "/");
    for (; *names; names++)
        if (strlen(*names) == n && !strncmp(*names, *at, n))
            break;
    *at += n + ((*at)[n] == '/');
    return *names;
}

static void look(void *context, const char *id, const struct baseline_entry *entry)
{
    struct search *s = context;
    struct run *run = s->run;
    const char *at = id, *op, *dtype;
    if (!is_of_suite(entry, run->suite->file.name) || has_case(run->whole, id) ||
        !(op = take_name(field_ops, &at)) || !(dtype = take_name(field_dtypes, &at)))
        return;
    struct run_missing *grown = realloc(run->missing, (run->n_missing + 1) * sizeof *run->missing);
    if (!grown) {
        s->failed = true;
        return;
    }
    run->missing = grown;
    struct run_missing *m = &grown[run->n_missing++];
    *m = (struct run_missing){.op = op, .dtype = dtype};
    snprintf(m->id, sizeof m->id, "%s", id);
    snprintf(
        m->reason, sizeof m->reason,
        "missing: its baseline was taken in suite '%s', which does not have the case any more: "
        "put it back, or `gate baseline retire %s --reason TEXT`",
        run->suite->file.name, id);
}

bool run_find_missing(struct run *run)
{
    struct search s = {.run = run};
    if (run->baseline && run->whole)
        baseline_each(run->baseline, look, &s);
    return !s.failed;
}

size_t run_missing_here(const struct run *run)
{
    return !run->shard || run->shard->index == 1 ? run->n_missing : 0;
}
