/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_cuda.cu: the CUDA backend of device.h: opening a GPU, memory, and the table.
 *
 * Its other parts, by idea: cuda_error, cuda_fill, cuda_compare, cuda_hash, cuda_guard,
 * cuda_replay, cuda_capture and cuda_kernels (launches and graphs), cuda_time (what makes a time
 * trustworthy, and sweeps), cuda_control, cuda_ceiling, cuda_peaks and nvml.
 */
#include "gate/device/cuda_device.cuh"

#include <cuda_profiler_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/reference/reference_cuda.h"

static void cuda_close(struct device *device)
{
    struct cuda_device *d = cuda_of(device);
    if (d->start)
        (void)cudaEventDestroy(d->start);
    if (d->stop)
        (void)cudaEventDestroy(d->stop);
    if (d->stream)
        (void)cudaStreamDestroy(d->stream);
    (void)cudaFree(d->compare_scratch);
    (void)cudaFree(d->sweep);
    (void)cudaFree(d->control);
    cuda_ceiling_free(d);
    (void)cudaFreeHost(d->shared);
    (void)cudaGetLastError();
    nvml_close(d->nvml);
    free(d);
}

static enum gate_status cuda_alloc(struct device *, size_t bytes, struct device_memory *out,
                                   struct gate_error *err)
{
    void *data = NULL;
    const cudaError_t error = cudaMalloc(&data, bytes);
    if (error == cudaErrorMemoryAllocation) {
        size_t free_bytes = 0, total_bytes = 0;
        (void)cudaGetLastError();
        (void)cudaMemGetInfo(&free_bytes, &total_bytes);
        return gate_fail(err, GATE_ENVIRONMENT,
                         "out of device memory: %zu bytes asked for, %zu of %zu free", bytes,
                         free_bytes, total_bytes);
    }
    CUDA_TRY(error, err);
    *out = {data, bytes};
    return GATE_OK;
}

/* After an error of the device freeing fails as well, and the worker is about to end. */
static void cuda_free(struct device *, const struct device_memory *m)
{
    if (cudaFree(m->data) != cudaSuccess)
        (void)cudaGetLastError();
}

static enum gate_status copy(struct cuda_device *d, void *to, const void *from, size_t bytes,
                             enum cudaMemcpyKind kind, struct gate_error *err)
{
    CUDA_TRY(cudaMemcpyAsync(to, from, bytes, kind, d->stream), err);
    CUDA_TRY(cudaStreamSynchronize(d->stream), err);
    return GATE_OK;
}

static enum gate_status cuda_upload(struct device *d, void *to, const void *from, size_t bytes,
                                    struct gate_error *err)
{
    return copy(cuda_of(d), to, from, bytes, cudaMemcpyHostToDevice, err);
}

static enum gate_status cuda_download(struct device *d, void *to, const void *from, size_t bytes,
                                      struct gate_error *err)
{
    return copy(cuda_of(d), to, from, bytes, cudaMemcpyDeviceToHost, err);
}

/* Rows that are apart are packed on the device first: the driver brings them one by one, at some
 * microseconds each. */
static enum gate_status cuda_download_rows(struct device *device, void *to, const void *from,
                                           size_t row_bytes, size_t stride_bytes, size_t rows,
                                           struct gate_error *err)
{
    struct cuda_device *d = cuda_of(device);
    struct device_memory packed = {0};
    if (rows == 1 || row_bytes == stride_bytes) /* one row may be longer than a stride can be */
        return cuda_download(device, to, from, row_bytes * rows, err);
    TRY(cuda_alloc(device, row_bytes * rows, &packed, err));
    const cudaError_t copied =
        cudaMemcpy2DAsync(packed.data, row_bytes, from, stride_bytes, row_bytes, rows,
                          cudaMemcpyDeviceToDevice, d->stream);
    const enum gate_status status =
        copied == cudaSuccess ? cuda_download(device, to, packed.data, row_bytes * rows, err)
                              : cuda_fail(err, copied, "cudaMemcpy2DAsync");
    cuda_free(device, &packed);
    return status;
}

