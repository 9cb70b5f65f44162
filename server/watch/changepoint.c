/* changepoint.c: see changepoint.h. */
#include "changepoint.h"

#include <math.h>
#include <string.h>

#include "decide/stats.h"

#define SPLIT_P 1e-4    /* of a split that is tried */
#define FINAL_P 1e-5    /* of one that stays */
#define RANK_P 1e-6     /* of the same by ranks */
#define NEVER_P 1e-30   /* what is less probable differs by rounding */
#define SUPERIORITY 0.9 /* share of pairs of values that go the way of the change */
#define MAX_CORRELATION 0.95
#define CLEAR_STEP 10.0 /* standard deviations of what remains, which does not wander that far */
#define CUSUM_SLACK 0.5 /* in standard deviations */
#define CUSUM_LIMIT 8.0
#define SMALLEST_SD 1e-9 /* of a series of equal values */
/* The largest U that leaves SUPERIORITY to two segments of half a tail each. */
#define RANK_MAX_U ((size_t)(CHANGEPOINT_TAIL * CHANGEPOINT_TAIL / 4 / 10 + 1))

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

/* Two-sided p of Student's t. */
static double student_p(double t, double df)
{
    double a = df / 2, b = 0.5, x = df / (df + t * t);
    if (x <= 0)
        return 0;
    if (x >= 1)
        return 1;
    double front = exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log1p(-x));
    if (x < (a + 1) / (a + b + 2))
        return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, 1 - x) / b;
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

struct side {
    const double *x;
    size_t n;
    double mean, squares; /* of differences from the mean */
};

static struct side side_of(const double *x, size_t n)
{
    struct side s = {x, n, 0, 0};
    for (size_t i = 0; i < n; i++)
        s.mean += x[i];
    s.mean /= (double)n;
    for (size_t i = 0; i < n; i++)
        s.squares += (x[i] - s.mean) * (x[i] - s.mean);
    return s;
}

static double median(const double *x, size_t n)
{
    double sorted[CHANGEPOINT_TAIL];
    memcpy(sorted, x, n * sizeof(*x));
    stats_sort(sorted, n);
    return stats_quantile(sorted, n, 0.5);
}

static double lag_products(const struct side *s)
{
    double sum = 0;
    for (size_t i = 1; i < s->n; i++)
        sum += (s->x[i] - s->mean) * (s->x[i - 1] - s->mean);
    return sum;
}

/*
 * Correlation of a value with the one before, of what remains when both sides have their means. The
 * estimate is too low in short series, by about (1 + 3 rho) / n (Kendall, 1954).
 */
static double correlation(const struct side *l, const struct side *r)
{
    double squares = l->squares + r->squares, n = (double)(l->n + r->n);
    if (squares <= n * SMALLEST_SD * SMALLEST_SD)
        return 0; /* what is left is rounding */
    double rho = (lag_products(l) + lag_products(r)) / squares;
    rho += (1 + 3 * rho) / n;
    return rho < 0 ? 0 : rho > MAX_CORRELATION ? MAX_CORRELATION : rho;
}

/* So much higher than what remains that the order of that does not matter. */
static bool is_clear(const struct side *l, const struct side *r)
{
    double sd = sqrt((l->squares + r->squares) / (double)(l->n + r->n - 2));
    return fabs(r->mean - l->mean) > CLEAR_STEP * sd;
}

/* p of the difference of the means when `worth` values count as one. */
static double mean_p(const struct side *l, const struct side *r, double worth)
{
    double nl = (double)l->n / worth, nr = (double)r->n / worth;
    double df = nl + nr - 2;
    double spread = sqrt((l->squares + r->squares) / (double)(l->n + r->n - 2) * (1 / nl + 1 / nr));
    double difference = fabs(r->mean - l->mean);
    if (df < 1)
        df = 1;
    if (spread <= difference * 1e-12)
        return difference > 0 ? 0 : 1;
    return student_p(difference / spread, df);
}

/* How many of the pairs are against the direction of the change; ties count half, so twice. */
static size_t pairs_against(const struct side *l, const struct side *r, bool up)
{
    size_t twice = 0;
    for (size_t i = 0; i < l->n; i++) {
        for (size_t k = 0; k < r->n; k++) {
            double d = up ? r->x[k] - l->x[i] : l->x[i] - r->x[k];
            twice += d < 0 ? 2 : d == 0;
        }
    }
    return twice;
}

