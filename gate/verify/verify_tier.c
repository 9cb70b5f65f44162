/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/verify/trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/alloc.h"
#include "gate/base/seed.h"
#include "gate/verify/verify_shapes.h"
#include "gate/verify/verify_state.h"

/* The problem itself is probed where an image of it is not larger. */
static const size_t own_image_max[VERIFY_TIERS] = {(size_t)8 << 20, (size_t)64 << 20, 0};
static const unsigned repeats[VERIFY_TIERS] = {1, 8, 0};

static const struct soak_budget soaks[VERIFY_TIERS] = {
    {2000, 10e6, 0}, {100000, 2e9, 65600}, {0, 0, 0}};
const struct endure_budget tier_endures[VERIFY_TIERS] = {
    {2.5e6, 10e6, 60}, {100e6, 200e6, 1000}, {0, 0, 0}};

#define SOAK_FLOPS 2e4
#define VALUE_SEED 0x64696d

/* Shapes beside those of the problem's own sizes. */
static const struct shapes_plan plans[VERIFY_TIERS] = {
    {4, 10, 1, 1}, {60, 48, 1, 3}, {10, 0, 0, 0}};

static const char *const names[VERIFY_TIERS] = {"commit", "nightly", "small"};

const char *verify_tier_name(enum verify_tier tier)
{
    return names[tier];
}

bool verify_tier_parse(void *out, const char *name)
{
    unsigned i = 0;
    while (i < VERIFY_TIERS && strcmp(names[i], name) != 0)
        i++;
    *(enum verify_tier *)out = (enum verify_tier)i;
    return i < VERIFY_TIERS;
}

/* Does the tier ask the probes of the problem itself, since an image of it is not too large? */
static bool probes_itself(enum verify_tier tier, const struct kg_problem *p)
{
    return image_size(p) <= own_image_max[tier];
}

/* Checks of one arm under way. */
struct round {
    const struct verify_job *job;
    struct bench bench;
    struct kg_problem shape[SHAPES_MAX]; /* other than the problem's, which are served */
    unsigned n, n_checks;
    struct layout_pairs layouts;
    bool thorough, once;
    bool served_elsewhere; /* another shape than the problem's, by the same kernel */
    struct trial_row row;
};

/* A hang or a crash will be put down to this trial. */
static void announce(struct round *r, const struct trial *t)
{
    char text[TRIAL_TEXT_MAX], said[TRIAL_TEXT_MAX + 1];
    const bool dense = image_layout_is_dense(&t->problem, &t->layout);
    trial_text(t, dense ? t->guard : GUARD_NONE, text);
    snprintf(said, sizeof said, "%s)", text);
    r->job->notice(r->job->context, r->bench.arm, said);
}

/* Is it the layout? Adds to the fault what the same problem gives in dense tensors; where that
 * cannot be tried, the fault stands alone. */
static void try_dense(struct round *r, const struct trial *t)
{
    struct verification *found = r->bench.found, dense = {.ok = true};
    struct gate_error unused;
    struct trial one = *t;
    size_t used = strlen(found->message);
    one.layout = image_layout_of(TENSOR_DENSE);
    one.guard = GUARD_NONE;
    one.made = NULL;
    r->bench.found = &dense;
    announce(r, &one);
    const enum gate_status status = bench_try(&r->bench, &one, &unused);
    r->bench.found = found;
    if (!status && dense.record.checks)
        snprintf(found->message + used, sizeof found->message - used, "; in dense tensors it is %s",
                 dense.ok ? "right" : "wrong too");
}

static enum gate_status run_trial(void *context, const struct trial *t, struct gate_error *err)
{
    struct round *r = context;
    if (!r->bench.found->ok || !probe_applies(t->probe, &t->problem))
        return GATE_OK;
    announce(r, t);
    TRY(bench_try(&r->bench, t, err));
    if (!r->bench.found->ok && !image_layout_is_dense(&t->problem, &t->layout))
        try_dense(r, t);
    return GATE_OK;
}

