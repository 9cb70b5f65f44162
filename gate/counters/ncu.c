/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/counters/counters.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/paths.h"

/* ---- where it is, and how it is called ---- */

enum gate_status ncu_find(char path[PATHS_MAX], struct gate_error *err)
{
    return toolkit_find("ncu", "/opt/nvidia/nsight-compute/*/ncu", path, err);
}

unsigned ncu_words(const char *path, const char *log, bool hopper, char metrics[NCU_METRICS_SIZE],
                   const char *words[NCU_WORDS])
{
    const char *const all[] = {path,
                               "--csv",
                               "--page=raw",
                               "--print-units=base",
                               "--print-kernel-base=mangled",
                               "--clock-control=none",
                               "--replay-mode=kernel",
                               "--profile-from-start=off",
                               "--target-processes=all",
                               "--log-file",
                               log,
                               "--metrics",
                               metrics};
    const unsigned n = sizeof all / sizeof all[0];
    size_t used = 0;
    for (size_t i = 0; i < 2 * COUNTERS_N; i++) {
        const struct counter *c = &counters[i / 2];
        const char *name = i % 2 ? c->other : c->metric;
        if (name && (hopper || !c->hopper) && used < NCU_METRICS_SIZE)
            used += (size_t)snprintf(metrics + used, NCU_METRICS_SIZE - used, "%s%s",
                                     used ? "," : "", name);
    }
    memcpy(words, all, sizeof all);
    return n;
}

/* ---- its table ---- */

#define COLUMNS_MAX 1024 /* each metric comes four times, beside all that the GPU is */
#define FIELD_SIZE 4096
#define VALUE_MAX 1e18
#define NONE COLUMNS_MAX

struct row {
    char *field[COLUMNS_MAX]; /* in the copy of the text, terminated */
    size_t n;
};

/* Which column has what. */
struct columns {
    size_t id, name, n;
    size_t metric[COUNTERS_N], other[COUNTERS_N];
};

/* Takes a field apart where it lies; returns behind it, at the comma or the end of the line. NULL:
 * it is no field. */
static char *read_field(char *at, char **field)
{
    char *to = at;
    *field = at;
    if (*at != '"') {
        at += strcspn(at, ",\n\"");
        return *at == '"' || at - *field >= FIELD_SIZE ? NULL : at;
    }
    for (at++; *at && (*at != '"' || at[1] == '"'); at++) {
        at += *at == '"';
        *to++ = *at;
    }
    if (*at != '"' || to - *field >= FIELD_SIZE)
        return NULL;
    *to = '\0';
    at++;
    return *at == ',' || *at == '\n' || !*at ? at : NULL;
}

/* Returns the beginning of the next line; NULL: this is no row. */
static char *read_row(char *at, struct row *out)
{
    for (out->n = 0;;) {
        if (out->n == COLUMNS_MAX)
            return NULL;
        char *end = read_field(at, &out->field[out->n++]);
        if (!end)
            return NULL;
        char last = *end;
        *end = '\0';
        if (last != ',')
            return last ? end + 1 : end;
        at = end + 1;
    }
}

/* NONE: there is none, or there are two. */
static size_t find_column(const struct row *header, const char *name)
{
    size_t found = NONE;
    for (size_t i = 0; name && i < header->n; i++)
        if (!strcmp(header->field[i], name)) {
            if (found != NONE)
                return NONE;
            found = i;
        }
    return found;
}

/* "1,234.5" as well; NAN: a text such as "n/a" stands there. False: it is a number that cannot be.
 */
static bool read_number(const char *text, double *out)
{
    char digits[64];
    size_t n = 0;
    *out = NAN;
    if (!isdigit((unsigned char)*text) && *text != '-' && *text != '.')
        return true;
    for (const char *c = text; *c; c++) {
        if (*c == ',' && c > text && isdigit((unsigned char)c[1]))
            continue;
        if (n == sizeof digits - 1 || !strchr("0123456789.eE+-", *c))
            return false;
        digits[n++] = *c;
    }
    digits[n] = '\0';
    char *end;
    *out = strtod(digits, &end);
    return n && !*end && *out >= 0 && *out <= VALUE_MAX;
}

/* What a number in this unit is to be taken times; 0: it is not one of the counter's. */
static double scale_of(const char *unit, const struct counter *c)
{
    static const struct {
        const char *name;
        double scale;
    } bytes[] = {{"byte", 1}, {"Kbyte", 1e3}, {"Mbyte", 1e6}, {"Gbyte", 1e9}, {"Tbyte", 1e12}};
    bool is_percent = !strcmp(unit, "%");
    if (c->unit == COUNTER_PERCENT && c->how == COUNTER_PLAIN)
        return is_percent;
    for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++)
        if (!strcmp(unit, bytes[i].name))
            return c->unit == COUNTER_BYTES ? bytes[i].scale : 0;
    return c->unit != COUNTER_BYTES && !is_percent;
}

