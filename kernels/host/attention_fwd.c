/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_fwd.c: O = softmax(scale * Q K^T) V, with the softmax kept online over blocks of keys.
 *
 * Everything is computed transposed, S^T = K Q^T and O^T = V^T P^T, so that a query row is a lane
 * of a vector: running maximum and sum are vectors, no step sums across lanes, and the weights P^T
 * leave the softmax in just the layout that the register tile reads its second operand in.
 *
 * The query heads that share a KV head are stacked into one matrix of group * Sq rows, so K and V
 * are converted once for all of them (a decode step of 4 heads a group is a matrix of 4 rows). A
 * thread's turn is ROWS of these rows against all their keys; its packed K and V block (64 KB at
 * D = 128) and its accumulators are in its own scratch memory and stay in L2.
 *
 * Masked keys get weight 0, but their V rows are still multiplied where a block straddles the
 * diagonal: an infinity or NaN there reaches rows that do not see it.
 */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "kernels/ops/attention_sizes.h"
#include "kernels/ops/half.h"
#include "kernels/host/matmul.h"

enum {
    KEYS = 64,      /* of a block */
    MAX_PANELS = 4, /* of query rows in a turn */
    MAX_ROWS = MAX_PANELS * SIMD_MAX_TILE_COLUMNS,
    MAX_HEAD_DIM = 512,
};

_Static_assert((int)MAX_HEAD_DIM <= (int)PACK_MAX_DEPTH, "K is packed along the head_dim");
_Static_assert((int)MAX_HEAD_DIM <= (int)PACK_MAX_EXTENT, "so is V");
_Static_assert((int)KEYS % (int)SIMD_MAX_TILE_ROWS == 0, "scores are made of whole tiles");

/* Scratch memory of a thread. */
struct scratch {
    float *q;         /* [panel][head_dim][width] */
    float *o;         /* [panel][head_dim, padded to tiles][width] */
    float *k;         /* [KEYS / tile_rows][head_dim][tile_rows] */
    float *v;         /* [head_dim / tile_rows, rounded up][KEYS][tile_rows] */
    float *scores;    /* [KEYS][width] */
    float *max, *sum; /* [panel][width] */
    int32_t *visible; /* [panel][width] keys that the row sees */
};

struct job {
    const struct simd *simd;
    const struct attention_sizes *p;
    const struct kg_tensor *q, *k, *v, *o;
    float *scratch;
    int64_t scratch_floats; /* of a thread */
    int vectors;            /* of a panel */
    int64_t width;          /* of a panel: vectors * lanes */
    int64_t rows;           /* of a KV head: query heads in its group times Sq */
    int64_t turns;          /* of a KV head */
};

static int64_t padded_dim(const struct attention_sizes *p)
{
    return ceil_div(p->head_dim, SIMD_MAX_TILE_ROWS) * SIMD_MAX_TILE_ROWS;
}

/* Lays the scratch memory out from `base` on (NULL to measure). Returns its floats. */
static int64_t lay_out(struct scratch *s, float *base, const struct attention_sizes *p)
{
    int64_t d = padded_dim(p), at = 0;
    struct {
        float **field;
        int64_t floats;
    } parts[] = {
        {&s->q, d * MAX_ROWS},
        {&s->o, d * MAX_ROWS},
        {&s->k, d * KEYS},
        {&s->v, d * KEYS},
        {&s->scores, KEYS * SIMD_MAX_TILE_COLUMNS},
        {&s->max, MAX_ROWS},
        {&s->sum, MAX_ROWS},
    };
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        *parts[i].field = base ? base + at : NULL;
        at += host_line(parts[i].floats);
    }
    s->visible = base ? (int32_t *)(base + at) : NULL;
    return at + host_line(MAX_ROWS);
}

static int supports(const struct kg_problem *p, const struct kg_device *device)
{
    return host_supports(p, device) && kg_size(p, "d") <= MAX_HEAD_DIM;
}

static uint64_t workspace_bytes(const struct kg_problem *p, const struct kg_device *device, void *)
{
    const struct attention_sizes sizes = attention_sizes_of(p);
    struct scratch s;
    return (uint64_t)device->sm_count * (uint64_t)lay_out(&s, NULL, &sizes) * sizeof(float);
}

