/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/launch/plan.h"
#include "gate/verify/trial.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/seed.h"
#include "gate/base/utf8.h"
#include "gate/verify/verify_compare.h"

#define WORKSPACE_MAX ((uint64_t)1 << 30)
#define LEAST_SHARE 0.5 /* of what outputs come to as a rule; a single sum may nearly cancel */

/* A trial in hand. */
struct work {
    struct bench *b;
    const struct trial *t;
    struct image image;
    enum guard_side guard; /* that the device gave */
    unsigned char poison;
    unsigned launches;
    enum kg_status returned;
    double *reference[KG_MAX_TENSORS]; /* of each output, on the device */
    uint64_t hash;   /* after the first launch, of all that the device held, or of the outputs */
    uint64_t inputs; /* on the device: their hash before it */
    /* On the host: */
    double *wanted[KG_MAX_TENSORS], rms[KG_MAX_TENSORS]; /* the reference, and what it comes to */
    unsigned char *after;                                /* what the device holds after a launch */
    unsigned char *first[KG_MAX_TENSORS];                /* outputs of the first launch, dense */
    unsigned char *scratch[KG_MAX_TENSORS];              /* of the one in hand */
};

const struct kg_kernel *bench_kernel(const struct bench *b, const struct kg_problem *p)
{
    const struct kg_device *where = &device_info(b->device)->kg;
    if (!op_allows(p))
        return NULL;
    if (b->arm->kernel->supports(p, where))
        return b->arm->kernel;
    return library_choose(b->arm->library, p, where, NULL);
}

enum gate_status bench_reserve(struct bench *b, struct device_memory *m, size_t bytes,
                               struct gate_error *err)
{
    if (m->bytes >= bytes)
        return GATE_OK;
    device_free(b->device, m);
    return device_alloc(b->device, bytes, m, err);
}

void bench_release(struct bench *b)
{
    device_free(b->device, &b->slab);
    device_free(b->device, &b->reference);
    device_free(b->device, &b->workspace);
    guard_release(b->device, &b->guard);
    far_release(b->device, &b->far);
}

enum gate_status bench_reference(struct bench *b, const struct kg_problem *p,
                                 const struct problem_tensor *outputs, const struct kg_args *args,
                                 double *out[KG_MAX_TENSORS], struct gate_error *err)
{
    size_t total = 0;
    for (uint32_t i = 0; i < args->n_out; i++)
        total += (size_t)problem_tensor_elements(&outputs[i]);
    enum gate_status status = bench_reserve(b, &b->reference, total * sizeof(double), err);
    double *at = b->reference.data;
    for (uint32_t i = 0; i < args->n_out && !status; i++) {
        out[i] = at;
        at += problem_tensor_elements(&outputs[i]);
    }
    return status ? status : reference_on(b->device, p, args->in, out, err);
}

/* ---- what is wrong ---- */

void trial_text(const struct trial *t, enum guard_side guard, char text[TRIAL_TEXT_MAX])
{
    char id[PROBLEM_ID_MAX], layout[LAYOUT_TEXT_MAX];
    problem_id(&t->problem, id);
    image_layout_text(&t->problem, &t->layout, layout);
    snprintf(text, TRIAL_TEXT_MAX, "probe '%s' on %s (%s%s", probe_name(t->probe), id, layout,
             guard_side_name(guard));
}

/* The seed is that of the trial, and draws the same inputs again. */
__attribute__((format(printf, 2, 3))) static void say(const struct work *w, const char *format, ...)
{
    struct verification *v = w->b->found;
    char trial[TRIAL_TEXT_MAX], what[600];
    v->ok = false;
    if (v->message[0])
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    trial_text(w->t, w->guard, trial);
    snprintf(v->message, sizeof v->message, "%s, launch %u): %.*s", trial, w->launches,
             (int)(sizeof v->message - sizeof trial - 40), what);
}

/* ---- launching ---- */

static bool may_differ(const struct work *w)
{
    return w->b->kernel->flags & KG_KERNEL_NONDETERMINISTIC;
}

static bool is_dense(const struct trial *t)
{
    return image_layout_is_dense(&t->problem, &t->layout);
}

