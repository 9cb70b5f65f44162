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

/* Brings the inputs to the host as views of `copies`. */
static enum gate_status download_inputs(struct device *d, const struct operands *o,
                                        struct kg_tensor *views, void **copies,
                                        struct gate_error *err)
{
    for (uint32_t i = 0; i < o->args.n_in; i++) {
        size_t bytes =
            (size_t)problem_tensor_elements(&o->in[i]) * problem_dtype_bytes(o->args.in[i].dtype);
        copies[i] = malloc(bytes);
        if (!copies[i])
            return gate_fail(err, GATE_INTERNAL, "out of memory");
        views[i] = o->args.in[i];
        views[i].data = copies[i];
        enum gate_status status = device_download(d, copies[i], o->args.in[i].data, bytes, err);
        if (status)
            return status;
    }
    return GATE_OK;
}

static enum gate_status spot_check_output(struct device *d, const struct kg_problem *p,
                                          const struct kg_tensor *views, const struct operands *o,
                                          const struct reference *r, uint32_t out_index,
                                          uint64_t seed, struct gate_error *err)
{
    int64_t n = problem_tensor_elements(&o->out[out_index]);
    const double *reference = r->out[out_index].data;
    for (int i = 0; i < SPOT_CHECKS; i++) {
        int64_t at = (int64_t)(operands_seed(seed, (uint64_t)i) % (uint64_t)n);
        double device_value;
        enum gate_status status =
            device_download(d, &device_value, reference + at, sizeof device_value, err);
        if (status)
            return status;
        double host_value = kg_reference_host_element(p, views, out_index, at);
        if (!(fabs(device_value - host_value) <= SPOT_TOLERANCE * (1 + fabs(host_value))))
            return gate_fail(err, GATE_INTERNAL,
                             "the device's fp64 reference is %.17g at element %lld of '%s' where "
                             "the CPU's is %.17g: this device cannot verify",
                             device_value, (long long)at, o->out[out_index].name, host_value);
    }
    return GATE_OK;
}

static enum gate_status spot_check(struct device *d, const struct kg_problem *p,
                                   const struct operands *o, const struct reference *r,
                                   uint64_t seed, struct gate_error *err)
{
    struct kg_tensor views[KG_MAX_TENSORS];
    void *copies[KG_MAX_TENSORS] = {NULL};
    enum gate_status status = download_inputs(d, o, views, copies, err);
    for (uint32_t i = 0; i < o->args.n_out && !status; i++)
        status = spot_check_output(d, p, views, o, r, i, seed, err);
    for (unsigned i = 0; i < KG_MAX_TENSORS; i++)
        free(copies[i]);
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
