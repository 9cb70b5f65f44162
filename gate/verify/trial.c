/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/verify/trial.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/alloc.h"
#include "gate/base/seed.h"
#include "gate/base/utf8.h"
#include "gate/device/device.h"
#include "gate/launch/arm.h"
#include "gate/verify/verify_compare.h"

#define WORKSPACE_MAX ((uint64_t)1 << 30)

/* A trial in hand. */
struct work {
    struct bench *b;
    const struct trial *t;
    struct image image;
    enum guard_side guard; /* that the device gave */
    unsigned char poison;
    unsigned launches;
    enum kg_status returned;
    double *const *reference; /* of each output, on the device */
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
    if (library_serves(b->arm->kernel, p, where))
        return b->arm->kernel;
    return library_choose(b->arm->library, p, where, NULL);
}

struct kg_args bench_args(const struct bench *b, const struct image *image, void *memory)
{
    struct kg_args args = image_args(image, memory);
    args.stream = b->device->stream;
    args.plan = plan_of(b->kernel, &image->problem);
    args.workspace_bytes = b->workspace_bytes;
    args.workspace = b->workspace_bytes ? (char *)b->workspace.data + IMAGE_RED_ZONE : NULL;
    return args;
}

void bench_release(struct bench *b)
{
    device_free(b->device, &b->slab);
    device_free(b->device, &b->reference.memory);
    device_free(b->device, &b->workspace);
    guard_release(b->device, &b->guard);
}

enum gate_status bench_reference(struct bench *b, const struct image *image, void *memory,
                                 struct gate_error *err)
{
    const struct kg_args args = image_args(image, memory);
    TRY(reference_reserve(b->device, &image->about[image->n_in], image->n_out, &b->reference, err));
    return reference_compute(b->device, &image->problem, args.in, &b->reference, err);
}

/* ---- what is wrong ---- */

void trial_text(const struct trial *t, enum guard_side guard, char text[TRIAL_TEXT_MAX])
{
    static const char *const sides[] = {"", ", unmapped memory behind", ", unmapped memory before",
                                        ", rows 2^30 elements apart"};
    char id[PROBLEM_ID_MAX], layout[LAYOUT_TEXT_MAX];
    problem_id(&t->problem, id);
    image_layout_text(&t->problem, &t->layout, layout);
    snprintf(text, TRIAL_TEXT_MAX, "probe '%s' on %s (%s%s", probe_text(t->probe, &t->problem), id,
             layout, sides[guard]);
}

/* The seed is that of the trial, and draws the same inputs again. */
__attribute__((format(printf, 2, 3))) static void say(const struct work *w, const char *format, ...)
{
    char trial[TRIAL_TEXT_MAX], what[600];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    trial_text(w->t, w->guard, trial);
    verification_fault(w->b->found, "%s, launch %u): %s", trial, w->launches, what);
}

/* ---- launching ---- */

static const struct problem_tensor *output(const struct work *w, uint32_t i)
{
    return &w->image.about[w->image.n_in + i];
}

