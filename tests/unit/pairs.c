/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/pairs.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

static const char columns[] =
    "case,process,swapped,d,log_ratio_cycles,log_ratio_p90,injected,p50_ns\n";

static int compare(double a, double b)
{
    return (a > b) - (a < b);
}

static int compare_groups(const struct pair_row *a, const struct pair_row *b)
{
    int names = strcmp(a->name, b->name);
    return names ? names : compare(a->injected, b->injected);
}

static int compare_rows(const void *a, const void *b)
{
    const struct pair_row *x = a, *y = b;
    int groups = compare_groups(x, y);
    return groups ? groups : compare(x->process, y->process);
}

void pairs_read_recording(struct pairs *p)
{
    const char *root = getenv("KERNEL_GATE_ROOT");
    char path[4096], line[512];
    snprintf(path, sizeof path, "%s/tests/data/pairs-h200.csv", root ? root : ".");
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("cannot open '%s': %s", path, strerror(errno));
    if (!fgets(line, sizeof line, file) || strcmp(line, columns) != 0)
        fail_msg("'%s' has other columns", path);
    for (*p = (struct pairs){0}; fgets(line, sizeof line, file); p->n++) {
        if (p->n % 1024 == 0)
            p->rows = realloc(p->rows, (p->n + 1024) * sizeof *p->rows);
        assert_non_null(p->rows);
        struct pair_row *row = &p->rows[p->n];
        double *const numbers[] = {
            &row->process,       &row->swapped,  &row->d,     &row->log_ratio_cycles,
            &row->log_ratio_p90, &row->injected, &row->p50_ns};
        char *rest = line;
        snprintf(row->name, sizeof row->name, "%s", strsep(&rest, ","));
        for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
            const char *field = strsep(&rest, ",\n");
            assert_non_null(field);
            *numbers[i] = *field ? strtod(field, NULL) : (double)NAN;
        }
    }
    fclose(file);
    qsort(p->rows, p->n, sizeof *p->rows, compare_rows);
}

void pairs_free(struct pairs *p)
{
    free(p->rows);
    *p = (struct pairs){0};
}

struct pair_group pairs_group(const struct pairs *p, size_t from)
{
    size_t to = from + 1;
    while (to < p->n && compare_groups(&p->rows[from], &p->rows[to]) == 0)
        to++;
    return (struct pair_group){from, to};
}
