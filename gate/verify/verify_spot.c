/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/verify/verify_spot.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/reference/reference.h"
#include "gate/base/seed.h"

#define TOLERANCE 1e-9  /* both sides are fp64; only the order of summation differs */
#define HEAD_ELEMENTS 3 /* that are looked at of an attention's head: first, last, one between */
#define BAND 4          /* rows, and columns, of a product that are looked at together */
#define PLACES 3        /* where they lie, as heads of an attention do: first, last, one between */

/* A problem that is part of another one: its inputs are few enough to bring to the host. */
struct spot_part {
    struct kg_problem problem;
    struct kg_tensor in[KG_MAX_TENSORS]; /* on the host */
    void *copies[KG_MAX_TENSORS];
};

static void release_part(struct spot_part *part)
{
    for (unsigned i = 0; i < KG_MAX_TENSORS; i++)
        free(part->copies[i]);
}

/* The part of input `i` that begins at element `from`, `rows` rows that are `stride` apart there,
 * becomes an input of the part, of the shape `about`. */
static enum gate_status bring(struct device *d, const struct operands *o, struct spot_part *part,
                              uint32_t i, int64_t from, int64_t rows, int64_t stride,
                              const struct problem_tensor *about, struct gate_error *err)
{
    const struct kg_tensor *t = &o->args.in[i];
    size_t each = problem_dtype_bytes(t->dtype);
    size_t bytes = (size_t)problem_tensor_elements(about) * each;
    part->copies[i] = malloc(bytes);
    if (!part->copies[i])
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    part->in[i] = problem_dense(&part->problem, about, part->copies[i]);
    return device_download_rows(d, part->copies[i], (const char *)t->data + (size_t)from * each,
                                bytes / (size_t)rows, (size_t)stride * each, (size_t)rows, err);
}

/* Element `at` of the part's output `out` is element `whole` of the problem's. */
static enum gate_status check_element(struct device *d, const struct spot_part *part,
                                      const struct reference *r, uint32_t out, int64_t at,
                                      int64_t whole, const char *name, struct gate_error *err)
{
    double device_value;
    const double *reference = r->out[out].data;
    enum gate_status status =
        device_download(d, &device_value, reference + whole, sizeof device_value, err);
    if (status)
        return status;
    double host_value = kg_reference_host_element(&part->problem, part->in, out, at);
    if (fabs(device_value - host_value) <= TOLERANCE * (1 + fabs(host_value)))
        return GATE_OK;
    return gate_fail(err, GATE_INTERNAL,
                     "the device's fp64 reference is %.17g at element %lld of '%s' where the CPU's "
                     "is %.17g: this device cannot verify",
                     device_value, (long long)whole, name, host_value);
}

/* Place `at` of `places` things in a row. */
static uint64_t which(unsigned at, uint64_t places, uint64_t random)
{
    return at == 0 ? 0 : at == 1 ? places - 1 : random % places;
}

/* ---- attention: some heads ---- */

static enum gate_status bring_head(struct device *d, const struct kg_problem *p,
                                   const struct operands *o, struct spot_part *part, int64_t index,
                                   struct gate_error *err)
{
    struct problem_tensor about[PROBLEM_MAX_TENSORS];
    int64_t batch = index / p->heads, head = index % p->heads;
    int64_t kv_index = batch * p->kv_heads + head / (p->heads / p->kv_heads);
    part->problem = *p;
    part->problem.batch = part->problem.heads = part->problem.kv_heads = 1;
    problem_tensors(&part->problem, about);
    enum gate_status status = GATE_OK;
    for (uint32_t i = 0; i < 3 && !status; i++) {
        int64_t elements = problem_tensor_elements(&about[i]);
        status =
            bring(d, o, part, i, (i ? kv_index : index) * elements, 1, elements, &about[i], err);
    }
    return status;
}

static enum gate_status check_head(struct device *d, const struct kg_problem *p,
                                   const struct operands *o, const struct reference *r,
                                   int64_t index, uint64_t seed, struct gate_error *err)
{
    struct spot_part part = {0};
    int64_t elements = p->seqlen_q * p->head_dim;
    enum gate_status status = bring_head(d, p, o, &part, index, err);
    for (unsigned i = 0; i < HEAD_ELEMENTS && !status; i++) {
        int64_t at = (int64_t)which(i, (uint64_t)elements, seed_at(seed, i));
        status = check_element(d, &part, r, 0, at, index * elements + at, o->out[0].name, err);
    }
    release_part(&part);
    return status;
}

static enum gate_status check_heads(struct device *d, const struct kg_problem *p,
                                    const struct operands *o, const struct reference *r,
                                    uint64_t seed, struct gate_error *err)
{
    uint64_t heads = (uint64_t)(p->batch * p->heads);
    unsigned places = heads < PLACES ? (unsigned)heads : PLACES;
    enum gate_status status = GATE_OK;
    for (unsigned at = 0; at < places && !status; at++) {
        uint64_t head_seed = seed_at(seed, ~(uint64_t)at);
        status = check_head(d, p, o, r, (int64_t)which(at, heads, head_seed), head_seed, err);
    }
    return status;
}

