/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/worker/worker.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/alloc.h"
#include "gate/base/buf.h"
#include "gate/verify/verify_layout.h"
#include "kernels/ops/pattern.h"

struct document_device record_device(const struct device_info *info)
{
    return (struct document_device){
        .kind = info->kg.kind == KG_DEVICE_CUDA ? DEVICE_CUDA : DEVICE_HOST,
        .model = info->model,
        .name = info->name,
        .uuid = info->uuid,
        .sm_count = info->kg.sm_count,
        .l2_bytes = (int64_t)info->kg.l2_bytes,
        .memory_bytes = (int64_t)info->memory_bytes,
        .capability = info->capability,
        .driver = info->driver,
        .runtime = info->runtime,
        .power_limit_mw = (int64_t)info->power_limit_mw,
        .sm_clock_max_mhz = (int64_t)info->sm_clock_max_mhz,
    };
}

struct document_library record_library(const struct library *lib, enum document_role role)
{
    return (struct document_library){.role = (int)role,
                                     .provider = lib->table->provider,
                                     .version = lib->table->version,
                                     .file = lib->file,
                                     .sha256 = lib->sha256};
}

static double known_or_nan(double value, bool known)
{
    return known && isfinite(value) ? value : NAN;
}

static int64_t count_or_none(unsigned n)
{
    return n ? (int64_t)n : -1;
}

static void record_values(const unsigned *n, struct document_covered_values *out)
{
    *out = (struct document_covered_values){
        .random_normal = count_or_none(n[PROBE_NORMAL]),
        .random_uniform = count_or_none(n[PROBE_UNIFORM]),
        .exact_integers = count_or_none(n[PROBE_INTEGERS]),
        .exact_cancellation = count_or_none(n[PROBE_CANCELLATION]),
        .exact_powers_of_two = count_or_none(n[PROBE_EXPONENTS]),
        .exact_largest = count_or_none(n[PROBE_LARGEST]),
        .nan_and_infinity = count_or_none(n[PROBE_SPECIAL] + n[PROBE_NAN]),
        .nan_and_infinity_in_second = count_or_none(n[PROBE_SPECIAL_SECOND]),
        .nan_in_second = count_or_none(n[PROBE_NAN_SECOND]),
        .constant = count_or_none(n[PROBE_CONSTANT]),
        .zeros = count_or_none(n[PROBE_ZERO_FIRST] + n[PROBE_ZERO_SECOND] + n[PROBE_ZERO_THIRD] +
                               n[PROBE_ZERO_PARTS]),
        .one_value = count_or_none(n[PROBE_ONE_VALUE]),
        .retrieval = count_or_none(n[PROBE_RETRIEVAL]),
        .score_ramp = count_or_none(n[PROBE_RAMP]),
        .huge_masked_keys = count_or_none(n[PROBE_MASKED]),
        .shifted_scores = count_or_none(n[PROBE_SHIFTED]),
        .stretched_scores = count_or_none(n[PROBE_STRETCHED]),
        .faint_keys = count_or_none(n[PROBE_FAINT]),
        .low_scores = count_or_none(n[PROBE_LOW]),
    };
}
static_assert(PROBES == 23 && PROBES <= COVERAGE_VALUES, "each kind has a name in the document");

static void record_layouts(const struct coverage *c, struct document_covered_layouts *out)
{
    *out = (struct document_covered_layouts){
        .dense = count_or_none(c->layouts[TENSOR_DENSE]),
        .padded_rows = count_or_none(c->layouts[TENSOR_PADDED]),
        .wide_rows = count_or_none(c->layouts[TENSOR_WIDE]),
        .odd_rows = count_or_none(c->layouts[TENSOR_ODD]),
        .heads_side_by_side = count_or_none(c->layouts[TENSOR_HEADS]),
        .heads_apart = count_or_none(c->layouts[TENSOR_APART]),
        .far_rows = count_or_none(c->far),
        .unmapped_beside = count_or_none(c->guarded),
    };
}
static_assert(TENSOR_LAYOUTS == 6 && TENSOR_LAYOUTS <= COVERAGE_LAYOUTS, "so has each layout");

