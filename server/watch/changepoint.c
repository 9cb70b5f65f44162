/* SPDX-License-Identifier: Apache-2.0 */
/* changepoint.c: see changepoint.h. */
#include "server/watch/changepoint.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "gate/decide/stats.h"

#define WINDOW CHANGEPOINT_WINDOW
#define MIN_SIDE CHANGEPOINT_MIN_SIDE

#define PRICE 4.0      /* of a segment, in standard deviations */
#define PROPOSE_P 1e-4 /* of a split that stays */
#define COUNT_P 1e-5   /* of one that counts */
#define CHANCE_P 1e-6  /* of the same by ranks, or by how rare its values were before */
#define START_P 1e-4   /* of the values before it by how rare they are behind it */
#define KEEP_SHARE 0.8 /* of the least shift: what one that counted may shrink to */
#define SUPERIORITY 0.9
#define KEEP_SUPERIORITY 0.8
#define CLEAR_STEP 10.0 /* standard deviations of what remains, which does not wander that far */
#define CLEAR_SHARE 3.0 /* and times the least shift: modes are seldom that far apart */
#define TIGHT_STEP 6.0  /* and standard deviations of the right side by itself */
#define OUTLYING 3.0    /* shifts from the left level: too far to be of the right one's kind */
#define MAX_CORRELATION 0.95
#define CORRELATION_DOUBT 4.0 /* over the root of the number of values */
#define CUT_DEVIATIONS 3.0    /* beyond them a value weighs as if it were there */
#define LIMIT_DEVIATIONS 4.0  /* and the least shift: where distances are cut off */
#define REACH 4               /* values to each side that tell whether a value is alone */
#define USUAL 9               /* values before it that tell what is usual */
#define FAR_OUT 1.5           /* limits: alone and farther from the usual is no level */
#define SMALLEST_SD 5e-4      /* no series is steadier: clocks round */
#define NORMAL_MAD 1.4826     /* standard deviation over the median distance from the median */
#define ONE_SIGMA 0.6827      /* share of normal values that lie nearer than one */
/* The largest U that leaves SUPERIORITY to two sides of half a window each. */
#define RANK_MAX_U ((size_t)(WINDOW * WINDOW / 4 / 10 + 1))

/* ---- distributions ---- */

/* Continued fraction of the incomplete beta function, by Lentz's method. */
static double beta_fraction(double a, double b, double x)
{
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double f = d;
    for (int m = 1; m <= 300; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 + even * d;
        c = 1 + even / c;
        d = 1 / (fabs(d) < tiny ? tiny : d);
        c = fabs(c) < tiny ? tiny : c;
        f *= d * c;
        d = 1 + odd * d;
        c = 1 + odd / c;
        d = 1 / (fabs(d) < tiny ? tiny : d);
        c = fabs(c) < tiny ? tiny : c;
        double step = d * c;
        f *= step;
        if (fabs(step - 1) < 1e-12)
            break;
    }
    return f;
}

static double log_gamma(double x)
{
    int sign;
    return lgamma_r(x, &sign); /* lgamma() writes a global */
}

/* P that a beta-distributed value is below x. */
static double beta_p(double a, double b, double x)
{
    if (x <= 0)
        return 0;
    if (x >= 1)
        return 1;
    double front = exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log1p(-x));
    if (x < (a + 1) / (a + b + 2))
        return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

/* Two-sided p of Student's t. */
static double student_p(double t, double df)
{
    return beta_p(df / 2, 0.5, df / (df + t * t));
}

/* P of at least k of n, each with probability p. */
static double binomial_p(double k, double n, double p)
{
    return k <= 0 ? 1 : beta_p(k, n - k + 1, p);
}

/*
 * P that of the U statistic of Mann and Whitney, for n and m values in random order, at most `u` is
 * seen: the sum of the first coefficients of the Gaussian binomial, exact. Meant for small u.
 */
static double rank_p(size_t n, size_t m, size_t u)
{
    double ways[RANK_MAX_U + 1] = {1};
    double all = 1;
    if (u > RANK_MAX_U)
        return 1;
    for (size_t i = 1; i <= m; i++) {
        /* times (1 - q^(n + i)) over (1 - q^i) */
        for (size_t k = u + 1; k-- > n + i;)
            ways[k] -= ways[k - n - i];
        for (size_t k = i; k <= u; k++)
            ways[k] += ways[k - i];
        all *= (double)(n + i) / (double)i;
    }
    double sum = 0;
    for (size_t k = 0; k <= u; k++)
        sum += ways[k];
    return sum / all;
}

/* ---- two sides of a split ---- */

static double median(const double *x, size_t n)
{
    double sorted[WINDOW];
    memcpy(sorted, x, n * sizeof *x);
    stats_sort(sorted, n);
    return stats_quantile(sorted, n, 0.5);
}

