/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/pairs.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

#define MAX_COLUMNS 32
#define MAX_ROWS 1000000

/* The numbers of a row, by the names of their columns. */
static const struct column {
    const char *name;
    size_t offset;
    bool required;
} numbers[] = {
    {"process", offsetof(struct pair_row, process), true},
    {"swapped", offsetof(struct pair_row, swapped), false},
    {"d", offsetof(struct pair_row, d), true},
    {"injected", offsetof(struct pair_row, injected), true},
    {"log_ratio_cycles", offsetof(struct pair_row, log_ratio_cycles), false},
    {"p50_ns", offsetof(struct pair_row, p50_ns), false},
};

#define N_NUMBERS (sizeof numbers / sizeof numbers[0])

/* Where in a line the case and each of the numbers stand; -1: nowhere. */
struct layout {
    int name, number[N_NUMBERS];
    size_t n_columns;
};

struct reader {
    char *why;
    size_t why_size, line;
};

__attribute__((format(printf, 2, 3))) static int refuse(const struct reader *r, const char *format,
                                                        ...)
{
    va_list args;
    int at = snprintf(r->why, r->why_size, "line %zu: ", r->line);
    if (at < 0 || (size_t)at >= r->why_size)
        return -1;
    va_start(args, format);
    vsnprintf(r->why + at, r->why_size - (size_t)at, format, args);
    va_end(args);
    return -1;
}

/* Cuts a line at its commas, in place; how many fields there are, of which MAX_COLUMNS are kept. */
static size_t split(char *line, char *fields[MAX_COLUMNS])
{
    size_t n = 0;
    line[strcspn(line, "\r\n")] = '\0';
    for (char *field; (field = strsep(&line, ","));)
        if (n++ < MAX_COLUMNS)
            fields[n - 1] = field;
    return n;
}

static int find(char *const *fields, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(fields[i], name) == 0)
            return (int)i;
    return -1;
}

static int read_layout(const struct reader *r, char *line, struct layout *l)
{
    char *fields[MAX_COLUMNS];
    l->n_columns = split(line, fields);
    if (l->n_columns > MAX_COLUMNS)
        return refuse(r, "more than %d columns", MAX_COLUMNS);
    l->name = find(fields, l->n_columns, "case");
    if (l->name < 0)
        return refuse(r, "no column 'case'");
    for (size_t i = 0; i < N_NUMBERS; i++) {
        l->number[i] = find(fields, l->n_columns, numbers[i].name);
        if (numbers[i].required && l->number[i] < 0)
            return refuse(r, "no column '%s'", numbers[i].name);
    }
    return 0;
}

static int read_number(const struct reader *r, const struct column *c, const char *field,
                       double *value)
{
    char *end;
    *value = NAN;
    if (*field == '\0' && !c->required)
        return 0;
    *value = strtod(field, &end);
    if (end == field || *end != '\0' || !isfinite(*value))
        return refuse(r, "%s is '%s', expected a number", c->name, field);
    return 0;
}

static int read_row(const struct reader *r, const struct layout *l, char *line,
                    struct pair_row *row)
{
    char *fields[MAX_COLUMNS];
    size_t n = split(line, fields);
    if (n != l->n_columns)
        return refuse(r, "%zu fields instead of %zu", n, l->n_columns);
    const char *name = fields[l->name];
    if (*name == '\0' || strlen(name) >= sizeof row->name)
        return refuse(r, "the case is empty or too long");
    memcpy(row->name, name, strlen(name) + 1);
    for (size_t i = 0; i < N_NUMBERS; i++) {
        double *value = (double *)(void *)((char *)row + numbers[i].offset);
        *value = NAN;
        if (l->number[i] >= 0 && read_number(r, &numbers[i], fields[l->number[i]], value))
            return -1;
    }
    return 0;
}

static struct pair_row *add_row(struct pairs *p)
{
    if (p->n == p->room) {
        size_t room = p->room ? 2 * p->room : 256;
        struct pair_row *rows = room <= MAX_ROWS ? realloc(p->rows, room * sizeof *rows) : NULL;
        if (!rows)
            return NULL;
        p->rows = rows;
        p->room = room;
    }
    return &p->rows[p->n++];
}

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

static int read_lines(struct reader *r, struct pairs *p, FILE *file, char **line, size_t *size)
{
    struct layout layout = {0};
    r->line = 1;
    if (getline(line, size, file) < 0)
        return refuse(r, "the file is empty");
    if (read_layout(r, *line, &layout))
        return -1;
    while (getline(line, size, file) >= 0) {
        r->line++;
        struct pair_row *row = add_row(p);
        if (!row)
            return refuse(r, "too many rows");
        if (read_row(r, &layout, *line, row))
            return -1;
    }
    return ferror(file) ? refuse(r, "it cannot be read on") : 0;
}

int pairs_read(struct pairs *p, FILE *file, char *why, size_t why_size)
{
    struct reader r = {.why = why, .why_size = why_size};
    char *line = NULL;
    size_t size = 0;
    *p = (struct pairs){0};
    int status = read_lines(&r, p, file, &line, &size);
    free(line);
    if (status)
        pairs_free(p);
    else if (p->n)
        qsort(p->rows, p->n, sizeof *p->rows, compare_rows);
    return status;
}

void pairs_read_recording(struct pairs *p)
{
    const char *root = getenv("KERNEL_GATE_ROOT");
    char path[4096], why[256];
    snprintf(path, sizeof path, "%s/tests/data/pairs-h200.csv", root ? root : ".");
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("cannot open '%s': %s", path, strerror(errno));
    int status = pairs_read(p, file, why, sizeof why);
    fclose(file);
    if (status)
        fail_msg("'%s': %s", path, why);
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
