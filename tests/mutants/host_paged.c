/* SPDX-License-Identifier: Apache-2.0 */
/* Host: attention of pages that is wrong in one step, and some that is right. */
#include <math.h>
#include <stdbool.h>

#include "kernels/ops/half.h"
#include "tests/mutants/faults.h"

typedef struct kg_problem problem;
typedef struct kg_args args_t;

enum paged_fault {
    NEXT_SEQUENCE,
    KEY_LESS,
    KEY_MORE,
    WHOLE_PAGE,
    TABLE_OF_FIRST,
    TABLE_BEFORE,
    LENGTHS_OF_FIRST,
    IN_A_ROW,
    HEAD_MODULO,
    NO_MASK,
    DENSE_TABLE,
    PAGE_OF_16,
    BLOCK_0_IS_NONE,
    WEIGHTS_OF_0,
    BACKWARD,
    TWO_PASSES,
};

struct row {
    const problem *p;
    const args_t *args;
    enum paged_fault fault;
    int64_t b, i, h, kv_head, length, seen;
    const int32_t *table, *next;
};

/* What an earlier launch with as many elements had: of the first one, or of the one before. */
#define KEPT_MAX 4096
static const int32_t *kept(const struct kg_tensor *t, int64_t n, bool first)
{
    static int32_t memory[2][KEPT_MAX];
    static int64_t held, now;
    const int32_t *data = t->data;
    if (n > KEPT_MAX)
        return data;
    if (first && held == n)
        return memory[0];
    if (!first && held == n)
        now = !now;
    held = n;
    memcpy(memory[now], data, (size_t)n * sizeof *data);
    return first ? memory[0] : memory[!now];
}

static float element(const struct kg_tensor *t, int64_t a, int64_t b, int64_t c, int64_t d)
{
    return kg_load_float(t->data, t->dtype,
                         a * t->stride[0] + b * t->stride[1] + c * t->stride[2] + d);
}

/* Where key j is: a block and a place in it. */
static int64_t block_of(const struct row *r, int64_t j, int64_t *at)
{
    const int64_t page = r->fault == PAGE_OF_16 ? 16 : kg_size(r->p, "page");
    const int64_t n = j / page;
    *at = j % page;
    if (r->fault == NEXT_SEQUENCE && n > 0 && n == (r->length - 1) / page)
        return r->next[n];
    if (r->fault == IN_A_ROW)
        return (r->table[0] + n) % kg_size(r->p, "blocks");
    return r->table[n < kg_size(r->p, "t") ? n : 0];
}

static float score_of(const struct row *r, int64_t j)
{
    const struct kg_tensor *q = &r->args->in[0], *k = &r->args->in[1];
    int64_t at;
    const int64_t block = block_of(r, j, &at);
    float score = 0;
    for (int64_t c = 0; c < kg_size(r->p, "d"); c++)
        score += element(q, r->b, r->i, r->h, c) * element(k, block, at, r->kv_head, c);
    return score * (float)kg_param(r->p, "scale");
}

static void attend(const struct row *r)
{
    const struct kg_tensor *v = &r->args->in[2], *o = &r->args->out[0];
    const int64_t d = kg_size(r->p, "d"), page = kg_size(r->p, "page");
    const bool whole = r->fault == WEIGHTS_OF_0 && r->seen > 0;
    const int64_t end = whole ? (r->seen + page - 1) / page * page : r->seen;
    float most = -INFINITY, sum = 0, out[512] = {0};
    for (int64_t n = 0; n < r->seen && r->fault == TWO_PASSES; n++)
        most = fmaxf(most, score_of(r, n));
    for (int64_t n = 0; n < end; n++) {
        const int64_t j = r->fault == BACKWARD ? r->seen - 1 - n : n;
        int64_t at;
        const int64_t block = block_of(r, j, &at);
        const float score = n < r->seen ? score_of(r, j) : -INFINITY, now = fmaxf(most, score);
        const float old = expf(most - now), share = expf(score - now);
        if (r->fault == BLOCK_0_IS_NONE && block == 0)
            continue;
        for (int64_t c = 0; c < d; c++)
            out[c] = out[c] * old + share * element(v, block, at, r->kv_head, c);
        sum = sum * old + share;
        most = now;
    }
    for (int64_t c = 0; c < d; c++)
        kg_store_float(o->data, o->dtype,
                       r->b * o->stride[0] + r->i * o->stride[1] + r->h * o->stride[2] + c,
                       sum > 0 ? out[c] / sum : 0);
}

