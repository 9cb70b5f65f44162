#include "operands.h"

#include <stdlib.h>

#include "../kernels/reference/half.h"

#define ALIGNMENT 256

uint64_t operands_seed(uint64_t seed, uint64_t index)
{
    uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static size_t tensor_bytes(const struct kg_problem *p, const struct problem_tensor *t)
{
    return (size_t)problem_tensor_elements(t) * problem_dtype_bytes(p->dtype);
}

static size_t aligned_bytes(const struct kg_problem *p, const struct problem_tensor *t)
{
    return (tensor_bytes(p, t) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

size_t operands_bytes(const struct kg_problem *p)
{
    struct problem_tensor tensors[PROBLEM_MAX_TENSORS];
    size_t bytes = 0;
    for (unsigned i = problem_tensors(p, tensors); i-- > 0;)
        bytes += aligned_bytes(p, &tensors[i]);
    return bytes;
}

struct operands operands_at(struct device *d, const struct kg_problem *p, void *memory)
{
    struct problem_tensor tensors[PROBLEM_MAX_TENSORS];
    unsigned n = problem_tensors(p, tensors);
    struct operands o = {.args = {.struct_bytes = sizeof o.args, .stream = device_stream(d)}};
    char *at = memory;
    for (unsigned i = 0; i < n; i++) {
        struct kg_tensor view = problem_dense(p, &tensors[i], at);
        at += aligned_bytes(p, &tensors[i]);
        if (tensors[i].is_output) {
            o.out[o.args.n_out] = tensors[i];
            o.args.out[o.args.n_out++] = view;
        } else {
            o.in[o.args.n_in] = tensors[i];
            o.args.in[o.args.n_in++] = view;
        }
    }
    return o;
}

/* Literal values are few: they are encoded here and copied. */
static enum gate_status upload_literals(struct device *d, const struct kg_tensor *t, size_t bytes,
                                        const cJSON *values, struct gate_error *err)
{
    unsigned char *encoded = malloc(bytes);
    if (!encoded)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    size_t i = 0;
    const cJSON *value;
    cJSON_ArrayForEach (value, values)
        kg_store_float(encoded, t->dtype, (int64_t)i++, (float)value->valuedouble);
    enum gate_status status = device_upload(d, t->data, encoded, bytes, err);
    free(encoded);
    return status;
}

enum gate_status operands_fill(struct device *d, const struct suite_case *c, struct operands *o,
                               uint64_t seed, struct gate_error *err)
{
    for (uint32_t i = 0; i < o->args.n_in; i++) {
        const struct kg_tensor *t = &o->args.in[i];
        const cJSON *literal = suite_case_values(c, "inputs", o->in[i].name);
        enum gate_status status =
            literal ? upload_literals(d, t, tensor_bytes(&c->problem, &o->in[i]), literal, err)
                    : device_fill_normal(d, t->data, t->dtype, problem_tensor_elements(&o->in[i]),
                                         operands_seed(seed, i), err);
        if (status)
            return status;
    }
    return GATE_OK;
}

enum gate_status operands_poison(struct device *d, struct operands *o, unsigned char byte,
                                 struct gate_error *err)
{
    for (uint32_t i = 0; i < o->args.n_out; i++) {
        const struct kg_tensor *t = &o->args.out[i];
        size_t bytes = (size_t)problem_tensor_elements(&o->out[i]) * problem_dtype_bytes(t->dtype);
        enum gate_status status = device_fill_bytes(d, t->data, byte, bytes, err);
        if (status)
            return status;
    }
    return GATE_OK;
}