/* What remains of the values of a split when both sides have their medians, cut off. */
struct split {
    const double *x;
    size_t n, n_left;
    double left, right; /* medians */
    double rest[WINDOW];
    double sd; /* of the rest */
};

static struct split split_of(const double *x, size_t n_left, size_t n_right)
{
    struct split s = {.x = x, .n = n_left + n_right, .n_left = n_left};
    double distance[WINDOW], squares = 0;
    s.left = median(x, n_left);
    s.right = median(x + n_left, n_right);
    for (size_t i = 0; i < s.n; i++) {
        s.rest[i] = x[i] - (i < n_left ? s.left : s.right);
        distance[i] = fabs(s.rest[i]);
    }
    stats_sort(distance, s.n);
    double limit = CUT_DEVIATIONS * stats_quantile(distance, s.n, ONE_SIGMA);
    for (size_t i = 0; i < s.n; i++) {
        s.rest[i] = fmax(-limit, fmin(limit, s.rest[i]));
        squares += s.rest[i] * s.rest[i];
    }
    s.sd = fmax(SMALLEST_SD, sqrt(squares / (double)(s.n - 2)));
    return s;
}

static double shift_of(const struct split *s)
{
    return s->right - s->left;
}

/*
 * How many values are worth one, by the correlation of what remains with the value before. The
 * estimate of that is too low in short series, by about (1 + 3 rho) / n (Kendall, 1954).
 */
static double worth_of(const struct split *s)
{
    double products = 0, squares = 0;
    for (size_t i = 0; i < s->n; i++) {
        squares += s->rest[i] * s->rest[i];
        if (i > 0 && i != s->n_left)
            products += s->rest[i] * s->rest[i - 1];
    }
    double rho = squares > 0 ? products / squares : 0;
    rho += (1 + 3 * rho) / (double)s->n;
    rho = fmax(0, fmin(MAX_CORRELATION, rho));
    return (1 + rho) / (1 - rho);
}

/* p of the shift when `worth` values count as one. */
static double shift_p(const struct split *s, double worth)
{
    double nl = (double)s->n_left / worth, nr = (double)(s->n - s->n_left) / worth;
    double df = fmax(1, nl + nr - 2);
    return student_p(fabs(shift_of(s)) / (s->sd * sqrt(1 / nl + 1 / nr)), df);
}

/* How many of the pairs are against the direction of the change; ties count half, so twice. */
static size_t pairs_against(const struct split *s)
{
    bool up = shift_of(s) > 0;
    size_t twice = 0;
    for (size_t i = 0; i < s->n_left; i++) {
        for (size_t k = s->n_left; k < s->n; k++) {
            double d = up ? s->x[k] - s->x[i] : s->x[i] - s->x[k];
            twice += d < 0 ? 2 : d == 0;
        }
    }
    return twice;
}

/* Where a value lies between the levels: 0 is the left one, 1 the right one. */
static double share_of(const struct split *s, double value)
{
    return (value - s->left) / shift_of(s);
}

/* P of at least `k` of `n` where `like` of `n_other` were such; `worth` values count as one. */
static double mode_p(size_t k, size_t n, double worth, size_t like, size_t n_other)
{
    return binomial_p((double)k / worth, (double)n / worth,
                      ((double)like + 0.5) / ((double)n_other + 1));
}

/* The right side scatters little beside the shift: outliers in a row do not look like that. */
static bool is_tight(const struct split *s)
{
    double squares = 0;
    for (size_t i = s->n_left; i < s->n; i++)
        squares += (s->x[i] - s->right) * (s->x[i] - s->right);
    return fabs(shift_of(s)) > TIGHT_STEP * sqrt(squares / (double)(s->n - s->n_left - 1));
}

/*
 * Not by chance, whatever the distribution of the noise is: by ranks, or because values like those
 * of one side are too rare on the other, `n_past` values before the right one, to come in a row.
 */
static bool is_no_chance(const struct split *s, size_t n_past, double worth, bool clear,
                         double least)
{
    size_t n_right = s->n - s->n_left, like = 0, n_older = 0, unlike = 0, moved = 0, stayed = 0;
    /* An outlier to both levels is not of the right one's kind, nor is another level before. */
    for (const double *x = s->x + s->n_left - n_past; x < s->x; x++)
        n_older += share_of(s, *x) > 0.5 && share_of(s, *x) < 1.5;
    for (size_t i = 0; i < s->n; i++) {
        double share = share_of(s, s->x[i]);
        like += i < s->n_left && share > 0.5 && share < OUTLYING;
        moved += i >= s->n_left && share > 0.5;
        unlike += i >= s->n_left && share <= 0.5;
        stayed += i < s->n_left && share <= 0.5;
    }
    like += n_older;
    if (clear && like == 0 && fabs(shift_of(s)) >= CLEAR_SHARE * least && is_tight(s))
        return true;
    if (n_past == s->n_left && rank_p(s->n_left, n_right, (pairs_against(s) + 1) / 2) <= CHANCE_P)
        return true;
    if (!clear)
        worth *= 1 + CORRELATION_DOUBT / sqrt((double)s->n);
    return mode_p(moved, n_right, worth, like, n_past) <= CHANCE_P &&
           mode_p(stayed, s->n_left, worth, unlike, n_right) <= START_P;
}

