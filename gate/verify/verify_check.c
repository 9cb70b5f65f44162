/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/verify/verify_check.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/utf8.h"
#include "gate/verify/verify_compare.h"

#define WORKSPACE_MAX ((uint64_t)1 << 30)

/* A check in hand. */
struct trial {
    struct bench *b;
    const struct check *check;
    struct image image;
    double *reference[KG_MAX_TENSORS]; /* of each output, on the host */
    double rms[KG_MAX_TENSORS];
    uint64_t hash;                          /* of all that the device held after the first launch */
    unsigned char *after;                   /* what the device holds after a launch */
    unsigned char *first[KG_MAX_TENSORS];   /* outputs of the first launch, dense */
    unsigned char *scratch[KG_MAX_TENSORS]; /* of the one in hand */
    unsigned char poison;
    unsigned launches;
    enum kg_status returned;
    enum guard_side guard;
};

const struct kg_kernel *bench_kernel(const struct bench *b, const struct kg_problem *p)
{
    const struct kg_device *where = &device_info(b->device)->kg;
    if (b->arm->kernel->supports(p, where))
        return b->arm->kernel;
    return library_choose(b->arm->library, p, where, NULL);
}

bool bench_serves(const struct bench *b, const struct kg_problem *p)
{
    return bench_kernel(b, p) != NULL;
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

/* ---- what is wrong ---- */

void check_text(const struct check *check, enum guard_side guard, char text[CHECK_TEXT_MAX])
{
    char id[PROBLEM_ID_MAX], layout[LAYOUT_TEXT_MAX];
    problem_id(&check->problem, id);
    image_layout_text(&check->problem, &check->layout, layout);
    snprintf(text, CHECK_TEXT_MAX, "probe '%s' on %s (%s%s", probe_name(check->probe), id, layout,
             guard_side_name(guard));
}

/* The seed is that of the check, and draws the same inputs again. */
__attribute__((format(printf, 2, 3))) static void say(const struct trial *t, const char *format,
                                                      ...)
{
    struct verification *v = t->b->found;
    char check[CHECK_TEXT_MAX], what[600];
    v->ok = false;
    if (v->message[0])
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    check_text(t->check, t->guard, check);
    snprintf(v->message, sizeof v->message, "%s, launch %u): %.*s", check, t->launches,
             (int)(sizeof v->message - sizeof check - 40), what);
}

/* ---- launching ---- */

static enum kg_status launch(void *context, unsigned index, void *stream)
{
    struct trial *t = context;
    struct bench *b = t->b;
    struct kg_args args = image_args(&t->image, b->slab.data);
    (void)index;
    args.stream = stream;
    args.workspace_bytes = b->workspace_bytes;
    args.workspace = b->workspace_bytes ? (char *)b->workspace.data + IMAGE_RED_ZONE : NULL;
    if (t->guard == GUARD_FAR)
        far_place(&b->far, &t->image, &args);
    else if (t->guard)
        guard_place(&b->guard, t->guard, &t->image, &args);
    t->returned = b->kernel->launch(&t->check->problem, &args);
    return t->returned;
}

/* A launch on guarded memory, whose contents come from the slab and go there again. */
static enum gate_status launch_guarded(struct trial *t, struct gate_error *err)
{
    struct bench *b = t->b;
    enum gate_status status =
        guard_enter(b->device, &b->guard, t->guard, &t->image, b->slab.data, t->poison, err);
    if (!status)
        status = device_launch_checked(b->device, launch, t, 0, err);
    return status ? status
                  : guard_leave(b->device, &b->guard, t->guard, &t->image, b->slab.data, err);
}

static enum gate_status launch_far(struct trial *t, struct gate_error *err)
{
    struct bench *b = t->b;
    enum gate_status status = far_enter(b->device, &b->far, &t->image, b->slab.data, err);
    if (!status)
        status = device_launch_checked(b->device, launch, t, 0, err);
    return status ? status : far_leave(b->device, &b->far, &t->image, b->slab.data, err);
}

static enum gate_status launch_somewhere(struct trial *t, struct gate_error *err)
{
    if (t->guard == GUARD_FAR)
        return launch_far(t, err);
    return t->guard ? launch_guarded(t, err)
                    : device_launch_checked(t->b->device, launch, t, 0, err);
}

static bool is_dense(const struct check *check)
{
    return image_layout_is_dense(&check->problem, &check->layout);
}

static enum gate_status launch_once(struct trial *t, bool *refused, struct gate_error *err)
{
    t->returned = KG_OK;
    t->launches++;
    enum gate_status status = launch_somewhere(t, err);
    bool dense = is_dense(t->check) && t->guard != GUARD_FAR;
    *refused = status == GATE_WRONG && t->returned == KG_UNSUPPORTED && !dense;
    if (*refused)
        return GATE_OK;
    if (status == GATE_WRONG)
        say(t, "%.500s", err->message);
    return status;
}

static enum gate_status poison_workspace(struct trial *t, struct gate_error *err)
{
    struct bench *b = t->b;
    if (!b->workspace_bytes)
        return GATE_OK;
    return device_fill_bytes(b->device, b->workspace.data, t->poison,
                             (size_t)b->workspace_bytes + 2 * IMAGE_RED_ZONE, err);
}

static enum gate_status put_on_device(struct trial *t, struct gate_error *err)
{
    enum gate_status status =
        device_upload(t->b->device, t->b->slab.data, t->image.bytes, t->image.size, err);
    return status ? status : poison_workspace(t, err);
}

/* ---- looking ---- */

static enum gate_status check_workspace_zone(struct trial *t, size_t offset, const char *where,
                                             struct gate_error *err)
{
    unsigned char zone[IMAGE_RED_ZONE];
    enum gate_status status = device_download(
        t->b->device, zone, (char *)t->b->workspace.data + offset, sizeof zone, err);
    for (size_t i = 0; i < sizeof zone && !status; i++)
        if (zone[i] != t->poison) {
            say(t, "wrote where it must not: into the red zone %s the workspace", where);
            break;
        }
    return status;
}

static enum gate_status check_workspace(struct trial *t, struct gate_error *err)
{
    size_t end = IMAGE_RED_ZONE + (size_t)t->b->workspace_bytes;
    if (!t->b->workspace_bytes)
        return GATE_OK;
    enum gate_status status = check_workspace_zone(t, 0, "before", err);
    return status ? status : check_workspace_zone(t, end, "behind", err);
}

static enum gate_status compare_at_outputs(struct trial *t, struct gate_error *err)
{
    const struct image *image = &t->image;
    for (uint32_t i = 0; i < image->n_out; i++) {
        struct look look;
        char text[500];
        const struct problem_tensor *about = &image->about[image->n_in + i];
        compare_start(&look, &image->problem, about, probe_is_exact(t->check->probe), t->rms[i]);
        look.limit += probe_slack(t->check->probe, &image->problem);
        look.unbiased = t->check->probe == PROBE_NORMAL;
        const struct kg_tensor got = problem_dense(&image->problem, about, t->scratch[i]);
        enum gate_status status = compare_on_host(&look, &got, t->reference[i], err);
        if (status)
            return status;
        if (!compare_is_right(&look, text, sizeof text))
            say(t, "%s", text);
    }
    return GATE_OK;
}

static size_t dense_bytes(const struct image *image, uint32_t out)
{
    return (size_t)problem_tensor_elements(&image->about[image->n_in + out]) *
           problem_dtype_bytes(image->problem.dtype);
}

/* The outputs must be those of the first launch. */
static void look_for_change(struct trial *t)
{
    for (uint32_t i = 0; i < t->image.n_out; i++) {
        size_t bytes = dense_bytes(&t->image, i),
               each = problem_dtype_bytes(t->image.problem.dtype);
        if (!memcmp(t->first[i], t->scratch[i], bytes))
            continue;
        size_t at = 0, changed = 0;
        for (size_t j = bytes / each; j-- > 0;)
            if (memcmp(t->first[i] + j * each, t->scratch[i] + j * each, each) != 0) {
                at = j;
                changed++;
            }
        const struct problem_tensor *about = &t->image.about[t->image.n_in + i];
        char where[96];
        compare_index(about, (int64_t)at, where, sizeof where);
        say(t,
            "output '%s': %zu elements differ from those of the first launch on the same inputs, "
            "the "
            "first is [%s]; the kernel does not declare itself non-deterministic",
            about->name, changed, where);
    }
}

/* Downloads everything and looks; `first`: nothing to compare bits with yet. Where the device finds
 * all bytes to be those that the first look saw, the copy is spared. */
static enum gate_status look(struct trial *t, bool first, struct gate_error *err)
{
    char text[300];
    bool same_bits = !(t->b->kernel->flags & KG_KERNEL_NONDETERMINISTIC);
    const struct device_span slab = {t->b->slab.data, t->image.size};
    uint64_t hash = 0;
    enum gate_status status = check_workspace(t, err);
    if (!status)
        status = device_hash(t->b->device, &slab, 1, &hash, err);
    if (status || (!first && same_bits && hash == t->hash))
        return status;
    t->hash = first ? hash : t->hash;
    status = device_download(t->b->device, t->after, slab.data, t->image.size, err);
    if (status)
        return status;
    if (!image_is_intact(&t->image, t->after, text, sizeof text))
        say(t, "%s", text);
    for (uint32_t i = 0; i < t->image.n_out; i++)
        image_gather(&t->image, t->after, t->image.n_in + i, first ? t->first[i] : t->scratch[i]);
    if (first)
        for (uint32_t i = 0; i < t->image.n_out; i++)
            memcpy(t->scratch[i], t->first[i], dense_bytes(&t->image, i));
    if (first || !same_bits)
        return compare_at_outputs(t, err);
    look_for_change(t);
    return GATE_OK;
}

/* ---- setting up ---- */

static enum gate_status make_host_memory(struct trial *t, struct gate_error *err)
{
    t->after = malloc(t->image.size);
    bool ok = t->after != NULL;
    for (uint32_t i = 0; i < t->image.n_out; i++) {
        size_t elements = (size_t)problem_tensor_elements(&t->image.about[t->image.n_in + i]);
        t->reference[i] = malloc(elements * sizeof *t->reference[i]);
        t->first[i] = malloc(dense_bytes(&t->image, i));
        t->scratch[i] = malloc(dense_bytes(&t->image, i));
        ok = ok && t->reference[i] && t->first[i] && t->scratch[i];
    }
    return ok ? GATE_OK : gate_fail(err, GATE_INTERNAL, "out of memory");
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

/* The fp64 outputs of the image on the device. */
static enum gate_status make_reference(struct trial *t, struct gate_error *err)
{
    struct bench *b = t->b;
    double *out[KG_MAX_TENSORS] = {0};
    int64_t n[KG_MAX_TENSORS];
    size_t total = 0;
    for (uint32_t i = 0; i < t->image.n_out; i++) {
        n[i] = problem_tensor_elements(&t->image.about[t->image.n_in + i]);
        total += (size_t)n[i];
    }
    enum gate_status status = bench_reserve(b, &b->reference, total * sizeof(double), err);
    size_t at = 0;
    for (uint32_t i = 0; i < t->image.n_out && !status; i++) {
        out[i] = (double *)b->reference.data + at;
        at += (size_t)n[i];
    }
    struct kg_args args = image_args(&t->image, b->slab.data);
    if (!status)
        status = device_reference(b->device, &t->check->problem, args.in, out, err);
    for (uint32_t i = 0; i < t->image.n_out && !status; i++) {
        status =
            device_download(b->device, t->reference[i], out[i], (size_t)n[i] * sizeof(double), err);
        t->rms[i] = status ? 0 : rms_of(t->reference[i], n[i]);
    }
    return status;
}

/* Where the device gives no guarded memory that is counted, and the check is one in plain memory.
 */
static enum gate_status make_guard(struct trial *t, struct gate_error *err)
{
    struct bench *b = t->b;
    struct left_out *left_out = &b->found->left_out;
    enum gate_status status =
        t->check->guard == GUARD_FAR
            ? far_make(b->device, &b->far, &t->image, err)
            : guard_make(b->device, &b->guard, &t->image, b->workspace_bytes, err);
    if (status != GATE_ENVIRONMENT) {
        t->guard = status ? GUARD_NONE : t->check->guard;
        return status;
    }
    left_out->not_guarded++;
    if (!left_out->why_not_guarded[0])
        utf8_print(left_out->why_not_guarded, sizeof left_out->why_not_guarded, "%.159s",
                   err->message);
    return GATE_OK;
}

static enum gate_status set_up(struct trial *t, struct gate_error *err)
{
    struct bench *b = t->b;
    const struct kg_problem *p = &t->check->problem;
    t->poison = POISON_NAN;
    enum gate_status status = image_make(p, &t->check->layout, t->poison, &t->image, err);
    if (!status)
        status = bench_reserve(b, &b->slab, t->image.size, err);
    if (!status)
        status = make_host_memory(t, err);
    if (!status && t->check->guard && is_dense(t->check))
        status = make_guard(t, err);
    if (status)
        return status;
    probe_fill(t->check->probe, p, t->image.view, t->image.n_in, t->check->seed);
    status = put_on_device(t, err);
    return status ? status : make_reference(t, err);
}

static void tear_down(struct trial *t)
{
    image_release(&t->image);
    free(t->after);
    for (unsigned i = 0; i < KG_MAX_TENSORS; i++) {
        free(t->reference[i]);
        free(t->first[i]);
        free(t->scratch[i]);
    }
}

/* The same inputs but for one element, among other bytes. */
static enum gate_status change(struct trial *t, struct gate_error *err)
{
    struct image other;
    t->poison = POISON_LARGE;
    enum gate_status status = image_with_poison(&t->image, t->poison, &other, err);
    image_release(&t->image);
    t->image = other;
    if (status)
        return status;
    probe_change(t->check->probe, &other.problem, other.view, other.n_in, ~t->check->seed);
    status = put_on_device(t, err);
    return status ? status : make_reference(t, err);
}

/* ---- checks ---- */

static enum gate_status run(struct trial *t, bool *refused, struct gate_error *err)
{
    struct verification *v = t->b->found;
    const bool again = t->check->thorough || t->check->seed & 1;
    const bool changed = t->check->thorough || !again;
    enum gate_status status = launch_once(t, refused, err);
    if (*refused) {
        v->left_out.refused++;
        return status;
    }
    v->checks++;
    v->coverage.values[t->check->probe]++;
    v->coverage.far += t->guard == GUARD_FAR;
    v->coverage.guarded += t->guard == GUARD_BEHIND || t->guard == GUARD_BEFORE;
    if (t->guard != GUARD_FAR)
        image_layout_count(&t->check->problem, &t->check->layout, &v->coverage);
    if (!status)
        status = look(t, true, err);
    for (unsigned i = 0; again && i < t->b->repeats && v->ok && !status; i++) {
        status = launch_once(t, refused, err);
        if (!status)
            status = look(t, false, err);
    }
    if (status || !v->ok || !changed)
        return status;
    status = change(t, err);
    if (!status && v->ok)
        status = launch_once(t, refused, err);
    return status || !v->ok ? status : look(t, true, err);
}

static enum gate_status check_once(struct bench *b, const struct check *check, bool *refused,
                                   struct gate_error *err)
{
    struct trial t = {.b = b, .check = check};
    enum gate_status status = set_up(&t, err);
    *refused = false;
    if (!status && b->found->ok)
        status = run(&t, refused, err);
    b->found->coverage.launches += t.launches;
    tear_down(&t);
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

enum gate_status bench_check(struct bench *b, const struct check *check, struct gate_error *err)
{
    struct check one = *check;
    bool refused = true;
    enum gate_status status = GATE_OK;
    if (!bench_choose(b, &one.problem, &status, err))
        return status;
    while (refused && !status && b->found->ok) {
        status = check_once(b, &one, &refused, err);
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
    enum kg_status prepared =
        b->kernel && b->kernel->prepare ? b->kernel->prepare(p, where) : KG_OK;
    char text[80];
    snprintf(text, sizeof text, "prepare() returned '%s'", library_status_name(prepared));
    if (prepared != KG_OK)
        describe_kernel(b, p, text);
}

bool bench_choose(struct bench *b, const struct kg_problem *p, enum gate_status *status,
                  struct gate_error *err)
{
    const struct kg_device *where = &device_info(b->device)->kg;
    b->kernel = bench_kernel(b, p);
    if (!b->kernel || !b->found->ok)
        return false;
    b->workspace_bytes = b->kernel->workspace_bytes ? b->kernel->workspace_bytes(p, where) : 0;
    if (b->workspace_bytes > WORKSPACE_MAX)
        describe_kernel(b, p,
                        "asks for a workspace of over 1 GiB, which no problem of this size needs");
    else if (b->workspace_bytes)
        *status =
            bench_reserve(b, &b->workspace, (size_t)b->workspace_bytes + 2 * IMAGE_RED_ZONE, err);
    return !*status && b->found->ok;
}
