/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_evidence.c: what is known of a case beside its reason: the results of its processes, and
 * for a regression what may cause it: its kernels, the node of its launch, counters, instructions.
 */
#include "gate/report/report_run.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "gate/base/term.h"
#include "gate/counters/counters.h"
#include "gate/library/machine_code.h"
#include "gate/report/report_units.h"

void report_safe_name(const char *text, struct buf *out)
{
    for (; *text; text++)
        buf_putc(out, isalnum((unsigned char)*text) || strchr(" _$.", *text) ? *text : '?');
}

/* ---- processes ---- */

static bool stage_evidence(const struct document_case *c, enum document_stage stage,
                           struct buf *out)
{
    char text[UNITS_MAX];
    bool any = false;
    for (size_t i = 0; i < c->n_processes; i++) {
        double d = c->processes[i].log_ratio;
        if (c->processes[i].stage != (int)stage)
            continue;
        any |= !isnan(d);
        buf_puts(out, isnan(d) ? "-" : units_signed_percent(expm1(d), text));
        buf_putc(out, ' ');
    }
    buf_putc(out, '%');
    return any;
}

static void put_ratio(struct estimate ratio, struct buf *out)
{
    char value[UNITS_MAX], lo[UNITS_MAX], hi[UNITS_MAX];
    buf_printf(out, "%s (%s to %s)", units_change(ratio.value, value),
               units_signed_percent(ratio.lo - 1, lo), units_change(ratio.hi, hi));
}

static bool p90_evidence(const struct document_case *c, struct buf *out)
{
    if (c->has_ratio_p90)
        put_ratio(c->ratio_p90, out);
    return c->has_ratio_p90;
}

static bool calls_evidence(const struct document_case *c, struct buf *out)
{
    char text[UNITS_MAX];
    const struct document_timing *timing = report_timing(document_candidate(c));
    if (!c->has_ratio_calls)
        return false;
    put_ratio(c->ratio_calls, out);
    if (timing && timing->call_ns > 0)
        buf_printf(out, ", %s a call", units_duration(timing->call_ns, text));
    return true;
}

static bool same_evidence(const struct document_case *c, struct buf *out)
{
    if (c->same_library == YES)
        buf_puts(out, "candidate and baseline are the same file");
    else if (c->same_code == YES)
        buf_puts(out, "candidate and baseline run the same machine code");
    return out->len > 0;
}

/* ---- kernels ---- */

#define AT(member) offsetof(struct document_kernel, member)
static const struct {
    const char *name;
    size_t at;
    bool is_text; /* else int64_t, -1: not known */
} figures[] = {
    {"launches", AT(launches), false},
    {"grid", AT(grid), true},
    {"block", AT(block), true},
    {"registers", AT(registers), false},
    {"stack bytes", AT(stack), false},
    {"bytes of local stores", AT(local_stores), false},
    {"bytes of local loads", AT(local_loads), false},
    {"shared bytes", AT(shared_bytes), false},
    {"barriers", AT(barriers), false},
    {"code bytes", AT(code), false},
};

/* Those that differ. */
static void put_figures(const struct document_kernel *old, const struct document_kernel *new,
                        struct buf *out)
{
    const char *separator = "";
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        const void *was = (const char *)old + figures[i].at,
                   *is = (const char *)new + figures[i].at;
        const char *const *was_text = was, *const *is_text = is;
        const int64_t *was_count = was, *is_count = is;
        if (figures[i].is_text ? !strcmp(*was_text, *is_text)
                               : *was_count == *is_count || *was_count < 0 || *is_count < 0)
            continue;
        buf_printf(out, "%s%s ", separator, figures[i].name);
        separator = ", ";
        if (figures[i].is_text) {
            report_safe_name(*was_text, out);
            buf_puts(out, " -> ");
            report_safe_name(*is_text, out);
        } else {
            buf_printf(out, "%" PRId64 " -> %" PRId64, *was_count, *is_count);
        }
    }
    if (!*separator)
        buf_puts(out, "other machine code, the same figures");
}

static void put_kernel_alone(const struct document_kernel *k, const char *what, struct buf *out)
{
    report_safe_name(k->name, out);
    buf_printf(out, ": %s\n", what);
}

static const struct document_timing *timing_of(const struct document_case *c,
                                               enum document_role role)
{
    const struct document_arm *arm = document_find_arm(c->arms, c->n_arms, role);
    return arm && arm->has_timing && arm->timing.n_kernels ? &arm->timing : NULL;
}

