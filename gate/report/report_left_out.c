/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/report/report_run.h"

#include <inttypes.h>
#include <stdio.h>

#include "gate/base/term.h"

void left_out_add(struct left_out_sums *sums, const char *id, const struct document_verify *verify)
{
    if (!verify)
        return;
    /* -1: not known */
    sums->not_served += verify->not_served > 0 ? verify->not_served : 0;
    sums->refused += verify->refused > 0 ? verify->refused : 0;
    sums->not_guarded += verify->not_guarded > 0 ? verify->not_guarded : 0;
    sums->too_large += verify->too_large > 0 ? verify->too_large : 0;
    if (!sums->why_not_guarded && verify->why_not_guarded && verify->why_not_guarded[0])
        sums->why_not_guarded = verify->why_not_guarded;
    if (!sums->not_declared)
        sums->not_declared = verify->not_declared;
    if (verify->own_shape_only != YES)
        return;
    if (sums->own_shape_only < REPORT_MAX_OWN_SHAPE)
        sums->own_shape[sums->own_shape_only] = id;
    sums->own_shape_only++;
}

/* "n things" as the next of a list; false: there are none. */
static bool item(int64_t n, const char *one, const char *many, const char *how, bool *first,
                 struct buf *out)
{
    if (n <= 0)
        return false;
    buf_printf(out, "%s%lld %s %s", *first ? "" : ", ", (long long)n, n == 1 ? one : many, how);
    *first = false;
    return true;
}

void left_out_write(const struct left_out_sums *sums, struct buf *out)
{
    bool first = true;
    item(sums->not_served, "edge shape", "edge shapes", "not served", &first, out);
    item(sums->refused, "layout", "layouts", "refused", &first, out);
    if (item(sums->not_guarded, "guard", "guards", "not offered", &first, out) &&
        sums->why_not_guarded)
        buf_printf(out, " (%s)", sums->why_not_guarded);
    if (item(sums->too_large, "shape", "shapes", "too large for", &first, out))
        buf_printf(out, " %s probes%s", sums->too_large == 1 ? "its" : "their",
                   sums->most ? "" : " (see 'gate verify --tier nightly')");
    if (sums->not_declared)
        buf_printf(out, "%s%s", first ? "" : ", ", sums->not_declared);
}

void left_out_write_own_shape(const struct left_out_sums *sums, report_put_fn put, struct buf *out)
{
    int64_t named = 0;
    if (sums->own_shape_only == 0)
        return;
    buf_printf(out,
               "%lld case%s looked at on %s own shape alone, since the kernel takes no other: ",
               (long long)sums->own_shape_only, sums->own_shape_only == 1 ? " was" : "s were",
               sums->own_shape_only == 1 ? "its" : "their");
    for (; named < sums->own_shape_only && named < REPORT_MAX_OWN_SHAPE; named++) {
        buf_puts(out, named ? ", " : "");
        put(sums->own_shape[named], out);
    }
    if (sums->own_shape_only > named)
        buf_printf(out, " and %lld more", (long long)(sums->own_shape_only - named));
}

void left_out_write_lines(const struct left_out_sums *sums, struct buf *out)
{
    struct buf line;
    buf_init(&line, 16 * 1024);
    left_out_write(sums, &line);
    if (line.len > 0) {
        buf_puts(out, "left out: ");
        term_puts(line.data, out);
        buf_putc(out, '\n');
    }
    if (sums->own_shape_only > 0) {
        left_out_write_own_shape(sums, term_puts, out);
        buf_putc(out, '\n');
    }
    buf_release(&line);
}

struct table *covered_table(const struct covered_sums *sums)
{
    struct table_column columns[2 + COVERED_OPS] = {{"covered", false, 0}, {"class", false, 0}};
    struct covered_class row;
    char text[64];
    size_t at = 0;
    if (!sums->n)
        return NULL;
    for (size_t i = 0; i < sums->n; i++)
        columns[2 + i] = (struct table_column){sums->of[i].name, true, 0};
    struct table *t = table_new(columns, 2 + sums->n);
    while (covered_next(sums, &at, &row)) {
        table_cell(t, TERM_PLAIN, row.what);
        table_cell(t, TERM_PLAIN, row.name);
        for (size_t i = 0; i < sums->n; i++) {
            snprintf(text, sizeof text, "%" PRId64, row.count[i]);
            table_cell(t, TERM_PLAIN, text);
        }
    }
    int64_t pairs = 0;
    for (size_t i = 0; i < sums->n; i++)
        pairs += sums->of[i].pairs_of;
    if (!pairs)
        return t;
    table_cell(t, TERM_PLAIN, "shapes");
    table_cell(t, TERM_PLAIN, "pairs of classes");
    for (size_t i = 0; i < sums->n; i++) {
        snprintf(text, sizeof text, "%" PRId64 " of %" PRId64, sums->of[i].pairs,
                 sums->of[i].pairs_of);
        table_cell(t, TERM_PLAIN, text);
    }
    return t;
}