static enum gate_status try_waiting(struct round *r, struct gate_error *err)
{
    return trial_row_next(&r->row, NULL, run_trial, r, err);
}

/* Launched again and on changed inputs, or one of them, by the seed. It may wait for its turn. */
static enum gate_status check(struct round *r, const struct kg_problem *p, enum probe probe,
                              struct image_layout layout, enum guard_side guard,
                              struct gate_error *err)
{
    const uint64_t seed = seed_at(r->job->seed, r->n_checks++);
    const bool again = r->thorough || seed & 1;
    const struct trial one = {.problem = *p,
                              .probe = probe,
                              .layout = layout,
                              .guard = guard,
                              .seed = seed,
                              .repeats = again && !r->once ? repeats[r->job->tier] : 0,
                              .changed = (r->thorough || !again) && !r->once};
    return r->bench.found->ok && probe_applies(probe, p)
               ? trial_row_next(&r->row, &one, run_trial, r, err)
               : GATE_OK;
}

static enum gate_status check_dense(struct round *r, const struct kg_problem *p, enum probe probe,
                                    enum guard_side guard, struct gate_error *err)
{
    return check(r, p, probe, image_layout_of(TENSOR_DENSE), guard, err);
}

/* Another one for each n; every other one is without odd rows. */
static struct image_layout layout_in_turn(struct round *r, const struct kg_problem *p, unsigned n)
{
    return image_layout_designed(p, seed_at(~r->job->seed, n), n % 2, &r->layouts);
}

/* The probe that sees most: exact where there is one. */
static enum probe sharpest(const struct kg_problem *p)
{
    return (enum probe)op_of(p)->sharpest;
}

/* The n-th of the probes that apply. */
static enum probe probe_in_turn(const struct kg_problem *p, unsigned n)
{
    unsigned applying = 0;
    for (int i = 0; i < PROBES; i++)
        applying += probe_applies((enum probe)i, p);
    n %= applying;
    for (int i = 0; i < PROBES; i++)
        if (probe_applies((enum probe)i, p) && n-- == 0)
            return (enum probe)i;
    return PROBE_NORMAL;
}

/* Zeros and single values, which say nothing of what a kernel remembers, are launched once. */
static enum gate_status check_all_probes(struct round *r, const struct kg_problem *p,
                                         struct image_layout layout, struct gate_error *err)
{
    for (int i = 0; i < PROBES; i++) {
        r->once = i >= PROBE_ZERO_FIRST && i <= PROBE_ONE_VALUE;
        TRY(check(r, p, (enum probe)i, layout, GUARD_NONE, err));
    }
    r->once = false;
    return GATE_OK;
}

/* One probe with nothing mapped behind the tensors, and one with nothing before them. */
static enum gate_status check_guarded(struct round *r, const struct kg_problem *p,
                                      struct gate_error *err)
{
    TRY(check_dense(r, p, sharpest(p), GUARD_BEHIND, err));
    return check_dense(r, p, sharpest(p), GUARD_BEFORE, err);
}

/* Of the reference: a product of 8192 cubed is within it, and takes 0.11 s at 10 TFLOP/s. Beyond it
 * the sums are cut short, never the output. */
#define OWN_FLOPS 1.2e12
#define LEAST_K 64
#define EVEN_K 64 /* what a shortened sum is a multiple of */

/* The problem itself. Where it is too large for an image: with nothing mapped behind its tensors.
 * The inputs of a product are integers then, whose sums no order of summation in fp32 rounds; an op
 * without such answers gets those that it was given once more. */