static enum kg_status launch(void *context, unsigned index, void *stream)
{
    struct work *w = context;
    struct bench *b = w->b;
    struct kg_args args = image_args(&w->image, b->slab.data);
    (void)index;
    args.stream = stream;
    args.plan = plan_of(b->kernel, &w->t->problem);
    args.workspace_bytes = b->workspace_bytes;
    args.workspace = b->workspace_bytes ? (char *)b->workspace.data + IMAGE_RED_ZONE : NULL;
    if (w->guard == GUARD_FAR)
        far_place(&b->far, &w->image, &args);
    else if (w->guard)
        guard_place(&b->guard, w->guard, &w->image, &args);
    w->returned = b->kernel->launch(&w->t->problem, &args);
    return w->returned;
}

/* A large problem is recorded before it is launched: a kernel that allocates or waits for the
 * device in its first launch, and never again, shows. */
static enum gate_status launch_here(struct work *w, struct gate_error *err)
{
    struct device *d = w->b->device;
    struct device_replay *recording = NULL;
    struct gate_error of_recording = {0};
    enum gate_status recorded = GATE_OK;
    TRY(device_poison_shared(d, err));
    if (w->t->on_device && w->launches == 1)
        recorded = device_replay_record(d, launch, w, 1, false, &recording, &of_recording);
    device_replay_free(d, recording);
    /* A launch that fails or hangs by itself says more than that it cannot be recorded. */
    if (!recorded || recorded == GATE_WRONG)
        TRY(device_launch_checked(d, launch, w, 0, err));
    if (recorded)
        *err = of_recording;
    return recorded;
}

/* On guarded memory the contents come from the slab and go there again. */
static enum gate_status launch_somewhere(struct work *w, struct gate_error *err)
{
    struct bench *b = w->b;
    void *slab = b->slab.data;
    enum gate_status status = GATE_OK;
    if (w->guard == GUARD_FAR)
        status = far_enter(b->device, &b->far, &w->image, slab, err);
    else if (w->guard)
        status = guard_enter(b->device, &b->guard, w->guard, &w->image, slab, w->poison, err);
    if (!status)
        status = launch_here(w, err);
    if (!status && w->guard == GUARD_FAR)
        return far_leave(b->device, &b->far, &w->image, slab, err);
    return status || !w->guard ? status
                               : guard_leave(b->device, &b->guard, w->guard, &w->image, slab, err);
}

static enum gate_status launch_once(struct work *w, bool *refused, struct gate_error *err)
{
    w->returned = KG_OK;
    w->launches++;
    enum gate_status status = launch_somewhere(w, err);
    bool dense = is_dense(w->t) && w->guard != GUARD_FAR;
    *refused = status == GATE_WRONG && w->returned == KG_UNSUPPORTED && !dense;
    if (*refused)
        return GATE_OK;
    if (status == GATE_WRONG)
        say(w, "%.500s", err->message);
    return status;
}

/* ---- what a launch left behind ---- */

static enum gate_status check_zone(struct work *w, const void *at, const char *where,
                                   const char *what, struct gate_error *err)
{
    unsigned char zone[IMAGE_RED_ZONE / 2];
    size_t changed = 0;
    enum gate_status status = device_download(w->b->device, zone, at, sizeof zone, err);
    for (size_t i = 0; i < sizeof zone && !status; i++)
        changed += zone[i] != w->poison;
    if (changed)
        say(w, "wrote where it must not: %zu bytes of the red zone %s %s", changed, where, what);
    return status;
}

/* Before and behind what may be written. */
static enum gate_status check_zones_of(struct work *w, const void *begin, size_t bytes,
                                       const char *what, struct gate_error *err)
{
    const char *at = begin;
    enum gate_status status = check_zone(w, at - IMAGE_RED_ZONE / 2, "before", what, err);
    return status ? status : check_zone(w, at + bytes, "behind", what, err);
}

static enum gate_status check_workspace(struct work *w, struct gate_error *err)
{
    const char *workspace = w->b->workspace.data;
    if (!w->b->workspace_bytes)
        return GATE_OK;
    return check_zones_of(w, workspace + IMAGE_RED_ZONE, (size_t)w->b->workspace_bytes,
                          "the workspace", err);
}

static void start_look(const struct work *w, uint32_t i, double rms, struct look *look)
{
    const struct kg_problem *p = &w->t->problem;
    compare_start(look, p, &w->image.about[w->image.n_in + i], probe_is_exact(w->t->probe), rms);
    look->limit += probe_slack(w->t->probe, p);
    look->unbiased = w->t->probe == PROBE_NORMAL && !w->t->given && !op_of(p)->rounds_inside;
}

static void end_look(struct work *w, const struct look *look)
{
    char text[500];
    if (!compare_is_right(look, text, sizeof text))
        say(w, "%s", text);
}

