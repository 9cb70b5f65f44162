/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/diff/diff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/alloc.h"
#include "gate/base/process.h"
#include "gate/base/paths.h"
#include "gate/base/utf8.h"

#define KERNELS_MAX 4096
#define UNNAMED "_GLOBAL__N__" /* of C++'s namespace without a name */
#define UNNAMED_HASH 8         /* hex digits behind it, made of the path of the source */

/* Where the hash of the next namespace without a name begins; NULL: there is none. */
static const char *find_hash(const char *name)
{
    const char *at = strstr(name, UNNAMED);
    return at ? at + strlen(UNNAMED) : NULL;
}

static bool is_hash(const char *at)
{
    return strspn(at, "0123456789abcdefABCDEF") >= UNNAMED_HASH;
}

/* As strcmp(), but for what the path of the source makes of a name. */
static int compare_names(const char *a, const char *b)
{
    for (;;) {
        const char *x = find_hash(a), *y = find_hash(b);
        if (!x || !y || x - a != y - b || strncmp(a, b, (size_t)(x - a)) != 0 || !is_hash(x) ||
            !is_hash(y))
            return strcmp(a, b);
        a = x + UNNAMED_HASH;
        b = y + UNNAMED_HASH;
    }
}

static int compare_sides(const void *a, const void *b)
{
    const struct diff_side *x = a, *y = b;
    if (x->resources.architecture != y->resources.architecture)
        return x->resources.architecture < y->resources.architecture ? -1 : 1;
    return compare_names(x->kernel->name, y->kernel->name);
}

/* A kernel that several sources have comes several times: in the order of its code. */
static int order_sides(const void *a, const void *b)
{
    int order = compare_sides(a, b);
    return order ? order
                 : strcmp(((const struct diff_side *)a)->sha256,
                          ((const struct diff_side *)b)->sha256);
}

struct sides {
    struct diff_side *list;
    size_t n;
};

static enum gate_status read_sides(const struct machine_code *code, unsigned architecture,
                                   struct sides *out, struct gate_error *err)
{
    const struct machine_kernel *kernels;
    size_t n = machine_code_kernels(code, &kernels);
    if (n > KERNELS_MAX)
        return gate_fail(err, GATE_USAGE, "a library has %zu kernels; up to %d can be compared", n,
                         KERNELS_MAX);
    out->list = xcalloc(n + 1, sizeof *out->list);
    for (size_t i = 0; i < n; i++) {
        struct diff_side side = {.kernel = &kernels[i], .resources = resources_of(&kernels[i])};
        if (architecture && side.resources.architecture != architecture)
            continue;
        if (!machine_kernel_hash(&kernels[i], side.sha256))
            return gate_fail(err, GATE_USAGE,
                             "the code of kernel '%.200s' cannot be read: its "
                             "section does not lie in the file",
                             kernels[i].name);
        out->list[out->n++] = side;
    }
    qsort(out->list, out->n, sizeof *out->list, order_sides);
    return GATE_OK;
}

/* A row for each kernel of either side; the sides are in the order of the rows. */
static void match(const struct sides *new, const struct sides *old, struct diff *out)
{
    size_t i = 0, k = 0;
    while (i < new->n || k < old->n) {
        struct diff_row *row = &out->rows[out->n++];
        int order = i == new->n   ? 1
                    : k == old->n ? -1
                                  : compare_sides(&new->list[i], &old->list[k]);
        if (order <= 0)
            row->new = new->list[i++];
        if (order >= 0)
            row->old = old->list[k++];
        row->change = order < 0                                       ? DIFF_ADDED
                      : order > 0                                     ? DIFF_REMOVED
                      : strcmp(row->new.sha256, row->old.sha256) != 0 ? DIFF_CHANGED
                                                                      : DIFF_SAME;
        out->count[row->change]++;
    }
}

enum gate_status diff_libraries(const struct machine_code *new, const struct machine_code *old,
                                unsigned architecture, struct diff *out, struct gate_error *err)
{
    struct sides a = {0}, b = {0};
    *out = (struct diff){0};
    enum gate_status status = read_sides(new, architecture, &a, err);
    if (!status)
        status = read_sides(old, architecture, &b, err);
    if (!status && !a.n && !b.n)
        status = gate_fail(err, GATE_USAGE, "neither library has a kernel for sm_%u", architecture);
    if (!status) {
        out->rows = xcalloc(a.n + b.n, sizeof *out->rows);
        match(&a, &b, out);
    }
    free(a.list);
    free(b.list);
    return status;
}