static enum gate_status check_own(struct round *r, const struct kg_problem *p,
                                  struct gate_error *err)
{
    if (probes_itself(r->job->tier, p)) {
        bench_prepare(&r->bench, p);
        r->thorough = true;
        TRY(check_all_probes(r, p, image_layout_of(TENSOR_DENSE), err));
        r->thorough = r->job->tier == VERIFY_NIGHTLY;
        TRY(check(r, p, sharpest(p), layout_in_turn(r, p, SHAPES_MAX), GUARD_NONE, err));
        return check_guarded(r, p, err);
    }
    verification_skip(r->bench.found, &r->bench.found->record.too_large);
    if (r->job->tier == VERIFY_SMALL)
        return GATE_OK;
    const bool exact = probe_applies(PROBE_INTEGERS, p);
    const struct trial_given given = {r->job->operands, r->job->reference};
    struct trial t = {.problem = *p,
                      .probe = exact ? PROBE_INTEGERS : PROBE_NORMAL,
                      .layout = image_layout_of(TENSOR_DENSE),
                      .guard = GUARD_BEHIND,
                      .seed = seed_at(r->job->seed, r->n_checks++),
                      .on_device = true,
                      .given = exact ? NULL : &given};
    const struct op_size *sum = exact ? op_axis(op_of(p), op_of(p)->cut) : NULL;
    while (exact && problem_flops(&t.problem) > OWN_FLOPS && op_size(&t.problem, sum) > 2 * LEAST_K)
        op_set_size(&t.problem, sum, op_size(&t.problem, sum) / 2 / EVEN_K * EVEN_K);
    if (!bench_kernel(&r->bench, &t.problem)) {
        verification_skip(r->bench.found, &r->bench.found->record.not_served);
        return GATE_OK;
    }
    bench_prepare(&r->bench, &t.problem);
    enum gate_status status = run_trial(r, &t, err);
    bench_release(&r->bench);
    return status;
}

/* ---- other shapes ---- */

static void add_value(struct round *r, const struct kg_problem *p, unsigned i, uint64_t seed)
{
    const struct kg_problem other = shapes_value(p, i, seed);
    const struct kg_kernel *kernel = bench_kernel(&r->bench, &other);
    if (!kernel || r->n >= SHAPES_MAX)
        return;
    r->served_elsewhere |= kernel == r->bench.arm->kernel;
    r->shape[r->n++] = other;
}

/* Other values of a given size, such as a head_dim, that the library serves: the first and the last
 * one in every run, and beside them one that is drawn, or all. In those that it does not serve
 * nothing is asked of it, as with dtypes. */
static void add_values(struct round *r, const struct kg_problem *p)
{
    unsigned served[SHAPES_VALUES_MAX], n = 0;
    const unsigned values = shapes_values(p);
    if (r->job->tier == VERIFY_SMALL)
        return;
    for (unsigned i = 0; i < values; i++) {
        const struct kg_problem other = shapes_value(p, i, r->job->seed);
        if (!shapes_have_values_of(p, &other) && bench_kernel(&r->bench, &other))
            served[n++] = i;
    }
    if (n > 0)
        add_value(r, p, served[0], VALUE_SEED);
    if (n > 1)
        add_value(r, p, served[n - 1], VALUE_SEED);
    if (n > 0 && r->job->tier == VERIFY_COMMIT)
        add_value(r, p, served[seed_at(r->job->seed, VALUE_SEED) % n], r->job->seed);
    for (unsigned i = 0; i < n && r->job->tier == VERIFY_NIGHTLY; i++)
        add_value(r, p, served[i], r->job->seed);
}

/* Those that are served, in the dtypes in which the library serves the problem itself. That there
 * is no kernel for the others is counted. All are prepared before the first launch. */
