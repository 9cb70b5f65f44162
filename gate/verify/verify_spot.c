/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_spot.c: does the device's fp64 reference agree with the CPU's? See verify_reference.h.
 *
 * The CPU computes elements of each output by the formula, on a path of its own. Only what they
 * depend on is brought to the host: bands of the axes on which an output depends by its place, as
 * some rows and columns of a product, or a head, so that it costs next to nothing however large the
 * problem is.
 */
#include "gate/verify/verify_reference.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/alloc.h"
#include "gate/base/seed.h"
#include "kernels/ops/pattern.h"
#include "kernels/ops/rows.h"

#define TOLERANCE 1e-9 /* both sides are fp64; only the order of summation differs */
#define BAND 4         /* places in an axis of the output that are looked at together */
#define PLACES 3       /* where they lie: first, last, one between */
#define ELEMENTS 3     /* that are looked at where an axis is brought whole: the same */

/* A problem that is part of another one: its inputs are few enough to bring to the host. */
struct spot_part {
    struct kg_problem problem;
    struct kg_tensor in[KG_MAX_TENSORS]; /* on the host */
};

/* Place `at` of `places` things in a row. */
static uint64_t which(unsigned at, uint64_t places, uint64_t random)
{
    return at == 0 ? 0 : at == 1 ? places - 1 : random % places;
}

/* ---- a part of the problem: a band of each axis ---- */

struct band {
    int64_t from, length;
};

/* By the op's sizes. */
struct bands {
    struct band of[OP_SIZES_MAX];
};

static struct band *band_of(struct bands *b, const struct op *op, char axis)
{
    return &b->of[op_axis(op, axis) - op->sizes];
}

/* Axes of the output on which its elements depend by their place alone have a band, those that they
 * sum over are whole, and of all others, as of those of another output, there is one place. Groups,
 * as of heads, are brought one by one, with their members where the output is one of groups. */
static struct bands make_bands(const struct kg_problem *p, const struct op_tensor *output,
                               unsigned at, uint64_t seed)
{
    const struct op *op = op_of(p);
    struct bands b;
    bool grouped = false, chosen = false; /* indices choose in an axis that the output has not */
    for (unsigned i = 0; i < op->n_tensors; i++)
        chosen |= op->tensors[i].role == OP_INDICES;
    for (unsigned i = 0; i < op->n_sizes; i++) {
        const char axis = op->sizes[i].axis;
        const bool counts = strchr(output->axes, axis) || strchr(output->whole, axis) || chosen;
        b.of[i] = (struct band){0, counts ? op_size(p, &op->sizes[i]) : 1};
        grouped |= op->sizes[i].multiple_of != 0;
    }
    for (const char *axis = output->axes; *axis; axis++) {
        const int64_t all = op_length(p, *axis), most = grouped ? 1 : BAND;
        const int64_t length = all < most ? all : most;
        if (strchr(output->whole, *axis))
            continue;
        /* Of two blocks it would lie in it has its places in the second one alone: a part begins
         * with a block. */
        const int64_t from = (int64_t)which(at, (uint64_t)(all - length + 1),
                                            seed_at(seed, at * UCHAR_MAX + (uint64_t)*axis));
        const int64_t next = from / OP_BLOCK * OP_BLOCK + OP_BLOCK;
        *band_of(&b, op, *axis) = from + length > next ? (struct band){next, from + length - next}
                                                       : (struct band){from, length};
    }
    for (unsigned i = 0; i < op->n_sizes; i++)
        if (op->sizes[i].multiple_of) {
            struct band *group = band_of(&b, op, op->sizes[i].multiple_of);
            const int64_t members =
                op_size(p, &op->sizes[i]) / op_length(p, op->sizes[i].multiple_of);
            if (strchr(output->axes, op->sizes[i].multiple_of))
                b.of[i] = (struct band){group->from * members, group->length * members};
            else
                *group = (struct band){b.of[i].from / members, 1};
        }
    return b;
}

#define BANDS_RANK 4 /* of a product's tensors, at most */
#define ELEMENTS_MAX (BAND * BAND * BAND * BAND)

/* Brings the bands of input `i` to the host: rows of neighbours, as many at a time as are evenly
 * apart. */