static enum kg_status launch(void *context, unsigned, void *stream)
{
    struct work *w = context;
    struct bench *b = w->b;
    struct kg_args args = bench_args(b, &w->image, b->slab.data);
    args.stream = stream;
    if (w->guard)
        guard_place(&b->guard, &w->image, &args);
    problem_update_in_place(output(w, 0), &args);
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

/* Into guarded memory the contents come from the slab, and go there again. */
static enum gate_status launch_once(struct work *w, bool *refused, struct gate_error *err)
{
    struct bench *b = w->b;
    enum gate_status status = GATE_OK;
    w->returned = KG_OK;
    w->launches++;
    const struct kg_args args = image_args(&w->image, b->slab.data);
    TRY(operands_restore_args(b->device, output(w, 0), &args, err));
    if (w->guard)
        status = guard_enter(b->device, &b->guard, &w->image, b->slab.data, w->poison, err);
    if (!status)
        status = launch_here(w, err);
    if (!status && w->guard)
        status = guard_leave(b->device, &b->guard, &w->image, b->slab.data, err);
    *refused = status == GATE_WRONG && w->returned == KG_UNSUPPORTED &&
               (w->guard == GUARD_FAR || !image_layout_is_dense(&w->t->problem, &w->t->layout));
    if (*refused)
        return GATE_OK;
    if (status == GATE_WRONG)
        say(w, "%.500s", err->message);
    return status;
}

/* ---- what a launch left behind ---- */

/* Before and behind what may be written. */
static enum gate_status check_zones(struct work *w, const void *begin, size_t bytes,
                                    const char *what, struct gate_error *err)
{
    char text[200];
    TRY(operands_check_around(w->b->device, begin, bytes, what, w->poison, text, sizeof text, err));
    if (text[0])
        say(w, "%s", text);
    return GATE_OK;
}

static enum gate_status compare(struct work *w, struct gate_error *err)
{
    const struct kg_problem *p = &w->t->problem;
    const struct kg_args args = image_args(&w->image, w->b->slab.data);
    for (uint32_t i = 0; i < args.n_out; i++) {
        const struct problem_tensor *about = output(w, i);
        const struct kg_tensor got = problem_dense(about, w->scratch[i]);
        const bool here = !w->t->on_device;
        struct look look;
        char text[500];
        compare_start(&look, p, about, w->t->probe,
                      fmax(compare_least_rms(w->t->probe, p, about), here ? w->rms[i] : 0));
        look.unbiased = w->t->probe == PROBE_NORMAL && !w->t->given && !op_of(p)->rounds_inside;
        if (here)
            host_parts(&got, w->wanted[i], &look.rule, &look.found);
        else
            TRY(compare_on_device(w->b->device, &look, &args.out[i], w->reference[i], err));
        if (w->t->probe != PROBE_NAN)
            TRY(own_reference_asked(w->b->device, &look, w->reference[i], err));
        if (!compare_is_right(&look, text, sizeof text))
            say(w, "%s", text);
    }
    return GATE_OK;
}

/* The outputs must be those of the first launch. */
static void look_for_change(struct work *w)
{
    for (uint32_t i = 0; i < w->image.n_out; i++) {
        const struct problem_tensor *about = output(w, i);
        const size_t each = kg_dtype_bytes(about->dtype);
        size_t at = 0, changed = 0;
        for (size_t j = problem_tensor_bytes(about) / each; j-- > 0;)
            if (memcmp(w->first[i] + j * each, w->scratch[i] + j * each, each) != 0) {
                at = j;
                changed++;
            }
        if (!changed)
            continue;
        char where[96];
        compare_index(about, (int64_t)at, where, sizeof where);
        say(w,
            "output '%s': %zu elements differ from those of the first launch on the same inputs, "
            "the first is [%s]; the kernel does not declare itself non-deterministic",
            about->name, changed, where);
    }
}

/* Downloads everything and looks. Where the device finds all bytes to be those that the first look
 * saw, the copy is spared. */
static enum gate_status look_on_the_host(struct work *w, bool first, struct gate_error *err)
{
    char text[300];
    const struct device_span slab = {w->b->slab.data, w->image.size};
    uint64_t hash = 0;
    if (w->t->repeats)
        TRY(device_hash(w->b->device, &slab, 1, &hash, err));
    if (!first && !kernel_may_differ(w->b->kernel) && hash == w->hash)
        return GATE_OK;
    TRY(device_download(w->b->device, w->after, slab.data, w->image.size, err));
    if (!image_is_intact(&w->image, w->after, text, sizeof text))
        say(w, "%s", text);
    for (uint32_t i = 0; i < w->image.n_out; i++) {
        image_copy(&w->image, w->image.n_in + i, w->after, w->scratch[i], true);
        if (first)
            memcpy(w->first[i], w->scratch[i], problem_tensor_bytes(output(w, i)));
    }
    w->hash = first ? hash : w->hash;
    if (first || kernel_may_differ(w->b->kernel))
        return compare(w, err);
    look_for_change(w);
    return GATE_OK;
}

/* A hash of the inputs with the padding between their rows, or of the outputs. */
static enum gate_status hash_of(struct work *w, bool outputs, uint64_t *hash,
                                struct gate_error *err)
{
    const struct image *image = &w->image;
    const unsigned begin = outputs ? image->n_in : 0, n = outputs ? image->n_out : image->n_in;
    struct device_span spans[KG_MAX_TENSORS];
    for (unsigned i = 0; i < n; i++)
        spans[i] = (struct device_span){(char *)w->b->slab.data + image->offset[begin + i],
                                        image->span[begin + i]};
    return operands_hash_spans(w->b->device, spans, 1, n, hash, err);
}

static enum gate_status look_on_the_device(struct work *w, bool first, struct gate_error *err)
{
    const struct image *image = &w->image;
    uint64_t inputs = 0, outputs = 0;
    TRY(hash_of(w, true, &outputs, err));
    TRY(hash_of(w, false, &inputs, err));
    for (uint32_t at = image->n_in; at < image->n_in + image->n_out; at++) {
        char what[64];
        snprintf(what, sizeof what, "tensor '%s'", image->about[at].name);
        TRY(check_zones(w, (char *)w->b->slab.data + image->offset[at], image->span[at], what,
                        err));
    }
    if (inputs != w->inputs)
        say(w, "wrote where it must not: an input, or the padding between its rows, changed");
    if (!first && !kernel_may_differ(w->b->kernel) && outputs != w->hash)
        say(w, "a second launch on the same inputs gave different bits; the kernel does not "
               "declare itself non-deterministic");
    w->hash = outputs;
    return (first || kernel_may_differ(w->b->kernel)) && !w->t->launches_only ? compare(w, err)
                                                                              : GATE_OK;
}

/* `first`: of these inputs, so that there are no bits to compare with yet. */
static enum gate_status look(struct work *w, bool first, struct gate_error *err)
{
    const struct bench *b = w->b;
    if (b->workspace_bytes)
        TRY(check_zones(w, (char *)b->workspace.data + IMAGE_RED_ZONE, (size_t)b->workspace_bytes,
                        "the workspace", err));
    return w->t->on_device ? look_on_the_device(w, first, err) : look_on_the_host(w, first, err);
}

/* ---- contents ---- */

/* What belongs to inputs that are there: a poisoned workspace, and the reference. */
static enum gate_status fill_rest(struct work *w, struct gate_error *err)
{
    struct bench *b = w->b;
    const struct trial *t = w->t;
    if (b->workspace_bytes)
        TRY(device_fill_bytes(b->device, b->workspace.data, w->poison,
                              (size_t)b->workspace_bytes + 2 * IMAGE_RED_ZONE, err));
    w->reference = t->given ? t->given->reference->out : b->reference.out;
    if (t->given || t->launches_only)
        return GATE_OK;
    TRY(bench_reference(b, &w->image, b->slab.data, err));
    for (uint32_t i = 0; i < w->image.n_out && !t->on_device; i++) {
        const int64_t n = problem_tensor_elements(output(w, i));
        TRY(device_download(b->device, w->wanted[i], w->reference[i], (size_t)n * sizeof(double),
                            err));
        double sum = 0;
        int64_t finite = 0;
        for (int64_t k = 0; k < n; k++)
            if (isfinite(w->wanted[i][k])) {
                sum += w->wanted[i][k] * w->wanted[i][k];
                finite++;
            }
        w->rms[i] = finite ? sqrt(sum / (double)finite) : 0;
    }
    return GATE_OK;
}

static enum gate_status fill_from_the_host(struct work *w, struct gate_error *err)
{
    TRY(device_upload(w->b->device, w->b->slab.data, w->image.bytes, w->image.size, err));
    return fill_rest(w, err);
}

/* ---- setting up ---- */

/* Where the device gives no guarded memory that is counted, and the trial is one in plain memory.
 */
static enum gate_status make_guard(struct work *w, struct gate_error *err)
{
    struct bench *b = w->b;
    struct verification *v = b->found;
    if (!w->t->guard || !image_layout_is_dense(&w->t->problem, &w->t->layout))
        return GATE_OK;
    enum gate_status status = guard_make(b->device, &b->guard, w->t->guard, w->t->far, &w->image,
                                         b->workspace_bytes, err);
    if (status != GATE_ENVIRONMENT) {
        w->guard = status ? GUARD_NONE : w->t->guard;
        return status;
    }
    verification_skip(v, &v->record.not_guarded);
    if (!v->why_not_guarded[0])
        utf8_print(v->why_not_guarded, sizeof v->why_not_guarded, "%.159s", err->message);
    return GATE_OK;
}

struct image trial_image(const struct trial *t)
{
    struct image_layout layout = t->layout;
    image_layout_pair(&t->problem, &layout);
    const struct image image = image_make(&t->problem, &layout, POISON_NAN);
    probe_fill(t->probe, &t->problem, image.view, t->seed);
    return image;
}

static enum gate_status set_up_on_the_host(struct work *w, struct gate_error *err)
{
    const struct trial *t = w->t;
    struct image *image = &w->image;
    if (t->made && t->made->bytes) {
        *image = *t->made;
        t->made->bytes = NULL;
    } else {
        *image = trial_image(t);
    }
    TRY(device_reserve(w->b->device, &w->b->slab, image->size, err));
    w->after = xcalloc(1, image->size);
    for (uint32_t i = 0; i < image->n_out; i++) {
        const size_t bytes = problem_tensor_bytes(output(w, i));
        w->wanted[i] = xcalloc((size_t)problem_tensor_elements(output(w, i)), sizeof(double));
        w->first[i] = xcalloc(1, bytes);
        w->scratch[i] = xcalloc(1, bytes);
    }
    TRY(make_guard(w, err));
    return fill_from_the_host(w, err);
}

/* Outputs are dense where an image has them in the layout of all, and so is what they begin as. */
static enum gate_status set_up_on_the_device(struct work *w, struct gate_error *err)
{
    struct bench *b = w->b;
    const struct trial *t = w->t;
    struct image *image = &w->image;
    *image = image_plan(&t->problem, &t->layout);
    for (uint32_t i = image->n_in + image->n_out; i-- > 0;)
        if (i >= image->n_in || image->about[i].is_updated) {
            image->view[i] = problem_dense(&image->about[i], NULL);
            image->span[i] = problem_tensor_bytes(&image->about[i]);
        }
    TRY(device_reserve(b->device, &b->slab, image->size, err));
    TRY(make_guard(w, err));
    const struct kg_args args = image_args(image, b->slab.data);
    TRY(device_fill_bytes(b->device, b->slab.data, w->poison, image->size, err));
    for (uint32_t i = 0; i < args.n_in; i++) { /* in the padding too: what is read there shows */
        const struct kg_tensor *to = &args.in[i];
        const int64_t elements = (int64_t)(8 * image->span[i] / kg_dtype_bits(to->dtype));
        TRY(t->given ? device_copy(b->device, to->data, t->given->inputs->args.in[i].data,
                                   image->span[i], err)
                     : operands_fill_input(b->device, &t->problem, i, to, elements,
                                           probe_is_exact(t->probe), NULL, t->seed, err));
    }
    TRY(fill_rest(w, err));
    return hash_of(w, false, &w->inputs, err);
}

/* ---- a trial ---- */

/* What the trial covers. */
static void count_check(const struct work *w, struct document_verify *v)
{
    const struct trial *t = w->t;
    const unsigned bit = 1u << t->probe;
    v->checks++;
    v->has_covered = true;
    document_count(&v->values, !(w->b->found->probes & bit));
    w->b->found->probes |= bit;
    document_count_named(&document_covered_values_shape, &v->covered.values, probe_class(t->probe));
    document_count(&v->covered.layouts.unmapped_beside,
                   w->guard == GUARD_BEHIND || w->guard == GUARD_BEFORE);
    document_count(&v->covered.layouts.far_rows, w->guard == GUARD_FAR);
    document_count(&v->layouts, w->guard == GUARD_FAR);
    if (w->guard != GUARD_FAR)
        image_layout_count(&t->problem, &t->layout, v);
    if (t->counted) {
        document_count(t->counted, 1);
        document_count(&v->shapes, 1);
    }
}

static enum gate_status run(struct work *w, bool *refused, struct gate_error *err)
{
    const struct trial *t = w->t;
    struct verification *v = w->b->found;
    const enum gate_status status = launch_once(w, refused, err);
    if (*refused) {
        verification_skip(v, &v->record.refused);
        return GATE_OK;
    }
    count_check(w, &v->record);
    TRY(status);
    TRY(look(w, true, err));
    for (unsigned i = 0; i < t->repeats && v->ok; i++) {
        TRY(launch_once(w, refused, err));
        TRY(look(w, false, err));
    }
    if (!v->ok || !t->changed)
        return GATE_OK;
    w->poison = POISON_LARGE; /* the same inputs but for one element, among other bytes */
    const struct image other = image_with_poison(&w->image, w->poison);
    image_release(&w->image);
    w->image = other;
    probe_change(t->probe, &other.problem, other.view, ~t->seed);
    TRY(fill_from_the_host(w, err));
    TRY(launch_once(w, refused, err));
    return v->ok ? look(w, true, err) : GATE_OK;
}

static enum gate_status try_once(struct bench *b, const struct trial *t, bool *refused,
                                 struct gate_error *err)
{
    struct work w = {.b = b, .t = t, .poison = POISON_NAN};
    enum gate_status status =
        t->on_device ? set_up_on_the_device(&w, err) : set_up_on_the_host(&w, err);
    *refused = false;
    if (status == GATE_ENVIRONMENT && t->on_device) {
        verification_skip(b->found, &b->found->record.too_large);
        status = GATE_OK;
    } else if (!status && b->found->ok) {
        status = run(&w, refused, err);
    }
    document_count(&b->found->record.launches, w.launches);
    document_count(&b->found->record.covered.launches.of_checks, w.launches);
    image_release(&w.image);
    free(w.after);
    for (unsigned i = 0; i < KG_MAX_TENSORS; i++) {
        free(w.wanted[i]);
        free(w.first[i]);
        free(w.scratch[i]);
    }
    return status;
}

/* Many a kernel refuses odd rows, and some all that is not dense: these give way in turn. */
enum gate_status bench_try(struct bench *b, const struct trial *t, struct gate_error *err)
{
    struct trial one = *t;
    image_layout_pair(&one.problem, &one.layout);
    bool refused = true;
    enum gate_status status = GATE_OK;
    if (!bench_choose(b, &one.problem, one.on_device, &status, err))
        return status;
    while (refused && !status && b->found->ok) {
        status = try_once(b, &one, &refused, err);
        if (refused && one.guard == GUARD_FAR)
            break;
        unsigned char *of = one.layout.of;
        const bool odd = memchr(of, TENSOR_ODD, PROBLEM_MAX_TENSORS) != NULL;
        for (unsigned i = 0; i < PROBLEM_MAX_TENSORS; i++)
            if (!odd || of[i] == TENSOR_ODD)
                of[i] = odd ? TENSOR_PADDED : TENSOR_DENSE;
    }
    return status;
}

/* ---- kernels ---- */

static void describe_kernel(struct bench *b, const struct kg_problem *p, const char *text)
{
    char id[PROBLEM_ID_MAX];
    problem_id(p, id);
    verification_fault(b->found, "kernel '%s' on %s: %s", b->kernel->name, id, text);
}

void bench_prepare(struct bench *b, const struct kg_problem *p)
{
    const struct kg_device *where = &device_info(b->device)->kg;
    b->kernel = bench_kernel(b, p);
    enum kg_status prepared = b->kernel ? plan_prepare(b->kernel, p, where) : KG_OK;
    char text[400];
    if (prepared == KG_OK)
        return;
    const char *why = library_fault(b->kernel);
    snprintf(text, sizeof text, "prepare() returned '%s'%s%.300s", library_status_name(prepared),
             *why ? ": " : "", why);
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
    *status = b->workspace_bytes > (uint64_t)device_info(b->device)->memory_bytes
                  ? GATE_ENVIRONMENT
                  : device_reserve(b->device, &b->workspace,
                                   (size_t)b->workspace_bytes + 2 * IMAGE_RED_ZONE, err);
    if (large && *status == GATE_ENVIRONMENT) {
        verification_skip(b->found, &b->found->record.too_large);
        *status = GATE_OK;
        return false;
    }
    return !*status;
}