static void find_shapes(struct round *r, const struct kg_problem *p)
{
    struct verification *v = r->bench.found;
    struct kg_problem all[SHAPES_MAX];
    unsigned others = 0;
    for (unsigned i = 0; i < problem_dtypes(p); i++) {
        const struct kg_problem other = problem_in_dtype(p, i);
        if (i != problem_dtype_index(p) && bench_kernel(&r->bench, &other))
            others |= 1u << i;
    }
    const unsigned n = shapes_designed(p, others, r->job->seed, plans[r->job->tier], all);
    for (unsigned i = 0; i < n; i++) {
        const struct kg_kernel *kernel = bench_kernel(&r->bench, &all[i]);
        r->served_elsewhere |= kernel == r->bench.arm->kernel;
        if (kernel)
            r->shape[r->n++] = all[i];
        else
            verification_skip(v, &v->record.not_served);
    }
    add_values(r, p);
    const struct shapes_cover cover = shapes_cover(p, others, r->shape, r->n);
    document_count(&v->record.shapes, r->n);
    document_count(&v->record.covered.shapes.small, r->n);
    document_count(&v->record.pairs, cover.pairs);
    document_count(&v->record.pairs_of, cover.of);
    for (unsigned i = 0; i < r->n && v->ok; i++)
        bench_prepare(&r->bench, &r->shape[i]);
}

/* Each shape in turn by the sharpest probe, every third time dense with nothing mapped beside the
 * tensors; then as many as every third one by another probe. Other dtypes and given
 * sizes get random inputs too: what is not exact shows here alone, as a scale that is off, or a
 * dimension that is missing. */
static enum gate_status check_shapes(struct round *r, const struct kg_problem *p,
                                     struct gate_error *err)
{
    const bool small = r->job->tier == VERIFY_SMALL;
    for (unsigned i = 0; i < r->n; i++) {
        const struct kg_problem *each = &r->shape[i];
        if (i % 3 || small)
            TRY(check(r, each, sharpest(each), layout_in_turn(r, each, 2 * i), GUARD_NONE, err));
        else
            TRY(check_dense(r, each, sharpest(each), i % 2 ? GUARD_BEFORE : GUARD_BEHIND, err));
    }
    for (unsigned i = small ? 0 : r->n / 3; i-- > 0;) {
        const struct kg_problem *third = shapes_third(r->shape, r->n, i);
        TRY(check(r, third, probe_in_turn(third, i), layout_in_turn(r, third, 6 * i + 1),
                  GUARD_NONE, err));
    }
    for (unsigned i = 0; i < r->n; i++) {
        const struct kg_problem *other = &r->shape[i];
        if (problem_dtype_index(p) != problem_dtype_index(other) ||
            !shapes_have_values_of(p, other))
            TRY(check(r, other, probe_random(other), layout_in_turn(r, other, 2 * i + 1),
                      GUARD_NONE, err));
    }
    return GATE_OK;
}

/* Offsets that fit no int: of all tensors, of each by itself, and of the rows of heads. */
static enum gate_status check_far(struct round *r, const struct kg_problem *p,
                                  struct gate_error *err)
{
    struct kg_problem small = guard_far_problem(p);
    bool serves = op_fit(op_of(p), &small) && bench_kernel(&r->bench, &small);
    if (!serves)
        verification_skip(r->bench.found, &r->bench.found->record.not_served);
    if (r->job->tier == VERIFY_SMALL || !serves || !r->bench.found->ok)
        return GATE_OK;
    bench_prepare(&r->bench, &small);
    struct problem_tensor about[PROBLEM_MAX_TENSORS];
    const unsigned n = problem_tensors(&small, about);
    struct trial t = {.problem = small,
                      .probe = sharpest(&small),
                      .layout = image_layout_of(TENSOR_DENSE),
                      .guard = GUARD_FAR};
    for (unsigned i = 0; i <= n; i++) {
        if (i && about[i - 1].rank < 2)
            continue;
        t.far.which = i ? 1u << (i - 1) : 0;
        t.seed = seed_at(r->job->seed, r->n_checks++);
        TRY(run_trial(r, &t, err));
    }
    t.far = (struct far_choice){.rows = true};
    return about[0].rank < 4 ? GATE_OK : run_trial(r, &t, err);
}

/* In the place that each tensor has in all layouts of the problem, of the second one of its kind.
 */
static struct image_layout pinned_layout(enum tensor_layout kind)
{
    struct image_layout layout = image_layout_of(kind);
    memset(layout.shift, SHIFTS - 2, sizeof layout.shift);
    layout.pinned = true;
    return layout;
}

