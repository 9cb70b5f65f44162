/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_guard.cu: device memory with addresses on both sides that nothing is mapped to.
 *
 * The runtime has no call for it, so that the driver is opened; one that is too old, or a device
 * without virtual memory management, offers none, and says so. What else fails is told in the
 * driver's own words, and is no reason to stop: where the device is spoiled, what follows says
 * that.
 */
#include "gate/device/cuda_device.cuh"

#include <cuda.h>
#include <dlfcn.h>
#include <string.h>

struct guard_driver {
    decltype(&cuGetErrorName) error_name;
    decltype(&cuGetErrorString) error_text;
    decltype(&cuDeviceGet) device;
    decltype(&cuDeviceGetAttribute) attribute;
    decltype(&cuMemGetAllocationGranularity) granularity;
    decltype(&cuMemAddressReserve) reserve;
    decltype(&cuMemAddressFree) unreserve;
    decltype(&cuMemCreate) create;
    decltype(&cuMemRelease) release;
    decltype(&cuMemMap) map;
    decltype(&cuMemUnmap) unmap;
    decltype(&cuMemSetAccess) set_access;
};

static bool load_driver(struct guard_driver *v)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    return library && driver_symbol(library, "cuGetErrorName", &v->error_name) &&
           driver_symbol(library, "cuGetErrorString", &v->error_text) &&
           driver_symbol(library, "cuDeviceGet", &v->device) &&
           driver_symbol(library, "cuDeviceGetAttribute", &v->attribute) &&
           driver_symbol(library, "cuMemGetAllocationGranularity", &v->granularity) &&
           driver_symbol(library, "cuMemAddressReserve", &v->reserve) &&
           driver_symbol(library, "cuMemAddressFree", &v->unreserve) &&
           driver_symbol(library, "cuMemCreate", &v->create) &&
           driver_symbol(library, "cuMemRelease", &v->release) &&
           driver_symbol(library, "cuMemMap", &v->map) &&
           driver_symbol(library, "cuMemUnmap", &v->unmap) &&
           driver_symbol(library, "cuMemSetAccess", &v->set_access);
}

/* NULL: there is no such driver. It stays loaded, since the runtime holds it as well. */
static const struct guard_driver *driver(void)
{
    static struct guard_driver v;
    static enum { UNTRIED, PRESENT, ABSENT } state = UNTRIED;
    if (state == UNTRIED)
        state = load_driver(&v) ? PRESENT : ABSENT;
    return state == PRESENT ? &v : NULL;
}

static CUmemAllocationProp properties(const struct cuda_device *d)
{
    CUmemAllocationProp p;
    memset(&p, 0, sizeof(p));
    p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    p.location.id = d->base.info.kg.ordinal;
    return p;
}

static enum gate_status driver_fail(struct gate_error *err, const struct guard_driver *v,
                                    CUresult error, const char *what)
{
    const char *name = NULL, *text = NULL;
    (void)v->error_name(error, &name);
    (void)v->error_text(error, &text);
    return gate_fail(err, GATE_ENVIRONMENT, "%s failed: %s (%s)", what, text ? text : "?",
                     name ? name : "an error without a name");
}

/* Returns from the calling function when `call`, named `what`, fails. */
#define DRIVER_TRY(v, call, what, err)                                                             \
    do {                                                                                           \
        const CUresult driver_try_error_ = (call);                                                 \
        if (driver_try_error_ != CUDA_SUCCESS)                                                     \
            return driver_fail((err), (v), driver_try_error_, (what));                             \
    } while (0)