static enum gate_status cuda_copy(struct device *d, void *to, const void *from, size_t bytes,
                                  struct gate_error *err)
{
    CUDA_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, cuda_of(d)->stream), err);
    return GATE_OK;
}

static enum gate_status cuda_fill_bytes(struct device *d, void *to, unsigned char byte,
                                        size_t bytes, struct gate_error *err)
{
    CUDA_TRY(cudaMemsetAsync(to, byte, bytes, cuda_of(d)->stream), err);
    return GATE_OK;
}

static enum gate_status cuda_reference(struct device *device, const struct kg_problem *p,
                                       const struct kg_tensor *in, double *const *out,
                                       struct gate_error *err)
{
    struct cuda_device *d = cuda_of(device);
    CUDA_TRY(kg_reference_cuda(p, in, out, d->stream), err);
    CUDA_TRY(cudaStreamSynchronize(d->stream), err);
    return GATE_OK;
}

static enum gate_status cuda_synchronize(struct device *, struct gate_error *err)
{
    CUDA_TRY(cudaDeviceSynchronize(), err);
    CUDA_TRY(cudaGetLastError(), err);
    return GATE_OK;
}

/* Since the driver was loaded: what is told is how much more it is at the end of a span. */
static struct device_throttle cuda_throttle_read(struct device *device)
{
    const struct cuda_device *d = cuda_of(device);
    const struct device_throttle unknown = {};
    return d->nvml ? nvml_read_throttle(d->nvml) : unknown;
}

/* In a profiler's table what follows it is of the next case (gate/counters/counters.h). */
static __global__ void kernel_gate_case_begins(void)
{
}

static enum gate_status cuda_profiler_switch(struct device *device, bool on, struct gate_error *err)
{
    const struct cuda_device *d = cuda_of(device);
    CUDA_TRY(on ? cudaProfilerStart() : cudaProfilerStop(), err);
    if (on)
        kernel_gate_case_begins<<<1, 1, 0, d->stream>>>();
    CUDA_TRY(cudaGetLastError(), err);
    return GATE_OK;
}

static struct device_sensors cuda_sensors_read(struct device *device)
{
    const struct cuda_device *d = cuda_of(device);
    const struct device_sensors unknown = {NAN, NAN};
    return d->nvml ? nvml_read_sensors(d->nvml) : unknown;
}

/* What belongs to the whole device, and is no kernel's to change. The stack limit is not among it,
 * nor are the other flags: the driver changes those by itself. */
static enum gate_status cuda_state_read(struct device *device, struct device_state *out,
                                        struct gate_error *err)
{
    const struct cuda_device *d = cuda_of(device);
    size_t total = 0;
    CUDA_TRY(cudaDeviceSynchronize(), err);
    CUDA_TRY(cudaGetDevice(&out->current), err);
    CUDA_TRY(cudaMemGetInfo(&out->memory_free_bytes, &total), err);
    out->memory_own_bytes = d->listed_as ? nvml_memory_of(d->nvml, d->listed_as) : 0;
    CUDA_TRY(cudaDeviceGetLimit(&out->malloc_heap_bytes, cudaLimitMallocHeapSize), err);
    CUDA_TRY(cudaDeviceGetLimit(&out->printf_bytes, cudaLimitPrintfFifoSize), err);
    CUDA_TRY(cudaDeviceGetLimit(&out->persisting_l2_bytes, cudaLimitPersistingL2CacheSize), err);
    CUDA_TRY(cudaDeviceGetLimit(&out->l2_fetch_bytes, cudaLimitMaxL2FetchGranularity), err);
    unsigned flags = 0;
    CUDA_TRY(cudaGetDeviceFlags(&flags), err);
    out->wait_flags = flags & cudaDeviceScheduleMask;
    cudaFuncCache cache = cudaFuncCachePreferNone;
    CUDA_TRY(cudaDeviceGetCacheConfig(&cache), err);
    out->cache_preference = (int)cache;
    cudaMemPool_t pool;
    CUDA_TRY(cudaDeviceGetDefaultMemPool(&pool, out->current), err);
    CUDA_TRY(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &out->pool_keeps), err);
    return GATE_OK;
}

