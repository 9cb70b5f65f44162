/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/launch/code.h"

#include <sha2.h>
#include <stdio.h>
#include <string.h>

static unsigned larger(unsigned a, unsigned b)
{
    return a > b ? a : b;
}

static void add_resources(struct code *code, const struct device_kernel *k)
{
    code->has_resources = true;
    code->registers = larger(code->registers, k->registers);
    code->spill_bytes = larger(code->spill_bytes, k->local_bytes);
    code->shared_bytes = larger(code->shared_bytes, k->shared_bytes);
}

static void add_kernel(SHA2_CTX *context, const struct device_kernel *k, const char hex[65])
{
    SHA256Update(context, (const uint8_t *)hex, 64);
    SHA256Update(context, (const uint8_t *)k->grid, sizeof k->grid);
    SHA256Update(context, (const uint8_t *)k->block, sizeof k->block);
    SHA256Update(context, (const uint8_t *)&k->shared_bytes, sizeof k->shared_bytes);
}

/* The kernel as the file has it for this architecture. */
static struct resources find_resources(const struct machine_code *library, const char *name,
                                       unsigned architecture)
{
    const struct machine_kernel *kernels;
    size_t n = library ? machine_code_kernels(library, &kernels) : 0;
    struct resources r = {0};
    for (int i = 0; i < RESOURCE_COUNT; i++)
        r.of[i] = -1;
    for (size_t i = 0; i < n; i++)
        if (!strcmp(kernels[i].name, name)) {
            struct resources found = resources_of(&kernels[i]);
            if (found.architecture == architecture)
                return found;
        }
    return r;
}

/* Calls that do not all launch the same have no number for each. */
static void keep_kernel(struct code *code, const struct device_kernel *k, unsigned calls,
                        const char *hex, struct resources resources)
{
    if (code->n_kernels == CODE_KERNELS_MAX)
        return;
    struct code_kernel *kept = &code->kernels[code->n_kernels++];
    kept->name = k->name;
    snprintf(kept->sha256, sizeof kept->sha256, "%s", hex);
    memcpy(kept->grid, k->grid, sizeof kept->grid);
    memcpy(kept->block, k->block, sizeof kept->block);
    kept->shared_bytes = k->shared_bytes;
    kept->launches = k->launches % calls ? 0 : k->launches / calls;
    kept->resources = resources;
    kept->resources.of[RESOURCE_REGISTERS] = k->registers; /* as the driver has it */
}

struct code code_of(const struct device_kernels *kernels, unsigned calls,
                    const struct machine_code *library, unsigned architecture)
{
    struct code code = {.sequence = kernels->sequence};
    SHA2_CTX context;
    char hex[65];
    bool known = library && kernels->n > 0;
    SHA256Init(&context);
    for (size_t i = 0; i < kernels->n; i++) {
        const struct device_kernel *k = &kernels->list[i];
        add_resources(&code, k);
        bool found = library && machine_code_hash(library, k->name, hex);
        known = known && found;
        if (known)
            add_kernel(&context, k, hex);
        keep_kernel(&code, k, calls, found ? hex : "",
                    find_resources(library, k->name, architecture));
    }
    if (known)
        SHA256End(&context, code.sha256);
    code.is_whole = known && kernels->n == code.n_kernels;
    return code;
}

bool code_is_same(const struct code *a, const struct code *b)
{
    return a->sha256[0] && a->sequence != 0 && a->sequence == b->sequence &&
           strcmp(a->sha256, b->sha256) == 0;
}