/* The driver, and the unit of mapped memory, of which one stays unmapped on either side. */
static enum gate_status offer(const struct cuda_device *d, const struct guard_driver **out,
                              size_t *unit, struct gate_error *err)
{
    const struct guard_driver *v = driver();
    const CUmemAllocationProp p = properties(d);
    CUdevice device;
    int offered = 0;
    if (!v)
        return gate_fail(err, GATE_ENVIRONMENT,
                         "the CUDA driver is too old to leave addresses unmapped");
    DRIVER_TRY(v, v->device(&device, d->base.info.kg.ordinal), "cuDeviceGet", err);
    DRIVER_TRY(
        v, v->attribute(&offered, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device),
        "cuDeviceGetAttribute", err);
    if (!offered)
        return gate_fail(err, GATE_ENVIRONMENT, "this GPU has no virtual memory management");
    DRIVER_TRY(v, v->granularity(unit, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
               "cuMemGetAllocationGranularity", err);
    *out = v;
    return GATE_OK;
}

/* For memory that is there, so that there is a driver; 0 where it no longer says. */
static size_t unit_of(const struct guard_driver *v, const struct cuda_device *d)
{
    const CUmemAllocationProp p = properties(d);
    size_t bytes = 0;
    return v->granularity(&bytes, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM) == CUDA_SUCCESS ? bytes : 0;
}

/* Memory for the middle of the addresses. The mapping keeps it, so its handle is let go. */
static enum gate_status map_middle(const struct guard_driver *v, const struct cuda_device *d,
                                   CUdeviceptr middle, size_t bytes, struct gate_error *err)
{
    const CUmemAllocationProp p = properties(d);
    CUmemAccessDesc access;
    CUmemGenericAllocationHandle handle;
    memset(&access, 0, sizeof(access));
    access.location = p.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    DRIVER_TRY(v, v->create(&handle, bytes, &p, 0), "cuMemCreate", err);
    const CUresult mapped = v->map(middle, bytes, 0, handle, 0);
    (void)v->release(handle);
    if (mapped != CUDA_SUCCESS)
        return driver_fail(err, v, mapped, "cuMemMap");
    const CUresult open = v->set_access(middle, bytes, &access, 1);
    if (open == CUDA_SUCCESS)
        return GATE_OK;
    (void)v->unmap(middle, bytes);
    return driver_fail(err, v, open, "cuMemSetAccess");
}

enum gate_status cuda_guard_alloc(struct device *device, size_t bytes, const char *name,
                                  struct device_memory *out, struct gate_error *err)
{
    struct cuda_device *d = cuda_of(device);
    const struct guard_driver *v;
    CUdeviceptr all = 0;
    size_t fence;
    (void)name;
    TRY(offer(d, &v, &fence, err));
    const size_t mapped = (bytes + fence - 1) / fence * fence;
    DRIVER_TRY(v, v->reserve(&all, mapped + 2 * fence, fence, 0, 0), "cuMemAddressReserve", err);
    const enum gate_status status = map_middle(v, d, all + fence, mapped, err);
    if (status != GATE_OK) {
        (void)v->unreserve(all, mapped + 2 * fence);
        return status;
    }
    out->data = (void *)(all + fence);
    out->bytes = mapped;
    return GATE_OK;
}

/* After an error of the device this fails as well, and the worker is about to end. */
void cuda_guard_free(struct device *device, struct device_memory *m)
{
    const struct guard_driver *v = driver();
    const size_t fence = unit_of(v, cuda_of(device));
    const CUdeviceptr middle = (CUdeviceptr)m->data;
    if (cudaDeviceSynchronize() != cudaSuccess)
        (void)cudaGetLastError();
    (void)v->unmap(middle, m->bytes);
    (void)v->unreserve(middle - fence, m->bytes + 2 * fence);
}

/* ---- pieces far apart ---- */

struct chunk {
    size_t begin, bytes; /* of the addresses, in whole units */
};

static struct chunk chunk_of(const struct device_pieces *pieces, size_t i, size_t whole)
{
    const size_t begin = i * pieces->stride / whole * whole;
    const size_t end = (i * pieces->stride + pieces->bytes + whole - 1) / whole * whole;
    const struct chunk c = {begin, end - begin};
    return c;
}

static size_t span_of(const struct device_pieces *pieces, size_t whole)
{
    const struct chunk last = chunk_of(pieces, pieces->n - 1, whole);
    return last.begin + last.bytes;
}

static void unmap_pieces(const struct guard_driver *v, const struct device_pieces *pieces, size_t n,
                         CUdeviceptr all, size_t whole)
{
    for (size_t i = 0; i < n; i++) {
        const struct chunk c = chunk_of(pieces, i, whole);
        (void)v->unmap(all + c.begin, c.bytes);
    }
    (void)v->unreserve(all, span_of(pieces, whole));
}

enum gate_status cuda_spread_alloc(struct device *device, const struct device_pieces *pieces,
                                   struct device_memory *out, struct gate_error *err)
{
    struct cuda_device *d = cuda_of(device);
    const struct guard_driver *v;
    enum gate_status status = GATE_OK;
    CUdeviceptr all = 0;
    size_t whole, n = 0;
    TRY(offer(d, &v, &whole, err));
    if (pieces->stride < pieces->bytes + 2 * whole)
        return gate_fail(err, GATE_ENVIRONMENT,
                         "this GPU maps %zu bytes at a time, too many to leave some unmapped",
                         whole);
    DRIVER_TRY(v, v->reserve(&all, span_of(pieces, whole), whole, 0, 0), "cuMemAddressReserve",
               err);
    while (n < pieces->n && status == GATE_OK) {
        const struct chunk c = chunk_of(pieces, n, whole);
        status = map_middle(v, d, all + c.begin, c.bytes, err);
        n += status == GATE_OK;
    }
    if (status != GATE_OK) {
        unmap_pieces(v, pieces, n, all, whole);
        return status;
    }
    out->data = (void *)all;
    out->bytes = span_of(pieces, whole);
    return GATE_OK;
}

/* As cuda_guard_free(). */
void cuda_spread_free(struct device *device, const struct device_pieces *pieces,
                      struct device_memory *m)
{
    const struct guard_driver *v = driver();
    const size_t whole = unit_of(v, cuda_of(device));
    if (cudaDeviceSynchronize() != cudaSuccess)
        (void)cudaGetLastError();
    if (whole)
        unmap_pieces(v, pieces, pieces->n, (CUdeviceptr)m->data, whole);
}