/* Where there are several: the errors of a small one do not show in the worst of all. */
static void record_outputs(const struct verification *v, const struct kg_problem *p,
                           struct document_output list[DOCUMENT_OUTPUTS_MAX],
                           struct document_verify *out)
{
    const struct op_tensor *tensors = op_of(p)->tensors + p->n_in;
    if (p->n_out < 2 || !v->seeds)
        return;
    for (uint32_t i = 0; i < p->n_out; i++)
        list[i] =
            (struct document_output){tensors[i].name, known_or_nan(v->output_rel_fro[i], true)};
    out->outputs = list;
    out->n_outputs = p->n_out;
}
static_assert(KG_MAX_TENSORS <= DOCUMENT_OUTPUTS_MAX, "all outputs have a place");

static void record_verification(const struct verification *v, const struct kg_problem *p,
                                struct record_memory *memory, struct document_verify *out)
{
    const struct left_out *l = &v->left_out;
    const struct coverage *c = &v->coverage;
    unsigned kinds = 0;
    for (unsigned i = 0; i < COVERAGE_VALUES; i++)
        kinds += c->values[i] > 0;
    out->ok = v->ok;
    out->seeds = v->seeds;
    out->rel_fro = known_or_nan(v->rel_fro, v->seeds > 0);
    record_outputs(v, p, memory->outputs, out);
    out->limit = v->limit;
    out->max_abs = known_or_nan(v->max_abs, v->seeds > 0);
    out->allclose_1e2 = v->seeds ? v->allclose_1e2 : 0;
    out->allclose_1e3 = v->seeds ? v->allclose_1e3 : 0;
    out->nonfinite = v->nonfinite;
    out->message = v->message;
    out->checks = v->checks;
    out->skipped = l->refused + l->not_served + l->not_guarded + l->too_large;
    out->refused = count_or_none(l->refused);
    out->not_served = count_or_none(l->not_served);
    out->not_guarded = count_or_none(l->not_guarded);
    out->too_large = count_or_none(l->too_large);
    out->why_not_guarded = l->why_not_guarded[0] ? l->why_not_guarded : NULL;
    out->not_declared = l->not_declared;
    out->values = count_or_none(kinds);
    out->shapes = count_or_none(c->small + c->as_large + c->giant);
    out->layouts = count_or_none(c->strided + c->far);
    out->launches = count_or_none(c->launches);
    out->has_covered = kinds > 0;
    record_values(c->values, &out->covered.values);
    out->covered.shapes = (struct document_covered_shapes){
        count_or_none(c->small), count_or_none(c->as_large), count_or_none(c->giant)};
    record_layouts(c, &out->covered.layouts);
    out->covered.launches = (struct document_covered_launches){
        count_or_none(c->launches - c->in_a_row), count_or_none(c->in_a_row),
        count_or_none(c->on_the_case)};
    out->pairs = count_or_none(c->pairs);
    out->pairs_of = count_or_none(c->pairs_of);
    out->own_shape_only = v->own_shape_only ? YES : UNKNOWN;
    if (v->vendor[0] && isfinite(v->rel_fro) && v->vendor_rel_fro > 0) {
        out->vendor = v->vendor;
        out->vendor_ratio = v->rel_fro / v->vendor_rel_fro;
    }
}

/* Base64 of little-endian float32, as the schema says: every platform of the gate is little-endian.
 */
static char *record_samples(const double *samples_ns, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const size_t size = n * sizeof(float);
    float *values = xcalloc(n, sizeof *values);
    for (size_t i = 0; i < n; i++)
        values[i] = (float)samples_ns[i];
    const unsigned char *bytes = (const unsigned char *)values;
    char *text = xcalloc(1, size / 3 * 4 + 8), *to = text;
    for (size_t i = 0; i < size; i += 3) {
        size_t left = size - i;
        unsigned word = (unsigned)bytes[i] << 16;
        word |= left > 1 ? (unsigned)bytes[i + 1] << 8 : 0;
        word |= left > 2 ? bytes[i + 2] : 0;
        *to++ = digits[word >> 18];
        *to++ = digits[word >> 12 & 63];
        *to++ = left > 1 ? digits[word >> 6 & 63] : '=';
        *to++ = left > 2 ? digits[word & 63] : '=';
    }
    free(values);
    return text;
}

