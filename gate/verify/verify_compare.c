/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/verify/verify_compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* An element is bad when it is further off than so many limits of its own size and the rms. Errors
 * of a product are alike over its elements, and below the limit as a root mean square: 8 times that
 * is nobody's chance. Those of an attention are not; its rows are short and see to it. */
#define BAD_FACTOR 8.0

#define PART_FACTOR 3.0 /* limits, for rows and tiles */

/* Units of the last place away from zero, of so many elements of 16 bits, from the number nearest
 * to the reference: half a unit where all are cut off, none where they are rounded to nearest. */
#define BIAS_MAX 0.2
#define BIAS_LEAST 400

/* Rows and tiles are measured by their own norm, or by this share of what a row of average size
 * would have. A product's rows are alike, and short ones may cancel; those of an attention are not,
 * and no sum of many columns cancels. */
#define PRODUCT_NORM_SHARE 1.0
#define OTHER_NORM_SHARE 1e-3

void compare_index(const struct problem_tensor *t, int64_t index, char *text, size_t size)
{
    int64_t at[KG_MAX_RANK];
    for (unsigned r = t->rank; r-- > 0;) {
        at[r] = index % t->shape[r];
        index /= t->shape[r];
    }
    size_t used = 0;
    for (unsigned r = 0; r < t->rank && used < size; r++)
        used +=
            (size_t)snprintf(text + used, size - used, "%s%lld", r ? ", " : "", (long long)at[r]);
}

/* Rounding to the subnormal numbers of a narrow dtype adds half a unit whatever the size: from this
 * root mean square on that stays within the limit, and what is smaller is measured by it. */
static double least_rms(const struct kg_problem *p, const struct problem_tensor *about,
                        double limit, double rms)
{
    const struct dtype *d = kg_dtype_bits(about->dtype) == 16 ? dtype_stored(about->dtype) : NULL;
    double least = rms * (op_of(p)->multilinear ? PRODUCT_NORM_SHARE : OTHER_NORM_SHARE);
    return d && dtype_is_narrow(d) ? fmax(least, ldexp(0.5, d->least - (int)d->mantissa) / limit)
                                   : least;
}

double compare_usual_rms(const struct kg_problem *p, const struct problem_tensor *about)
{
    const struct op *op = op_of(p);
    for (unsigned i = 0; i < op->n_tensors; i++)
        if (!strcmp(op->tensors[i].name, about->name))
            return sqrt((double)op_terms(p, i));
    return 0;
}

double compare_least_rms(enum probe probe, const struct kg_problem *p,
                         const struct problem_tensor *about)
{
    return probe == PROBE_NORMAL ? 0.5 * compare_usual_rms(p, about) : 0;
}

static void set_rule(struct look *look, bool exact, double rms)
{
    look->rms = rms;
    look->rule = (struct device_part_rule){
        .exact = exact,
        .least_rms = least_rms(look->problem, look->about, look->limit, rms),
        .bad_share = BAD_FACTOR * look->limit,
        .bad_rms = rms};
}

double compare_limit(const struct kg_problem *p, enum probe probe)
{
    return problem_error_limit(p) + probe_slack(probe, p);
}

void compare_start(struct look *look, const struct kg_problem *p,
                   const struct problem_tensor *about, enum probe probe, double rms)
{
    *look = (struct look){.problem = p, .about = about, .limit = compare_limit(p, probe)};
    set_rule(look, probe_is_exact(probe), rms);
}

enum gate_status compare_on_device(struct device *d, struct look *look, const struct kg_tensor *got,
                                   const double *reference, struct gate_error *err)
{
    enum gate_status status = device_compare(d, got, reference, &look->rule, &look->found, err);
    const double rms = sqrt(look->found.reference_sq / (double)look->found.elements);
    if (status || look->whole || look->rule.exact || !(rms > look->rms))
        return status;
    set_rule(look, false, rms);
    return device_compare(d, got, reference, &look->rule, &look->found, err);
}

double compare_whole_error(const struct look *look)
{
    const struct device_comparison *f = &look->found;
    if (f->nonfinite)
        return NAN;
    double least_sq = look->rule.least_rms * look->rule.least_rms * (double)f->elements;
    double norm_sq = fmax(f->reference_sq, least_sq);
    return norm_sq > 0 ? sqrt(f->error_sq / norm_sq) : sqrt(f->error_sq);
}