static size_t dense_bytes(const struct image *image, uint32_t out)
{
    return problem_tensor_bytes(&image->about[image->n_in + out]);
}

static enum gate_status compare_on_the_host(struct work *w, struct gate_error *err)
{
    const struct image *image = &w->image;
    enum gate_status status = GATE_OK;
    for (uint32_t i = 0; i < image->n_out && !status; i++) {
        struct look look;
        start_look(w, i, w->rms[i], &look);
        const struct kg_tensor got = problem_dense(&image->about[image->n_in + i], w->scratch[i]);
        status = compare_on_host(&look, &got, w->wanted[i], err);
        if (!status)
            end_look(w, &look);
    }
    return status;
}

/* The outputs must be those of the first launch. */
static void look_for_change(struct work *w)
{
    for (uint32_t i = 0; i < w->image.n_out; i++) {
        size_t bytes = dense_bytes(&w->image, i),
               each = problem_dtype_bytes(w->image.view[w->image.n_in + i].dtype);
        if (!memcmp(w->first[i], w->scratch[i], bytes))
            continue;
        size_t at = 0, changed = 0;
        for (size_t j = bytes / each; j-- > 0;)
            if (memcmp(w->first[i] + j * each, w->scratch[i] + j * each, each) != 0) {
                at = j;
                changed++;
            }
        const struct problem_tensor *about = &w->image.about[w->image.n_in + i];
        char where[96];
        compare_index(about, (int64_t)at, where, sizeof where);
        say(w,
            "output '%s': %zu elements differ from those of the first launch on the same inputs, "
            "the "
            "first is [%s]; the kernel does not declare itself non-deterministic",
            about->name, changed, where);
    }
}

/* Downloads everything and looks; `first`: nothing to compare bits with yet. Where the device finds
 * all bytes to be those that the first look saw, the copy is spared. */
static enum gate_status look_on_the_host(struct work *w, bool first, struct gate_error *err)
{
    char text[300];
    const struct device_span slab = {w->b->slab.data, w->image.size};
    uint64_t hash = 0;
    enum gate_status status = device_hash(w->b->device, &slab, 1, &hash, err);
    if (status || (!first && !may_differ(w) && hash == w->hash))
        return status;
    w->hash = first ? hash : w->hash;
    status = device_download(w->b->device, w->after, slab.data, w->image.size, err);
    if (status)
        return status;
    if (!image_is_intact(&w->image, w->after, text, sizeof text))
        say(w, "%s", text);
    for (uint32_t i = 0; i < w->image.n_out; i++)
        image_gather(&w->image, w->after, w->image.n_in + i, first ? w->first[i] : w->scratch[i]);
    if (first)
        for (uint32_t i = 0; i < w->image.n_out; i++)
            memcpy(w->scratch[i], w->first[i], dense_bytes(&w->image, i));
    if (first || may_differ(w))
        return compare_on_the_host(w, err);
    look_for_change(w);
    return GATE_OK;
}

/* A hash of the inputs with the padding between their rows, or of the outputs. */
static enum gate_status hash_of(struct work *w, bool outputs, uint64_t *hash,
                                struct gate_error *err)
{
    const struct image *image = &w->image;
    const unsigned begin = outputs ? image->n_in : 0, n = outputs ? image->n_out : image->n_in;
    struct device_span spans[KG_MAX_TENSORS] = {0};
    uint64_t own[KG_MAX_TENSORS] = {0};
    for (unsigned i = 0; i < n; i++)
        spans[i] = (struct device_span){(char *)w->b->slab.data + image->offset[begin + i],
                                        image->span[begin + i]};
    enum gate_status status = device_hash(w->b->device, spans, n, own, err);
    *hash = 0;
    for (unsigned i = 0; i < n; i++)
        *hash = seed_at(*hash, own[i]);
    return status;
}

static enum gate_status compare_on_the_device(struct work *w, struct gate_error *err)
{
    const struct kg_args args = image_args(&w->image, w->b->slab.data);
    enum gate_status status = GATE_OK;
    for (uint32_t i = 0; i < args.n_out && !status; i++) {
        const struct problem_tensor *about = &w->image.about[args.n_in + i];
        struct look look;
        start_look(w, i, LEAST_SHARE * compare_usual_rms(&w->t->problem, about), &look);
        status = compare_on_device(w->b->device, &look, &args.out[i], w->reference[i], err);
        if (!status)
            end_look(w, &look);
    }
    return status;
}