static const struct device_backend cuda_backend = {
    .close = cuda_close,
    .alloc = cuda_alloc,
    .alloc_apart = cuda_alloc_apart,
    .free = cuda_free,
    .free_apart = cuda_free_apart,
    .upload = cuda_upload,
    .download = cuda_download,
    .download_rows = cuda_download_rows,
    .copy = cuda_copy,
    .fill_bytes = cuda_fill_bytes,
    .fill_normal = cuda_fill_normal,
    .fill_integers = cuda_fill_integers,
    .reference = cuda_reference,
    .compare = cuda_compare,
    .hash = cuda_hash,
    .launch_checked = cuda_launch_checked,
    .replay_record = cuda_replay_record,
    .replay_delay = cuda_replay_delay,
    .replay_run = cuda_replay_run,
    .replay_free = cuda_replay_free,
    .single_run = cuda_single_run,
    .calls_run = cuda_calls_run,
    .control_run = cuda_control_run,
    .poison_shared = cuda_poison_shared,
    .hold = cuda_hold,
    .release = cuda_release,
    .synchronize = cuda_synchronize,
    .profiler_switch = cuda_profiler_switch,
    .ceiling_run = cuda_ceiling_run,
    .replay_kernels = cuda_replay_kernels,
    .replay_nodes = cuda_replay_nodes,
    .replay_transplant = cuda_replay_transplant,
    .replay_room = cuda_replay_room,
    .rest = cuda_rest,
    .state_read = cuda_state_read,
    .throttle_read = cuda_throttle_read,
    .sensors_read = cuda_sensors_read,
};

static enum gate_status find_device(int ordinal, struct gate_error *err)
{
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaErrorInsufficientDriver || error == cudaErrorNoDevice) {
        (void)cudaGetLastError();
        return gate_fail(
            err, GATE_ENVIRONMENT,
            "no CUDA device: %s (%s); check that nvidia-smi lists a GPU here, that the "
            "driver serves CUDA %d.%d or later, or measure on \"host\"",
            cudaGetErrorString(error), cudaGetErrorName(error), CUDART_VERSION / 1000,
            CUDART_VERSION % 1000 / 10);
    }
    CUDA_TRY(error, err);
    if (ordinal < 0 || ordinal >= count) {
        const char *visible = getenv("CUDA_VISIBLE_DEVICES");
        return gate_fail(err, GATE_ENVIRONMENT,
                         "no device cuda:%d: CUDA sees %d, counted from 0 (CUDA_VISIBLE_DEVICES is "
                         "%s)",
                         ordinal, count, visible ? visible : "not set");
    }
    return GATE_OK;
}

struct listed {
    pid_t pids[256];
    size_t n;
};

static void list_users(const struct cuda_device *d, struct listed *out)
{
    out->n = d->nvml ? nvml_compute_pids(d->nvml, out->pids, sizeof(out->pids) / sizeof(pid_t)) : 0;
}

static enum gate_status describe_versions(struct cuda_device *d, struct gate_error *err)
{
    struct device_info *info = &d->base.info;
    int runtime, driver;
    CUDA_TRY(cudaRuntimeGetVersion(&runtime), err);
    CUDA_TRY(cudaDriverGetVersion(&driver), err);
    snprintf(info->runtime, sizeof(info->runtime), "%d.%d", runtime / 1000, runtime % 1000 / 10);
    snprintf(info->driver, sizeof(info->driver), "CUDA %d.%d", driver / 1000, driver % 1000 / 10);
    if (d->nvml)
        nvml_describe(d->nvml, info);
    info->launch_order_checked = cuda_serial_is_told();
    return GATE_OK;
}