struct judgement {
    bool stays;  /* the two sides are two levels */
    bool counts; /* and lie far enough apart to be told */
    double before, after, p;
};

/* Nearly all of one side above nearly all of the other, and that not by chance. */
static bool is_separate(const struct side *l, const struct side *r, bool up)
{
    size_t twice = pairs_against(l, r, up);
    if ((double)twice > 2 * (1 - SUPERIORITY) * (double)(l->n * r->n))
        return false;
    return rank_p(l->n, r->n, (twice + 1) / 2) <= RANK_P;
}

/*
 * Is there a change of level between two segments? A correlation rho makes (1 + rho) / (1 - rho)
 * values worth one, both in the test and for the shortest segment that is believed. Where values
 * are as good as constant, what remains is the clock's rounding or two levels of it in long rows:
 * that is correlated as can be, and says nothing about a step a hundred times as high.
 */
static struct judgement judge(const double *left, size_t n_left, const double *right,
                              size_t n_right)
{
    struct side l = side_of(left, n_left), r = side_of(right, n_right);
    struct judgement j = {.before = median(left, n_left), .after = median(right, n_right)};
    double rho = is_clear(&l, &r) ? 0 : correlation(&l, &r), worth = (1 + rho) / (1 - rho);
    double shift = j.after - j.before;
    double shorter = (double)(n_left < n_right ? n_left : n_right);
    j.p = mean_p(&l, &r, worth);
    j.stays = j.p <= FINAL_P && shorter >= CHANGEPOINT_MIN_SEGMENT * worth &&
              is_separate(&l, &r, shift > 0);
    j.counts = j.stays && fabs(shift) >= CHANGEPOINT_MIN_SHIFT &&
               fabs(r.mean - l.mean) >= CHANGEPOINT_MIN_SHIFT;
    return j;
}

/* ---- splits of the window ---- */

/* Sums of |x[i] - x[k]| over the pairs of [a, b), for all a and b of the window. */
struct distances {
    double within[CHANGEPOINT_WINDOW][CHANGEPOINT_WINDOW + 1];
};

static void measure_distances(struct distances *d, const double *x, size_t n)
{
    for (size_t a = 0; a < n; a++)
        d->within[a][a] = 0;
    for (size_t b = 0; b < n; b++) {
        double to_b = 0;
        for (size_t a = b + 1; a-- > 0;) {
            to_b += fabs(x[b] - x[a]);
            d->within[a][b + 1] = (a == b ? 0 : d->within[a][b]) + to_b;
        }
    }
}

/*
 * The split of [lo, hi) with the largest energy distance between [lo, split) and [split, end),
 * scaled by the sizes, over all splits and ends. 0: too short for one.
 */
static size_t best_split(const struct distances *d, size_t lo, size_t hi, size_t *end)
{
    size_t best = 0;
    double best_q = 0;
    for (size_t s = lo + CHANGEPOINT_MIN_SEGMENT; s + CHANGEPOINT_MIN_SEGMENT <= hi; s++) {
        double n = (double)(s - lo), left = d->within[lo][s];
        double left_mean = 2 * left / (n * (n - 1));
        for (size_t e = s + CHANGEPOINT_MIN_SEGMENT; e <= hi; e++) {
            double m = (double)(e - s), right = d->within[s][e];
            double across = d->within[lo][e] - left - right;
            double q = (2 * across - n * m * left_mean - n * 2 * right / (m - 1)) / (n + m);
            if (q > best_q) {
                best_q = q;
                best = s;
                *end = e;
            }
        }
    }
    return best;
}

struct splits {
    size_t n;
    size_t at[CHANGEPOINT_MAX]; /* ascending */
    struct judgement judged[CHANGEPOINT_MAX];
};

/* The best split, if it is improbable enough to be tried; 0: it is not. */
static size_t likely_split(const struct distances *d, const double *x, size_t lo, size_t hi)
{
    size_t end = hi;
    size_t split = best_split(d, lo, hi, &end);
    if (split == 0)
        return 0;
    struct side l = side_of(x + lo, split - lo), r = side_of(x + split, end - split);
    return mean_p(&l, &r, 1) > SPLIT_P ? 0 : split;
}

