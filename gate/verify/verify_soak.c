/* SPDX-License-Identifier: Apache-2.0 */
/* verify_soak.c: see trial.h. */
#include "gate/verify/trial.h"

#include "gate/base/clock.h"
#include "gate/base/seed.h"
#include "gate/launch/arm.h"
#include "gate/verify/verify_compare.h"
#include "gate/verify/verify_state.h"

#define FEW 16
#define FEWEST 6

static bool is_host(struct device *d)
{
    return device_info(d)->kg.kind == KG_DEVICE_HOST;
}

/* ---- a small problem ---- */

#define VARIANTS 4 /* of the inputs: each differs in one element from the one before */
#define COPIES 4   /* of each, with outputs of their own */
#define SLOTS (VARIANTS * COPIES)
#define STEADY_AFTER 2  /* rounds over all slots, which may still fill a pool */
#define ROUNDS_LEAST 70 /* so that one wrong launch in 1,000 is among them */

struct soak {
    struct bench *b;
    const struct soak_budget *budget;
    uint64_t seed;
    struct image image[VARIANTS];
    size_t stride; /* from one slot's image to the next */
    uint64_t wanted[VARIANTS];
    unsigned launches;
};

static struct kg_args args_of(const struct soak *x, unsigned slot)
{
    return bench_args(x->b, &x->image[slot % VARIANTS], (char *)x->b->slab.data + slot * x->stride);
}

static void describe_soak(struct soak *x, const char *text)
{
    char id[PROBLEM_ID_MAX];
    problem_id(&x->image[0].problem, id);
    verification_fault(x->b->found, "launch %u on changing inputs of %s: %.600s", x->launches, id,
                       text);
}

static enum gate_status launch_as_it_is(struct soak *x, const struct image *image,
                                        struct kg_args args, struct gate_error *err)
{
    TRY(operands_restore_args(x->b->device, &image->about[image->n_in], &args, err));
    problem_update_in_place(&image->about[image->n_in], &args);
    x->launches++;
    const enum kg_status returned = x->b->kernel->launch(&image->problem, &args);
    if (returned != KG_OK)
        describe_soak(x, library_status_name(returned));
    return GATE_OK;
}

static enum gate_status launch_slot(struct soak *x, unsigned slot, struct gate_error *err)
{
    const struct image *image = &x->image[slot % VARIANTS];
    const struct kg_args args = args_of(x, slot);
    for (uint32_t i = 0; i < image->n_out; i++)
        TRY(device_fill_bytes(x->b->device, args.out[i].data,
                              x->launches % 2 ? POISON_NAN : POISON_LARGE,
                              image->span[image->n_in + i], err));
    return launch_as_it_is(x, image, args, err);
}

/* One hash for each of so many slots. */
static enum gate_status hash_slots(struct soak *x, unsigned n, uint64_t *hashes,
                                   struct gate_error *err)
{
    struct device_span spans[SLOTS * KG_MAX_TENSORS];
    const struct image *image = &x->image[0];
    for (unsigned i = 0; i < n * image->n_out; i++)
        spans[i] = (struct device_span){args_of(x, i / image->n_out).out[i % image->n_out].data,
                                        image->span[image->n_in + i % image->n_out]};
    return operands_hash_spans(x->b->device, spans, n, image->n_out, hashes, err);
}

/* Are the outputs in a slot right? */
static enum gate_status compare_slot(struct soak *x, unsigned slot, struct gate_error *err)
{
    struct bench *b = x->b;
    const struct image *image = &x->image[slot % VARIANTS];
    struct kg_args args = args_of(x, slot);
    TRY(bench_reference(b, image, (char *)b->slab.data + slot * x->stride, err));
    for (uint32_t i = 0; i < image->n_out; i++) {
        struct look look;
        char text[500];
        const struct problem_tensor *about = &image->about[image->n_in + i];
        compare_start(&look, &image->problem, about, probe_random(&image->problem),
                      compare_usual_rms(&image->problem, about));
        TRY(compare_on_device(b->device, &look, &args.out[i], b->reference.out[i], err));
        if (!compare_is_right(&look, text, sizeof text))
            describe_soak(x, text);
    }
    return GATE_OK;
}

/* Each slot once, from anywhere and by a step that meets all of them. None begins before all are
 * enqueued: arguments that the next launch takes the place of show. */
static enum gate_status launch_round(struct soak *x, unsigned round, struct gate_error *err)
{
    uint64_t drawn = seed_at(x->seed, round), hashes[SLOTS];
    unsigned first = (unsigned)(drawn % SLOTS), step = (unsigned)(drawn / SLOTS % SLOTS) | 1;
    enum gate_status status = device_hold(x->b->device, err);
    for (unsigned i = 0; i < SLOTS && x->b->found->ok && !status; i++)
        status = launch_slot(x, (first + i * step) % SLOTS, err);
    device_release(x->b->device);
    TRY(status);
    TRY(hash_slots(x, SLOTS, hashes, err));
    for (unsigned slot = 0; slot < SLOTS && !kernel_may_differ(x->b->kernel); slot++)
        if (hashes[slot] != x->wanted[slot % VARIANTS])
            describe_soak(x, "one of the last 16 launches gave different bits than the first one "
                             "on the same inputs; the kernel does not declare itself "
                             "non-deterministic");
    return GATE_OK;
}