/* NAN where there is no such column, or it has no number. */
static bool read_metric(const struct row *row, const struct row *units, size_t column,
                        const struct counter *c, double *out)
{
    *out = NAN;
    if (column == NONE)
        return true;
    double scale = scale_of(units->field[column], c);
    if (!read_number(row->field[column], out))
        return false;
    *out = scale > 0 ? *out * scale : NAN;
    return true;
}

static double put_together(enum counter_how how, double first, double other)
{
    switch (how) {
    case COUNTER_SUM:
        return first + other;
    case COUNTER_QUOTIENT:
        return other > 0 ? first / other : 0 * (first + other);
    case COUNTER_SHARE:
        return other > 0 ? fmin(100 * first / other, 100) : NAN;
    default:
        return first;
    }
}

static bool read_kernel(const struct row *row, const struct row *units, const struct columns *at,
                        struct ncu_kernel *out)
{
    snprintf(out->name, sizeof out->name, "%s", row->field[at->name]);
    for (char *c = out->name; *c; c++)
        *c = *c >= ' ' && *c <= '~' ? *c : '?';
    for (size_t i = 0; i < COUNTERS_N; i++) {
        double first, other;
        if (!read_metric(row, units, at->metric[i], &counters[i], &first) ||
            !read_metric(row, units, at->other[i], &counters[i], &other))
            return false;
        out->values.of[i] = put_together(counters[i].how, first, other);
    }
    return out->name[0];
}

/* Where the cases' kernels go: `at` counts the marks. */
struct places {
    struct ncu_table *cases;
    size_t n, at;
};

/* False: the row cannot be read. What comes before the first mark, behind the last case or beyond
 * its room is left out. */
static bool take_row(const struct row *row, const struct row *units, const struct columns *columns,
                     struct places *to)
{
    struct ncu_kernel left_out;
    if (row->n != columns->n)
        return false;
    if (strstr(row->field[columns->name], NCU_MARK)) {
        to->at++;
        return true;
    }
    struct ncu_table *table = to->at && to->at <= to->n ? &to->cases[to->at - 1] : NULL;
    bool room = table && table->n < NCU_KERNELS_MAX;
    if (!read_kernel(row, units, columns, room ? &table->kernels[table->n] : &left_out))
        return false;
    if (room)
        table->n++;
    return true;
}

/* The header, the units, and a row for each launch. */
static enum gate_status read_table(char *at, struct places *to, struct gate_error *err)
{
    struct row header, units, row;
    struct columns columns = {.id = NONE, .name = NONE};
    size_t n = 0;
    at = read_row(at, &header);
    if (at) {
        columns.n = header.n;
        columns.id = find_column(&header, "ID");
        columns.name = find_column(&header, "Kernel Name");
        for (size_t i = 0; i < COUNTERS_N; i++) {
            columns.metric[i] = find_column(&header, counters[i].metric);
            columns.other[i] = find_column(&header, counters[i].other);
        }
    }
    if (columns.id == NONE || columns.name == NONE)
        return gate_fail(err, GATE_IO, "ncu wrote a table without the columns that were asked for");
    at = read_row(at, &units);
    if (!at || units.n != columns.n || units.field[columns.id][0])
        return gate_fail(err, GATE_IO, "ncu wrote a table without units");
    while (*at) {
        at = read_row(at, &row);
        n++;
        if (!at || !take_row(&row, &units, &columns, to))
            return gate_fail(err, GATE_IO, "ncu wrote a row that cannot be read, number %zu", n);
    }
    return n ? GATE_OK : gate_fail(err, GATE_IO, "ncu wrote a table without rows");
}

/* What it says for people stands in lines that begin with "==". */
static enum gate_status fail_as_said(const char *text, struct gate_error *err)
{
    static const char mark[] = "==ERROR== ";
    const char *said = strstr(text, mark);
    if (strstr(text, "ERR_NVGPUCTRPERM"))
        return gate_fail(err, GATE_ENVIRONMENT,
                         "the driver lets only an administrator read counters (ERR_NVGPUCTRPERM); "
                         "with NVreg_RestrictProfilingToAdminUsers=0 all may");
    if (!said)
        return gate_fail(err, GATE_IO, "ncu wrote no table");
    said += strlen(mark);
    return gate_fail(err, GATE_ENVIRONMENT, "ncu failed: %.*s", (int)strcspn(said, "\n"), said);
}

enum gate_status ncu_read(const char *text, size_t len, struct ncu_table *cases, size_t n_cases,
                          struct gate_error *err)
{
    struct places to = {cases, n_cases, 0};
    for (size_t i = 0; i < n_cases; i++)
        cases[i].n = 0;
    if (memchr(text, '\0', len))
        return gate_fail(err, GATE_IO, "ncu wrote bytes that are not text");
    char *copy = strndup(text, len);
    if (!copy)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    char *table = copy;
    while (*table && strncmp(table, "\"ID\",", 5) != 0) {
        table += strcspn(table, "\n");
        table += *table == '\n';
    }
    enum gate_status status = *table ? read_table(table, &to, err) : fail_as_said(copy, err);
    free(copy);
    return status;
}