static void find_splits(const struct distances *d, const double *x, size_t lo, size_t hi,
                        struct splits *out)
{
    size_t split = likely_split(d, x, lo, hi);
    if (split == 0)
        return;
    find_splits(d, x, lo, split, out);
    if (out->n < CHANGEPOINT_MAX)
        out->at[out->n++] = split;
    find_splits(d, x, split, hi, out);
}

static void judge_split(const double *x, size_t n, struct splits *s, size_t i)
{
    size_t from = i > 0 ? s->at[i - 1] : 0, to = i + 1 < s->n ? s->at[i + 1] : n;
    s->judged[i] = judge(x + from, s->at[i] - from, x + s->at[i], to - s->at[i]);
}

/* Less surely a change; between constant values, where each is sure, the lower step. */
static bool is_weaker(const struct judgement *a, const struct judgement *b)
{
    double pa = fmax(a->p, NEVER_P), pb = fmax(b->p, NEVER_P);
    return pa != pb ? pa > pb : fabs(a->after - a->before) < fabs(b->after - b->before);
}

/* Of the splits that do not stay; s->n: all do. */
static size_t weakest(const struct splits *s)
{
    size_t worst = s->n;
    for (size_t i = 0; i < s->n; i++) {
        if (!s->judged[i].stays && (worst == s->n || is_weaker(&s->judged[i], &s->judged[worst])))
            worst = i;
    }
    return worst;
}

/* Drops the weakest split, which makes its neighbours' segments longer, until all stay. */
static void keep_strong(const double *x, size_t n, struct splits *s)
{
    for (size_t i = 0; i < s->n; i++)
        judge_split(x, n, s, i);
    for (size_t i = weakest(s); i < s->n; i = weakest(s)) {
        s->n--;
        memmove(s->at + i, s->at + i + 1, (s->n - i) * sizeof(s->at[0]));
        memmove(s->judged + i, s->judged + i + 1, (s->n - i) * sizeof(s->judged[0]));
        if (i > 0)
            judge_split(x, n, s, i - 1);
        if (i < s->n)
            judge_split(x, n, s, i);
    }
}

/* ---- drift ---- */

/* One side of a CUSUM: it sums what exceeds the slack and starts again at zero. */
struct cusum {
    double sum;
    size_t from; /* index of the value that the present sum began with */
};

static void cusum_add(struct cusum *c, double z, size_t index)
{
    c->sum += z - CUSUM_SLACK;
    if (c->sum <= 0)
        *c = (struct cusum){0, index + 1};
}

/*
 * CUSUM of the tail against level and spread of the segment's first values: the index where the sum
 * that is over the limit at the end began to grow; t->n when none is.
 */
static size_t tripped(const struct changepoint_tail *t)
{
    struct side start = side_of(t->reference, t->n_reference);
    struct cusum up = {0}, down = {0};
    double sd = sqrt(start.squares / (double)(t->n_reference - 1));
    if (sd < SMALLEST_SD)
        sd = SMALLEST_SD;
    for (size_t i = 0; i < t->n; i++) {
        cusum_add(&up, (t->value[i] - start.mean) / sd, i);
        cusum_add(&down, (start.mean - t->value[i]) / sd, i);
    }
    if (up.sum > CUSUM_LIMIT)
        return up.from;
    return down.sum > CUSUM_LIMIT ? down.from : t->n;
}

/*
 * When the tripwire gives, the newest values of a long segment are held against its first ones. A
 * drift that is found has settled: it began half a window ago or earlier.
 */
static bool find_drift(const struct changepoint_tail *t, struct changepoint *out)
{
    if (t->first + (int64_t)t->n - t->segment < CHANGEPOINT_WINDOW)
        return false;
    size_t from = tripped(t), newest = t->n - CHANGEPOINT_SETTLED;
    if (from == t->n)
        return false;
    struct judgement j =
        judge(t->reference, t->n_reference, t->value + newest, CHANGEPOINT_SETTLED);
    if (from > newest)
        from = newest;
    *out = (struct changepoint){t->first + (int64_t)from, j.before, j.after, j.p, true, true};
    return j.counts;
}

