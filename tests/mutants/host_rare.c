/* SPDX-License-Identifier: Apache-2.0 */
/* Host: right but for shapes, values and places in memory that random inputs of ordinary sizes do
 * not have. */
#include "tests/mutants/host_conditions.h"
#include "tests/mutants/rare_places.h"

/* ---- shapes of products ---- */

SHORT(k_of_16, x.k == 16)
SHORT(k_of_32, x.k == 32)
SHORT(k_of_128, x.k == 128)
SHORT(k_of_192, x.k == 192)
SHORT(k_of_256, x.k == 256)
SHORT(k_of_384, x.k == 384)
SHORT(whole_tiles, x.m % 128 == 0 && x.n % 128 == 0)
SHORT(whole_tiles_of_a, x.m % 128 == 0 && x.k % 64 == 0)

/* More tiles than the device has processors, in steps of K that leave a ring of stages in another
 * phase than it was in. */
#define SECOND_WAVE (tiles(x.m, 128) * tiles(x.n, 128) > wrap_device.sm_count)
SHORT(second_wave, SECOND_WAVE &&tiles(x.k, 64) > 1 && tiles(x.k, 64) % 4)
SHORT(second_wave_odd, SECOND_WAVE &&tiles(x.k, 64) > 2 && tiles(x.k, 64) % 2)
SHORT(second_wave_phase, SECOND_WAVE &&tiles(x.k, 64) / 4 % 2 && tiles(x.k, 64) % 4)

/* ---- shapes of attention ---- */

static int64_t heads_right; /* of a group; those behind them lose a key */

static void without_last_key_in_group(struct query *q)
{
    if (q->h % (kg_size(q->p, "h") / kg_size(q->p, "kv_heads")) >= heads_right)
        without_last_key(q);
    else
        softmax_row(q);
}

KEYS(one_over_512, s > 512 && s % 512 == 1, without_last_key)
KEYS(one_over_1024, s > 1024 && s % 1024 == 1, without_last_key)
KEYS(keys_of_32, s == 32, without_last_key)
KEYS(keys_of_64, s == 64, without_last_key)
KEYS(keys_of_192, s == 192, without_last_key)
KEYS(keys_of_256, s == 256, without_last_key)
KEYS(keys_of_384, s == 384, without_last_key)
KEYS(whole_tiles_of_queries, sq % 128 == 0 && s % 128 == 0, without_last_key)
KEYS(groups_over_8, (heads_right = 8, group > 8), without_last_key_in_group)
KEYS(groups_over_16, (heads_right = 16, group > 16), without_last_key_in_group)
KEYS(groups_over_32, (heads_right = 32, group > 32), without_last_key_in_group)
KEYS(group_of_48, (heads_right = 32, group % 32 == 16 && group > 32), without_last_key_in_group)
KEYS(decoding_groups, (heads_right = 8, sq == 1 && group > 8), without_last_key_in_group)
KEYS(second_wave_of_heads,
     kg_size(p, "b") * kg_size(p, "h") * tiles(sq, 128) > wrap_device.sm_count && sq >= 128 &&
         tiles(s, 64) > 2 && tiles(s, 64) % 2,
     without_last_key)

KEYS(no_keys_over_256, p->flags &KG_FLAG_CAUSAL &&sq > s && s > 256, without_keys)
KEYS(no_keys_over_512, p->flags &KG_FLAG_CAUSAL &&sq > s && s > 512, without_keys)

/* ---- values ---- */

static bool is_row_of(const struct kg_tensor *t, int64_t row, bool (*is)(float, float), float with)
{
    int64_t at = 0, columns = t->shape[t->rank - 1];
    for (uint32_t r = t->rank - 1; r-- > 0;) {
        at += row % t->shape[r] * t->stride[r];
        row /= t->shape[r];
    }
    for (int64_t j = 0; j < columns; j++)
        if (!is(kg_load_float(t->data, t->dtype, at + j), with))
            return false;
    return true;
}

static bool is_equal(float x, float y)
{
    return x == y;
}

static bool is_all(const struct kg_tensor *t, float value)
{
    int64_t rows = elements_of(t) / t->shape[t->rank - 1];
    for (int64_t row = 0; row < rows; row++)
        if (!is_row_of(t, row, is_equal, value))
            return false;
    return true;
}

/* Rows are scaled by their largest element, which is 0. */
static enum kg_status amax_of_row(const problem *p, const args_t *args)
{
    enum kg_status status = wrap_inner(p, args);
    const struct kg_tensor *a = &args->in[0], *c = &args->out[0];
    int64_t rows = elements_of(a) / a->shape[a->rank - 1];
    if (c->rank == 1 || c->rank != a->rank)
        return status;
    for (int64_t row = 0; row < rows; row++)
        if (is_row_of(a, row, is_equal, 0))
            fill_row(c, row, NAN);
    return status;
}

static enum kg_status amax_of_tensor(const problem *p, const args_t *args, unsigned i)
{
    enum kg_status status = wrap_inner(p, args);
    if (i < args->n_in && is_all(&args->in[i], 0))
        fill_row(&args->out[0], 0, NAN);
    return status;
}

