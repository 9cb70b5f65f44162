/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/verify/verify_guard.h"

#define TENSOR_ALIGNMENT 16 /* kernel.h promises these */
#define WORKSPACE_ALIGNMENT 256

const char *guard_side_name(enum guard_side side)
{
    static const char *const names[] = {"", ", unmapped memory behind", ", unmapped memory before",
                                        ", rows 2^30 elements apart"};
    return names[side];
}

static enum gate_status grow(struct device *d, struct device_memory *m, size_t bytes,
                             const char *name, struct gate_error *err)
{
    if (m->bytes >= bytes)
        return GATE_OK;
    device_guard_free(d, m);
    return device_guard_alloc(d, bytes, name, m, err);
}

enum gate_status guard_make(struct device *d, struct guard *g, const struct image *image,
                            uint64_t workspace_bytes, struct gate_error *err)
{
    enum gate_status status = GATE_OK;
    for (unsigned i = 0; i < image->n_in + image->n_out && !status; i++)
        status = grow(d, &g->tensor[i], image->span[i], image->about[i].name, err);
    if (!status)
        status = grow(d, &g->workspace, (size_t)workspace_bytes, "workspace", err);
    return status;
}

void guard_release(struct device *d, struct guard *g)
{
    for (unsigned i = 0; i < PROBLEM_MAX_TENSORS; i++)
        device_guard_free(d, &g->tensor[i]);
    device_guard_free(d, &g->workspace);
}

static char *place(const struct device_memory *m, enum guard_side side, size_t bytes,
                   size_t alignment)
{
    size_t room = (bytes + alignment - 1) / alignment * alignment;
    return (char *)m->data + (side == GUARD_BEHIND ? m->bytes - room : 0);
}

static char *tensor(const struct guard *g, enum guard_side side, const struct image *image,
                    unsigned i)
{
    return place(&g->tensor[i], side, image->span[i], TENSOR_ALIGNMENT);
}

void guard_place(const struct guard *g, enum guard_side side, const struct image *image,
                 struct kg_args *args)
{
    for (unsigned i = 0; i < image->n_in; i++)
        args->in[i].data = tensor(g, side, image, i);
    for (unsigned i = 0; i < image->n_out; i++)
        args->out[i].data = tensor(g, side, image, image->n_in + i);
    if (args->workspace)
        args->workspace =
            place(&g->workspace, side, (size_t)args->workspace_bytes, WORKSPACE_ALIGNMENT);
}

enum gate_status guard_enter(struct device *d, const struct guard *g, enum guard_side side,
                             const struct image *image, const void *slab, unsigned char poison,
                             struct gate_error *err)
{
    enum gate_status status = GATE_OK;
    if (g->workspace.data)
        status = device_fill_bytes(d, g->workspace.data, poison, g->workspace.bytes, err);
    for (unsigned i = 0; i < image->n_in + image->n_out && !status; i++) {
        status = device_fill_bytes(d, g->tensor[i].data, poison, g->tensor[i].bytes, err);
        if (!status)
            status = device_copy(d, tensor(g, side, image, i),
                                 (const char *)slab + image->offset[i], image->span[i], err);
    }
    return status;
}

enum gate_status guard_leave(struct device *d, const struct guard *g, enum guard_side side,
                             const struct image *image, void *slab, struct gate_error *err)
{
    enum gate_status status = GATE_OK;
    for (unsigned i = 0; i < image->n_in + image->n_out && !status; i++)
        status = device_copy(d, (char *)slab + image->offset[i], tensor(g, side, image, i),
                             image->span[i], err);
    return status;
}