static enum gate_status describe_chip(struct cuda_device *d, int ordinal, struct gate_error *err)
{
    struct device_info *info = &d->base.info;
    cudaDeviceProp chip;
    CUDA_TRY(cudaGetDeviceProperties(&chip, ordinal), err);
    info->kg.struct_bytes = sizeof(info->kg);
    info->kg.kind = KG_DEVICE_CUDA;
    info->kg.ordinal = ordinal;
    info->kg.cc_major = chip.major;
    info->kg.cc_minor = chip.minor;
    info->kg.sm_count = chip.multiProcessorCount;
    info->kg.l2_bytes = chip.l2CacheSize;
    info->kg.shared_bytes_optin = (int64_t)chip.sharedMemPerBlockOptin;
    info->memory_bytes = (int64_t)chip.totalGlobalMem;
    info->peaks = cuda_peaks(chip.name);
    snprintf(info->name, sizeof(info->name), "%.*s", (int)sizeof(info->name) - 1, chip.name);
    snprintf(info->capability, sizeof(info->capability), "%d.%d", chip.major, chip.minor);
    device_model_key("", chip.name, info->model, sizeof(info->model));
    const unsigned char *b = (const unsigned char *)chip.uuid.bytes;
    snprintf(info->uuid, sizeof(info->uuid),
             "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
             b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
             b[15]);
    return GATE_OK;
}

/* From here on this process shows up as a user of the GPU. */
static enum gate_status make_context(struct cuda_device *d, int ordinal, struct gate_error *err)
{
    size_t free_bytes, total_bytes;
    CUDA_TRY(cudaSetDevice(ordinal), err);
    CUDA_TRY(cudaFree(NULL), err);
    CUDA_TRY(cudaMemGetInfo(&free_bytes, &total_bytes), err);
    d->base.info.memory_free_bytes = (int64_t)free_bytes;
    CUDA_TRY(cudaStreamCreate(&d->stream), err);
    d->base.stream = d->stream;
    CUDA_TRY(cudaEventCreate(&d->start), err);
    CUDA_TRY(cudaEventCreate(&d->stop), err);
    CUDA_TRY(cudaHostAlloc((void **)&d->shared, sizeof(*d->shared), cudaHostAllocMapped), err);
    memset(d->shared, 0, sizeof(*d->shared));
    CUDA_TRY(cudaMalloc(&d->compare_scratch, cuda_compare_scratch_bytes()), err);
    return GATE_OK;
}

static enum gate_status open_device(struct cuda_device *d, int ordinal, struct gate_error *err)
{
    char bus_id[32];
    struct listed before, now;
    struct cuda_user user;
    TRY(find_device(ordinal, err));
    CUDA_TRY(cudaDeviceGetPCIBusId(bus_id, sizeof(bus_id), ordinal), err);
    d->nvml = nvml_open(bus_id);
    list_users(d, &before);
    /* Two processes on one GPU share its clock, cache and power, so neither measures anything. */
    if (cuda_users_find("/proc", before.pids, before.n, getpid(), &user))
        return gate_fail_busy(
            err,
            "cuda:%d is busy: process %ld (%s) computes on it; wait until it ends or choose "
            "another device",
            ordinal, (long)user.pid, user.name);
    TRY(describe_chip(d, ordinal, err));
    TRY(describe_versions(d, err));
    TRY(make_context(d, ordinal, err));
    /* Loads the code of the kernels that run while the stream is held: a kernel whose code is
     * loaded lazily, on its first launch, may have to wait for the device. */
    TRY(cuda_hold(&d->base, err));
    cuda_release(&d->base);
    TRY(cuda_clock_stamp(d, 0, err));
    CUDA_TRY(cudaStreamSynchronize(d->stream), err);
    list_users(d, &now);
    d->listed_as = cuda_users_self(before.pids, before.n, now.pids, now.n, getpid());
    d->base.info.users_checked = cuda_users_are_known(now.pids, now.n, getpid());
    return GATE_OK;
}

enum gate_status device_cuda_open(int ordinal, struct device **out, struct gate_error *err)
{
    struct cuda_device *d = (struct cuda_device *)xcalloc(1, sizeof(*d));
    d->base.backend = &cuda_backend;
    const enum gate_status status = open_device(d, ordinal, err);
    if (status == GATE_OK)
        *out = &d->base;
    else
        cuda_close(&d->base);
    return status;
}
