#include "verify.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../kernels/reference/half.h"
#include "../kernels/reference/reference.h"

#define SPOT_CHECKS 64
#define SPOT_TOLERANCE 1e-9 /* both sides are fp64; only the order of summation differs */

enum gate_status reference_alloc(struct device *d, const struct operands *o, struct reference *out,
                                 struct gate_error *err)
{
    struct reference r = {0};
    for (uint32_t i = 0; i < o->args.n_out; i++) {
        size_t bytes = (size_t)problem_tensor_elements(&o->out[i]) * sizeof(double);
        enum gate_status status = device_alloc(d, bytes, &r.out[i], err);
        if (status) {
            reference_free(d, &r);
            return status;
        }
    }
    *out = r;
    return GATE_OK;
}

void reference_free(struct device *d, struct reference *r)
{
    for (unsigned i = 0; i < KG_MAX_TENSORS; i++)
        device_free(d, &r->out[i]);
}

struct verification verification_start(const struct kg_problem *p)
{
    return (struct verification){
        .ok = true, .limit = problem_error_limit(p), .allclose_1e2 = 1, .allclose_1e3 = 1};
}

/* "3, 17" of a flat index into a dense tensor. */
static void describe_index(const struct problem_tensor *t, int64_t index, char *text, size_t size)
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

static void say_wrong(struct verification *v, const struct problem_tensor *t,
                      const struct device_comparison *c, double rel_fro)
{
    char where[96], first[256] = "";
    v->ok = false;
    if (v->message[0])
        return;
    if (c->first_bad >= 0) {
        describe_index(t, c->first_bad, where, sizeof where);
        snprintf(first, sizeof first, "; first bad element [%s]: expected %.6g, got %.6g", where,
                 c->first_bad_reference, isnan(c->first_bad_value) ? NAN : c->first_bad_value);
    }
    if (c->nonfinite)
        snprintf(v->message, sizeof v->message,
                 "output '%s': %lld of %lld elements are NaN, Inf or were never written%s", t->name,
                 (long long)c->nonfinite, (long long)c->elements, first);
    else
        snprintf(
            v->message, sizeof v->message,
            "output '%s': relative error %.3g is over the limit of %.3g; %lld of %lld elements "
            "differ by more than 1e-2%s",
            t->name, rel_fro, v->limit, (long long)c->over_1e2, (long long)c->elements, first);
}

static double max_nan(double a, double b)
{
    return isnan(a) || isnan(b) ? NAN : fmax(a, b);
}

static void add_comparison(struct verification *v, const struct problem_tensor *t,
                           const struct device_comparison *c)
{
    /* A reference of all zeros (every row masked) leaves nothing to divide by: the error itself. */
    double rel_fro = c->reference_sq > 0 ? sqrt(c->error_sq / c->reference_sq) : sqrt(c->error_sq);
    if (c->nonfinite)
        rel_fro = NAN;
    double n = (double)c->elements;
    v->rel_fro = max_nan(v->rel_fro, rel_fro);
    v->max_abs = max_nan(v->max_abs, c->max_abs);
    v->allclose_1e2 = fmin(v->allclose_1e2, 1 - (double)c->over_1e2 / n);
    v->allclose_1e3 = fmin(v->allclose_1e3, 1 - (double)c->over_1e3 / n);
    v->nonfinite += c->nonfinite;
    if (!(rel_fro <= v->limit)) /* so that NaN fails */
        say_wrong(v, t, c, rel_fro);
}

/* Outputs with literal expected values must have exactly these. */
static enum gate_status compare_expected(struct device *d, const struct kg_tensor *t,
                                         const struct problem_tensor *about, const cJSON *expected,
                                         struct verification *v, struct gate_error *err)
{
    size_t n = (size_t)problem_tensor_elements(about);
    size_t bytes = n * problem_dtype_bytes(t->dtype);
    void *host = malloc(bytes);
    if (!host)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    enum gate_status status = device_download(d, host, t->data, bytes, err);
    const cJSON *value = expected->child;
    for (size_t i = 0; !status && i < n && value; i++, value = value->next) {
        float got = kg_load_float(host, t->dtype, (int64_t)i);
        if (got == (float)value->valuedouble)
            continue;
        v->ok = false;
        if (!v->message[0])
            snprintf(v->message, sizeof v->message,
                     "output '%s': element %zu must be exactly %.9g, is %.9g", about->name, i,
                     value->valuedouble, (double)got);
    }
    free(host);
    return status;
}