static enum gate_status bring(struct device *d, const struct operands *o, struct spot_part *part,
                              struct bands *b, uint32_t i, const struct problem_tensor *about,
                              struct gate_error *err)
{
    const struct op *op = op_of(&part->problem);
    const struct kg_tensor *t = &o->args.in[i];
    const char *axes = op->tensors[i].axes;
    const size_t each = kg_dtype_bytes(t->dtype);
    struct band band[BANDS_RANK] = {{0, 1}, {0, 1}, {0, 1}, {0, 1}};
    int64_t stride[BANDS_RANK] = {0};
    const unsigned first = BANDS_RANK - t->rank;
    for (unsigned r = 0; r < t->rank; r++) {
        struct band *of = &band[first + r];
        *of = op_axis(op, axes[r]) ? *band_of(b, op, axes[r]) : (struct band){0, about->shape[r]};
        if (!op->length && op_letter(axes[r]) != axes[r]) { /* an axis of blocks */
            const int64_t block = of->from / OP_BLOCK;
            *of = (struct band){block, (of->from + of->length - 1) / OP_BLOCK + 1 - block};
        }
        stride[first + r] = t->stride[r];
    }
    char *to = xcalloc(1, problem_tensor_bytes(about));
    part->in[i] = problem_dense(about, to);
    /* Rows are those of an axis of several places, and of the one before where these go on evenly:
     * else each page of a head would be a copy of its own. */
    int64_t begin = band[3].from;
    for (int turn = 0; turn < 2; turn++) {
        const bool one = band[2].length == 1;
        if (!one && stride[1] != band[2].length * stride[2])
            break;
        begin += one ? band[2].from * stride[2] : band[1].from * stride[1];
        band[2] = one ? band[1] : (struct band){band[2].from, band[2].length * band[1].length};
        stride[2] = one ? stride[1] : stride[2];
        band[1] = band[0];
        stride[1] = stride[0];
        band[0] = (struct band){0, 1};
        stride[0] = 0;
    }
    const size_t row_bytes = (size_t)band[3].length * each, rows = (size_t)band[2].length;
    const size_t apart = stride[2] ? (size_t)stride[2] * each : row_bytes;
    for (int64_t a = 0; a < band[0].length; a++)
        for (int64_t c = 0; c < band[1].length; c++) {
            int64_t from = (band[0].from + a) * stride[0] + (band[1].from + c) * stride[1] +
                           band[2].from * stride[2] + begin;
            TRY(device_download_rows(d, to, (const char *)t->data + (size_t)from * each, row_bytes,
                                     apart, rows, err));
            to += row_bytes * rows;
        }
    const int64_t n = op->tensors[i].role == OP_INDICES ? problem_tensor_elements(about) : 0;
    for (int64_t at = 0; at < n; at++) /* they are counted from where the part begins */
        pattern_put(&part->in[i], at,
                    pattern_get(&part->in[i], at) -
                        (double)band_of(b, op, *op->tensors[i].whole)->from);
    return GATE_OK;
}

/* Elements of a part's output, computed on the CPU. */
struct spot_elements {
    const struct spot_part *part;
    uint32_t out;
    int64_t n, at[ELEMENTS_MAX];
    double here[ELEMENTS_MAX];
};

static void compute_elements(void *context, int, int64_t first, int64_t end)
{
    struct spot_elements *e = context;
    const struct kg_problem *p = &e->part->problem;
    for (int64_t i = first; i < end; i++)
        e->here[i] = op_of(p)->element(p, e->part->in, e->out, e->at[i]);
}

/* All elements of a part whose axes are bands; some where an axis is whole, since each of them may
 * take millions of products. */
static enum gate_status check_elements(struct device *d, const struct kg_problem *p,
                                       const struct op_tensor *output, const double *reference,
                                       uint32_t out, const struct spot_part *part, struct bands *b,
                                       uint64_t seed, struct gate_error *err)
{
    const struct op *op = op_of(p);
    struct spot_elements e = {.part = part, .out = out, .n = 1};
    bool some = false;
    for (const char *axis = output->axes; *axis; axis++) {
        e.n *= band_of(b, op, *axis)->length;
        some |= strchr(output->whole, *axis) != NULL;
    }
    const uint64_t all = (uint64_t)e.n;
    e.n = some ? ELEMENTS : e.n;
    for (unsigned i = 0; i < e.n; i++)
        e.at[i] = some ? (int64_t)which(i, all, seed_at(seed, i)) : i;
    rows_for_each(e.n, rows_threads((int64_t)problem_flops(&part->problem)), compute_elements, &e);
    for (int64_t i = 0; i < e.n; i++) {
        int64_t whole = 0, stride = 1, rest = e.at[i]; /* its place in the whole output */
        for (size_t r = strlen(output->axes); r-- > 0;) {
            const struct band *band = band_of(b, op, output->axes[r]);
            whole += (band->from + rest % band->length) * stride;
            rest /= band->length;
            stride *= op_length(p, output->axes[r]);
        }
        double on_device;
        TRY(device_download(d, &on_device, reference + whole, sizeof on_device, err));
        if (!(fabs(on_device - e.here[i]) <= TOLERANCE * (1 + fabs(e.here[i]))))
            return gate_fail(
                err, GATE_INTERNAL,
                "the device's fp64 reference is %.17g at element %lld of '%s' where the CPU's "
                "is %.17g: this device cannot verify",
                on_device, (long long)whole, output->name, e.here[i]);
    }
    return GATE_OK;
}

enum gate_status spot_check(struct device *d, const struct kg_problem *p, const struct operands *o,
                            const struct reference *r, uint64_t seed, struct gate_error *err)
{
    const struct op *op = op_of(p);
    enum gate_status status = GATE_OK;
    for (unsigned n = 0; n < o->args.n_out * PLACES && !status; n++) {
        const uint32_t out = n / PLACES;
        const unsigned at = n % PLACES;
        const struct op_tensor *output = &op->tensors[o->args.n_in + out];
        struct spot_part part = {.problem = *p};
        struct problem_tensor about[PROBLEM_MAX_TENSORS];
        struct bands b = make_bands(p, output, at, seed);
        for (unsigned i = 0; i < op->n_sizes; i++)
            op_set_size(&part.problem, &op->sizes[i], b.of[i].length);
        problem_tensors(&part.problem, about);
        for (uint32_t i = 0; i < o->args.n_in && !status; i++)
            status = bring(d, o, &part, &b, i, &about[i], err);
        if (!status)
            status = check_elements(d, p, output, r->out[out], out, &part, &b,
                                    seed_at(seed, ~(uint64_t)at), err);
        for (unsigned i = 0; i < KG_MAX_TENSORS; i++)
            free(part.in[i].data);
    }
    return status;
}
