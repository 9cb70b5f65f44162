/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/verify/verify_reference.h"

#include "gate/verify/own_reference.h"

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

enum gate_status reference_on(struct device *d, const struct kg_problem *p,
                              const struct kg_tensor *in, double *const *out,
                              struct gate_error *err)
{
    return op_of(p)->own ? own_reference_compute(d, p, in, out, err)
                         : device_reference(d, p, in, out, err);
}

enum gate_status reference_compute(struct device *d, const struct kg_problem *p,
                                   const struct operands *o, struct reference *r,
                                   struct gate_error *err)
{
    double *out[KG_MAX_TENSORS];
    for (unsigned i = 0; i < KG_MAX_TENSORS; i++)
        out[i] = r->out[i].data;
    return reference_on(d, p, o->args.in, out, err);
}