static bool kernels_evidence(const struct document_case *c, struct buf *out)
{
    const struct document_timing *new = timing_of(c, ROLE_CANDIDATE);
    const struct document_timing *old = timing_of(c, ROLE_BASELINE);
    const size_t before = out->len;
    if (c->verdict != VERDICT_REGRESSION || !new || !old)
        return false;
    for (size_t i = 0; i < new->n_kernels; i++) {
        const struct document_kernel *k = &new->kernels[i], *was = document_kernel_of(old, new, i);
        if (!was) {
            put_kernel_alone(k, "the baseline does not launch it", out);
            continue;
        }
        bool same_code =
            was->code_sha256 && k->code_sha256 && !strcmp(was->code_sha256, k->code_sha256);
        if (same_code && was->launches == k->launches && !strcmp(was->grid, k->grid) &&
            !strcmp(was->block, k->block) && was->shared_bytes == k->shared_bytes)
            continue;
        report_safe_name(k->name, out);
        buf_puts(out, ": ");
        put_figures(was, k, out);
        buf_putc(out, '\n');
    }
    for (size_t i = 0; i < old->n_kernels; i++)
        if (!document_kernel_of(new, old, i))
            put_kernel_alone(&old->kernels[i], "the baseline's, not launched any more", out);
    return out->len > before;
}

/* ---- the node of a launch ---- */

#define BLAME_LINES_MAX 6
#define MOST_OF_IT 0.5 /* of the slowdown: who carries less does not carry it alone */

static double share_of(const struct estimate *e)
{
    return e->value - 1;
}

/* No figure is "-0.00". */
static void put_share(const struct estimate *e, struct buf *out)
{
    double percent = fabs(share_of(e)) < 5e-5 ? 0 : 100 * share_of(e);
    buf_printf(out, "%.2f %% \xc2\xb1 %.2f %%", percent, 50 * (e->hi - e->lo));
}

static void put_node(const struct document_blame *b, size_t i, struct buf *out)
{
    buf_printf(out, "node %zu of %zu, ", i + 1, b->n_nodes);
    report_safe_name(b->nodes[i].name, out);
}

/* The number of the node that carries most of the slowdown; n_nodes: none is known to. */
static size_t blamed_of(const struct document_blame *b)
{
    size_t most = b->n_nodes;
    for (size_t i = 0; i < b->n_nodes; i++)
        if (b->nodes[i].has_carries &&
            (most == b->n_nodes || b->nodes[i].carries.value > b->nodes[most].carries.value))
            most = i;
    if (most == b->n_nodes || !b->has_slowdown || b->slowdown.lo <= 1)
        return b->n_nodes;
    const struct estimate *e = &b->nodes[most].carries;
    return e->lo > 1 && share_of(e) >= MOST_OF_IT * share_of(&b->slowdown) ? most : b->n_nodes;
}

static bool blame_evidence(const struct document_case *c, struct buf *out)
{
    const struct document_blame *b = &c->blame;
    size_t blamed = blamed_of(b), lines = 1;
    if (!c->has_blame)
        return false;
    if (b->message) {
        buf_puts(out, "none: ");
        term_puts(b->message, out);
        for (size_t i = 0; i < b->n_nodes && b->n_baseline; i++) {
            buf_puts(out, i ? ", " : "; the candidate's are ");
            report_safe_name(b->nodes[i].name, out);
        }
        for (size_t i = 0; i < b->n_baseline; i++) {
            buf_puts(out, i ? ", " : "; the baseline's are ");
            report_safe_name(b->baseline[i], out);
        }
        buf_putc(out, '\n');
        return true;
    }
    if (blamed < b->n_nodes) {
        put_node(b, blamed, out);
        buf_puts(out, " carries ");
        put_share(&b->nodes[blamed].carries, out);
        buf_printf(out, " of %.2f %%", 100 * share_of(&b->slowdown));
    } else {
        buf_puts(out, b->has_slowdown && b->slowdown.lo > 1
                          ? "no node is known to carry most of it"
                          : "none: it was not slower in the process that looked for the node");
        buf_puts(out, b->has_slowdown ? ": " : "");
        if (b->has_slowdown)
            put_share(&b->slowdown, out);
    }
    buf_putc(out, '\n');
    for (size_t i = 0; i < b->n_nodes && lines < BLAME_LINES_MAX; i++) {
        if (i == blamed)
            continue;
        lines++;
        put_node(b, i, out);
        buf_puts(out, ": ");
        if (b->nodes[i].has_carries) {
            put_share(&b->nodes[i].carries, out);
        } else {
            buf_puts(out, "not known: ");
            term_puts(b->nodes[i].message ? b->nodes[i].message : "", out);
        }
        buf_putc(out, '\n');
    }
    return true;
}

/* ---- counters ---- */

#define COUNTERS_LINES_MAX 5
#define MOVED_MIN 0.05 /* less is what two readings of one kernel differ by */

