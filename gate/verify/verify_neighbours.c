/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/verify/verify_neighbours.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gate/base/seed.h"
#include "gate/base/utf8.h"
#include "gate/verify/verify.h"
#include "gate/verify/verify_shapes.h"

/* What a reference may take of a neighbour: a tier's and a kind of device's, by VERIFY_TIERS. On an
 * H200 8e10 are some milliseconds, on two cores of a CPU 1e8 are a twentieth of a second. */
static const double flops_max[2][VERIFY_TIERS] = {{1e8, 1e9, 0}, {8e10, 2e11, 8e10}};

/* Of giants in the commit tier: a host takes too long for any, and a GPU for all of them beside
 * each large problem. */
#define GIANTS_OF_SMALL 3
#define GIANTS_OF_LARGE 1

static unsigned giants_of(const struct kg_problem *p, enum verify_tier tier, bool host)
{
    if (tier == VERIFY_NIGHTLY)
        return SHAPES_GIANT_MAX;
    if (tier == VERIFY_SMALL || host)
        return 0;
    return tier_probes_itself(tier, p) ? GIANTS_OF_SMALL : GIANTS_OF_LARGE;
}

/* Layouts of the inputs. In the commit tier neighbour i has that of number i; another tensor than
 * the first has the next one. */
static const enum tensor_layout layouts[] = {TENSOR_PADDED, TENSOR_DENSE, TENSOR_ODD};
#define LAYOUTS (sizeof layouts / sizeof layouts[0])

struct around {
    const struct bench *b;
    bool launches_only; /* a sanitizer watches them, and the reference would take it minutes */
    bool is_giant;      /* or about as large as the problem */
    uint64_t seed;
    struct device_memory slab, reference, workspace; /* they only grow */

    /* Of the neighbour in hand: */
    const struct kg_kernel *kernel;
    struct suite_case c;
    struct image_layout layout;
    struct image image;
    struct operands operands;
    struct reference wanted; /* in `reference` */
    size_t workspace_bytes;
    unsigned launches;
    enum kg_status returned;
    bool refused;              /* its layout, by the kernel */
    struct verification found; /* of it alone: its error is none of the problem's */
};

static void set_message(struct around *a, const char *text)
{
    a->found.ok = false;
    if (!a->found.message[0])
        utf8_print(a->found.message, sizeof a->found.message, "%.700s", text);
}

/* ---- memory ---- */

static enum gate_status reserve(struct around *a, struct device_memory *m, size_t bytes,
                                struct gate_error *err)
{
    if (m->bytes >= bytes)
        return GATE_OK;
    device_free(a->b->device, m);
    return device_alloc(a->b->device, bytes, m, err);
}

/* Outputs are dense where an image has them in the layout of all. */
static void plan(struct around *a)
{
    struct image *image = &a->image;
    image_plan(&a->c.problem, &a->layout, image);
    for (uint32_t i = image->n_in; i < image->n_in + image->n_out; i++) {
        image->view[i] = problem_dense(&a->c.problem, &image->about[i], NULL);
        image->span[i] = (size_t)problem_tensor_elements(&image->about[i]) *
                         problem_dtype_bytes(image->view[i].dtype);
    }
}

static void place(struct around *a)
{
    const struct image *image = &a->image;
    double *reference = a->reference.data;
    a->operands = (struct operands){.args = image_args(image, a->slab.data)};
    a->operands.args.stream = device_stream(a->b->device);
    memcpy(a->operands.in, image->about, image->n_in * sizeof *image->about);
    memcpy(a->operands.out, image->about + image->n_in, image->n_out * sizeof *image->about);
    for (uint32_t i = 0; i < image->n_out; i++) {
        size_t elements = (size_t)problem_tensor_elements(&a->operands.out[i]);
        a->wanted.out[i] = (struct device_memory){reference, elements * sizeof *reference};
        reference += elements;
    }
}

/* GATE_ENVIRONMENT: memory is short, which is no fault. */
static enum gate_status reserve_all(struct around *a, struct gate_error *err)
{
    size_t elements = 0;
    for (uint32_t i = a->image.n_in; i < a->image.n_in + a->image.n_out; i++)
        elements += (size_t)problem_tensor_elements(&a->image.about[i]);
    enum gate_status status = reserve(a, &a->slab, a->image.size, err);
    if (!status)
        status = reserve(a, &a->reference, elements * sizeof(double), err);
    if (a->workspace_bytes > (size_t)device_info(a->b->device)->memory_bytes)
        return GATE_ENVIRONMENT;
    size_t workspace = a->workspace_bytes + (size_t)2 * IMAGE_RED_ZONE;
    return status ? status : reserve(a, &a->workspace, workspace, err);
}

