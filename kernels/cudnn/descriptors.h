/* SPDX-License-Identifier: Apache-2.0 */
/*
 * descriptors.h: making the descriptors of cuDNN's backend API, which are many for one operation.
 *
 * A list owns what is made with it. The first call that cuDNN refuses is kept in `status`, and all
 * calls after it do nothing, so that a caller looks once, at the end.
 */
#ifndef KG_CUDNN_DESCRIPTORS_H
#define KG_CUDNN_DESCRIPTORS_H

#include <stdbool.h>

#include "kernels/kernel.h"
#include "kernels/cudnn/cudnn_api.h"

enum { DESCRIPTORS_MAX = 96 }; /* of a masked plan: 65 */

struct descriptors {
    int status; /* of cuDNN */
    unsigned count;
    cudnn_descriptor all[DESCRIPTORS_MAX];
};

cudnn_descriptor descriptor_new(struct descriptors *list, int type);
void descriptor_set(struct descriptors *list, cudnn_descriptor d, int name, int type, int64_t count,
                    const void *elements);
void descriptor_set_int(struct descriptors *list, cudnn_descriptor d, int name, int type,
                        int value);
void descriptor_link(struct descriptors *list, cudnn_descriptor d, int name,
                     cudnn_descriptor other);
void descriptor_finish(struct descriptors *list, cudnn_descriptor d);

void descriptors_free(struct descriptors *list);

/* What cuDNN answered, as kernel.h says it. */
enum kg_status descriptors_status(const struct descriptors *list);

#endif