/* Of one problem in all layouts, and of those that are like it: memory that grew would move. */
#define PINNED_ROOM ((size_t)8 << 20)

#define LONGER 264 /* by so much most shapes are shorter */

static struct kg_problem longer(const struct kg_problem *p)
{
    const struct op_size *s = op_of(p)->sizes;
    struct kg_problem other = *p;
    while (s->kind != OP_LENGTH)
        s++;
    op_set_size(&other, s, op_size(p, s) + LONGER);
    return other;
}

/* What the largest problem of check_alike() costs: bytes that are filled, copied and compared, and
 * its reference on the host. */
static double alike_cost(const struct kg_problem *p)
{
    const struct image_layout layout = pinned_layout(TENSOR_DENSE);
    const struct kg_problem largest = longer(p);
    return (double)image_plan(&largest, &layout).size + problem_flops(&largest);
}

/* What a kernel remembers by sizes or by address: problems that differ from the last one in one
 * thing, a length, the mask, the parameter or the dtype, in the same place. */
static enum gate_status check_alike(struct round *r, const struct kg_problem *p,
                                    struct gate_error *err)
{
    struct kg_problem alike[3 + DTYPES] = {longer(p), *p, *p};
    alike[1].flags ^= op_of(p)->flag ? op_of(p)->flag->bit : 0;
    const struct op_param *param = op_of(p)->param;
    if (param) { /* another value, which shows */
        const double twice = 2 * op_param(p, param);
        op_set_param(&alike[2], param,
                     param->least > 0 || twice > param->most ? param->most : twice);
    }
    const unsigned n_alike = 3 + problem_dtypes(p);
    for (unsigned i = 0; i < problem_dtypes(p); i++)
        alike[3 + i] = problem_in_dtype(p, i);
    for (unsigned i = 0; i < n_alike; i++) {
        const struct kg_problem *other = &alike[i];
        if (!r->bench.found->ok || !memcmp(p, other, sizeof *p) || !op_fit(op_of(p), &alike[i]) ||
            !bench_kernel(&r->bench, other))
            continue;
        bench_prepare(&r->bench, other);
        TRY(check(r, other, probe_random(other), pinned_layout(TENSOR_DENSE), GUARD_NONE, err));
        TRY(try_waiting(r, err));
    }
    return GATE_OK;
}

/* The shape of least cost, but for those of hardly any work, whose inputs do not all count, or of
 * which a length or a count is less than that; NULL: there is none. */
static const struct kg_problem *least(const struct round *r, const struct kg_problem *p,
                                      double (*cost)(const struct kg_problem *), int64_t length,
                                      int64_t count)
{
    const struct op *op = op_of(p);
    const struct kg_problem *found = NULL;
    for (unsigned i = 0; i < r->n; i++) {
        const struct kg_problem *other = &r->shape[i];
        bool fits = problem_dtype_index(p) == problem_dtype_index(other) &&
                    (!op->inputs_count || op->inputs_count(other)) &&
                    problem_flops(other) >= SOAK_FLOPS && (!found || cost(other) < cost(found));
        for (const struct op_size *s = op->sizes; s < op->sizes + op->n_sizes; s++)
            fits = fits && (s->kind == OP_GIVEN ||
                            op_size(other, s) >= (s->kind == OP_LENGTH ? length : count));
        if (fits)
            found = other;
    }
    return found;
}

/* ---- as large as the problem, or larger ---- */

/* What a reference may take of a neighbour: a tier's and a kind of device's, by VERIFY_TIERS. On an
 * H200 8e10 are some milliseconds, on two cores of a CPU 1e8 are a twentieth of a second. */
static const double flops_max[2][VERIFY_TIERS] = {{1e8, 1e9, 0}, {8e10, 2e11, 8e10}};

/* Of giants in the commit tier: a host takes too long for any, and a GPU for all of them beside
 * each large problem. */