/* ---- contents ---- */

/* N(0,1), in the padding too: what is read there and used shows. */
static enum gate_status fill(struct around *a, struct gate_error *err)
{
    struct device *d = a->b->device;
    enum gate_status status = device_fill_bytes(d, a->slab.data, POISON_NAN, a->image.size, err);
    for (uint32_t i = 0; i < a->image.n_in && !status; i++) {
        const struct kg_tensor *t = &a->operands.args.in[i];
        int64_t elements = (int64_t)(a->image.span[i] / problem_dtype_bytes(t->dtype));
        status = device_fill_normal(d, t->data, t->dtype, elements, seed_at(a->seed, i), err);
    }
    return status ? status
                  : device_fill_bytes(d, a->workspace.data, POISON_NAN, a->workspace.bytes, err);
}

/* Is the zone of `bytes` at `at` as it was filled? */
static enum gate_status check_zone(struct around *a, const char *at, const char *where,
                                   const char *what, struct gate_error *err)
{
    unsigned char zone[IMAGE_RED_ZONE / 2];
    char text[200];
    size_t changed = 0;
    enum gate_status status = device_download(a->b->device, zone, at, sizeof zone, err);
    for (size_t i = 0; i < sizeof zone && !status; i++)
        changed += zone[i] != POISON_NAN;
    if (!changed)
        return status;
    snprintf(text, sizeof text, "wrote where it must not: %zu bytes of the red zone %s %s", changed,
             where, what);
    set_message(a, text);
    return status;
}

/* Before and behind what may be written. */
static enum gate_status check_zones_of(struct around *a, const void *begin, size_t bytes,
                                       const char *what, struct gate_error *err)
{
    const char *at = begin;
    enum gate_status status = check_zone(a, at - IMAGE_RED_ZONE / 2, "before", what, err);
    return status ? status : check_zone(a, at + bytes, "behind", what, err);
}

static enum gate_status check_zones(struct around *a, struct gate_error *err)
{
    const struct image *image = &a->image;
    const char *workspace = a->workspace.data;
    enum gate_status status =
        check_zones_of(a, workspace + IMAGE_RED_ZONE, a->workspace_bytes, "the workspace", err);
    for (uint32_t i = 0; i < image->n_out && !status; i++) {
        char what[64];
        snprintf(what, sizeof what, "tensor '%s'", a->operands.out[i].name);
        status = check_zones_of(a, a->operands.args.out[i].data, image->span[image->n_in + i], what,
                                err);
    }
    return status;
}

/* ---- launching and looking ---- */

static enum kg_status launch(void *context, unsigned index, void *stream)
{
    struct around *a = context;
    struct kg_args args = a->operands.args;
    (void)index;
    args.stream = stream;
    args.workspace_bytes = a->workspace_bytes;
    args.workspace = a->workspace_bytes ? (char *)a->workspace.data + IMAGE_RED_ZONE : NULL;
    a->returned = a->kernel->launch(&a->c.problem, &args);
    return a->returned;
}

static enum gate_status launch_once(struct around *a, struct gate_error *err)
{
    a->returned = KG_OK;
    a->launches++;
    enum gate_status status = device_launch_checked(a->b->device, launch, a, 0, err);
    a->refused = status == GATE_WRONG && a->returned == KG_UNSUPPORTED &&
                 !image_layout_is_dense(&a->c.problem, &a->layout);
    if (a->refused)
        return GATE_OK;
    if (status == GATE_WRONG)
        set_message(a, err->message);
    return status;
}

/* The outputs of another launch, on what the first one left behind, are the same bits. */
static enum gate_status repeat(struct around *a, struct gate_error *err)
{
    struct device *d = a->b->device;
    uint64_t first = 0, again = 0;
    enum gate_status status = operands_hash_outputs(d, &a->operands, 1, &first, err);
    if (!status)
        status = launch_once(a, err);
    if (!status)
        status = operands_hash_outputs(d, &a->operands, 1, &again, err);
    if (!status && again != first)
        set_message(
            a,
            "a second launch on the same inputs gave different bits; the kernel does not declare "
            "itself non-deterministic");
    return status;
}

