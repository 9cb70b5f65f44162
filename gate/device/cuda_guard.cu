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

/* The driver, and the unit of mapped memory. */
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

/* Memory for some of the addresses. The mapping keeps it, so its handle is let go. */
static enum gate_status map_some(const struct guard_driver *v, const struct cuda_device *d,
                                 CUdeviceptr at, size_t bytes, struct gate_error *err)
{
    const CUmemAllocationProp p = properties(d);
    CUmemAccessDesc access;
    CUmemGenericAllocationHandle handle;
    memset(&access, 0, sizeof(access));
    access.location = p.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    DRIVER_TRY(v, v->create(&handle, bytes, &p, 0), "cuMemCreate", err);
    const CUresult mapped = v->map(at, bytes, 0, handle, 0);
    (void)v->release(handle);
    if (mapped != CUDA_SUCCESS)
        return driver_fail(err, v, mapped, "cuMemMap");
    const CUresult open = v->set_access(at, bytes, &access, 1);
    if (open == CUDA_SUCCESS)
        return GATE_OK;
    (void)v->unmap(at, bytes);
    return driver_fail(err, v, open, "cuMemSetAccess");
}

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

/* The first `n`, and the addresses of all. */
static void unmap_pieces(const struct guard_driver *v, const struct device_pieces *pieces, size_t n,
                         CUdeviceptr first, size_t whole)
{
    for (size_t i = 0; i < n; i++) {
        const struct chunk c = chunk_of(pieces, i, whole);
        (void)v->unmap(first + c.begin, c.bytes);
    }
    (void)v->unreserve(first - whole, span_of(pieces, whole) + 2 * whole);
}

/* A unit stays unmapped on either side. */
enum gate_status cuda_alloc_apart(struct device *device, const struct device_pieces *pieces,
                                  const char *, struct device_memory *out, struct gate_error *err)
{
    struct cuda_device *d = cuda_of(device);
    const struct guard_driver *v = NULL;
    enum gate_status status = GATE_OK;
    CUdeviceptr all = 0;
    size_t whole, n = 0;
    TRY(offer(d, &v, &whole, err));
    if (pieces->n > 1 && pieces->stride < pieces->bytes + 2 * whole)
        return gate_fail(err, GATE_ENVIRONMENT,
                         "this GPU maps %zu bytes at a time, too many to leave some unmapped",
                         whole);
    const size_t span = span_of(pieces, whole);
    DRIVER_TRY(v, v->reserve(&all, span + 2 * whole, whole, 0, 0), "cuMemAddressReserve", err);
    const CUdeviceptr first = all + whole;
    while (n < pieces->n && status == GATE_OK) {
        const struct chunk c = chunk_of(pieces, n, whole);
        status = map_some(v, d, first + c.begin, c.bytes, err);
        n += status == GATE_OK;
    }
    if (status != GATE_OK) {
        unmap_pieces(v, pieces, n, first, whole);
        return status;
    }
    *out = {(void *)first, span, *pieces};
    return GATE_OK;
}

/* There is such memory, so that there is a driver. After an error of the device this fails as well,
 * and the worker is about to end. */
void cuda_free_apart(struct device *device, const struct device_memory *m)
{
    const struct guard_driver *v = driver();
    const CUmemAllocationProp p = properties(cuda_of(device));
    size_t whole = 0;
    if (cudaDeviceSynchronize() != cudaSuccess)
        (void)cudaGetLastError();
    if (v->granularity(&whole, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM) == CUDA_SUCCESS)
        unmap_pieces(v, &m->apart, m->apart.n, (CUdeviceptr)m->data, whole);
}
