/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/launch/arm.h"

#include <sha2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/alloc.h"
#include "gate/base/utf8.h"

/* ---- plans ---- */

struct kept {
    const struct kg_kernel *kernel;
    struct kg_problem problem;
    void *plan;
    struct kept *next;
};

static struct kept *all;

void *plan_of(const struct kg_kernel *k, const struct kg_problem *p)
{
    for (const struct kept *x = all; x; x = x->next)
        if (x->kernel == k && !memcmp(&x->problem, p, sizeof *p))
            return x->plan;
    return NULL;
}

enum kg_status plan_prepare(const struct kg_kernel *k, const struct kg_problem *p,
                            const struct kg_device *where)
{
    void *plan = NULL;
    if (plan_of(k, p))
        return KG_OK;
    enum kg_status status = library_prepare(k, p, where, &plan);
    if (status != KG_OK || !plan)
        return status;
    struct kept *kept = xcalloc(1, sizeof *kept);
    *kept = (struct kept){k, *p, plan, all};
    all = kept;
    return KG_OK;
}

uint64_t plan_workspace_bytes(const struct kg_kernel *k, const struct kg_problem *p,
                              const struct kg_device *where)
{
    return k->workspace_bytes ? k->workspace_bytes(p, where, plan_of(k, p)) : 0;
}

void plan_release_all(void)
{
    while (all) {
        struct kept *kept = all;
        all = kept->next;
        if (kept->kernel->release)
            kept->kernel->release(kept->plan);
        free(kept);
    }
}

/* ---- launches ---- */

void verification_fault(struct verification *v, const char *format, ...)
{
    va_list args;
    v->ok = false;
    if (v->message[0])
        return;
    va_start(args, format);
    vsnprintf(v->message, sizeof v->message, format, args);
    va_end(args);
    utf8_trim(v->message);
}

enum gate_status arm_prepare(struct device *d, const struct kg_problem *p, struct arm *arm,
                             const struct kg_kernel *k, struct gate_error *err)
{
    const struct kg_device *where = &device_info(d)->kg;
    enum kg_status status = plan_prepare(k, p, where);
    const char *why = library_fault(k);
    if (status != KG_OK)
        return gate_fail(err, GATE_WRONG, "prepare() of kernel '%s' returned '%s'%s%s", k->name,
                         library_status_name(status), *why ? ": " : "", why);
    uint64_t bytes = plan_workspace_bytes(k, p, where);
    if (bytes > (uint64_t)device_info(d)->memory_bytes)
        return gate_fail(err, GATE_ENVIRONMENT,
                         "kernel '%s' asks for a workspace of %llu bytes, more than the device has",
                         k->name, (unsigned long long)bytes);
    if (bytes > arm->workspace_bytes)
        arm->workspace_bytes = bytes;
    return GATE_OK;
}

const char *arm_label(const struct arm *arm)
{
    return arm->role == ROLE_BASELINE ? "baseline" : arm->library->table->provider;
}

struct arm_launch arm_launch_of(const struct arm *arm, const struct kg_kernel *kernel,
                                const struct kg_problem *problem, const struct operands *sets,
                                struct device_memory workspace)
{
    return (struct arm_launch){.arm = arm,
                               .kernel = kernel,
                               .problem = problem,
                               .plan = plan_of(kernel, problem),
                               .sets = sets,
                               .n_sets = 1,
                               .workspace = workspace};
}

enum kg_status arm_launch(void *context, unsigned index, void *stream)
{
    const struct arm_launch *l = context;
    const struct operands *set = &l->sets[index % l->n_sets];
    struct kg_args args = set->args;
    problem_update_in_place(set->out, &args);
    args.workspace_bytes = l->arm->workspace_bytes;
    args.workspace = args.workspace_bytes ? l->workspace.data : NULL;
    args.stream = stream;
    args.plan = l->plan;
    return l->kernel->launch(l->problem, &args);
}

/* ---- machine code ---- */

static unsigned larger(unsigned a, unsigned b)
{
    return a > b ? a : b;
}

struct code code_of(const struct device_kernels *kernels, unsigned calls,
                    const struct machine_code *library, unsigned architecture)
{
    struct code code = {.sequence = kernels->sequence};
    SHA2_CTX context;
    bool known = library && kernels->n > 0;
    SHA256Init(&context);
    for (size_t i = 0; i < kernels->n; i++) {
        const struct device_kernel *k = &kernels->list[i];
        char hex[65] = "";
        code.has_resources = true;
        code.registers = larger(code.registers, k->registers);
        code.spill_bytes = larger(code.spill_bytes, k->local_bytes);
        code.shared_bytes = larger(code.shared_bytes, k->shared_bytes);
        if (!library || !machine_code_hash(library, k->name, hex)) {
            known = false;
            hex[0] = '\0';
        }
        SHA256Update(&context, (const uint8_t *)hex, strlen(hex));
        SHA256Update(&context, (const uint8_t *)k->grid, sizeof k->grid);
        SHA256Update(&context, (const uint8_t *)k->block, sizeof k->block);
        SHA256Update(&context, (const uint8_t *)&k->shared_bytes, sizeof k->shared_bytes);
        if (code.n_kernels == CODE_KERNELS_MAX)
            continue;
        struct code_kernel *kept = &code.kernels[code.n_kernels++];
        kept->name = k->name;
        memcpy(kept->sha256, hex, sizeof kept->sha256);
        memcpy(kept->grid, k->grid, sizeof kept->grid);
        memcpy(kept->block, k->block, sizeof kept->block);
        kept->shared_bytes = k->shared_bytes;
        /* Calls that do not all launch the same have no number for each. */
        kept->launches = k->launches % calls ? 0 : k->launches / calls;
        /* Of two of one name, as the cubins of a bundle may have, nobody knows which one ran. */
        const struct machine_kernel *own =
            hex[0] ? machine_code_on(library, k->name, architecture) : NULL;
        for (int r = 0; r < RESOURCE_COUNT; r++)
            kept->resources.of[r] = -1;
        if (own)
            kept->resources = resources_of(own);
        kept->resources.of[RESOURCE_REGISTERS] = k->registers; /* as the driver has it */
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