static char *head_of(const struct kg_tensor *t, int64_t batch, int64_t head)
{
    return (char *)t->data +
           (size_t)(batch * t->stride[0] + head * t->stride[1]) * kg_dtype_bytes(t->dtype);
}

/* Where stacked row `row` of a KV head lies in Q or O. */
static char *row_of(const struct job *job, const struct kg_tensor *t, int64_t batch,
                    int64_t kv_head, int64_t row)
{
    int64_t group = job->p->heads / job->p->kv_heads;
    int64_t head = kv_head * group + row / job->p->seqlen_q, i = row % job->p->seqlen_q;
    return head_of(t, batch, head) + (size_t)(i * t->stride[2]) * kg_dtype_bytes(t->dtype);
}

static int64_t visible_keys(const struct attention_sizes *p, int64_t row)
{
    if (!(p->flags & KG_FLAG_CAUSAL))
        return p->seqlen_kv;
    int64_t visible = row % p->seqlen_q + (p->seqlen_kv - p->seqlen_q) + 1;
    return visible < 0 ? 0 : visible;
}

/* A turn: n stacked rows from `first` on, of one KV head. */
struct turn {
    int64_t batch, kv_head, first, n;
    int64_t panels;
    int64_t least_visible[MAX_PANELS], most_visible[MAX_PANELS]; /* keys, over a panel's rows */
};

/* Packs the rows of Q and sets up their softmax state. Lanes past the last row hold zeros and
 * see all keys: they cost no mask, and nobody reads them. */
static void begin_panel(const struct job *job, struct turn *turn, int64_t panel,
                        const struct scratch *s)
{
    const struct attention_sizes *p = job->p;
    int64_t d = p->head_dim, width = job->width;
    float *q = s->q + panel * d * width, line[MAX_HEAD_DIM];
    int64_t least = p->seqlen_kv, most = 0;

    memset(s->o + panel * padded_dim(p) * width, 0,
           (size_t)(padded_dim(p) * width) * sizeof(float));
    for (int64_t lane = 0; lane < width; lane++) {
        int64_t row = panel * width + lane, visible = p->seqlen_kv;
        if (row < turn->n) {
            visible = visible_keys(p, turn->first + row);
            least = visible < least ? visible : least;
            most = visible > most ? visible : most;
            job->simd->decode(line,
                              row_of(job, job->q, turn->batch, turn->kv_head, turn->first + row), d,
                              p->dtype);
        } else {
            memset(line, 0, (size_t)d * sizeof(*line));
        }
        for (int64_t i = 0; i < d; i++)
            q[i * width + lane] = line[i];
        s->max[row] = -INFINITY;
        s->sum[row] = 0.0f;
        s->visible[row] = (int32_t)visible;
    }
    turn->least_visible[panel] = least;
    turn->most_visible[panel] = most;
}

/* One panel of rows against the packed block of keys [first_key, first_key + keys). */
static void attend(const struct job *job, const struct turn *turn, int64_t panel, int64_t first_key,
                   int64_t keys, const struct scratch *s)
{
    const struct simd *simd = job->simd;
    int64_t d = job->p->head_dim, width = job->width, tile_rows = simd->tile_rows;
    float *o = s->o + panel * padded_dim(job->p) * width;

    memset(s->scores, 0, (size_t)(KEYS * width) * sizeof(float));
    for (int64_t j = 0; j < keys; j += tile_rows)
        simd->tile(d, s->k + j * d, s->q + panel * d * width, job->vectors, s->scores + j * width,
                   width);

    bool masked = first_key + keys > turn->least_visible[panel];
    simd->softmax(&(struct softmax_panel){
        .width = width,
        .keys = keys,
        .first_key = first_key,
        .factor = (float)(job->p->scale * M_LOG2E),
        .visible = masked ? s->visible + panel * width : NULL,
        .scores = s->scores,
        .max = s->max + panel * width,
        .sum = s->sum + panel * width,
        .out = o,
        .head_dim = d,
    });

    for (int64_t i = 0; i < d; i += tile_rows)
        simd->tile(keys, s->v + i * keys, s->scores, job->vectors, o + i * width, width);
}