static enum gate_status hash_inputs(struct around *a, uint64_t *hash, struct gate_error *err)
{
    struct device_span spans[KG_MAX_TENSORS] = {0};
    uint64_t own[KG_MAX_TENSORS] = {0};
    for (uint32_t i = 0; i < a->image.n_in; i++)
        spans[i] = (struct device_span){a->operands.args.in[i].data, a->image.span[i]};
    enum gate_status status = device_hash(a->b->device, spans, a->image.n_in, own, err);
    *hash = 0;
    for (uint32_t i = 0; i < a->image.n_in; i++)
        *hash = seed_at(*hash, own[i]);
    return status;
}

static enum gate_status launch_and_look(struct around *a, struct gate_error *err)
{
    struct device *d = a->b->device;
    uint64_t before = 0, after = 0;
    enum gate_status status = hash_inputs(a, &before, err);
    if (!status)
        status = launch_once(a, err);
    if (status || a->refused)
        return status;
    if (!a->launches_only)
        status = verify_outputs(d, &a->c, &a->operands, &a->wanted, true, &a->found, err);
    if (!status && a->found.ok && !(a->kernel->flags & KG_KERNEL_NONDETERMINISTIC))
        status = repeat(a, err);
    if (!status)
        status = check_zones(a, err);
    if (!status)
        status = hash_inputs(a, &after, err);
    if (!status && before != after)
        set_message(a,
                    "wrote where it must not: an input, or the padding between its rows, changed");
    return status;
}

/* ---- one neighbour ---- */

static bool prepare(struct around *a)
{
    const struct kg_problem *p = &a->c.problem;
    const struct kg_device *where = &device_info(a->b->device)->kg;
    enum kg_status prepared = a->kernel->prepare ? a->kernel->prepare(p, where) : KG_OK;
    char text[200];
    a->workspace_bytes =
        a->kernel->workspace_bytes ? (size_t)a->kernel->workspace_bytes(p, where) : 0;
    if (prepared == KG_OK)
        return true;
    snprintf(text, sizeof text, "prepare() of kernel '%s' returned '%s'", a->kernel->name,
             library_status_name(prepared));
    set_message(a, text);
    return false;
}

/* Puts down to the problem's arm what was found of the neighbour. */
static void report(const struct around *a)
{
    struct verification *v = a->b->found;
    char id[PROBLEM_ID_MAX], layout[LAYOUT_TEXT_MAX];
    v->checks++;
    v->coverage.values[PROBE_NORMAL]++;
    *(a->is_giant ? &v->coverage.giant : &v->coverage.as_large) += 1;
    image_layout_count(&a->c.problem, &a->layout, &v->coverage);
    v->coverage.launches += a->launches;
    if (a->found.ok || !v->ok)
        return;
    v->ok = false;
    problem_id(&a->c.problem, id);
    image_layout_text(&a->c.problem, &a->layout, layout);
    utf8_print(v->message, sizeof v->message, "probe '%s' on %s (%s, launch %u): %.400s",
               probe_name(PROBE_NORMAL), id, layout, a->launches, a->found.message);
}

static enum gate_status check(struct around *a, struct gate_error *err)
{
    if (!prepare(a)) {
        report(a);
        return GATE_OK;
    }
    plan(a);
    enum gate_status status = reserve_all(a, err);
    if (status == GATE_ENVIRONMENT)
        a->b->found->left_out.too_large++;
    if (status)
        return status == GATE_ENVIRONMENT ? GATE_OK : status;
    place(a);
    status = fill(a, err);
    if (!status && !a->launches_only)
        status = reference_compute(a->b->device, &a->c.problem, &a->operands, &a->wanted, err);
    if (!status)
        status = launch_and_look(a, err);
    if (a->refused)
        a->b->found->left_out.refused++;
    else
        report(a);
    return status;
}

/* Where the kernel refuses a layout, the dense one stands in for it. */
static enum gate_status check_in(struct around *a, const struct kg_problem *p,
                                 struct image_layout layout, struct gate_error *err)
{
    a->kernel = bench_kernel(a->b, p);
    a->c = (struct suite_case){.problem = *p};
    a->layout = layout;
    a->found = verification_start(p);
    a->launches = 0;
    a->refused = false;
    enum gate_status status = check(a, err);
    if (status || !a->refused)
        return status;
    a->refused = false;
    a->layout = image_layout_of(TENSOR_DENSE);
    return check(a, err);
}

