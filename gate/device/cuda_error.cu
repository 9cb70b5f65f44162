/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_error.cu: one map from what CUDA and a kernel report to what the gate says. */
#include "gate/device/cuda_device.cuh"

extern "C" {
#include "gate/library/library.h"
}

/* Whose fault an error is. A kernel's fault is the default, since the kernels are what is on trial
 * and new error codes are mostly theirs. */
static enum gate_status status_of(cudaError_t error)
{
    switch (error) {
    case cudaErrorMemoryAllocation:
    case cudaErrorInsufficientDriver:
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorDevicesUnavailable:
    case cudaErrorDeviceUninitialized:
    case cudaErrorInitializationError:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorSystemNotReady:
    case cudaErrorCompatNotSupportedOnDevice:
    case cudaErrorCallRequiresNewerDriver:
    case cudaErrorOperatingSystem:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorMpsConnectionFailed:
    case cudaErrorMpsServerNotReady:
        return GATE_ENVIRONMENT;
    case cudaErrorInvalidValue:
    case cudaErrorInvalidResourceHandle:
    case cudaErrorNotReady:
        return GATE_INTERNAL;
    default:
        return GATE_WRONG;
    }
}

enum gate_status cuda_fail(struct gate_error *err, cudaError_t error, const char *what)
{
    (void)cudaGetLastError();
    const char *text = cudaGetErrorString(error);
    const char *name = cudaGetErrorName(error);
    const enum gate_status status = status_of(error);
    if (status == GATE_WRONG)
        return gate_fail(err, status, "a kernel broke the device: %s (%s), seen by %s", text, name,
                         what);
    return gate_fail(err, status, "%s failed: %s (%s)", what, text, name);
}

enum gate_status cuda_fail_more(struct gate_error *err, cudaError_t error)
{
    (void)cudaGetLastError();
    return gate_fail(err, status_of(error) == GATE_ENVIRONMENT ? GATE_ENVIRONMENT : GATE_WRONG,
                     "%s; the device says: %s (%s)", err->message, cudaGetErrorString(error),
                     cudaGetErrorName(error));
}

enum gate_status cuda_call_launch(struct cuda_device *d, device_launch_fn launch, void *context,
                                  unsigned index, struct gate_error *err)
{
    const enum kg_status status = launch(context, index, d->stream);
    if (status != KG_OK)
        return gate_fail(err, GATE_WRONG, "launch %u returned '%s'", index,
                         library_status_name(status));
    return GATE_OK;
}