/* ---- the tail ---- */

void changepoint_start(struct changepoint_tail *t, int64_t position)
{
    *t = (struct changepoint_tail){.first = position, .segment = position, .cut = position};
}

void changepoint_resume(struct changepoint_tail *t, int64_t segment, const double *reference,
                        size_t n_reference, int64_t cut_position, int64_t first)
{
    changepoint_start(t, segment);
    t->cut = cut_position;
    for (size_t i = 0; i < n_reference && i < CHANGEPOINT_SETTLED; i++)
        t->reference[t->n_reference++] = reference[i];
    t->first = first;
}

void changepoint_push(struct changepoint_tail *t, double value)
{
    if (t->n_reference < CHANGEPOINT_SETTLED)
        t->reference[t->n_reference++] = value;
    if (t->n == CHANGEPOINT_TAIL) {
        memmove(t->value, t->value + 1, (t->n - 1) * sizeof(t->value[0]));
        t->n--;
        t->first++;
    }
    t->value[t->n++] = value;
}

/* Forgets the values before value[at]; the segment begins there too, if the change counts. */
static void cut(struct changepoint_tail *t, size_t at, bool counts)
{
    int64_t position = t->first + (int64_t)at;
    t->n -= at;
    memmove(t->value, t->value + at, t->n * sizeof(t->value[0]));
    t->first = t->cut = position;
    if (!counts)
        return;
    t->segment = position;
    t->n_reference = t->n < CHANGEPOINT_SETTLED ? t->n : CHANGEPOINT_SETTLED;
    memcpy(t->reference, t->value, t->n_reference * sizeof(t->value[0]));
}

static struct splits look(const struct changepoint_tail *t)
{
    struct distances distances;
    struct splits splits = {0};
    size_t n = t->n < CHANGEPOINT_WINDOW ? t->n : CHANGEPOINT_WINDOW;
    size_t before = t->n - n;
    measure_distances(&distances, t->value + before, n);
    find_splits(&distances, t->value + before, 0, n, &splits);
    for (size_t i = 0; i < splits.n; i++)
        splits.at[i] += before;
    keep_strong(t->value, t->n, &splits);
    return splits;
}

size_t changepoint_append(struct changepoint_tail *t, double value, struct changepoint *out)
{
    size_t n_out = 0, cut_at = 0, segment_at = 0;
    changepoint_push(t, value);
    struct splits splits = look(t);
    for (size_t i = 0; i < splits.n; i++) {
        const struct judgement *j = &splits.judged[i];
        bool settled = t->n - splits.at[i] >= CHANGEPOINT_SETTLED;
        int64_t position = t->first + (int64_t)splits.at[i];
        if (j->counts)
            out[n_out++] =
                (struct changepoint){position, j->before, j->after, j->p, settled, false};
        if (settled)
            cut_at = splits.at[i];
        if (settled && j->counts)
            segment_at = splits.at[i];
    }
    if (n_out == 0 && find_drift(t, out)) {
        cut(t, t->n - CHANGEPOINT_SETTLED, true);
        return 1;
    }
    if (segment_at > 0)
        cut(t, segment_at, true);
    if (cut_at > segment_at)
        cut(t, cut_at - segment_at, false);
    return n_out;
}

/* The shift that judge() finds between the segment's first and newest values would not count. */
static bool is_near(const double *start, const double *newest)
{
    struct side l = side_of(start, CHANGEPOINT_SETTLED), r = side_of(newest, CHANGEPOINT_SETTLED);
    if (!(fabs(r.mean - l.mean) >= CHANGEPOINT_MIN_SHIFT))
        return true;
    double shift = median(newest, CHANGEPOINT_SETTLED) - median(start, CHANGEPOINT_SETTLED);
    return !(fabs(shift) >= CHANGEPOINT_MIN_SHIFT);
}

bool changepoint_is_quiet(const double *newest, size_t n, const double *start)
{
    struct distances distances;
    if (start && !is_near(start, newest + n - CHANGEPOINT_SETTLED))
        return false;
    measure_distances(&distances, newest, n);
    return likely_split(&distances, newest, 0, n) == 0;
}