static bool counts(const double *x, size_t n_left, size_t n_right, size_t n_past, double least)
{
    struct split s = split_of(x, n_left, n_right);
    if (fabs(shift_of(&s)) < least)
        return false;
    bool clear = fabs(shift_of(&s)) > CLEAR_STEP * s.sd;
    double worth = clear ? 1 : worth_of(&s);
    double shorter = (double)(n_left < n_right ? n_left : n_right);
    if (shorter < MIN_SIDE * worth || shift_p(&s, worth) > COUNT_P)
        return false;
    size_t twice = pairs_against(&s);
    return (double)twice <= 2 * (1 - SUPERIORITY) * (double)(n_left * n_right) &&
           is_no_chance(&s, n_past, worth, clear, least);
}

/* ---- proposing splits ---- */

/* Sums of distances over the pairs of [a, b), for all a and b of the window. */
struct distances {
    float within[WINDOW][WINDOW + 1];
    float one_by[WINDOW + 1];
};

/* Of the noise of a series that has a few steps, by the differences of neighbours. */
static double noise_of(const double *x, size_t n)
{
    double distance[WINDOW];
    for (size_t i = 1; i < n; i++)
        distance[i - 1] = fabs(x[i] - x[i - 1]);
    stats_sort(distance, n - 1);
    return NORMAL_MAD / sqrt(2) * stats_quantile(distance, n - 1, 0.5);
}

/*
 * Takes what lies alone and far out for the usual: fewer than MIN_SIDE values are like it, it and
 * its neighbours, so it is no level. It is judged by what lies before it, so outliers before a step
 * are no part of its left side. The first values have nothing before them.
 */
static void cut_outliers(const double *x, size_t n, double limit, double *out)
{
    for (size_t i = 0; i < n; i++) {
        size_t from = i > REACH ? i - REACH : 0, to = i + REACH < n ? i + REACH + 1 : n, like = 0;
        out[i] = x[i];
        for (size_t k = from; k < to; k++)
            like += fabs(x[k] - x[i]) <= limit;
        if (like >= MIN_SIDE || i < MIN_SIDE)
            continue;
        size_t known = i < USUAL ? i : USUAL;
        double usual = median(out + i - known, known);
        if (fabs(x[i] - usual) > FAR_OUT * limit)
            out[i] = usual;
    }
}

static void measure_distances(struct distances *d, const double *x, size_t n, double limit)
{
    for (size_t a = 0; a < n; a++) {
        d->within[a][a] = 0;
        d->one_by[a + 1] = 1 / (float)(a + 1);
    }
    for (size_t b = 0; b < n; b++) {
        double to_b = 0;
        for (size_t a = b + 1; a-- > 0;) {
            to_b += fmin(limit, fabs(x[b] - x[a]));
            d->within[a][b + 1] = (float)((a == b ? 0 : d->within[a][b]) + to_b);
        }
    }
}

struct splits {
    size_t n;
    size_t at[CHANGEPOINT_MAX]; /* ascending */
    double doubt[CHANGEPOINT_MAX];
};

/*
 * Cuts the values into segments whose sum of distances within, each over its length, is least; a
 * segment costs `price` besides. By dynamic programming over the end of the last segment.
 */
static void propose(const struct distances *d, size_t n, float price, struct splits *out)
{
    float cost[WINDOW + 1];
    size_t from[WINDOW + 1];
    cost[0] = 0;
    from[0] = 0;
    for (size_t end = 1; end <= n; end++) {
        cost[end] = INFINITY;
        from[end] = 0;
        for (size_t start = 0; start + MIN_SIDE <= end; start++) {
            float c = cost[start] + price + d->within[start][end] * d->one_by[end - start];
            if (c < cost[end]) {
                cost[end] = c;
                from[end] = start;
            }
        }
    }
    for (size_t at = from[n]; at > 0; at = from[at])
        out->n++;
    size_t i = out->n;
    for (size_t at = from[n]; at > 0; at = from[at])
        out->at[--i] = at;
}