static enum gate_status look_on_the_device(struct work *w, bool first, struct gate_error *err)
{
    uint64_t inputs = 0, outputs = 0;
    enum gate_status status = hash_of(w, true, &outputs, err);
    if (!status)
        status = hash_of(w, false, &inputs, err);
    for (uint32_t i = 0; i < w->image.n_out && !status; i++) {
        char what[64];
        const unsigned at = w->image.n_in + i;
        snprintf(what, sizeof what, "tensor '%s'", w->image.about[at].name);
        status = check_zones_of(w, (char *)w->b->slab.data + w->image.offset[at], w->image.span[at],
                                what, err);
    }
    if (!status && inputs != w->inputs)
        say(w, "wrote where it must not: an input, or the padding between its rows, changed");
    if (!status && (first || may_differ(w)) && !w->t->launches_only)
        status = compare_on_the_device(w, err);
    else if (!status && !first && !may_differ(w) && outputs != w->hash)
        say(w, "a second launch on the same inputs gave different bits; the kernel does not "
               "declare itself non-deterministic");
    w->hash = outputs;
    return status;
}

static enum gate_status look(struct work *w, bool first, struct gate_error *err)
{
    enum gate_status status = check_workspace(w, err);
    if (status)
        return status;
    return w->t->on_device ? look_on_the_device(w, first, err) : look_on_the_host(w, first, err);
}

/* ---- contents ---- */

static enum gate_status poison_workspace(struct work *w, struct gate_error *err)
{
    struct bench *b = w->b;
    if (!b->workspace_bytes)
        return GATE_OK;
    return device_fill_bytes(b->device, b->workspace.data, w->poison,
                             (size_t)b->workspace_bytes + 2 * IMAGE_RED_ZONE, err);
}

static double rms_of(const double *x, int64_t n)
{
    double sum = 0;
    int64_t finite = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(x[i])) {
            sum += x[i] * x[i];
            finite++;
        }
    return finite ? sqrt(sum / (double)finite) : 0;
}

static enum gate_status make_reference(struct work *w, struct gate_error *err)
{
    struct bench *b = w->b;
    const struct kg_args args = image_args(&w->image, b->slab.data);
    const struct problem_tensor *outputs = &w->image.about[args.n_in];
    for (uint32_t i = 0; i < args.n_out && w->t->given; i++)
        w->reference[i] = w->t->given->reference->out[i].data;
    if (w->t->given || w->t->launches_only)
        return GATE_OK;
    enum gate_status status = bench_reference(b, &w->t->problem, outputs, &args, w->reference, err);
    for (uint32_t i = 0; i < args.n_out && !w->t->on_device && !status; i++) {
        const int64_t n = problem_tensor_elements(&outputs[i]);
        status = device_download(b->device, w->wanted[i], w->reference[i],
                                 (size_t)n * sizeof(double), err);
        w->rms[i] = status ? 0 : rms_of(w->wanted[i], n);
    }
    return status;
}

static enum gate_status fill_from_the_host(struct work *w, struct gate_error *err)
{
    enum gate_status status =
        device_upload(w->b->device, w->b->slab.data, w->image.bytes, w->image.size, err);
    if (!status)
        status = poison_workspace(w, err);
    return status ? status : make_reference(w, err);
}

/* In the padding too: what is read there and used shows. */
static enum gate_status fill_input(struct work *w, const struct kg_tensor *t, uint32_t i,
                                   struct gate_error *err)
{
    struct device *d = w->b->device;
    const struct trial_given *given = w->t->given;
    const int64_t elements = (int64_t)(w->image.span[i] / problem_dtype_bytes(t->dtype));
    const uint64_t seed = seed_at(w->t->seed, i);
    if (given)
        return device_copy(d, t->data, given->inputs->args.in[i].data, w->image.span[i], err);
    if (w->t->probe == PROBE_INTEGERS)
        return device_fill_integers(d, t->data, t->dtype, elements, probe_integers(&w->t->problem),
                                    seed, err);
    return operands_fill_input(d, &w->t->problem, i, t->data, elements, seed, err);
}

static enum gate_status fill_on_the_device(struct work *w, struct gate_error *err)
{
    const struct kg_args args = image_args(&w->image, w->b->slab.data);
    enum gate_status status =
        device_fill_bytes(w->b->device, w->b->slab.data, w->poison, w->image.size, err);
    for (uint32_t i = 0; i < args.n_in && !status; i++)
        status = fill_input(w, &args.in[i], i, err);
    if (!status)
        status = poison_workspace(w, err);
    if (!status)
        status = make_reference(w, err);
    return status ? status : hash_of(w, false, &w->inputs, err);
}

