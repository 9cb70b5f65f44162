/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_missing.c: cases that have a baseline from this suite, and that the suite has no more. Nobody
 * measures them, so their slowdown would never be seen: such a run is incomplete.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/alloc.h"
#include "gate/document/fields_table.h"
#include "gate/run/run.h"

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

/* The rows of the names with which an id begins. False: these are no op and dtype. */
static bool find_rows(const char *id, const struct op **op, const struct dtype **dtype)
{
    char names[2][NAME_MAX_CHARACTERS + 1] = {"", ""};
    if (sscanf(id, "%64[^/]/%64[^/]", names[0], names[1]) != 2)
        return false;
    *op = op_by_name(names[0]);
    *dtype = dtype_by_name(names[1]);
    return *op && *dtype;
}

static void look(struct run *run, const char *id, const struct baseline_entry *entry)
{
    const struct op *op;
    const struct dtype *dtype;
    if (!is_of_suite(entry, run->suite->file.name) || has_case(run->whole, id) ||
        !find_rows(id, &op, &dtype))
        return;
    run->missing = xrealloc(run->missing, run->n_missing + 1, sizeof *run->missing);
    struct run_missing *m = &run->missing[run->n_missing++];
    *m = (struct run_missing){.op = op->name, .dtype = dtype->name};
    snprintf(m->id, sizeof m->id, "%s", id);
    snprintf(
        m->reason, sizeof m->reason,
        "missing: its baseline was taken in suite '%s', which does not have the case any more: "
        "put it back, or `gate baseline retire %s --reason TEXT`",
        run->suite->file.name, id);
}

void run_find_missing(struct run *run)
{
    const struct baseline_file *f = run->baseline ? baseline_stored(run->baseline) : NULL;
    for (size_t i = 0; f && run->whole && i < f->n_cases; i++)
        look(run, f->cases[i].id, &f->cases[i].entry);
}

size_t run_missing_here(const struct run *run)
{
    return !run->shard || run->shard->index == 1 ? run->n_missing : 0;
}