static enum gate_status make_variants(struct soak *x, const struct kg_problem *p,
                                      struct gate_error *err)
{
    struct bench *b = x->b;
    const struct image_layout dense = image_layout_of(TENSOR_DENSE);
    const enum probe probe = probe_random(p);
    for (unsigned v = 0; v < VARIANTS; v++) {
        struct image *image = &x->image[v];
        *image =
            v ? image_with_poison(&x->image[v - 1], POISON_NAN) : image_make(p, &dense, POISON_NAN);
        if (v)
            probe_change(probe, p, image->view, seed_at(x->seed, v));
        else
            probe_fill(probe, p, image->view, x->seed);
    }
    x->stride = (x->image[0].size + 255) / 256 * 256;
    TRY(device_reserve(b->device, &b->slab, SLOTS * x->stride, err));
    for (unsigned slot = 0; slot < SLOTS; slot++)
        TRY(device_upload(b->device, (char *)b->slab.data + slot * x->stride,
                          x->image[slot % VARIANTS].bytes, x->image[0].size, err));
    return GATE_OK;
}

/* Launches of which so many are under way at a time. */
#define UNDER_WAY 512

/* One of each variant, compared, and then those that nobody looks at. */
static enum gate_status launch_first(struct soak *x, struct gate_error *err)
{
    const struct kg_args args = args_of(x, 0);
    for (unsigned v = 0; v < VARIANTS && x->b->found->ok; v++) {
        TRY(launch_slot(x, v, err));
        if (x->b->found->ok)
            TRY(compare_slot(x, v, err));
    }
    TRY(hash_slots(x, VARIANTS, x->wanted, err));
    for (unsigned i = 0; i < x->budget->before && x->b->found->ok; i++) {
        TRY(launch_as_it_is(x, &x->image[0], args, err));
        if (i % UNDER_WAY == UNDER_WAY - 1)
            TRY(device_synchronize(x->b->device, err));
    }
    return GATE_OK;
}

/* Rounds that there is time for, and what they lose. */
static enum gate_status launch_rounds(struct soak *x, struct gate_error *err)
{
    struct device *d = x->b->device;
    struct holdings held[3] = {0};
    unsigned n = x->budget->launches / SLOTS, done = 0, middle = n;
    double begin_ns = clock_ns();
    for (; done < n && x->b->found->ok; done++) {
        if (done == STEADY_AFTER) { /* as many as there is time for */
            double each = (clock_ns() - begin_ns) / STEADY_AFTER;
            double fit = each > 0 ? x->budget->ns / each : n;
            n = fit < ROUNDS_LEAST ? ROUNDS_LEAST : fit < n ? (unsigned)fit : n;
            middle = STEADY_AFTER + (n - STEADY_AFTER) / 2;
            TRY(holdings_read(d, &held[0], err));
        }
        if (done == middle)
            TRY(holdings_read(d, &held[1], err));
        TRY(launch_round(x, done, err));
    }
    if (x->b->found->ok) {
        TRY(holdings_read(d, &held[2], err));
        holdings_compare(held, (n - STEADY_AFTER) * SLOTS, is_host(d), x->b->found);
    }
    for (unsigned v = 0; v < VARIANTS && kernel_may_differ(x->b->kernel) && x->b->found->ok; v++)
        TRY(compare_slot(x, v, err));
    return GATE_OK;
}

enum gate_status soak_small(struct bench *b, const struct kg_problem *p,
                            const struct soak_budget *budget, uint64_t seed, struct gate_error *err)
{
    struct soak x = {.b = b, .budget = budget, .seed = seed};
    enum gate_status status = GATE_OK;
    if (!budget->launches || !bench_choose(b, p, false, &status, err))
        return status;
    status = make_variants(&x, p, err);
    if (!status)
        status = launch_first(&x, err);
    if (!status && b->found->ok)
        status = launch_rounds(&x, err);
    b->found->record.checks++;
    document_count(&b->found->record.launches, x.launches);
    document_count(&b->found->record.covered.launches.in_a_row, x.launches);
    if (status == GATE_WRONG)
        describe_soak(&x, err->message);
    for (unsigned v = 0; v < VARIANTS; v++)
        image_release(&x.image[v]);
    return status;
}

/* ---- the problem itself ---- */

unsigned endure_launches(const struct endure_budget *budget, double ns)
{
    double least = budget->most ? (FEW * ns <= budget->few_ns ? FEW : FEWEST) : 0;
    double n = ns > 0 ? budget->ns / ns : budget->most;
    n = n < least ? least : n > budget->most ? budget->most : n;
    return (unsigned)n / 2 * 2;
}

static enum gate_status launch_restored(struct device *d, struct arm_launch *launch,
                                        struct gate_error *err)
{
    TRY(operands_restore(d, launch->sets, err));
    return device_launch_checked(d, arm_launch, launch, 0, err);
}

enum gate_status endure_own(struct device *d, struct arm_launch *launch,
                            const struct endure_budget *budget, struct verification *v,
                            struct gate_error *err)
{
    struct holdings held[3] = {0};
    uint64_t first = 0, last = 0;
    const double begin_ns = clock_ns();
    TRY(launch_restored(d, launch, err));
    const unsigned n = endure_launches(budget, clock_ns() - begin_ns);
    TRY(operands_hash_outputs(d, launch->sets, 1, &first, err));
    TRY(holdings_read(d, &held[0], err));
    for (unsigned i = 0; i < n; i++) {
        TRY(launch_restored(d, launch, err));
        if (i + 1 == n / 2)
            TRY(holdings_read(d, &held[1], err));
    }
    TRY(holdings_read(d, &held[2], err));
    TRY(operands_hash_outputs(d, launch->sets, 1, &last, err));
    v->record.checks++;
    document_count(&v->record.covered.launches.on_the_case, n + 1);
    holdings_compare(held, n, is_host(d), v);
    if (last != first && !kernel_may_differ(launch->kernel))
        verification_fault(v,
                           "after %u more launches on the same inputs the output has different "
                           "bits; the kernel does not declare itself non-deterministic",
                           n);
    return GATE_OK;
}