/* The same inputs but for one element, among other bytes. */
static enum gate_status change(struct work *w, struct gate_error *err)
{
    struct image other;
    w->poison = POISON_LARGE;
    enum gate_status status = image_with_poison(&w->image, w->poison, &other, err);
    image_release(&w->image);
    w->image = other;
    if (status)
        return status;
    probe_change(w->t->probe, &other.problem, other.view, other.n_in, ~w->t->seed);
    return fill_from_the_host(w, err);
}

/* ---- setting up ---- */

static enum gate_status make_host_memory(struct work *w, struct gate_error *err)
{
    w->after = malloc(w->image.size);
    bool ok = w->after != NULL;
    for (uint32_t i = 0; i < w->image.n_out; i++) {
        size_t elements = (size_t)problem_tensor_elements(&w->image.about[w->image.n_in + i]);
        w->wanted[i] = malloc(elements * sizeof *w->wanted[i]);
        w->first[i] = malloc(dense_bytes(&w->image, i));
        w->scratch[i] = malloc(dense_bytes(&w->image, i));
        ok = ok && w->wanted[i] && w->first[i] && w->scratch[i];
    }
    return ok ? GATE_OK : gate_fail(err, GATE_INTERNAL, "out of memory");
}

/* Where the device gives no guarded memory that is counted, and the trial is one in plain memory.
 */
static enum gate_status make_guard(struct work *w, struct gate_error *err)
{
    struct bench *b = w->b;
    struct left_out *left_out = &b->found->left_out;
    if (!w->t->guard || !is_dense(w->t))
        return GATE_OK;
    far_choose(b->device, &b->far, w->t->far);
    enum gate_status status =
        w->t->guard == GUARD_FAR
            ? far_make(b->device, &b->far, &w->image, err)
            : guard_make(b->device, &b->guard, &w->image, b->workspace_bytes, err);
    if (status != GATE_ENVIRONMENT) {
        w->guard = status ? GUARD_NONE : w->t->guard;
        return status;
    }
    left_out->not_guarded++;
    if (!left_out->why_not_guarded[0])
        utf8_print(left_out->why_not_guarded, sizeof left_out->why_not_guarded, "%.159s",
                   err->message);
    return GATE_OK;
}

static enum gate_status set_up_on_the_host(struct work *w, struct gate_error *err)
{
    const struct trial *t = w->t;
    enum gate_status status = image_make(&t->problem, &t->layout, w->poison, &w->image, err);
    if (!status)
        status = bench_reserve(w->b, &w->b->slab, w->image.size, err);
    if (!status)
        status = make_host_memory(w, err);
    if (!status)
        status = make_guard(w, err);
    if (status)
        return status;
    probe_fill(t->probe, &t->problem, w->image.view, w->image.n_in, t->seed);
    return fill_from_the_host(w, err);
}

/* Outputs are dense where an image has them in the layout of all. */
static enum gate_status set_up_on_the_device(struct work *w, struct gate_error *err)
{
    struct image *image = &w->image;
    image_plan(&w->t->problem, &w->t->layout, image);
    for (uint32_t i = image->n_in; i < image->n_in + image->n_out; i++) {
        image->view[i] = problem_dense(&image->about[i], NULL);
        image->span[i] = dense_bytes(image, i - image->n_in);
    }
    enum gate_status status = bench_reserve(w->b, &w->b->slab, image->size, err);
    if (!status)
        status = make_guard(w, err);
    return status ? status : fill_on_the_device(w, err);
}

static void tear_down(struct work *w)
{
    image_release(&w->image);
    free(w->after);
    for (unsigned i = 0; i < KG_MAX_TENSORS; i++) {
        free(w->wanted[i]);
        free(w->first[i]);
        free(w->scratch[i]);
    }
}

/* ---- a trial ---- */

static void count(const struct work *w)
{
    struct verification *v = w->b->found;
    v->checks++;
    v->coverage.values[w->t->probe]++;
    v->coverage.far += w->guard == GUARD_FAR;
    v->coverage.guarded += w->guard == GUARD_BEHIND || w->guard == GUARD_BEFORE;
    if (w->guard != GUARD_FAR)
        image_layout_count(&w->t->problem, &w->t->layout, &v->coverage);
    if (w->t->counted)
        ++*w->t->counted;
}