static void put_counter_value(enum counter_unit unit, double value, struct buf *out)
{
    static const char *const bytes[] = {" B", " kB", " MB", " GB", " TB", NULL};
    static const char *const counts[] = {"", " thousand", " million", " billion", NULL};
    const char *const *name = unit == COUNTER_BYTES ? bytes : counts;
    bool scales = unit == COUNTER_BYTES || unit == COUNTER_COUNT;
    for (; scales && value >= 999.5 && name[1]; name++)
        value /= 1e3;
    buf_printf(out, "%.3g%s", value, unit == COUNTER_PERCENT ? " %" : *name);
}

static bool counters_evidence(const struct document_case *c, struct buf *out)
{
    const struct document_counters *all = &c->counters;
    size_t lines = 0;
    if (!c->has_counters)
        return false;
    if (all->message) {
        buf_puts(out, "none: ");
        term_puts(all->message, out);
        buf_putc(out, '\n');
        return true;
    }
    for (size_t i = 0; i < all->n_moved && lines < COUNTERS_LINES_MAX; i++) {
        const struct document_counter *moved = &all->moved[i];
        const struct counter *counter = &counters[moved->counter];
        if (moved->moved < MOVED_MIN)
            continue;
        lines++;
        buf_printf(out, "%s ", counter->label);
        put_counter_value(counter->unit, moved->baseline, out);
        buf_puts(out, " -> ");
        put_counter_value(counter->unit, moved->candidate, out);
        if (all->n_kernels > 1) {
            buf_puts(out, " in ");
            report_safe_name(all->kernels[moved->kernel], out);
        }
        buf_printf(out, ": %s\n", counter->meaning);
    }
    if (!lines)
        buf_puts(out, all->n_moved ? "none moved by more than 5 %\n"
                                   : "none: no kernel is launched on both sides\n");
    return true;
}

/* ---- instructions ---- */

#define INSTRUCTIONS_LINES_MAX 8
#define OPCODES_MAX 8 /* in a line */

/* The changes of one kernel; how many. */
static size_t put_instructions(const struct document_instructions *all, size_t at, struct buf *out)
{
    const struct document_instruction *first = &all->changed[at];
    size_t n = 0;
    report_safe_name(all->kernels[first->kernel], out);
    for (; at + n < all->n_changed && first[n].kernel == first->kernel; n++) {
        const struct document_instruction *i = first + n;
        const char *meaning = opcode_meaning(i->opcode);
        if (n >= OPCODES_MAX)
            continue;
        buf_puts(out, n ? ", " : ": ");
        report_safe_name(i->opcode, out);
        buf_printf(out, " %" PRId64 " -> %" PRId64, i->baseline, i->candidate);
        if (meaning)
            buf_printf(out, " (%s)", meaning);
        if (i->source) {
            buf_puts(out, " at ");
            report_safe_name(i->source, out);
        }
    }
    buf_puts(out, n > OPCODES_MAX ? " and others\n" : "\n");
    return n;
}

static bool instructions_evidence(const struct document_case *c, struct buf *out)
{
    const struct document_instructions *all = &c->instructions;
    size_t lines = 0;
    if (!c->has_instructions)
        return false;
    for (size_t at = 0; at < all->n_changed && lines < INSTRUCTIONS_LINES_MAX; lines++)
        at += put_instructions(all, at, out);
    if (all->message) {
        buf_puts(out, "not known: ");
        term_puts(all->message, out);
        buf_putc(out, '\n');
    } else if (!lines) {
        buf_puts(out, "as many of each\n");
    }
    return true;
}

/* ---- all ---- */

void report_each_evidence(const struct document_case *c, report_evidence_fn put, void *context)
{
    static const struct {
        const char *name;
        bool figures;
        bool (*write)(const struct document_case *c, struct buf *out); /* NULL: of this stage */
        enum document_stage stage;
    } parts[] = {
        {"first", true, NULL, STAGE_FIRST},       {"confirmation", true, NULL, STAGE_CONFIRMATION},
        {"p90", true, p90_evidence, 0},           {"launch()", true, calls_evidence, 0},
        {"kernel", false, kernels_evidence, 0},   {"blame", false, blame_evidence, 0},
        {"counter", false, counters_evidence, 0}, {"instructions", false, instructions_evidence, 0},
        {"code", true, same_evidence, 0},
    };
    RELEASED_BY(buf_release) struct buf text = buf_of(64 * 1024);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        buf_clear(&text);
        if (!(parts[i].write ? parts[i].write(c, &text) : stage_evidence(c, parts[i].stage, &text)))
            continue;
        for (char *line = text.data, *end; *line; line = end) {
            end = line + strcspn(line, "\n");
            if (*end)
                *end++ = '\0';
            put(context, parts[i].name, parts[i].figures, line);
        }
    }
}