struct record_kernels {
    struct document_kernel list[CODE_KERNELS_MAX];
    struct {
        char name[DOCUMENT_KERNEL_NAME_SIZE], grid[48], block[48];
    } text[CODE_KERNELS_MAX];
};
static_assert(CODE_KERNELS_MAX <= DOCUMENT_KERNELS_MAX, "all that are kept have a place");

static void put_sizes(const unsigned size[3], char text[48])
{
    snprintf(text, 48, "%u x %u x %u", size[0], size[1], size[2]);
}

/* NULL: there are none. */
static struct record_kernels *record_kernels(const struct code *code, struct document_timing *out)
{
    struct record_kernels *kernels = code->n_kernels ? xcalloc(1, sizeof *kernels) : NULL;
    for (size_t i = 0; i < code->n_kernels; i++) {
        const struct code_kernel *k = &code->kernels[i];
        const int64_t *of = k->resources.of;
        snprintf(kernels->text[i].name, sizeof kernels->text[i].name, "%s", k->name);
        put_sizes(k->grid, kernels->text[i].grid);
        put_sizes(k->block, kernels->text[i].block);
        kernels->list[i] = (struct document_kernel){.name = kernels->text[i].name,
                                                    .grid = kernels->text[i].grid,
                                                    .block = kernels->text[i].block,
                                                    .code_sha256 = k->sha256[0] ? k->sha256 : NULL,
                                                    .launches = count_or_none(k->launches),
                                                    .shared_bytes = k->shared_bytes,
                                                    .registers = of[RESOURCE_REGISTERS],
                                                    .stack = of[RESOURCE_STACK],
                                                    .local_stores = of[RESOURCE_LOCAL_STORES],
                                                    .local_loads = of[RESOURCE_LOCAL_LOADS],
                                                    .barriers = of[RESOURCE_BARRIERS],
                                                    .code = of[RESOURCE_CODE]};
    }
    out->kernels = kernels ? kernels->list : NULL;
    out->n_kernels = code->n_kernels;
    return kernels;
}

/* What one call of launch() runs, so that it can be compared with what another build of the same
 * commit runs (revision.h); NULL: not all of it is known. */
static char *record_launches(const struct code *code)
{
    RELEASED_BY(buf_release) struct buf out = buf_of(LAUNCHES_TEXT_MAX);
    bool known = code->is_whole && code->order;
    for (size_t i = 0; i < code->n_kernels; i++) {
        const struct code_kernel *k = &code->kernels[i];
        known = known && k->launches && k->sha256[0];
        buf_printf(&out, "launches %u code %s grid %ux%ux%u block %ux%ux%u shared %u; ",
                   k->launches, k->sha256, k->grid[0], k->grid[1], k->grid[2], k->block[0],
                   k->block[1], k->block[2], k->shared_bytes);
    }
    buf_printf(&out, "order %016" PRIx64, code->order);
    return known ? buf_detach(&out) : NULL;
}

struct document_arm record_arm(const struct arm *arm, const struct kg_problem *p,
                               struct record_memory *memory)
{
    struct document_arm out;
    fields_clear(&document_arm_shape, &out);
    out.provider = arm->library->table->provider;
    out.role = (int)arm->role;
    out.kernel = arm->kernel->name;
    out.has_verify = true;
    *memory = (struct record_memory){.samples = NULL};
    record_verification(&arm->verification, p, memory, &out.verify);
    out.verify.has_covered &= arm->role == ROLE_CANDIDATE;
    out.has_timing = arm->timed;
    if (!arm->timed)
        return out;
    out.timing = arm->timing;
    if (arm->code.sha256[0])
        out.timing.code_sha256 = arm->code.sha256;
    if (arm->samples_ns)
        memory->samples = record_samples(arm->samples_ns, (size_t)arm->timing.samples);
    out.timing.samples_ns = memory->samples;
    if (arm->role != ROLE_PROVIDER) {
        memory->launches = record_launches(&arm->code);
        memory->kernels = record_kernels(&arm->code, &out.timing);
    }
    out.timing.launches = memory->launches;
    return out;
}

void record_free(struct record_memory *memory)
{
    free(memory->samples);
    free(memory->launches);
    free(memory->kernels);
}