static struct image_layout layout_of(unsigned n)
{
    struct image_layout layout = image_layout_of(TENSOR_PADDED);
    for (unsigned i = 0; i < PROBLEM_MAX_TENSORS; i++)
        layout.of[i] = (unsigned char)layouts[(n + (i && n)) % LAYOUTS];
    return layout;
}

static enum gate_status check_neighbour(struct around *a, const struct kg_problem *p, unsigned n,
                                        enum verify_tier tier, struct gate_error *err)
{
    enum gate_status status = GATE_OK;
    if (tier == VERIFY_SMALL)
        return check_in(a, p, image_layout_of(TENSOR_DENSE), err);
    if (tier == VERIFY_COMMIT)
        return check_in(a, p, layout_of(n), err);
    for (unsigned i = 0; i < LAYOUTS && a->b->found->ok && !status; i++)
        status = check_in(a, p, layout_of(i), err);
    return status;
}

static void describe_check(const struct bench *b, const struct kg_problem *p, tier_notice_fn notice,
                           void *context)
{
    char id[PROBLEM_ID_MAX], said[PROBLEM_ID_MAX + 32];
    problem_id(p, id);
    snprintf(said, sizeof said, "probe '%s' on %s", probe_name(PROBE_NORMAL), id);
    notice(context, b->arm, said);
}

/* The first that the problem's own kernel takes, as small as it takes one: smaller shapes may all
 * be another's, and a sanitizer that looks for races takes tenths of a second for 1e9. */
static unsigned choose_one(const struct bench *b, const struct kg_problem *p, double most,
                           struct kg_problem around[SHAPES_OWN_SIZE_MAX])
{
    for (double flops = 1e9; flops <= most; flops *= 4) {
        unsigned n = shapes_of_own_size(p, flops, around);
        for (unsigned i = 0; i < n; i++)
            if (bench_kernel(b, &around[i]) == b->arm->kernel) {
                around[0] = around[i];
                return 1;
            }
    }
    return 0;
}

/* The neighbours that a tier looks at. */
static unsigned choose(const struct bench *b, const struct kg_problem *p, enum verify_tier tier,
                       struct kg_problem around[SHAPES_OWN_SIZE_MAX])
{
    bool host = device_info(b->device)->kg.kind == KG_DEVICE_HOST;
    double flops = flops_max[!host][tier];
    if (tier == VERIFY_SMALL)
        return choose_one(b, p, flops, around);
    unsigned n = shapes_of_own_size(p, flops, around);
    return tier == VERIFY_COMMIT && n > SHAPES_OWN_SIZE_COMMIT ? SHAPES_OWN_SIZE_COMMIT : n;
}

/* One that is served, or counted as not. */
static enum gate_status check_if_served(struct around *a, const struct kg_problem *p, unsigned n,
                                        enum verify_tier tier, tier_notice_fn notice, void *context,
                                        bool *served, struct gate_error *err)
{
    const struct bench *b = a->b;
    if (!probe_applies(PROBE_NORMAL, p) || !b->found->ok)
        return GATE_OK;
    const struct kg_kernel *kernel = bench_kernel(b, p);
    b->found->left_out.not_served += !kernel;
    *served |= kernel == b->arm->kernel;
    if (!kernel)
        return GATE_OK;
    describe_check(b, p, notice, context);
    return check_neighbour(a, p, n, tier, err);
}

enum gate_status around_checks(const struct bench *b, const struct kg_problem *p,
                               enum verify_tier tier, uint64_t seed, tier_notice_fn notice,
                               void *context, bool *served, struct gate_error *err)
{
    struct around a = {.b = b, .seed = seed, .launches_only = tier == VERIFY_SMALL};
    struct kg_problem around[SHAPES_OWN_SIZE_MAX], giant[SHAPES_GIANT_MAX];
    bool host = device_info(b->device)->kg.kind == KG_DEVICE_HOST;
    unsigned n = choose(b, p, tier, around);
    unsigned n_giant = shapes_giant(p, tier == VERIFY_NIGHTLY && !host, giant);
    enum gate_status status = GATE_OK;
    for (unsigned i = 0; i < n && !status; i++)
        status = check_if_served(&a, &around[i], i, tier, notice, context, served, err);
    a.is_giant = true;
    for (unsigned i = 0; i < n_giant && i < giants_of(p, tier, host) && !status; i++)
        status = check_if_served(&a, &giant[(seed + i) % n_giant], 1, VERIFY_COMMIT, notice,
                                 context, served, err);
    device_free(b->device, &a.slab);
    device_free(b->device, &a.reference);
    device_free(b->device, &a.workspace);
    return status;
}