enum gate_status verify_outputs(struct device *d, const struct suite_case *c,
                                const struct operands *o, const struct reference *r,
                                struct verification *v, struct gate_error *err)
{
    for (uint32_t i = 0; i < o->args.n_out; i++) {
        struct device_comparison comparison;
        enum gate_status status =
            device_compare(d, &o->args.out[i], r->out[i].data, &comparison, err);
        if (status)
            return status;
        add_comparison(v, &o->out[i], &comparison);
        const cJSON *expected = suite_case_values(c, "expect", o->out[i].name);
        if (expected) {
            status = compare_expected(d, &o->args.out[i], &o->out[i], expected, v, err);
            if (status)
                return status;
        }
    }
    return GATE_OK;
}

/* Part of a problem that stands by itself: all of it, or one head of an attention, whose inputs are
 * small enough to bring to the host for every case. */
struct part {
    struct kg_problem problem;
    struct kg_tensor in[KG_MAX_TENSORS]; /* on the host */
    void *copies[KG_MAX_TENSORS];
    int64_t out_offset; /* of the part in the (single) output */
};

static void release_part(struct part *part)
{
    for (unsigned i = 0; i < KG_MAX_TENSORS; i++)
        free(part->copies[i]);
}

/* Brings `elements` elements of input i, from `offset` on, to the host as the part's input. */
static enum gate_status bring(struct device *d, const struct operands *o, struct part *part,
                              uint32_t i, int64_t offset, const struct problem_tensor *about,
                              struct gate_error *err)
{
    const struct kg_tensor *from = &o->args.in[i];
    size_t each = problem_dtype_bytes(from->dtype);
    size_t bytes = (size_t)problem_tensor_elements(about) * each;
    part->copies[i] = malloc(bytes);
    if (!part->copies[i])
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    part->in[i] = problem_dense(&part->problem, about, part->copies[i]);
    return device_download(d, part->copies[i], (const char *)from->data + (size_t)offset * each,
                           bytes, err);
}

static enum gate_status bring_all(struct device *d, const struct kg_problem *p,
                                  const struct operands *o, struct part *part,
                                  struct gate_error *err)
{
    *part = (struct part){.problem = *p};
    enum gate_status status = GATE_OK;
    for (uint32_t i = 0; i < o->args.n_in && !status; i++)
        status = bring(d, o, part, i, 0, &o->in[i], err);
    return status;
}

/* Head `index` of batch * heads, as an attention of one head. */
static enum gate_status bring_head(struct device *d, const struct kg_problem *p,
                                   const struct operands *o, struct part *part, int64_t index,
                                   struct gate_error *err)
{
    struct problem_tensor about[PROBLEM_MAX_TENSORS];
    int64_t batch = index / p->heads, head = index % p->heads;
    int64_t kv_index = batch * p->kv_heads + head / (p->heads / p->kv_heads);
    *part = (struct part){.problem = *p};
    part->problem.batch = part->problem.heads = part->problem.kv_heads = 1;
    part->out_offset = index * p->seqlen_q * p->head_dim;
    problem_tensors(&part->problem, about);
    enum gate_status status = bring(d, o, part, 0, part->out_offset, &about[0], err);
    for (uint32_t i = 1; i < 3 && !status; i++)
        status = bring(d, o, part, i, kv_index * p->seqlen_kv * p->head_dim, &about[i], err);
    return status;
}

