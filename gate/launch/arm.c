/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/launch/arm.h"

#include <inttypes.h>
#include <sha2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/alloc.h"
#include "gate/base/buf.h"
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

void verification_skip(struct verification *v, int64_t *reason)
{
    document_count(reason, 1);
    v->record.skipped++;
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

void arm_release(struct arm *arm)
{
    free(arm->samples);
    free(arm->code.launches);
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

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* `hex`: of its code; "": not known. */
static void add_kernel(struct code *code, size_t at, const struct device_kernel *k, unsigned calls,
                       const char *hex, const struct machine_kernel *own)
{
    struct resources found;
    struct document_kernel *to = &code->kernels[at];
    char *name = code->texts[at].name, *grid = code->texts[at].grid, *block = code->texts[at].block;
    snprintf(name, sizeof code->texts[at].name, "%s", k->name);
    snprintf(grid, sizeof code->texts[at].grid, "%u x %u x %u", k->grid[0], k->grid[1], k->grid[2]);
    snprintf(block, sizeof code->texts[at].block, "%u x %u x %u", k->block[0], k->block[1],
             k->block[2]);
    memcpy(code->texts[at].sha256, hex, strlen(hex) + 1);
    memset(found.of, -1, sizeof found.of);
    if (own)
        found = resources_of(own);
    *to = (struct document_kernel){.name = name,
                                   .grid = grid,
                                   .block = block,
                                   .code_sha256 = *hex ? code->texts[at].sha256 : NULL,
                                   .launches = -1,
                                   .shared_bytes = k->shared_bytes,
                                   .registers = k->registers, /* as the driver has it */
                                   .stack = found.of[RESOURCE_STACK],
                                   .local_stores = found.of[RESOURCE_LOCAL_STORES],
                                   .local_loads = found.of[RESOURCE_LOCAL_LOADS],
                                   .barriers = found.of[RESOURCE_BARRIERS],
                                   .code = found.of[RESOURCE_CODE]};
    if (k->launches % calls ==
        0) /* calls that do not all launch the same have no number for each */
        document_count(&to->launches, k->launches / calls);
}

void code_read(struct code *code, const struct device_kernels *kernels, unsigned calls,
               const struct machine_code *library, unsigned architecture,
               struct document_timing *out)
{
    RELEASED_BY(buf_release) struct buf launches = buf_of(LAUNCHES_TEXT_MAX);
    SHA2_CTX context;
    bool known = library && kernels->n > 0;
    bool whole = kernels->order && kernels->n <= DOCUMENT_KERNELS_MAX;
    *code = (struct code){.sequence = kernels->sequence};
    SHA256Init(&context);
    for (size_t i = 0; i < kernels->n; i++) {
        const struct device_kernel *k = &kernels->list[i];
        char hex[65] = "";
        out->registers = larger(out->registers, k->registers);
        out->spill_bytes = larger(out->spill_bytes, k->local_bytes);
        out->shared_bytes = larger(out->shared_bytes, k->shared_bytes);
        if (!library || !machine_code_hash(library, k->name, hex)) {
            known = false;
            hex[0] = '\0';
        }
        SHA256Update(&context, (const uint8_t *)hex, strlen(hex));
        SHA256Update(&context, (const uint8_t *)k->grid, sizeof k->grid);
        SHA256Update(&context, (const uint8_t *)k->block, sizeof k->block);
        SHA256Update(&context, (const uint8_t *)&k->shared_bytes, sizeof k->shared_bytes);
        if (i >= DOCUMENT_KERNELS_MAX)
            continue;
        /* Of two of one name, as the cubins of a bundle may have, nobody knows which one ran. */
        add_kernel(code, i, k, calls, hex,
                   hex[0] ? machine_code_on(library, k->name, architecture) : NULL);
        out->kernels = code->kernels;
        out->n_kernels = i + 1;
        whole &= code->kernels[i].launches > 0;
        buf_printf(&launches, "launches %u code %s grid %ux%ux%u block %ux%ux%u shared %u; ",
                   k->launches / calls, hex, k->grid[0], k->grid[1], k->grid[2], k->block[0],
                   k->block[1], k->block[2], k->shared_bytes);
    }
    buf_printf(&launches, "order %016" PRIx64, kernels->order);
    if (!known)
        return;
    SHA256End(&context, code->sha256);
    out->code_sha256 = code->sha256;
    out->launches = code->launches = whole ? buf_detach(&launches) : NULL;
}

bool code_is_same(const struct code *a, const struct code *b)
{
    return a->sha256[0] && a->sequence != 0 && a->sequence == b->sequence &&
           strcmp(a->sha256, b->sha256) == 0;
}
