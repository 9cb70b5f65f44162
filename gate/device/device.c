/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/device/device.h"

enum gate_status device_open(const char *spec, struct device **out, struct gate_error *err)
{
    if (!strcmp(spec, "host"))
        return device_host_open(out, err);
    char *end;
    if (!strncmp(spec, "cuda:", 5) && spec[5] >= '0' && spec[5] <= '9') {
        long ordinal = strtol(spec + 5, &end, 10);
        if (!*end && ordinal <= 1023) {
#ifdef GATE_CUDA
            return device_cuda_open((int)ordinal, out, err);
#else
            return gate_fail(err, GATE_ENVIRONMENT,
                             "this gate was built without CUDA, so it cannot open '%s'; build it "
                             "with nvcc, or use --device host",
                             spec);
#endif
        }
    }
    return gate_fail(err, GATE_USAGE, "unknown device '%s'; use 'auto', 'host' or 'cuda:N'", spec);
}

/* Lower case, everything else than letters and digits as single dashes: "host-amd-epyc". */
void device_model_key(const char *prefix, const char *name, char *key, size_t size)
{
    size_t n = (size_t)snprintf(key, size, "%s", prefix);
    for (; *name && n + 1 < size; name++) {
        if (isalnum((unsigned char)*name))
            key[n++] = (char)tolower((unsigned char)*name);
        else if (n && key[n - 1] != '-')
            key[n++] = '-';
    }
    while (n && key[n - 1] == '-')
        n--;
    key[n] = '\0';
}

void device_close(struct device *d)
{
    if (d)
        d->backend->close(d);
}

void device_free(struct device *d, struct device_memory *m)
{
    if (m->data)
        (m->apart.n ? d->backend->free_apart : d->backend->free)(d, m);
    *m = (struct device_memory){0};
}

enum gate_status device_reserve(struct device *d, struct device_memory *m, size_t bytes,
                                struct gate_error *err)
{
    if (m->bytes >= bytes)
        return GATE_OK;
    device_free(d, m);
    return device_alloc(d, bytes, m, err);
}

void device_replay_free(struct device *d, struct device_replay *r)
{
    if (r)
        d->backend->replay_free(d, r);
}

enum gate_status device_ceiling_run(struct device *d, enum device_ceiling which, unsigned rounds,
                                    struct device_ceiling_run *out, struct gate_error *err)
{
    if (!d->backend->ceiling_run)
        return gate_fail(err, GATE_ENVIRONMENT, "the ceiling of a host is not measured");
    return d->backend->ceiling_run(d, which, rounds, out, err);
}

enum gate_status device_state_read(struct device *d, struct device_state *out,
                                   struct gate_error *err)
{
    *out = (struct device_state){0};
    return d->backend->state_read ? d->backend->state_read(d, out, err) : GATE_OK;
}

enum gate_status device_replay_nodes(struct device *d, struct device_replay *r, unsigned launches,
                                     struct device_nodes *out, struct gate_error *err)
{
    *out = (struct device_nodes){.n = 0};
    if (!d->backend->replay_nodes)
        return gate_fail(err, GATE_USAGE, "a launch on the host is one call, of no nodes");
    return d->backend->replay_nodes(d, r, launches, out, err);
}
