#include "verify_reference.h"

#include <math.h>
#include <stdlib.h>

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

enum gate_status reference_compute(struct device *d, const struct kg_problem *p,
                                   const struct operands *o, struct reference *r,
                                   struct gate_error *err)
{
    double *out[KG_MAX_TENSORS];
    for (unsigned i = 0; i < KG_MAX_TENSORS; i++)
        out[i] = r->out[i].data;
    return device_reference(d, p, o->args.in, out, err);
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

enum gate_status reference_spot_check(struct device *d, const struct kg_problem *p,
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