/* ", all in columns 508 to 511", where these are not all that there are. */
static void describe_places(const char *what, const int64_t places[2], int64_t of, char *text,
                            size_t size)
{
    if (places[0] < 0 || places[1] - places[0] + 1 == of)
        return;
    if (places[0] == places[1])
        snprintf(text, size, ", all in %s %lld", what, (long long)places[0]);
    else
        snprintf(text, size, ", all in %ss %lld to %lld", what, (long long)places[0],
                 (long long)places[1]);
}

/* Where the bad ones are, and "; first bad element [3, 17], in row 3 and tile (0, 0): expected 1,
 * got 2". */
static void describe_first(const struct look *look, const struct device_element *first, char *text,
                           size_t size)
{
    char where[96], rows_of[64] = "", columns_of[64] = "";
    if (first->at < 0)
        return;
    compare_index(look->about, first->at, where, sizeof where);
    int64_t columns = look->about->shape[look->about->rank - 1];
    int64_t row = first->at / columns, column = first->at % columns;
    if (first == &look->found.first_bad && look->found.bad > 1) {
        describe_places("row", look->found.bad_rows, look->found.elements / columns, rows_of,
                        sizeof rows_of);
        describe_places("column", look->found.bad_columns, columns, columns_of, sizeof columns_of);
    }
    snprintf(
        text, size,
        "%s%s; first bad element [%s], in row %lld and tile (%lld, %lld): expected %.9g, got %.9g",
        rows_of, columns_of, where, (long long)row, (long long)(row / DEVICE_TILE),
        (long long)(column / DEVICE_TILE), first->reference,
        isnan(first->value) ? NAN : first->value);
}

/* What is wrong with rows, tiles and elements; false when nothing is. */
static bool describe_part(const struct look *look, char *text, size_t size)
{
    const struct device_comparison *f = &look->found;
    double part = PART_FACTOR * look->limit;
    if (!(f->worst_row <= part))
        snprintf(text, size, "relative error %.3g of row %lld is over the limit of %.3g for a row",
                 f->worst_row, (long long)f->worst_row_at, part);
    else if (!(f->worst_tile <= part))
        snprintf(text, size,
                 "relative error %.3g of tile (%lld, %lld) is over the limit of %.3g for a tile",
                 f->worst_tile, (long long)f->worst_tile_row, (long long)f->worst_tile_column,
                 part);
    else if (f->bad && look->rms > 0 && op_of(look->problem)->multilinear)
        snprintf(
            text, size,
            "the error of an element is over %.3g times the sum of its size and the rms of %.3g",
            look->rule.bad_share, look->rms);
    else
        return false;
    return true;
}

static double bias_of(const struct look *look)
{
    const struct device_comparison *f = &look->found;
    return look->unbiased && f->biased >= BIAS_LEAST ? f->bias / (double)f->biased : 0;
}

bool compare_is_right(const struct look *look, char *text, size_t size)
{
    char first[400] = "", part[160];
    const struct device_comparison *f = &look->found;
    const char *name = look->about->name;
    long long bad = (long long)f->bad, all = (long long)f->elements;
    double whole = compare_whole_error(look);
    describe_first(look,
                   f->nonfinite   ? &f->first_nonfinite
                   : f->swallowed ? &f->first_swallowed
                                  : &f->first_bad,
                   first, sizeof first);
    if (f->nonfinite)
        snprintf(text, size,
                 "output '%s': %lld of %lld elements are NaN, Inf or were never written%s", name,
                 (long long)f->nonfinite, all, first);
    else if (f->swallowed)
        snprintf(text, size,
                 "output '%s': %lld of %lld elements must be NaN or infinity and are not%s", name,
                 (long long)f->swallowed, all, first);
    else if (look->rule.exact && f->bad)
        snprintf(text, size, "output '%s': %lld of %lld elements differ from the exact result%s",
                 name, bad, all, first);
    else if (!(whole <= look->limit))
        snprintf(text, size,
                 "output '%s': relative error %.3g is over the limit of %.3g; %lld of %lld "
                 "elements are far off%s",
                 name, whole, look->limit, bad, all, first);
    else if (look->whole)
        return true;
    else if (describe_part(look, part, sizeof part))
        snprintf(text, size, "output '%s': %s; %lld of %lld elements are far off%s", name, part,
                 bad, all, first);
    else if (fabs(bias_of(look)) > BIAS_MAX)
        snprintf(
            text, size,
            "output '%s': elements are not rounded to nearest: on average they are off by %.2g "
            "units of the last place, %s zero",
            name, fabs(bias_of(look)), bias_of(look) < 0 ? "towards" : "away from");
    else
        return true;
    return false;
}