static enum kg_status zero_first(const problem *p, const args_t *args)
{
    return amax_of_tensor(p, args, 0);
}

static enum kg_status zero_second(const problem *p, const args_t *args)
{
    return amax_of_tensor(p, args, 1);
}

static enum kg_status zero_third(const problem *p, const args_t *args)
{
    return amax_of_tensor(p, args, 2);
}

/* A tile of zeros is skipped, and the next one with it. */
static bool is_zero_tile(const struct product *x, int64_t i, int64_t l)
{
    for (int64_t r = i / 16 * 16; r < i / 16 * 16 + 16 && r < x->m; r++)
        for (int64_t c = l; c < l + 16 && c < x->k; c++)
            if (a_at(x, r, c) != 0)
                return false;
    return true;
}

static float without_tile_behind(const struct product *x, int64_t i, int64_t j)
{
    float sum = 0;
    for (int64_t l = 0; l < x->k; l += 16)
        if (l < 16 || !is_zero_tile(x, i, l - 16))
            sum += terms(x, i, j, l, l + 16 < x->k ? l + 16 : x->k);
    return sum;
}

static enum kg_status zero_tile(const problem *p, const args_t *args)
{
    const struct product x = product_of(p, args);
    if (!is_product(args))
        return wrap_inner(p, args);
    for (int64_t i = 0; i < x.m; i += 16)
        for (int64_t l = 0; l + 16 <= x.k; l += 16)
            if (is_zero_tile(&x, i, l))
                return compute(p, args, without_tile_behind);
    return wrap_inner(p, args);
}

/* A tensor of one value takes a short cut, which knows 0 and 1. */
static enum kg_status one_value(const problem *p, const args_t *args, unsigned i)
{
    const struct kg_tensor *t = &args->in[i];
    float value = kg_load_float(t->data, t->dtype, 0);
    enum kg_status status = wrap_inner(p, args);
    if (value != 0 && value != 1 && elements_of(t) > 16 && is_all(t, value))
        fill_row(&args->out[0], 0, value);
    return status;
}

static enum kg_status one_value_first(const problem *p, const args_t *args)
{
    return one_value(p, args, 0);
}

static enum kg_status one_value_second(const problem *p, const args_t *args)
{
    return one_value(p, args, 1);
}

static int64_t low_tile; /* queries and keys of a tile */

/* Is the tile of the query and of key j such that no weight is more than exp(-88)? */
static bool is_low(const struct query *q, int64_t j)
{
    struct query other = *q;
    int64_t i = q->i / low_tile * low_tile;
    for (other.i = i; other.i < i + low_tile && other.i < kg_size(q->p, "sq"); other.i++)
        for (int64_t k = j; k < j + low_tile && k < visible_keys(q->p, other.i); k++)
            if (score(&other, k) >= -88)
                return false;
    return true;
}

/* No weight is as small as that: such tiles are skipped. */
static void without_low_tiles(struct query *q)
{
    double max = -INFINITY, total = 0;
    for (int64_t j = 0; j < q->visible; j++)
        max = fmax(max, q->scores[j] = score(q, j));
    for (int64_t j = 0; j < q->visible; j += low_tile) {
        bool low = q->scores[j] < -88 && is_low(q, j);
        for (int64_t k = j; k < q->visible && k < j + low_tile; k++)
            total += q->scores[k] = low ? 0 : exp(q->scores[k] - max);
    }
    weigh(q, q->scores, total > 0 ? total : 1);
}

static enum kg_status low_tiles(const problem *p, const args_t *args, int64_t tile)
{
    low_tile = tile;
    return is_attention(args) ? attend(p, args, without_low_tiles) : wrap_inner(p, args);
}

static enum kg_status low_tiles_of_16(const problem *p, const args_t *args)
{
    return low_tiles(p, args, 16);
}

static enum kg_status low_tiles_of_128(const problem *p, const args_t *args)
{
    return low_tiles(p, args, 128);
}

/* ---- duration ---- */

static enum kg_status after_65536(const problem *p, const args_t *args)
{
    static uint64_t launches;
    enum kg_status status = wrap_inner(p, args);
    if (++launches > 65536)
        fill_row(&args->out[0], 0, 1);
    return status;
}

#define F(name)                                                                                    \
    {                                                                                              \
#name, name, 0, NULL                                                                       \
    }
FAULTS(F(k_of_16), F(k_of_32), F(k_of_128), F(k_of_192), F(k_of_256), F(k_of_384), F(whole_tiles),
       F(whole_tiles_of_a), F(second_wave), F(second_wave_odd), F(second_wave_phase),
       F(one_over_512), F(one_over_1024), F(keys_of_32), F(keys_of_64), F(keys_of_192),
       F(keys_of_256), F(keys_of_384), F(whole_tiles_of_queries), F(groups_over_8),
       F(groups_over_16), F(groups_over_32), F(group_of_48), F(decoding_groups),
       F(second_wave_of_heads), F(no_keys_over_256), F(no_keys_over_512), F(amax_of_row),
       F(zero_first), F(zero_second), F(zero_third), F(zero_tile), F(one_value_first),
       F(one_value_second), F(low_tiles_of_16), F(low_tiles_of_128), RARE_PLACES, F(after_65536), )