static enum gate_status check_element(struct device *d, const struct part *part,
                                      const struct reference *r, uint32_t out_index, int64_t at,
                                      const char *name, struct gate_error *err)
{
    double device_value;
    long long element = part->out_offset + at; /* of the whole output */
    const double *reference = r->out[out_index].data;
    enum gate_status status =
        device_download(d, &device_value, reference + element, sizeof device_value, err);
    if (status)
        return status;
    double host_value = kg_reference_host_element(&part->problem, part->in, out_index, at);
    if (fabs(device_value - host_value) <= SPOT_TOLERANCE * (1 + fabs(host_value)))
        return GATE_OK;
    return gate_fail(err, GATE_INTERNAL,
                     "the device's fp64 reference is %.17g at element %lld of '%s' where the CPU's "
                     "is %.17g: this device cannot verify",
                     device_value, element, name, host_value);
}

static enum gate_status check_part(struct device *d, const struct operands *o,
                                   const struct part *part, const struct reference *r,
                                   uint64_t seed, struct gate_error *err)
{
    struct problem_tensor about[PROBLEM_MAX_TENSORS];
    enum gate_status status = GATE_OK;
    unsigned n = problem_tensors(&part->problem, about);
    for (uint32_t out = 0; out < o->args.n_out && !status; out++) {
        const struct problem_tensor *t = &about[n - o->args.n_out + out];
        uint64_t elements = (uint64_t)problem_tensor_elements(t);
        for (int i = 0; i < SPOT_CHECKS && !status; i++)
            status =
                check_element(d, part, r, out,
                              (int64_t)(operands_seed(seed, (uint64_t)i) % elements), t->name, err);
    }
    return status;
}

static enum gate_status spot_check(struct device *d, const struct kg_problem *p,
                                   const struct operands *o, const struct reference *r,
                                   uint64_t seed, struct gate_error *err)
{
    struct part part;
    uint64_t heads = (uint64_t)(p->batch * p->heads);
    enum gate_status status =
        p->op == KG_OP_ATTENTION_FWD
            ? bring_head(d, p, o, &part, (int64_t)(operands_seed(seed, ~0ull) % heads), err)
            : bring_all(d, p, o, &part, err);
    if (!status)
        status = check_part(d, o, &part, r, seed, err);
    release_part(&part);
    return status;
}

/* One launch into poisoned outputs, compared. */
static enum gate_status verify_once(struct device *d, const struct suite_case *c,
                                    struct operands *o, struct device_memory workspace,
                                    const struct reference *r, struct arm *arm,
                                    unsigned char poison, struct gate_error *err)
{
    enum gate_status status = operands_poison(d, o, poison, err);
    if (status)
        return status;
    struct arm_launch launch = {arm, &c->problem, o, 1, workspace};
    struct verification *v = &arm->verification;
    status = device_launch_checked(d, arm_launch, &launch, 0, err);
    if (status == GATE_WRONG) {
        v->ok = false;
        snprintf(v->message, sizeof v->message, "%.500s", err->message);
    }
    if (status)
        return status;
    v->seeds++;
    return verify_outputs(d, c, o, r, v, err);
}

enum gate_status verify_arms(struct device *d, const struct suite_case *c, uint64_t seed,
                             struct operands *o, struct device_memory workspace,
                             struct reference *r, struct arm *arms, unsigned n_arms,
                             verify_notice_fn notice, void *context, struct gate_error *err)
{
    double *out[KG_MAX_TENSORS];
    for (unsigned i = 0; i < KG_MAX_TENSORS; i++)
        out[i] = r->out[i].data;
    enum gate_status status = GATE_OK;
    for (unsigned s = VERIFY_SEEDS; s-- > 0 && !status;) {
        uint64_t set_seed = operands_seed(seed, s);
        /* 0xff.. is a NaN, 0x5a.. a large number: what is not written shows either way. */
        unsigned char poison = s % 2 ? 0x5a : 0xff;
        status = operands_fill(d, c, o, set_seed, err);
        if (!status)
            status = device_reference(d, &c->problem, o->args.in, out, err);
        if (!status && s == VERIFY_SEEDS - 1)
            status = spot_check(d, &c->problem, o, r, set_seed, err);
        for (unsigned i = 0; i < n_arms && !status; i++) {
            notice(context, &arms[i]);
            if (arms[i].verification.ok)
                status = verify_once(d, c, o, workspace, r, &arms[i], poison, err);
        }
    }
    return status;
}
