/* SPDX-License-Identifier: Apache-2.0 */
/* descriptors.c: see descriptors.h. */
#include "kernels/cudnn/descriptors.h"

/* Statuses of cuDNN 9 come in thousands: 2000 are bad arguments, 3000 what is not supported. */
enum { BAD_PARAM = 2, NOT_SUPPORTED = 3 };

static bool is_going(const struct descriptors *list)
{
    return list->status == KCUDNN_STATUS_SUCCESS;
}

cudnn_descriptor descriptor_new(struct descriptors *list, int type)
{
    cudnn_descriptor d = NULL;
    if (is_going(list) && list->count == DESCRIPTORS_MAX)
        list->status = BAD_PARAM * 1000;
    if (is_going(list))
        list->status = cudnn_api()->cudnnBackendCreateDescriptor(type, &d);
    if (is_going(list))
        list->all[list->count++] = d;
    return d;
}

void descriptor_set(struct descriptors *list, cudnn_descriptor d, int name, int type, int64_t count,
                    const void *elements)
{
    if (is_going(list))
        list->status = cudnn_api()->cudnnBackendSetAttribute(d, name, type, count, elements);
}

void descriptor_set_int(struct descriptors *list, cudnn_descriptor d, int name, int type, int value)
{
    descriptor_set(list, d, name, type, 1, &value);
}

void descriptor_link(struct descriptors *list, cudnn_descriptor d, int name, cudnn_descriptor other)
{
    descriptor_set(list, d, name, KCUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &other);
}

void descriptor_finish(struct descriptors *list, cudnn_descriptor d)
{
    if (is_going(list))
        list->status = cudnn_api()->cudnnBackendFinalize(d);
}

void descriptors_free(struct descriptors *list)
{
    while (list->count)
        (void)cudnn_api()->cudnnBackendDestroyDescriptor(list->all[--list->count]);
}

enum kg_status descriptors_status(const struct descriptors *list)
{
    if (list->status == KCUDNN_STATUS_SUCCESS)
        return KG_OK;
    /* Thousands are kinds since cuDNN 9; the small numbers of older ones are failures too. */
    switch (list->status / 1000) {
    case NOT_SUPPORTED:
        return KG_UNSUPPORTED;
    case BAD_PARAM:
        return KG_BAD_ARGUMENT;
    default:
        return KG_LAUNCH_FAILED;
    }
}
