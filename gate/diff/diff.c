/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/diff/diff.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/alloc.h"
#include "gate/base/json.h"
#include "gate/base/paths.h"
#include "gate/base/process.h"
#include "gate/base/term.h"
#include "gate/base/utf8.h"
#include "gate/report/report_run.h"

#define KERNELS_MAX 4096
#define UNNAMED "_GLOBAL__N__" /* of C++'s namespace without a name */
#define NAME_MAX_BYTES ((size_t)1 << 20)
#define COLUMNS (RESOURCE_COUNT + 3)
#define UNNAMED_HASH 8 /* hex digits behind it, made of the path of the source */

static bool is_unnamed(const char *at)
{
    const size_t n = strlen(UNNAMED);
    return !strncmp(at, UNNAMED, n) && strspn(at + n, "0123456789abcdefABCDEF") >= UNNAMED_HASH;
}

/* As strcmp(), but for what the path of the source makes of a name. */
static int compare_names(const char *a, const char *b)
{
    for (; *a && *a == *b; a++, b++)
        if (is_unnamed(a) && is_unnamed(b)) {
            a += strlen(UNNAMED) + UNNAMED_HASH - 1;
            b += strlen(UNNAMED) + UNNAMED_HASH - 1;
        }
    return strcmp(a, b);
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

static enum gate_status read_sides(const struct machine_code *code, unsigned architecture,
                                   struct diff_side **list, size_t *n_sides, struct gate_error *err)
{
    const struct machine_kernel *kernels;
    size_t n = machine_code_kernels(code, &kernels);
    if (n > KERNELS_MAX)
        return gate_fail(err, GATE_USAGE, "a library has %zu kernels; up to %d can be compared", n,
                         KERNELS_MAX);
    *list = xcalloc(n, sizeof **list);
    for (size_t i = 0; i < n; i++) {
        struct diff_side side = {.kernel = &kernels[i], .resources = resources_of(&kernels[i])};
        if (architecture && side.resources.architecture != architecture)
            continue;
        if (!machine_kernel_hash(&kernels[i], side.sha256))
            return gate_fail(err, GATE_USAGE,
                             "the code of kernel '%.200s' cannot be read: its "
                             "section does not lie in the file",
                             kernels[i].name);
        (*list)[(*n_sides)++] = side;
    }
    qsort(*list, *n_sides, sizeof **list, order_sides);
    return GATE_OK;
}

enum gate_status diff_libraries(const struct machine_code *new, const struct machine_code *old,
                                unsigned architecture, struct diff *out, struct gate_error *err)
{
    RELEASED_BY(free_at) struct diff_side *a = NULL;
    RELEASED_BY(free_at) struct diff_side *b = NULL;
    size_t n = 0, m = 0, i = 0, k = 0;
    *out = (struct diff){0};
    TRY(read_sides(new, architecture, &a, &n, err));
    TRY(read_sides(old, architecture, &b, &m, err));
    if (!n && !m)
        return gate_fail(err, GATE_USAGE, "neither library has a kernel for sm_%u", architecture);
    out->rows = xcalloc(n + m, sizeof *out->rows);
    while (i < n || k < m) {
        struct diff_row *row = &out->rows[out->n++];
        int order = i == n ? 1 : k == m ? -1 : compare_sides(&a[i], &b[k]);
        if (order <= 0)
            row->new = a[i++];
        if (order >= 0)
            row->old = b[k++];
        row->change = order < 0                                       ? DIFF_ADDED
                      : order > 0                                     ? DIFF_REMOVED
                      : strcmp(row->new.sha256, row->old.sha256) != 0 ? DIFF_CHANGED
                                                                      : DIFF_SAME;
        out->count[row->change]++;
    }
    return GATE_OK;
}

/* ---- listings ---- */

/* The old library's first, wherever the two lie in memory. */
static int compare_cubins(const void *a, const void *b)
{
    const struct listing_wanted *x = a, *y = b;
    const unsigned char *x_at = x->kernel->cubin.at, *y_at = y->kernel->cubin.at;
    return x->is_new != y->is_new ? x->is_new - y->is_new : x_at < y_at ? -1 : x_at > y_at;
}

enum gate_status diff_read_listings(struct diff *d, bool all, struct gate_error *err)
{
    RELEASED_BY(free_at) struct listing_wanted *wanted = xcalloc(2 * d->n, sizeof *wanted);
    size_t n = 0;
    for (size_t i = 0; i < 2 * d->n; i++) {
        struct diff_row *row = &d->rows[i / 2];
        bool is_new = i % 2;
        struct diff_side *side = is_new ? &row->new : &row->old;
        if (side->kernel && (row->change != DIFF_SAME || (all && is_new)))
            wanted[n++] = (struct listing_wanted){side->kernel, &side->listing, is_new, row->why};
    }
    qsort(wanted, n, sizeof *wanted, compare_cubins);
    for (size_t i = 0, alike; i < n; i += alike) {
        struct gate_error why = {0};
        for (alike = 1; i + alike < n && !compare_cubins(&wanted[i], &wanted[i + alike]);)
            alike++;
        enum gate_status status = listing_read(&wanted[i], alike, &why);
        if (status == GATE_ENVIRONMENT) {
            utf8_print(d->why, sizeof d->why, "%.399s", why.message);
            return GATE_OK;
        }
        if (status && status != GATE_USAGE)
            return gate_fail(err, status, "%s", why.message);
        for (size_t k = i; k < i + alike && status; k++)
            utf8_print(wanted[k].why, LISTING_WHY_SIZE, "%.199s", why.message);
    }
    return GATE_OK;
}

/* ---- names ---- */

#define FILTER_PATIENCE_S 10.0
#define FILTER_NAMES_MAX 500 /* in one call: arguments have a limit */

/* For a reader. */
static const char *name_of(const struct diff_row *row)
{
    return row->shown[0] ? row->shown : (row->new.kernel ? &row->new : &row->old)->kernel->name;
}

/* The names are passed as arguments: the filter prints a line for each. */
void diff_demangle(struct diff *d)
{
    char filter[PATHS_MAX];
    if (toolkit_find("cu++filt", NULL, filter, NULL) && toolkit_find("c++filt", NULL, filter, NULL))
        return;
    for (size_t from = 0; from < d->n; from += FILTER_NAMES_MAX) {
        const char *argv[FILTER_NAMES_MAX + 2] = {filter};
        const size_t n = d->n - from < FILTER_NAMES_MAX ? d->n - from : FILTER_NAMES_MAX;
        struct diff_row *rows = &d->rows[from];
        struct process p = {0};
        RELEASED_BY(buf_release) struct buf line = buf_of(PROCESS_LINE_MAX + 1);
        for (size_t i = 0; i < n; i++)
            argv[i + 1] = name_of(&rows[i]);
        if (process_start(&p, (char *const *)argv, NULL))
            return;
        for (size_t i = 0; i < n; i++) {
            buf_clear(&line);
            if (process_read_line(&p, FILTER_PATIENCE_S, &line) != PROCESS_LINE)
                break;
            if (line.len)
                utf8_print(rows[i].shown, sizeof rows[i].shown, "%.399s", line.data);
        }
        process_finish(&p, 1);
    }
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

/* ---- what is printed ---- */

static const char *const changes[DIFF_CHANGES] = {"same", "changed", "added", "removed"};

/* Of a side that is there. */
static void put_figure(const struct diff_side *s, enum resource r, char out[24])
{
    out[0] = '\0';
    if (s->kernel && s->resources.of[r] < 0)
        snprintf(out, 24, "?");
    else if (s->kernel)
        snprintf(out, 24, "%" PRId64, s->resources.of[r]);
}

static unsigned architecture_of(const struct diff_row *row)
{
    return (row->new.kernel ? &row->new : &row->old)->resources.architecture;
}

void diff_write(const struct diff *d, bool all, const struct report_style *style, struct buf *out)
{
    struct table_column columns[COLUMNS] = {{0}};
    char titles[COLUMNS][32];
    RELEASED_BY(buf_release) struct buf name = buf_of(NAME_MAX_BYTES);
    for (size_t i = 0; i < COLUMNS; i++) {
        snprintf(titles[i], sizeof titles[i], "%s",
                 i == 0            ? "sm"
                 : i == 1          ? "code is"
                 : i < COLUMNS - 1 ? resource_names[i - 2]
                                   : "kernel");
        for (char *at = titles[i]; *at; at++)
            *at = *at == '_' ? ' ' : *at;
        columns[i] = (struct table_column){
            .title = titles[i], .right = i != 1 && i != COLUMNS - 1, .raw = i == COLUMNS - 1};
    }
    struct table *t = table_new(columns, COLUMNS);
    for (const struct diff_row *row = d->rows; row < d->rows + d->n; row++) {
        char text[16];
        if (!all && row->change == DIFF_SAME)
            continue;
        snprintf(text, sizeof text, "%u", architecture_of(row));
        table_cell(t, TERM_DIM, text);
        table_cell(t, row->change == DIFF_SAME ? TERM_DIM : TERM_YELLOW, changes[row->change]);
        for (int r = 0; r < RESOURCE_COUNT; r++) {
            char new[24], old[24], both[64];
            put_figure(&row->new, (enum resource)r, new);
            put_figure(&row->old, (enum resource)r, old);
            bool differs = new[0] && old[0] && strcmp(new, old) != 0;
            snprintf(both, sizeof both, "%s -> %s", old, new);
            table_cell(t, differs ? TERM_YELLOW : TERM_PLAIN, differs ? both : new[0] ? new : old);
        }
        buf_clear(&name);
        (style->markdown ? markdown_code : term_puts)(name_of(row), &name);
        table_cell(t, TERM_PLAIN, name.data);
    }
    if (d->n > (all ? 0 : d->count[DIFF_SAME])) {
        table_write(t, style, out);
        buf_putc(out, '\n');
    }
    buf_printf(out, "%zu kernels: %zu with the same code, %zu changed, %zu added, %zu removed\n",
               d->n, d->count[DIFF_SAME], d->count[DIFF_CHANGED], d->count[DIFF_ADDED],
               d->count[DIFF_REMOVED]);
    table_free(t);
}

/* ---- the instructions of a kernel ---- */

/* All that changed, then what makes up the kernel's time. */
static void put_mix(const struct diff_row *row, const struct report_style *style, struct buf *out)
{
    struct mix m;
    char text[64], source[LISTING_SOURCE_SIZE], what[300];
    struct table_column columns[] = {
        {.title = "instruction"}, {.title = "count", .right = true}, {.title = "what it does"}};
    struct table *t = table_new(columns, 3);
    mix_count(row->new.listing.n ? &row->new.listing : NULL,
              row->old.listing.n ? &row->old.listing : NULL, &m);
    for (size_t i = 0; i < m.n; i++) {
        const struct mix_row *r = &m.rows[i];
        bool changed = i < m.n_changed;
        const char *meaning = opcode_meaning(r->opcode);
        if (!changed && !opcode_is_work(r->opcode))
            continue;
        source[0] = '\0';
        if (row->change == DIFF_CHANGED && r->new != r->old) {
            snprintf(text, sizeof text, "%zu -> %zu", r->old, r->new);
            /* Where the first instruction lies that is new or gone. */
            listing_source(&row->old.listing, &row->new.listing, r->opcode, r->old > r->new,
                           source);
        } else {
            snprintf(text, sizeof text, "%zu", row->new.kernel ? r->new : r->old);
        }
        snprintf(what, sizeof what, "%s%s%s", meaning ? meaning : "",
                 !source[0] ? ""
                 : meaning  ? ", at "
                            : "at ",
                 source);
        table_cell(t, TERM_PLAIN, r->opcode);
        table_cell(t, changed ? TERM_YELLOW : TERM_PLAIN, text);
        table_cell(t, TERM_PLAIN, what);
    }
    table_write(t, style, out);
    table_free(t);
}

static void put_kernel(const struct diff_row *row, bool sides, const struct report_style *style,
                       struct buf *out)
{
    const bool markdown = style->markdown;
    RELEASED_BY(buf_release) struct buf text = buf_of(out->max);
    buf_puts(out, markdown ? "\n`" : "\n");
    report_safe_name(name_of(row), out);
    buf_puts(out, markdown ? "`\n\n" : "\n");
    if (row->why[0]) {
        buf_puts(out, "absent: ");
        term_puts(row->why, out);
        buf_putc(out, '\n');
        return;
    }
    put_mix(row, style, out);
    if (!sides || row->change != DIFF_CHANGED)
        return;
    if (!listing_compare(&row->old.listing, &row->new.listing, &text))
        buf_puts(&text, "too many instructions differ to be shown\n");
    else if (!text.len)
        buf_puts(&text, "the same instructions\n");
    buf_puts(out, markdown ? "\n```\n" : "\n");
    /* Safe for a terminal, and without what ends a block of code. */
    for (const char *from = text.data; *from;) {
        char line[256];
        size_t n = strcspn(from, "\n");
        snprintf(line, sizeof line, "%.*s", (int)n, from);
        for (char *at = utf8_trim(line); *at; at++)
            *at = *at == '`' ? '\'' : *at;
        term_puts(line, out);
        buf_putc(out, '\n');
        from += n + (from[n] == '\n');
    }
    buf_puts(out, markdown ? "```\n" : "");
}

void diff_write_instructions(const struct diff *d, bool sides, const struct report_style *style,
                             struct buf *out)
{
    if (d->why[0]) {
        buf_puts(out, "\nInstructions: absent, ");
        term_puts(d->why, out);
        buf_putc(out, '\n');
        return;
    }
    for (size_t i = 0; i < d->n; i++)
        if (d->rows[i].new.listing.n || d->rows[i].old.listing.n || d->rows[i].why[0])
            put_kernel(&d->rows[i], sides, style, out);
}

/* ---- JSON ---- */

static void put_side(cJSON *row, const char *name, const struct diff_side *s)
{
    if (!s->kernel) {
        cJSON_AddNullToObject(row, name);
        return;
    }
    cJSON *o = cJSON_AddObjectToObject(row, name);
    RELEASED_BY(buf_release) struct buf safe = buf_of(NAME_MAX_BYTES);
    term_puts(s->kernel->name, &safe);
    cJSON_AddStringToObject(o, "name", safe.data);
    cJSON_AddStringToObject(o, "code_sha256", s->sha256);
    if (s->listing.n) {
        struct mix m;
        mix_count(&s->listing, NULL, &m);
        cJSON *all = cJSON_AddObjectToObject(o, "instructions");
        for (size_t i = 0; i < m.n; i++)
            cJSON_AddNumberToObject(all, m.rows[i].opcode, (double)m.rows[i].new);
    }
    for (int r = 0; r < RESOURCE_COUNT; r++)
        if (s->resources.of[r] < 0)
            cJSON_AddNullToObject(o, resource_names[r]);
        else
            cJSON_AddNumberToObject(o, resource_names[r], (double)s->resources.of[r]);
}

void diff_write_json(const struct diff *d, struct buf *out)
{
    RELEASED_BY(json_delete_at) cJSON *top = cJSON_CreateObject();
    cJSON *rows = cJSON_AddArrayToObject(top, "kernels");
    if (d->why[0])
        cJSON_AddStringToObject(top, "no_instructions", d->why);
    for (size_t i = 0; i < d->n; i++) {
        cJSON *row = cJSON_CreateObject();
        cJSON_AddNumberToObject(row, "architecture", architecture_of(&d->rows[i]));
        cJSON_AddStringToObject(row, "change", changes[d->rows[i].change]);
        if (d->rows[i].why[0])
            cJSON_AddStringToObject(row, "no_instructions", d->rows[i].why);
        put_side(row, "new", &d->rows[i].new);
        put_side(row, "old", &d->rows[i].old);
        cJSON_AddItemToArray(rows, row);
    }
    json_write(top, true, out);
}