#define GIANTS_OF_SMALL 3
#define GIANTS_OF_LARGE 1

/* Layouts of the inputs, since rows that are padded keep the alignment that an odd length would
 * lose, and with it a kernel's path. In the commit tier neighbour n has that of number n; another
 * tensor than the first has the next one. */
static struct image_layout layout_of_large(const struct round *r, unsigned n)
{
    static const enum tensor_layout layouts[] = {TENSOR_PADDED, TENSOR_DENSE, TENSOR_ODD};
    struct image_layout layout = image_layout_of(TENSOR_PADDED);
    if (r->job->tier == VERIFY_SMALL)
        return image_layout_of(TENSOR_DENSE);
    for (unsigned i = 0; i < PROBLEM_MAX_TENSORS; i++)
        layout.of[i] = (unsigned char)layouts[(n + (i && n)) % 3];
    return layout;
}

/* On random inputs, in `n` layouts from number `first` on; counted where no kernel serves it. */
static enum gate_status check_large(struct round *r, const struct kg_problem *p, unsigned first,
                                    unsigned n, int64_t *counted, struct gate_error *err)
{
    const struct kg_kernel *kernel = bench_kernel(&r->bench, p);
    if (!probe_applies(PROBE_NORMAL, p) || !r->bench.found->ok)
        return GATE_OK;
    r->served_elsewhere |= kernel == r->bench.arm->kernel;
    if (kernel)
        bench_prepare(&r->bench, p);
    else
        verification_skip(r->bench.found, &r->bench.found->record.not_served);
    for (unsigned i = first; i < first + n && kernel; i++) {
        const struct trial t = {.problem = *p,
                                .probe = PROBE_NORMAL,
                                .layout = layout_of_large(r, i),
                                .seed = seed_at(r->job->seed, r->n_checks++),
                                .repeats = 1,
                                .on_device = true,
                                .launches_only = r->job->tier == VERIFY_SMALL,
                                .counted = counted};
        TRY(run_trial(r, &t, err));
    }
    return GATE_OK;
}

/* The first neighbour that the problem's own kernel takes, as small as it takes one: smaller shapes
 * may all be another's, and a sanitizer that looks for races takes tenths of a second for 1e9. */
static unsigned choose_one(const struct round *r, const struct kg_problem *p, double most,
                           struct kg_problem around[SHAPES_OWN_SIZE_MAX])
{
    for (double flops = 1e9; flops <= most; flops *= 4) {
        unsigned n = shapes_of_own_size(p, flops, around);
        for (unsigned i = 0; i < n; i++)
            if (bench_kernel(&r->bench, &around[i]) == r->bench.arm->kernel) {
                around[0] = around[i];
                return 1;
            }
    }
    return 0;
}

static enum gate_status check_large_ones(struct round *r, const struct kg_problem *p,
                                         struct gate_error *err)
{
    struct kg_problem around[SHAPES_OWN_SIZE_MAX], giant[SHAPES_GIANT_MAX], wide[SHAPES_WIDE_MAX];
    struct document_covered_shapes *counts = &r->bench.found->record.covered.shapes;
    const bool host =
        device_info(r->bench.device)->kg.kind == KG_DEVICE_HOST || op_of(p)->reference_apart;
    const bool nightly = r->job->tier == VERIFY_NIGHTLY;
    const double flops = flops_max[!host][r->job->tier];
    unsigned n = r->job->tier == VERIFY_SMALL ? choose_one(r, p, flops, around)
                                              : shapes_of_own_size(p, flops, around);
    n = r->job->tier == VERIFY_COMMIT && n > SHAPES_OWN_SIZE_COMMIT ? SHAPES_OWN_SIZE_COMMIT : n;
    const unsigned n_giant = shapes_giant(p, nightly && !host, giant);
    const unsigned giants = nightly                                ? n_giant
                            : r->job->tier == VERIFY_SMALL || host ? 0
                            : probes_itself(r->job->tier, p)       ? GIANTS_OF_SMALL
                                                                   : GIANTS_OF_LARGE;
    for (unsigned i = 0; i < n; i++)
        TRY(check_large(r, &around[i], nightly ? 0 : i, nightly ? 3 : 1, &counts->as_large, err));
    for (unsigned i = 0; i < n_giant && i < giants; i++)
        TRY(check_large(r, &giant[(r->job->seed + i) % n_giant], 1, 1, &counts->giant, err));
    const unsigned n_wide =
        shapes_wide(p, device_info(r->bench.device)->kg.sm_count, nightly || !host, wide);
    for (unsigned i = 0; i < n_wide && r->job->tier != VERIFY_SMALL; i++)
        TRY(check_large(r, &wide[i], 1, 1, &counts->as_large, err));
    bench_release(&r->bench);
    return GATE_OK;
}

