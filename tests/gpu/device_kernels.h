/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_kernels.h: launches for the device's tests, good ones and ones that break the rules.
 *
 * All are of type device_launch_fn.
 */
#ifndef TESTS_GPU_DEVICE_KERNELS_H
#define TESTS_GPU_DEVICE_KERNELS_H

#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Keeps one thread busy for *(const uint64_t *)context ns of the global timer. */
enum kg_status launch_spin(void *context, unsigned index, void *stream);
/* Two of these, one after the other, and side by side: the second one on a stream of its own. */
enum kg_status launch_two_in_turn(void *context, unsigned index, void *stream);
enum kg_status launch_two_side_by_side(void *context, unsigned index, void *stream);
/* Two in turn of which the second one may start early (programmatic dependent launch). */
enum kg_status launch_two_early(void *context, unsigned index, void *stream);
/* The context is const int64_t * to device memory; adds index + 1 to it. */
enum kg_status launch_add(void *context, unsigned index, void *stream);

/* The context is the same; sets it to 0 by a fill, then adds index + 1. */
enum kg_status launch_fill_and_add(void *context, unsigned index, void *stream);

enum kg_status launch_nothing(void *context, unsigned index, void *stream);
enum kg_status launch_synchronising(void *context, unsigned index, void *stream);
enum kg_status launch_allocating(void *context, unsigned index, void *stream);
enum kg_status launch_allocating_on_stream(void *context, unsigned index, void *stream);
enum kg_status launch_on_default_stream(void *context, unsigned index, void *stream);
/* Launches too large a block and does not look at the error. */
enum kg_status launch_misconfigured(void *context, unsigned index, void *stream);
/* Writes where no memory is. */
enum kg_status launch_illegal(void *context, unsigned index, void *stream);
/* The same, and says only that it failed. */
enum kg_status launch_illegal_failing(void *context, unsigned index, void *stream);
/* Reads the byte at `context`, on the device, and does nothing with it. */
enum kg_status launch_read(void *context, unsigned index, void *stream);
/* Does its work and says that it did not. */
enum kg_status launch_failing(void *context, unsigned index, void *stream);

#ifdef __cplusplus
}
#endif

#endif
