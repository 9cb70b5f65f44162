/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/launch/arm.h"

#include <stdio.h>
#include <stdlib.h>

#include "gate/base/alloc.h"
#include "gate/base/seed.h"
#include "kernels/ops/pattern.h"
#include "kernels/ops/storage.h"

#define ALIGNMENT 256

static size_t aligned_bytes(const struct problem_tensor *t)
{
    return (problem_tensor_bytes(t) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

size_t operands_bytes(const struct kg_problem *p, struct operands_zones zones)
{
    struct problem_tensor tensors[PROBLEM_MAX_TENSORS];
    size_t bytes = zones.before;
    for (unsigned i = problem_tensors(p, tensors); i-- > 0;)
        bytes += aligned_bytes(&tensors[i]) + zones.behind;
    return bytes;
}

struct operands operands_at(struct device *d, const struct kg_problem *p, void *memory,
                            struct operands_zones zones)
{
    struct problem_tensor tensors[PROBLEM_MAX_TENSORS];
    unsigned n = problem_tensors(p, tensors);
    struct operands o = {.args = {.struct_bytes = sizeof o.args, .stream = d->stream},
                         .zones = zones};
    char *at = (char *)memory + zones.before;
    for (unsigned i = 0; i < n; i++) {
        struct kg_tensor view = problem_dense(&tensors[i], at);
        at += aligned_bytes(&tensors[i]) + zones.behind;
        if (tensors[i].is_output) {
            o.out[o.args.n_out] = tensors[i];
            o.args.out[o.args.n_out++] = view;
        } else {
            o.in[o.args.n_in] = tensors[i];
            o.args.in[o.args.n_in++] = view;
        }
    }
    return o;
}

/* ---- red zones ---- */

static uint32_t n_tensors(const struct operands *o)
{
    return o->args.n_in + o->args.n_out;
}

/* Tensor i of all, inputs first, in the order of the memory. */
static const struct kg_tensor *tensor_at(const struct operands *o, uint32_t i)
{
    return i < o->args.n_in ? &o->args.in[i] : &o->args.out[i - o->args.n_in];
}

/* The same, as the problem has it. */
static const struct problem_tensor *about(const struct operands *o, uint32_t i)
{
    return i < o->args.n_in ? &o->in[i] : &o->out[i - o->args.n_in];
}

/* The zone before tensor i; that behind the last one for i = n_in + n_out. Behind a tensor it
 * begins right after the last element. */
static unsigned char *zone(const struct operands *o, uint32_t i, size_t *bytes)
{
    unsigned char *begin =
        i > 0 ? (unsigned char *)tensor_at(o, i - 1)->data + problem_tensor_bytes(about(o, i - 1))
              : (unsigned char *)tensor_at(o, 0)->data - o->zones.before;
    unsigned char *end =
        i < n_tensors(o) ? (unsigned char *)tensor_at(o, i)->data : begin + o->zones.behind;
    *bytes = (size_t)(end - begin);
    return begin;
}

enum gate_status operands_fill_zones(struct device *d, const struct operands *o, unsigned char byte,
                                     struct gate_error *err)
{
    for (uint32_t i = o->zones.before ? 0 : 1; i <= n_tensors(o); i++) {
        size_t bytes;
        unsigned char *begin = zone(o, i, &bytes);
        TRY(device_fill_bytes(d, begin, byte, bytes, err));
    }
    return GATE_OK;
}

/* How many bytes of a red zone, or of what else is filled like one, are others now. */
static enum gate_status count_changed(struct device *d, const void *begin, size_t bytes,
                                      unsigned char byte, size_t *changed, struct gate_error *err)
{
    unsigned char seen[OPERANDS_RED_ZONE + ALIGNMENT];
    enum gate_status status = device_download(d, seen, begin, bytes, err);
    *changed = 0;
    for (size_t i = 0; i < bytes && !status; i++)
        *changed += seen[i] != byte;
    return status;
}

static void describe_zone(const struct operands *o, uint32_t i, size_t changed, char *text,
                          size_t size)
{
    snprintf(text, size, "wrote where it must not: %zu bytes of the red zone %s tensor '%s'",
             changed, i ? "behind" : "before", about(o, i ? i - 1 : 0)->name);
}

enum gate_status operands_check_zones(struct device *d, const struct operands *o,
                                      unsigned char byte, char *text, size_t size,
                                      struct gate_error *err)
{
    text[0] = '\0';
    for (uint32_t i = o->zones.before ? 0 : 1; i <= n_tensors(o) && !text[0]; i++) {
        size_t bytes, changed;
        unsigned char *begin = zone(o, i, &bytes);
        TRY(count_changed(d, begin, bytes, byte, &changed, err));
        if (changed)
            describe_zone(o, i, changed, text, size);
    }
    return GATE_OK;
}

enum gate_status operands_check_around(struct device *d, const void *begin, size_t bytes,
                                       const char *what, unsigned char byte, char *text,
                                       size_t size, struct gate_error *err)
{
    text[0] = '\0';
    for (int behind = 0; behind < 2 && !text[0]; behind++) {
        const char *zone = (const char *)begin + (behind ? (ptrdiff_t)bytes : -OPERANDS_RED_ZONE);
        size_t changed;
        TRY(count_changed(d, zone, OPERANDS_RED_ZONE, byte, &changed, err));
        if (changed)
            snprintf(text, size, "wrote where it must not: %zu bytes of the red zone %s %s",
                     changed, behind ? "behind" : "before", what);
    }
    return GATE_OK;
}

/* ---- hashes ---- */

static struct device_span span_of(const struct operands *o, uint32_t i)
{
    return (struct device_span){tensor_at(o, i)->data, problem_tensor_bytes(about(o, i))};
}

enum gate_status operands_hash_spans(struct device *d, const struct device_span *spans, size_t n,
                                     size_t each, uint64_t *hashes, struct gate_error *err)
{
    RELEASED_BY(free_at) uint64_t *own = xcalloc(n * each, sizeof *own);
    TRY(device_hash(d, spans, n * each, own, err));
    for (size_t i = 0; i < n * each; i++)
        hashes[i / each] = seed_at(i % each ? hashes[i / each] : each, own[i]);
    return GATE_OK;
}

/* Of tensors `first` to `end` - 1 of each set. */
static enum gate_status hash_tensors(struct device *d, const struct operands *sets, size_t n,
                                     uint32_t first, uint32_t end, uint64_t *hashes,
                                     struct gate_error *err)
{
    const size_t each = end - first;
    RELEASED_BY(free_at) struct device_span *spans = xcalloc(n * each, sizeof *spans);
    for (size_t i = 0; i < n * each; i++)
        spans[i] = span_of(&sets[i / each], first + (uint32_t)(i % each));
    return operands_hash_spans(d, spans, n, each, hashes, err);
}

enum gate_status operands_hash_inputs(struct device *d, const struct operands *o, uint64_t *hash,
                                      struct gate_error *err)
{
    return hash_tensors(d, o, 1, 0, o->args.n_in, hash, err);
}

enum gate_status operands_hash_outputs(struct device *d, const struct operands *sets, size_t n,
                                       uint64_t *hashes, struct gate_error *err)
{
    return hash_tensors(d, sets, n, sets->args.n_in, n_tensors(sets), hashes, err);
}

/* ---- what is not to be written ---- */

unsigned operands_kept(const struct operands *o)
{
    return o->args.n_in + n_tensors(o);
}

enum gate_status operands_hash_kept(struct device *d, const struct operands *sets, size_t n,
                                    uint64_t *hashes, struct gate_error *err)
{
    const uint32_t n_in = sets->args.n_in;
    const unsigned each = operands_kept(sets);
    RELEASED_BY(free_at) struct device_span *spans = xcalloc(n * each, sizeof *spans);
    struct device_span *at = spans;
    for (size_t set = 0; set < n; set++) {
        for (uint32_t i = 0; i < n_in; i++)
            *at++ = span_of(&sets[set], i);
        for (uint32_t i = 1; i <= n_tensors(sets); i++, at++)
            at->data = zone(&sets[set], i, &at->bytes);
    }
    return device_hash(d, spans, n * each, hashes, err);
}

enum gate_status operands_describe_kept(struct device *d, const struct operands *o, unsigned which,
                                        unsigned char byte, char *text, size_t size,
                                        struct gate_error *err)
{
    size_t bytes, changed = 0;
    if (which < o->args.n_in) {
        snprintf(text, size, "changed its input '%s'", o->in[which].name);
        return GATE_OK;
    }
    uint32_t at = which - o->args.n_in + 1;
    unsigned char *begin = zone(o, at, &bytes);
    enum gate_status status = count_changed(d, begin, bytes, byte, &changed, err);
    describe_zone(o, at, changed, text, size);
    return status;
}

/* ---- contents ---- */

enum gate_status operands_fill_input(struct device *d, const struct kg_problem *p, unsigned i,
                                     const struct kg_tensor *t, int64_t count, bool exact,
                                     const char *id, uint64_t seed, struct gate_error *err)
{
    const struct op *op = op_of(p);
    const bool scales = op->tensors[i].role == OP_SCALE;
    const bool factors = !scales && op->tensors[i].role != OP_INDICES;
    const uint64_t own_seed = seed_at(seed, i);
    const size_t bytes = storage_bytes(t->dtype, count);
    if (exact && factors)
        return device_fill_integers(d, t->data, t->dtype, count, probe_integers(p), own_seed, err);
    if (!scales && !(op->fill && op->fill(p, i, NULL, 0, id, own_seed)))
        return device_fill_normal(d, t->data, t->dtype, count,
                                  op->spread ? op->spread(p, i) : (struct op_spread){0, 1},
                                  own_seed, err);
    RELEASED_BY(free_at) unsigned char *values = calloc(bytes, 1); /* as large as the tensor */
    if (!values)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    struct kg_tensor here = *t;
    here.data = values;
    if (scales) {
        const struct drawing drawing = {
            .p = p, .tensor = i, .n = pattern_elements(t), .seed = own_seed, .all = seed};
        pattern_draw_scales(&drawing, &here, exact);
    } else {
        op->fill(p, i, &here, count, id, own_seed);
    }
    return device_upload(d, t->data, values, bytes, err);
}

enum gate_status operands_fill(struct device *d, const struct suite_case *c, struct operands *o,
                               uint64_t seed, struct gate_error *err)
{
    for (uint32_t i = 0; i < o->args.n_in; i++) {
        const struct kg_tensor *t = &o->args.in[i];
        const struct case_values *literal = suite_case_values(c, false, o->in[i].name);
        if (!literal) {
            TRY(operands_fill_input(d, &c->problem, i, t, problem_tensor_elements(&o->in[i]), false,
                                    c->id, seed, err));
            continue;
        }
        /* Literal values are few: they are encoded here and copied. */
        const size_t bytes = problem_tensor_bytes(&o->in[i]);
        RELEASED_BY(free_at) unsigned char *encoded = xcalloc(1, bytes);
        for (size_t k = 0; k < literal->n_values; k++)
            storage_put(encoded, t->dtype, (int64_t)k, literal->values[k]);
        TRY(device_upload(d, t->data, encoded, bytes, err));
    }
    return operands_restore(d, o, err);
}

enum gate_status operands_restore_args(struct device *d, const struct problem_tensor *outputs,
                                       const struct kg_args *args, struct gate_error *err)
{
    for (uint32_t i = 0; i < args->n_out; i++)
        if (outputs[i].begins)
            TRY(device_copy(d, args->out[i].data, args->in[outputs[i].begins - 1].data,
                            storage_span(&args->out[i]), err));
    return GATE_OK;
}

enum gate_status operands_restore(struct device *d, const struct operands *o,
                                  struct gate_error *err)
{
    return operands_restore_args(d, o->out, &o->args, err);
}

enum gate_status operands_poison(struct device *d, struct operands *o, unsigned char byte,
                                 struct gate_error *err)
{
    for (uint32_t i = 0; i < o->args.n_out; i++)
        TRY(device_fill_bytes(d, o->args.out[i].data, byte, problem_tensor_bytes(&o->out[i]), err));
    return operands_restore(d, o, err);
}