static enum gate_status run(struct work *w, bool *refused, struct gate_error *err)
{
    struct verification *v = w->b->found;
    enum gate_status status = launch_once(w, refused, err);
    if (*refused) {
        v->left_out.refused++;
        return status;
    }
    count(w);
    if (!status)
        status = look(w, true, err);
    for (unsigned i = 0; i < w->t->repeats && v->ok && !status; i++) {
        status = launch_once(w, refused, err);
        if (!status)
            status = look(w, false, err);
    }
    if (status || !v->ok || !w->t->changed)
        return status;
    status = change(w, err);
    if (!status && v->ok)
        status = launch_once(w, refused, err);
    return status || !v->ok ? status : look(w, true, err);
}

static enum gate_status try_once(struct bench *b, const struct trial *t, bool *refused,
                                 struct gate_error *err)
{
    struct work w = {.b = b, .t = t, .poison = POISON_NAN};
    enum gate_status status =
        t->on_device ? set_up_on_the_device(&w, err) : set_up_on_the_host(&w, err);
    *refused = false;
    if (status == GATE_ENVIRONMENT && t->on_device) {
        b->found->left_out.too_large++;
        status = GATE_OK;
    } else if (!status && b->found->ok) {
        status = run(&w, refused, err);
    }
    b->found->coverage.launches += w.launches;
    tear_down(&w);
    return status;
}

/* What many a kernel refuses are odd rows, and some all that is not dense. */
static void give_way(struct image_layout *layout)
{
    bool odd = false;
    for (unsigned i = 0; i < PROBLEM_MAX_TENSORS; i++)
        odd |= layout->of[i] == TENSOR_ODD;
    for (unsigned i = 0; i < PROBLEM_MAX_TENSORS; i++)
        layout->of[i] = !odd                          ? TENSOR_DENSE
                        : layout->of[i] == TENSOR_ODD ? TENSOR_PADDED
                                                      : layout->of[i];
}

enum gate_status bench_try(struct bench *b, const struct trial *t, struct gate_error *err)
{
    struct trial one = *t;
    bool refused = true;
    enum gate_status status = GATE_OK;
    if (!bench_choose(b, &one.problem, one.on_device, &status, err))
        return status;
    while (refused && !status && b->found->ok) {
        status = try_once(b, &one, &refused, err);
        if (refused && one.guard == GUARD_FAR)
            break;
        give_way(&one.layout);
    }
    return status;
}

/* ---- kernels ---- */

static void describe_kernel(struct bench *b, const struct kg_problem *p, const char *text)
{
    char id[PROBLEM_ID_MAX];
    problem_id(p, id);
    b->found->ok = false;
    if (!b->found->message[0])
        snprintf(b->found->message, sizeof b->found->message, "kernel '%s' on %s: %s",
                 b->kernel->name, id, text);
}

void bench_prepare(struct bench *b, const struct kg_problem *p)
{
    const struct kg_device *where = &device_info(b->device)->kg;
    b->kernel = bench_kernel(b, p);
    enum kg_status prepared = b->kernel ? plan_prepare(b->kernel, p, where) : KG_OK;
    char text[80];
    snprintf(text, sizeof text, "prepare() returned '%s'", library_status_name(prepared));
    if (prepared != KG_OK)
        describe_kernel(b, p, text);
}

bool bench_choose(struct bench *b, const struct kg_problem *p, bool large, enum gate_status *status,
                  struct gate_error *err)
{
    const struct kg_device *where = &device_info(b->device)->kg;
    b->kernel = bench_kernel(b, p);
    if (!b->kernel || !b->found->ok)
        return false;
    b->workspace_bytes = plan_workspace_bytes(b->kernel, p, where);
    if (!b->workspace_bytes)
        return true;
    if (!large && b->workspace_bytes > WORKSPACE_MAX) {
        describe_kernel(b, p,
                        "asks for a workspace of over 1 GiB, which no problem of this size needs");
        return false;
    }
    *status =
        b->workspace_bytes > (uint64_t)device_info(b->device)->memory_bytes
            ? GATE_ENVIRONMENT
            : bench_reserve(b, &b->workspace, (size_t)b->workspace_bytes + 2 * IMAGE_RED_ZONE, err);
    if (large && *status == GATE_ENVIRONMENT) {
        b->found->left_out.too_large++;
        *status = GATE_OK;
        return false;
    }
    return !*status;
}