/* Divides by the sums of the weights and writes the rows; one that saw no key is all zeros. */
static void finish_panel(const struct job *job, const struct turn *turn, int64_t panel,
                         const struct scratch *s)
{
    int64_t d = job->p->head_dim, width = job->width;
    const float *o = s->o + panel * padded_dim(job->p) * width;
    float line[MAX_HEAD_DIM];

    for (int64_t lane = 0; lane < width && panel * width + lane < turn->n; lane++) {
        int64_t row = panel * width + lane;
        float factor = s->visible[row] > 0 ? 1.0f / s->sum[row] : 0.0f;
        for (int64_t i = 0; i < d; i++)
            line[i] = o[i * width + lane] * factor;
        job->simd->encode(row_of(job, job->o, turn->batch, turn->kv_head, turn->first + row), line,
                          d, job->p->dtype);
    }
}

static void turn_item(void *context, int64_t item, int thread)
{
    const struct job *job = context;
    const struct attention_sizes *p = job->p;
    int64_t kv = item / job->turns, most_visible = 0;
    struct turn turn = {.batch = kv / p->kv_heads, .kv_head = kv % p->kv_heads};
    struct scratch s;

    lay_out(&s, job->scratch + thread * job->scratch_floats, p);
    turn.first = item % job->turns * MAX_PANELS * job->width;
    turn.n = min_of(MAX_PANELS * job->width, job->rows - turn.first);
    turn.panels = ceil_div(turn.n, job->width);
    for (int64_t panel = 0; panel < turn.panels; panel++) {
        begin_panel(job, &turn, panel, &s);
        if (turn.most_visible[panel] > most_visible)
            most_visible = turn.most_visible[panel];
    }

    struct operand k = {.data = head_of(job->k, turn.batch, turn.kv_head),
                        .dtype = p->dtype,
                        .depth_contiguous = true,
                        .stride = job->k->stride[2]};
    struct operand v = {.data = head_of(job->v, turn.batch, turn.kv_head),
                        .dtype = p->dtype,
                        .stride = job->v->stride[2]};
    for (int64_t first_key = 0; first_key < most_visible; first_key += KEYS) {
        int64_t keys = min_of(KEYS, p->seqlen_kv - first_key);
        pack(job->simd, &k, first_key, keys, 0, p->head_dim, job->simd->tile_rows, s.k);
        pack(job->simd, &v, 0, p->head_dim, first_key, keys, job->simd->tile_rows, s.v);
        for (int64_t panel = 0; panel < turn.panels; panel++)
            if (first_key < turn.most_visible[panel])
                attend(job, &turn, panel, first_key, keys, &s);
    }
    for (int64_t panel = 0; panel < turn.panels; panel++)
        finish_panel(job, &turn, panel, &s);
}

static enum kg_status launch(const struct kg_problem *problem, const struct kg_args *args)
{
    const struct host *host = host_enter(problem, args, workspace_bytes);
    const struct attention_sizes sizes = attention_sizes_of(problem), *p = &sizes;
    if (!host || p->head_dim > MAX_HEAD_DIM)
        return KG_BAD_ARGUMENT;

    const struct simd *simd = host->simd;
    struct scratch s;
    struct job job = {
        .simd = simd,
        .p = p,
        .q = &args->in[0],
        .k = &args->in[1],
        .v = &args->in[2],
        .o = &args->out[0],
        .scratch = args->workspace,
        .scratch_floats = lay_out(&s, NULL, p),
        .rows = p->heads / p->kv_heads * p->seqlen_q,
    };
    /* A few rows, as in decoding, do not pay for a full panel. */
    job.vectors = (int)min_of(simd->tile_vectors, ceil_div(job.rows, simd->lanes));
    job.width = (int64_t)job.vectors * simd->lanes;
    job.turns = ceil_div(job.rows, MAX_PANELS * job.width);

    pool_for(host->pool, p->batch * p->kv_heads * job.turns,
             p->batch * p->heads * p->seqlen_q * p->seqlen_kv * p->head_dim / POOL_STEP_PRODUCTS,
             turn_item, &job);
    return KG_OK;
}

HOST_KERNEL(attention_fwd, supports);