static size_t from_of(const struct splits *s, size_t i)
{
    return i > 0 ? s->at[i - 1] : 0;
}

static size_t to_of(const struct splits *s, size_t i, size_t n)
{
    return i + 1 < s->n ? s->at[i + 1] : n;
}

/* How surely the split is none, between its neighbours: more than PROPOSE_P is not enough. */
static double doubt(const double *x, size_t n, const struct splits *s, size_t i)
{
    size_t from = from_of(s, i), at = s->at[i];
    struct split split = split_of(x + from, at - from, to_of(s, i, n) - at);
    double pairs = (double)split.n_left * (double)(split.n - split.n_left);
    if ((double)pairs_against(&split) > 2 * (1 - KEEP_SUPERIORITY) * pairs)
        return 2 - fabs(shift_of(&split)); /* the lowest step first */
    return shift_p(&split, 1);
}

/* Drops the most doubtful split, which makes its neighbours' sides longer, until all stay. */
static void drop_doubtful(const double *x, size_t n, struct splits *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->doubt[i] = doubt(x, n, s, i);
    while (s->n > 0) {
        size_t worst = 0;
        for (size_t i = 1; i < s->n; i++)
            worst = s->doubt[i] > s->doubt[worst] ? i : worst;
        if (s->doubt[worst] <= PROPOSE_P)
            return;
        s->n--;
        memmove(s->at + worst, s->at + worst + 1, (s->n - worst) * sizeof s->at[0]);
        memmove(s->doubt + worst, s->doubt + worst + 1, (s->n - worst) * sizeof s->doubt[0]);
        if (worst > 0)
            s->doubt[worst - 1] = doubt(x, n, s, worst - 1);
        if (worst < s->n)
            s->doubt[worst] = doubt(x, n, s, worst);
    }
}

/* Does the split count with some number of values behind it? */
static bool counted(const double *x, size_t n_left, size_t n_right, size_t n_past, double least)
{
    if (n_right > CHANGEPOINT_FRESH)
        n_right = CHANGEPOINT_FRESH;
    for (size_t m = MIN_SIDE; m < n_right; m += m < 10 ? 1 : m / 4) {
        if (counts(x, n_left, m, n_past, least))
            return true;
    }
    return counts(x, n_left, n_right, n_past, least);
}

static bool is_up(const struct changepoint *c)
{
    return c->after > c->before;
}

/* Does the level, with `c`, return to where it was before `earlier`? */
static bool is_back(const struct changepoint *earlier, const struct changepoint *c, double least)
{
    double left = c->after - earlier->before;
    return is_up(earlier) ? left <= least : left >= -least;
}

/* Ends the changes that `c` takes back, and says in c whether there are any. */
static void revert(struct changepoint *out, size_t n, struct changepoint *c, double least)
{
    for (size_t i = 0; i < n; i++) {
        if (out[i].is_return || out[i].end <= c->at || is_up(&out[i]) == is_up(c) ||
            !is_back(&out[i], c, least))
            continue;
        out[i].end = c->at;
        if (!c->is_return)
            c->base = out[i].before;
        c->is_return = true;
    }
}

static bool reverts(const struct changepoint *out, size_t n, struct changepoint c, double least)
{
    struct changepoint copy[CHANGEPOINT_MAX];
    memcpy(copy, out, n * sizeof *out);
    revert(copy, n, &c, least);
    return c.is_return;
}

size_t changepoint_find(const double *series, size_t n, double least,
                        struct changepoint out[CHANGEPOINT_MAX])
{
    struct distances d;
    double x[WINDOW];
    struct splits s = {0};
    size_t n_out = 0;
    if (n < 2 * MIN_SIDE)
        return 0;
    double noise = fmax(SMALLEST_SD, noise_of(series, n)), limit = least + LIMIT_DEVIATIONS * noise;
    cut_outliers(series, n, limit, x);
    measure_distances(&d, x, n, limit);
    propose(&d, n, (float)(PRICE * noise), &s);
    drop_doubtful(x, n, &s);
    for (size_t i = 0; i < s.n; i++) {
        size_t from = from_of(&s, i), at = s.at[i], to = to_of(&s, i, n);
        struct changepoint c = {at,    n, median(x + from, at - from), median(x + at, to - at),
                                false, 0};
        c.base = c.before;
        if ((n == WINDOW && at < CHANGEPOINT_EDGE) || fabs(c.after - c.before) < KEEP_SHARE * least)
            continue;
        /* What it takes back lasted a while, and the values before that were like the new ones. */
        size_t n_past = reverts(out, n_out, c, least) ? at - from : at;
        if (!counted(x + from, at - from, to - at, n_past, least))
            continue;
        revert(out, n_out, &c, least);
        out[n_out++] = c;
    }
    return n_out;
}
