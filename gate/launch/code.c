/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/launch/code.h"

#include <sha2.h>
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

struct code code_of(const struct device_kernels *kernels, const struct machine_code *library)
{
    struct code code = {.sequence = kernels->sequence};
    SHA2_CTX context;
    char hex[65];
    bool known = library && kernels->n > 0;
    SHA256Init(&context);
    for (size_t i = 0; i < kernels->n; i++) {
        const struct device_kernel *k = &kernels->list[i];
        add_resources(&code, k);
        known = known && machine_code_hash(library, k->name, hex);
        if (known)
            add_kernel(&context, k, hex);
    }
    if (known)
        SHA256End(&context, code.sha256);
    return code;
}

bool code_is_same(const struct code *a, const struct code *b)
{
    return a->sha256[0] && a->sequence != 0 && a->sequence == b->sequence &&
           strcmp(a->sha256, b->sha256) == 0;
}