static enum kg_status paged(const problem *p, const args_t *args, enum paged_fault fault)
{
    if (!kg_is_op(p, "attention_paged"))
        return wrap_inner(p, args);
    const int64_t sequences = kg_size(p, "b"), t = kg_size(p, "t"), page = kg_size(p, "page");
    const struct kg_tensor *table = &args->in[3], *lengths = &args->in[4];
    const int64_t stride = fault == DENSE_TABLE ? t : table->stride[0];
    const int32_t *rows = table->data, *all = lengths->data;
    if (fault == TABLE_OF_FIRST || fault == TABLE_BEFORE)
        rows = kept(table, (sequences - 1) * stride + t, fault == TABLE_OF_FIRST);
    if (fault == LENGTHS_OF_FIRST)
        all = kept(lengths, sequences, true);
    for (int64_t b = 0; b < sequences; b++)
        for (int64_t at = 0; at < kg_size(p, "sq") * kg_size(p, "h"); at++) {
            const int64_t h = at % kg_size(p, "h"),
                          group = kg_size(p, "h") / kg_size(p, "kv_heads");
            struct row r = {p,
                            args,
                            fault,
                            b,
                            at / kg_size(p, "h"),
                            h,
                            h / group,
                            all[b],
                            0,
                            rows + b * stride,
                            rows + (b + 1) % sequences * stride};
            if (fault == KEY_LESS && r.length > 1)
                r.length--;
            if (fault == KEY_MORE && r.length < t * page)
                r.length++;
            if (fault == HEAD_MODULO)
                r.kv_head = h % kg_size(p, "kv_heads");
            r.seen = r.length - (fault == NO_MASK ? 0 : kg_size(p, "sq") - r.i - 1);
            if (fault == WHOLE_PAGE && r.i == kg_size(p, "sq") - 1)
                r.seen = (r.length + page - 1) / page * page;
            attend(&r);
        }
    return KG_OK;
}

#define PAGED(ROW)                                                                                 \
    ROW(page_of_the_next_sequence, NEXT_SEQUENCE)                                                  \
    ROW(one_key_less, KEY_LESS)                                                                    \
    ROW(one_key_more, KEY_MORE)                                                                    \
    ROW(whole_last_page, WHOLE_PAGE)                                                               \
    ROW(table_of_the_first_launch, TABLE_OF_FIRST)                                                 \
    ROW(table_of_the_launch_before, TABLE_BEFORE)                                                  \
    ROW(lengths_of_the_first_launch, LENGTHS_OF_FIRST)                                             \
    ROW(blocks_in_a_row, IN_A_ROW)                                                                 \
    ROW(kv_head_modulo, HEAD_MODULO)                                                               \
    ROW(new_keys_not_masked, NO_MASK)                                                              \
    ROW(dense_table, DENSE_TABLE)                                                                  \
    ROW(page_of_16, PAGE_OF_16)                                                                    \
    ROW(block_0_is_none, BLOCK_0_IS_NONE)                                                          \
    ROW(weights_of_0, WEIGHTS_OF_0)                                                                \
    ROW(from_the_last_key, BACKWARD)                                                               \
    ROW(two_passes, TWO_PASSES)

#define LAUNCH(name, fault)                                                                        \
    static enum kg_status name(const problem *p, const args_t *args)                               \
    {                                                                                              \
        return paged(p, args, fault);                                                              \
    }
PAGED(LAUNCH)

#define FAULT(name, fault) {#name, name, 0, NULL},
FAULTS(PAGED(FAULT))
