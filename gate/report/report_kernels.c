/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_kernels.c: what of a slower case's kernels differs from the baseline's.
 */
#include "gate/report/report_run.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

struct line {
    struct buf *out;
    bool any; /* figures */
};

/* Names come from a library's file, and sizes from a document. */
void report_safe_name(const char *text, struct buf *out)
{
    for (; *text; text++)
        buf_putc(out, isalnum((unsigned char)*text) || strchr(" _$.", *text) ? *text : '?');
}

static void begin_figure(struct line *l, const char *name)
{
    buf_printf(l->out, "%s%s ", l->any ? ", " : "", name);
    l->any = true;
}

static void put_figure(struct line *l, const char *name, int64_t old, int64_t new)
{
    if (old == new || old < 0 || new < 0)
        return;
    begin_figure(l, name);
    buf_printf(l->out, "%" PRId64 " -> %" PRId64, old, new);
}

static void put_sizes(struct line *l, const char *name, const char *old, const char *new)
{
    if (!strcmp(old, new))
        return;
    begin_figure(l, name);
    report_safe_name(old, l->out);
    buf_puts(l->out, " -> ");
    report_safe_name(new, l->out);
}

static void put_figures(struct line *l, const struct document_kernel *old,
                        const struct document_kernel *new)
{
    put_figure(l, "launches", old->launches, new->launches);
    put_sizes(l, "grid", old->grid, new->grid);
    put_sizes(l, "block", old->block, new->block);
    put_figure(l, "registers", old->registers, new->registers);
    put_figure(l, "stack bytes", old->stack, new->stack);
    put_figure(l, "bytes of local stores", old->local_stores, new->local_stores);
    put_figure(l, "bytes of local loads", old->local_loads, new->local_loads);
    put_figure(l, "shared bytes", old->shared_bytes, new->shared_bytes);
    put_figure(l, "barriers", old->barriers, new->barriers);
    put_figure(l, "code bytes", old->code, new->code);
    if (!l->any)
        buf_puts(l->out, "other machine code, the same figures");
}

static bool is_same(const struct document_kernel *old, const struct document_kernel *new)
{
    return old->code_sha256 && new->code_sha256 && !strcmp(old->code_sha256, new->code_sha256) &&
           old->launches == new->launches && !strcmp(old->grid, new->grid) &&
           !strcmp(old->block, new->block) && old->shared_bytes == new->shared_bytes;
}

static void put_alone(const struct document_kernel *k, const char *what, struct buf *out)
{
    report_safe_name(k->name, out);
    buf_printf(out, ": %s\n", what);
}

static void put_changed(const struct document_kernel *old, const struct document_kernel *new,
                        struct buf *out)
{
    struct line l = {.out = out};
    report_safe_name(new->name, out);
    buf_puts(out, ": ");
    put_figures(&l, old, new);
    buf_putc(out, '\n');
}

static const struct document_timing *timing_of(const struct document_case *c,
                                               enum document_role role)
{
    const struct document_arm *arm = document_find_arm(c->arms, c->n_arms, role);
    return arm && arm->has_timing && arm->timing.n_kernels ? &arm->timing : NULL;
}

bool report_kernels(const struct document_case *c, struct buf *out)
{
    const struct document_timing *new = timing_of(c, ROLE_CANDIDATE);
    const struct document_timing *old = timing_of(c, ROLE_BASELINE);
    const size_t before = out->len;
    if (c->verdict != VERDICT_REGRESSION || !new || !old)
        return false;
    for (size_t i = 0; i < new->n_kernels; i++) {
        const struct document_kernel *k = &new->kernels[i], *was = document_kernel_of(old, new, i);
        if (!was)
            put_alone(k, "the baseline does not launch it", out);
        else if (!is_same(was, k))
            put_changed(was, k, out);
    }
    for (size_t i = 0; i < old->n_kernels; i++)
        if (!document_kernel_of(new, old, i))
            put_alone(&old->kernels[i], "the baseline's, not launched any more", out);
    return out->len > before;
}
