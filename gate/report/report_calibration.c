/* report_calibration.c: see report_calibration.h. */
#include "gate/report/report_calibration.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "gate/base/json.h"

struct ranked {
    const cJSON *one_case;
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
static void add_up(const cJSON *one_case, double share, double *red, double *decisions)
{
    const cJSON *injected;
    *red = *decisions = 0;
    cJSON_ArrayForEach (injected, json_member(one_case, "injected")) {
        if (json_number(injected, "share", 0) == share) {
            *red += json_number(injected, "red", 0);
            *decisions += json_number(injected, "decisions", 0);
        }
    }
}

static bool rank_cases(const cJSON *cases, struct calibration *c)
{
    const cJSON *one_case;
    size_t n = (size_t)cJSON_GetArraySize(cases);
    struct ranked *ranked = calloc(n + 1, sizeof(*ranked));
    c->cases = calloc(n + 1, sizeof(*c->cases));
    if (!ranked || !c->cases) {
        free(ranked);
        return false;
    }
    cJSON_ArrayForEach (one_case, cases) {
        struct ranked *r = &ranked[c->n_cases];
        double decisions;
        *r = (struct ranked){.one_case = one_case,
                             .resolved = json_bool(one_case, "resolved", false),
                             .mde = json_number(one_case, "mde", INFINITY),
                             .position = c->n_cases++};
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

bool calibration_read(const cJSON *calibration, struct calibration *out)
{
    const cJSON *one_case, *injected, *cases = json_member(calibration, "cases");
    *out = (struct calibration){0};
    if (!rank_cases(cases, out))
        return false;
    cJSON_ArrayForEach (one_case, cases) {
        cJSON_ArrayForEach (injected, json_member(one_case, "injected")) {
            size_t at = place_of_share(out, json_number(injected, "share", 0));
            if (at == out->n_shares)
                continue;
            out->red[at] += json_number(injected, "red", 0);
            out->decisions[at] += json_number(injected, "decisions", 0);
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

const char *calibration_case_rate(const cJSON *one_case, double share, char out[UNITS_MAX])
{
    double red, decisions;
    add_up(one_case, share, &red, &decisions);
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

void calibration_incomplete(const cJSON *calibration, const char *bullet,
                            void (*put)(const char *text, struct buf *out), struct buf *out)
{
    const cJSON *one, *list = json_member(calibration, "incomplete");
    int n = cJSON_GetArraySize(list), told = 0;
    cJSON_ArrayForEach (one, list) {
        if (told++ == CALIBRATION_MAX_INCOMPLETE)
            break;
        long long processes = json_integer(one, "processes", 0);
        buf_puts(out, bullet);
        put(json_string(one, "id", ""), out);
        buf_printf(out, ": %s, %lld of %lld processes: ", json_string(one, "verdict", ""),
                   processes, (long long)json_integer(one, "wanted", 0));
        put(json_string(one, "reason", ""), out);
        buf_putc(out, '\n');
    }
    if (n > CALIBRATION_MAX_INCOMPLETE)
        buf_printf(out, "%sand %d more\n", bullet, n - CALIBRATION_MAX_INCOMPLETE);
}