/* ---- listings ---- */

/* The old library's first, wherever the two lie in memory. */
static int compare_cubins(const void *a, const void *b)
{
    const struct listing_wanted *x = a, *y = b;
    const unsigned char *x_at = x->kernel->cubin.at, *y_at = y->kernel->cubin.at;
    return x->is_new != y->is_new ? x->is_new - y->is_new : x_at < y_at ? -1 : x_at > y_at;
}

static size_t list_wanted(struct diff *d, bool all, struct listing_wanted *out)
{
    size_t n = 0;
    for (size_t i = 0; i < 2 * d->n; i++) {
        struct diff_row *row = &d->rows[i / 2];
        bool is_new = i % 2;
        struct diff_side *side = is_new ? &row->new : &row->old;
        if (side->kernel && (row->change != DIFF_SAME || (all && is_new)))
            out[n++] = (struct listing_wanted){side->kernel, &side->listing, is_new, row->why};
    }
    qsort(out, n, sizeof *out, compare_cubins);
    return n;
}

enum gate_status diff_read_listings(struct diff *d, bool all, struct gate_error *err)
{
    struct listing_wanted *wanted = xcalloc(2 * d->n + 1, sizeof *wanted);
    enum gate_status status = GATE_OK;
    size_t n = list_wanted(d, all, wanted);
    for (size_t i = 0, alike; i < n && !status; i += alike) {
        struct gate_error why = {0};
        for (alike = 1; i + alike < n && !compare_cubins(&wanted[i], &wanted[i + alike]);)
            alike++;
        status = listing_read(&wanted[i], alike, &why);
        for (size_t k = i; k < i + alike && status == GATE_USAGE; k++)
            utf8_print(wanted[k].why, LISTING_WHY_SIZE, "%.199s", why.message);
        if (status == GATE_USAGE)
            status = GATE_OK;
        if (status)
            gate_fail(err, status, "%s", why.message);
    }
    free(wanted);
    if (status != GATE_ENVIRONMENT)
        return status;
    utf8_print(d->why, sizeof d->why, "%.399s", err->message);
    return GATE_OK;
}

/* ---- names ---- */

#define FILTER_PATIENCE_S 10.0
#define FILTER_NAMES_MAX 500 /* in one call: arguments have a limit */

/* Passes the names of up to FILTER_NAMES_MAX rows as arguments: the filter prints a line for each.
 */
static void demangle_some(const char *filter, struct diff_row *rows, size_t n)
{
    const char *argv[FILTER_NAMES_MAX + 2] = {filter};
    struct process p = {0};
    struct buf line;
    for (size_t i = 0; i < n; i++)
        argv[i + 1] = diff_kernel_name(&rows[i]);
    if (process_start(&p, (char *const *)argv, NULL))
        return;
    buf_init(&line, PROCESS_LINE_MAX + 1);
    for (size_t i = 0; i < n; i++) {
        buf_clear(&line);
        if (process_read_line(&p, FILTER_PATIENCE_S, &line) != PROCESS_LINE)
            break;
        if (line.len)
            utf8_print(rows[i].shown, sizeof rows[i].shown, "%.399s", line.data);
    }
    process_finish(&p, 1);
    buf_release(&line);
}

void diff_demangle(struct diff *d)
{
    char filter[PATHS_MAX];
    if (toolkit_find("cu++filt", NULL, filter, NULL) && toolkit_find("c++filt", NULL, filter, NULL))
        return;
    for (size_t i = 0; i < d->n; i += FILTER_NAMES_MAX)
        demangle_some(filter, &d->rows[i],
                      d->n - i < FILTER_NAMES_MAX ? d->n - i : FILTER_NAMES_MAX);
}

const char *diff_kernel_name(const struct diff_row *row)
{
    return row->shown[0] ? row->shown : (row->new.kernel ? &row->new : &row->old)->kernel->name;
}

void diff_release(struct diff *d)
{
    for (size_t i = 0; i < d->n; i++) {
        listing_release(&d->rows[i].new.listing);
        listing_release(&d->rows[i].old.listing);
    }
    free(d->rows);
    *d = (struct diff){0};
}
