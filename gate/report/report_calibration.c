/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/report/report_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct ranked {
    const struct document_calibrated *one_case;
    bool resolved;
    double false_fails; /* red decisions on unchanged code */
    double mde;         /* infinite when too few processes tell */
    size_t position;
};

static int compare_ranked(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->resolved != y->resolved)
        return x->resolved ? 1 : -1;
    if (x->false_fails != y->false_fails)
        return x->false_fails < y->false_fails ? 1 : -1;
    if (x->mde != y->mde)
        return x->mde < y->mde ? 1 : -1;
    return (x->position > y->position) - (x->position < y->position);
}

/* Of all entries with that share. */
static void add_up(const struct document_calibrated *c, double share, double *red,
                   double *decisions)
{
    *red = *decisions = 0;
    for (size_t i = 0; i < c->n_injected; i++) {
        if (c->injected[i].share == share) {
            *red += (double)c->injected[i].red;
            *decisions += (double)c->injected[i].decisions;
        }
    }
}

static bool rank_cases(const struct document_calibration *k, struct calibration *c)
{
    size_t n = k->n_cases;
    struct ranked *ranked = calloc(n + 1, sizeof(*ranked));
    c->cases = calloc(n + 1, sizeof(*c->cases));
    if (!ranked || !c->cases) {
        free(ranked);
        return false;
    }
    for (; c->n_cases < n; c->n_cases++) {
        const struct document_calibrated *one_case = &k->cases[c->n_cases];
        struct ranked *r = &ranked[c->n_cases];
        double decisions;
        *r = (struct ranked){.one_case = one_case,
                             .resolved = one_case->resolved,
                             .mde = isnan(one_case->mde) ? INFINITY : one_case->mde,
                             .position = c->n_cases};
        add_up(one_case, 0, &r->false_fails, &decisions);
        c->n_resolved += r->resolved;
    }
    qsort(ranked, n, sizeof(*ranked), compare_ranked);
    for (size_t i = 0; i < n; i++)
        c->cases[i] = ranked[i].one_case;
    free(ranked);
    return true;
}

/* The place of a share among the sorted ones, made when it is new; n_shares when there is no room
 * for more. */
static size_t place_of_share(struct calibration *c, double share)
{
    size_t at = 0;
    while (at < c->n_shares && c->shares[at] < share)
        at++;
    if (at < c->n_shares && c->shares[at] == share)
        return at;
    if (c->n_shares == CALIBRATION_MAX_SHARES)
        return c->n_shares;
    for (size_t i = c->n_shares++; i > at; i--) {
        c->shares[i] = c->shares[i - 1];
        c->red[i] = c->red[i - 1];
        c->decisions[i] = c->decisions[i - 1];
    }
    c->shares[at] = share;
    c->red[at] = c->decisions[at] = 0;
    return at;
}

bool calibration_read(const struct document_calibration *calibration, struct calibration *out)
{
    *out = (struct calibration){0};
    if (!rank_cases(calibration, out))
        return false;
    for (size_t i = 0; i < calibration->n_cases; i++) {
        const struct document_calibrated *c = &calibration->cases[i];
        for (size_t k = 0; k < c->n_injected; k++) {
            size_t at = place_of_share(out, c->injected[k].share);
            if (at == out->n_shares)
                continue;
            out->red[at] += (double)c->injected[k].red;
            out->decisions[at] += (double)c->injected[k].decisions;
        }
    }
    return true;
}

void calibration_release(struct calibration *c)
{
    free(c->cases);
}

const char *calibration_share_name(double share, char out[UNITS_MAX])
{
    if (share == 0)
        snprintf(out, UNITS_MAX, "unchanged");
    else
        snprintf(out, UNITS_MAX, "+%.3g %%", 100 * share);
    return out;
}

const char *calibration_rate(double red, double decisions, char out[UNITS_MAX])
{
    double percent = 100 * red / decisions;
    if (!(decisions > 0))
        snprintf(out, UNITS_MAX, "-");
    else if (red <= 0 || red >= decisions)
        snprintf(out, UNITS_MAX, "%d %%", red <= 0 ? 0 : 100);
    else if (percent < 0.01 || percent > 99.99)
        snprintf(out, UNITS_MAX, "%s %%", percent < 50 ? "<0.01" : ">99.99");
    else
        snprintf(out, UNITS_MAX, "%.2f %%", percent);
    return out;
}

const char *calibration_case_rate(const struct document_calibrated *c, double share,
                                  char out[UNITS_MAX])
{
    double red, decisions;
    add_up(c, share, &red, &decisions);
    return calibration_rate(red, decisions, out);
}

void calibration_summary(const struct calibration *c, double threshold, struct buf *out)
{
    char name[UNITS_MAX], rate[UNITS_MAX];
    buf_printf(out, "%zu of %zu case%s resolve%s %.3g %%", c->n_resolved, c->n_cases,
               c->n_cases == 1 ? "" : "s", c->n_cases == 1 ? "s" : "", 100 * threshold);
    for (size_t i = 0; i < c->n_shares; i++) {
        buf_printf(out, "%s %s %s", i ? "," : "; red:", calibration_share_name(c->shares[i], name),
                   calibration_rate(c->red[i], c->decisions[i], rate));
        if (c->shares[i] == 0)
            buf_printf(out, " (%.0f of %.0f decisions)", c->red[i], c->decisions[i]);
    }
}

void calibration_incomplete(const struct document_calibration *calibration, const char *bullet,
                            void (*put)(const char *text, struct buf *out), struct buf *out)
{
    size_t n = calibration->n_incomplete;
    for (size_t i = 0; i < n && i < CALIBRATION_MAX_INCOMPLETE; i++) {
        const struct document_incomplete *one = &calibration->incomplete[i];
        buf_puts(out, bullet);
        put(one->id, out);
        buf_printf(out, ": %s, %lld of %lld processes: ", verdict_name((enum verdict)one->verdict),
                   (long long)one->processes, (long long)one->wanted);
        put(one->reason, out);
        buf_putc(out, '\n');
    }
    if (n > CALIBRATION_MAX_INCOMPLETE)
        buf_printf(out, "%sand %zu more\n", bullet, n - CALIBRATION_MAX_INCOMPLETE);
}