static enum gate_status check_all(struct round *r, const struct kg_problem *p,
                                  struct gate_error *err)
{
    find_shapes(r, p);
    TRY(check_own(r, p, err));
    for (unsigned i = 0; i < r->n && r->job->tier == VERIFY_NIGHTLY; i++) {
        const struct kg_problem *shape = &r->shape[i];
        TRY(check_guarded(r, shape, err));
        for (unsigned n = 0; n < 2; n++)
            TRY(check_all_probes(r, shape, layout_in_turn(r, shape, 2 * i + n), err));
    }
    if (r->job->tier != VERIFY_NIGHTLY)
        TRY(check_shapes(r, p, err));
    TRY(try_waiting(r, err));
    if (r->bench.found->ok)
        TRY(check_large_ones(r, p, err));
    TRY(check_far(r, p, err));
    const struct kg_problem *small = least(r, p, problem_flops, 1, 1),
                            *rows = least(r, p, alike_cost, 2, 2);
    rows = rows ? rows : least(r, p, alike_cost, 2, 1);
    if (rows && r->job->tier != VERIFY_SMALL) {
        /* Strides that are remembered by address and sizes: the same problem in the same place,
         * otherwise laid out. */
        static const enum tensor_layout kinds[] = {TENSOR_PADDED, TENSOR_WIDE, TENSOR_HEADS,
                                                   TENSOR_DENSE};
        TRY(device_reserve(r->bench.device, &r->bench.slab, PINNED_ROOM, err));
        for (unsigned i = 0; i < 4; i++)
            TRY(check(r, rows, sharpest(rows), pinned_layout(kinds[i]), GUARD_NONE, err));
        TRY(try_waiting(r, err));
        TRY(check_alike(r, rows, err));
    }
    if (!small || !r->bench.found->ok)
        return GATE_OK;
    char id[PROBLEM_ID_MAX], said[PROBLEM_ID_MAX + 40];
    problem_id(small, id);
    snprintf(said, sizeof said, "many launches on changing inputs of %s", id);
    r->job->notice(r->job->context, r->bench.arm, said);
    return soak_small(&r->bench, small, &soaks[r->job->tier], r->job->seed, err);
}

enum gate_status tier_checks(const struct verify_job *job, struct gate_error *err)
{
    struct device *d = job->device;
    struct verification *v = &job->arms[0].verification;
    struct surroundings before;
    const unsigned more = device_info(d)->kg.kind == KG_DEVICE_HOST ? 0 : STATE_MORE_ON_GPU;
    TRY(surroundings_read(d, &before, err));
    struct round *r = xcalloc(1, sizeof *r);
    *r = (struct round){.job = job, .bench = {.device = d, .arm = job->arms, .found = v}};
    enum gate_status status = check_all(r, &job->c->problem, err);
    if (!status) /* no trial is left untried, whatever came last */
        status = try_waiting(r, err);
    trial_row_release(&r->row);
    v->record.own_shape_only = !status && v->ok && !r->served_elsewhere ? YES : UNKNOWN;
    if (!status)
        status = surroundings_compare(d, &before, more, v, err);
    bench_release(&r->bench);
    free(r);
    return status;
}