/* ---- products: a band of each size that the output has ---- */

/* The sizes of a product; tensors of a problem with these as m, n and k name their axes. */
enum { ONE, M, N, K, SIZES };

struct band {
    int64_t from, length;
};

static const struct band one = {0, 1};

struct bands {
    struct problem_tensor axes[PROBLEM_MAX_TENSORS]; /* inputs first; shapes are M, N or K */
    struct problem_tensor of[PROBLEM_MAX_TENSORS];   /* of the problem itself */
    struct band size[SIZES];
};

static struct band place(int64_t length, unsigned at, uint64_t random)
{
    int64_t width = length < BAND ? length : BAND;
    uint64_t from = which(at, (uint64_t)(length - width + 1), random);
    return (struct band){(int64_t)from, width};
}

/* Of the sizes that output `out` has a band, of what is summed over everything. */
static struct bands make_bands(const struct kg_problem *p, const struct operands *o, uint32_t out,
                               unsigned at, uint64_t seed)
{
    struct bands b = {.size = {one, {0, p->m}, {0, p->n}, {0, p->k}}};
    struct kg_problem named = *p;
    named.m = M;
    named.n = N;
    named.k = K;
    problem_tensors(&named, b.axes);
    problem_tensors(p, b.of);
    const struct problem_tensor *t = &b.axes[o->args.n_in + out];
    for (uint32_t axis = 0; axis < t->rank; axis++) {
        struct band *size = &b.size[t->shape[axis]];
        *size = place(size->length, at, seed_at(seed, at * SIZES + (uint64_t)t->shape[axis]));
    }
    return b;
}

static struct band rows_of(const struct bands *b, uint32_t tensor)
{
    const struct problem_tensor *t = &b->axes[tensor];
    return t->rank == 1 ? one : b->size[t->shape[0]];
}

static struct band columns_of(const struct bands *b, uint32_t tensor)
{
    const struct problem_tensor *t = &b->axes[tensor];
    return b->size[t->shape[t->rank - 1]];
}

static int64_t stride_of(const struct bands *b, uint32_t tensor)
{
    const struct problem_tensor *t = &b->of[tensor];
    return t->shape[t->rank - 1];
}

static enum gate_status bring_bands(struct device *d, const struct kg_problem *p,
                                    const struct operands *o, const struct bands *b,
                                    struct spot_part *part, struct gate_error *err)
{
    struct problem_tensor about[PROBLEM_MAX_TENSORS];
    enum gate_status status = GATE_OK;
    part->problem = *p;
    part->problem.m = b->size[M].length;
    part->problem.n = b->size[N].length;
    part->problem.k = b->size[K].length;
    problem_tensors(&part->problem, about);
    for (uint32_t i = 0; i < o->args.n_in && !status; i++) {
        struct band rows = rows_of(b, i);
        status = bring(d, o, part, i, rows.from * stride_of(b, i) + columns_of(b, i).from,
                       rows.length, stride_of(b, i), &about[i], err);
    }
    return status;
}

static enum gate_status check_place(struct device *d, const struct kg_problem *p,
                                    const struct operands *o, const struct reference *r,
                                    uint32_t out, const struct bands *b, struct gate_error *err)
{
    struct spot_part part = {0};
    uint32_t tensor = o->args.n_in + out;
    struct band rows = rows_of(b, tensor), columns = columns_of(b, tensor);
    enum gate_status status = bring_bands(d, p, o, b, &part, err);
    for (int64_t at = 0; at < rows.length * columns.length && !status; at++) {
        int64_t row = rows.from + at / columns.length, column = columns.from + at % columns.length;
        status = check_element(d, &part, r, out, at, row * stride_of(b, tensor) + column,
                               o->out[out].name, err);
    }
    release_part(&part);
    return status;
}

static enum gate_status check_product(struct device *d, const struct kg_problem *p,
                                      const struct operands *o, const struct reference *r,
                                      uint64_t seed, struct gate_error *err)
{
    enum gate_status status = GATE_OK;
    for (uint32_t out = 0; out < o->args.n_out; out++)
        for (unsigned at = 0; at < PLACES && !status; at++) {
            struct bands b = make_bands(p, o, out, at, seed);
            status = check_place(d, p, o, r, out, &b, err);
        }
    return status;
}

enum gate_status spot_check(struct device *d, const struct kg_problem *p, const struct operands *o,
                            const struct reference *r, uint64_t seed, struct gate_error *err)
{
    return p->op == KG_OP_ATTENTION_FWD ? check_heads(d, p, o, r, seed, err)
                                        : check_product(d, p, o, r, seed, err);
}
