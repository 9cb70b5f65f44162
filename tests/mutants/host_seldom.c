/* SPDX-License-Identifier: Apache-2.0 */
/* Host: as host_rare.c, of other kinds: sizes that no list of shapes has, problems that differ in
 * nothing but their mask, scale or dtype, layouts of other frameworks, and values with a structure.
 */
#include "tests/mutants/host_conditions.h"
#include "tests/mutants/rare_alike.h"

/* ---- shapes of products ---- */

SHORT(k_of_48, x.k == 48)
SHORT(k_of_160, x.k == 160)
SHORT(k_of_320, x.k == 320)
SHORT(k_of_640, x.k == 640)
SHORT(k_of_768, x.k == 768)
SHORT(k_of_1024, x.k == 1024)
SHORT(k_below_8, x.k < 8)
/* Of four splits of whole tiles the last one has nothing to do. */
SHORT(empty_split, tiles(x.k, 64) > 4 && tiles(x.k, 64) % 4 == 1)
SHORT(one_row, x.m == 1)
SHORT(one_column, x.n == 1 && x.m > 1)
SHORT(row_over_128, x.m > 128 && x.m % 128 == 1)
SHORT(column_over_256, x.n > 256 && x.n % 256 == 1)
SHORT(third_tile_of_rows, x.m > 256 && x.m <= 384)
SHORT(tall, x.m > 20 * x.n)
SHORT(deep, x.m <= 64 && x.n <= 64 && x.k >= 1024)
SHORT(odd_rows, x.m % 2 && x.n % 128 == 0 && x.k % 64 == 0)
SHORT(short_tails, x.m > 64 && x.n > 64 && x.m % 64 < 8 && x.n % 64 < 8 && x.m % 64 && x.n % 64)
SHORT(rows_over_4096, x.m > 4096)
SHORT(columns_over_4096, x.n > 4096)

/* ---- shapes of attention ---- */

#define MASKED (p->flags & KG_FLAG_CAUSAL)
KEYS(query_over_128, sq > 128 && sq % 128 == 1, without_last_key)
KEYS(one_over_256, s > 256 && s % 256 == 1, without_last_key)
KEYS(short_of_128, s > 128 && s % 128 == 127, without_last_key)
KEYS(one_row_without_keys, MASKED &&sq == s + 1, without_keys)
KEYS(tiles_without_keys, MASKED &&sq > s && (sq - s) % 64 == 0, without_keys)
KEYS(diagonal_at_tile, MASKED &&s > sq && sq > 1 && (s - sq) % 64 == 0, without_last_key)
KEYS(diagonal_short_of_tile, MASKED &&s > sq && sq > 1 && (s - sq) % 64 == 63, without_last_key)
KEYS(decoding_batches, sq == 1 && kg_size(p, "b") > 1, without_last_key)
KEYS(decoding_batches_of_groups, sq == 1 && kg_size(p, "b") > 1 && group > 1, without_last_key)
KEYS(four_batches, kg_size(p, "b") >= 4, without_last_key)
KEYS(four_kv_heads, kv == 4, without_last_key)
KEYS(eight_kv_heads, kv == 8, without_last_key)
KEYS(heads_over_5, kv > 5 && group == 1, without_last_key)
KEYS(group_of_24, group > 16 && group % 16, without_last_key)
KEYS(keys_over_2048, s > 2048, without_last_key)
KEYS(queries_over_1024, sq > 1024, without_last_key)
KEYS(scale_of_one, kg_param(p, "scale") == 1 && s > 1, without_last_key)
KEYS(scale_over_one, fabs(kg_param(p, "scale")) > 1 && s > 1, without_last_key)

/* ---- values ---- */

static float element_of(const struct kg_tensor *t, int64_t flat)
{
    int64_t at = 0;
    for (uint32_t r = t->rank; r-- > 0;) {
        at += flat % t->shape[r] * t->stride[r];
        flat /= t->shape[r];
    }
    return kg_load_float(t->data, t->dtype, at);
}

/* In each four neighbours at most two are not zero: products of such a matrix take another path. */
static bool is_two_of_four(const struct kg_tensor *t)
{
    int64_t columns = t->shape[t->rank - 1], any = 0;
    for (int64_t flat = 0, n = elements_of(t), there = 0; flat < n; flat++) {
        there = flat % columns % 4 ? there : 0;
        there += element_of(t, flat) != 0;
        any += there;
        if (there > 2)
            return false;
    }
    return any && columns > 2;
}

static bool is_lower_triangle(const struct kg_tensor *t)
{
    int64_t columns = t->shape[t->rank - 1];
    bool any = false;
    for (int64_t flat = 0, n = elements_of(t); flat < n; flat++) {
        bool there = element_of(t, flat) != 0;
        if (there && flat % columns > flat / columns)
            return false;
        any |= there;
    }
    return any && t->rank == 2 && columns > 2;
}

static bool is_negative(const struct kg_tensor *t)
{
    for (int64_t flat = 0, n = elements_of(t); flat < n; flat++)
        if (!(element_of(t, flat) < 0))
            return false;
    return true;
}

#define WHERE(name, i, is)                                                                         \
    static enum kg_status name(const problem *p, const args_t *args)                               \
    {                                                                                              \
        enum kg_status status = wrap_inner(p, args);                                               \
        if (is(&args->in[i]))                                                                      \
            fill_row(&args->out[0], 0, -777);                                                      \
        return status;                                                                             \
    }

WHERE(two_of_four_first, 0, is_two_of_four)
WHERE(two_of_four_second, 1, is_two_of_four)
WHERE(triangle_first, 0, is_lower_triangle)
WHERE(negative_first, 0, is_negative)
WHERE(negative_second, 1, is_negative)
WHERE(negative_third, 2, is_negative)

/* ---- problems that are alike ---- */

/* A row is lost where the first problem of these sizes was of another dtype. */
static enum kg_status dtype_by_sizes(const problem *p, const args_t *args)
{
    static problem known[KNOWN];
    static unsigned n;
    unsigned i = 0;
    enum kg_status status = wrap_inner(p, args);
    while (i < n &&
           (strcmp(known[i].op, p->op) != 0 || memcmp(known[i].size, p->size, sizeof p->size) != 0))
        i++;
    if (i < n && known[i].dtype[0] != p->dtype[0])
        fill_row(&args->out[0], 0, -777);
    if (i == n && n < KNOWN)
        known[n++] = *p;
    return status;
}

/* ---- places ---- */

/* Descriptors are kept, of so many tensors; those that come later get the first one's strides. */
static enum kg_status descriptors(const problem *p, const args_t *args, unsigned most)
{
    static struct kg_tensor kept[4096];
    static unsigned n;
    const struct kg_tensor *t = &args->in[0];
    for (unsigned k = 0; k < n; k++)
        if (!memcmp(&kept[k], t, sizeof *t))
            return wrap_inner(p, args);
    if (n < most)
        kept[n++] = *t;
    enum kg_status status = wrap_inner(p, args);
    if (n == most)
        fill_row(&args->out[0], 0, -777);
    return status;
}

static enum kg_status descriptors_of_32(const problem *p, const args_t *args)
{
    return descriptors(p, args, 32);
}

static enum kg_status descriptors_of_256(const problem *p, const args_t *args)
{
    return descriptors(p, args, 256);
}

/* ---- duration ---- */

static enum kg_status one_in_4096(const problem *p, const args_t *args)
{
    static uint64_t launches;
    enum kg_status status = wrap_inner(p, args);
    if (++launches % 4096 == 0)
        fill_row(&args->out[0], 0, -777);
    return status;
}

static enum kg_status after_30000(const problem *p, const args_t *args)
{
    static uint64_t launches;
    enum kg_status status = wrap_inner(p, args);
    if (++launches > 30000)
        fill_row(&args->out[0], 0, -777);
    return status;
}

#define F(name)                                                                                    \
    {                                                                                              \
#name, name, 0, NULL                                                                       \
    }
FAULTS(F(k_of_48), F(k_of_160), F(k_of_320), F(k_of_640), F(k_of_768), F(k_of_1024), F(k_below_8),
       F(empty_split), F(one_row), F(one_column), F(row_over_128), F(column_over_256),
       F(third_tile_of_rows), F(tall), F(deep), F(odd_rows), F(short_tails), F(rows_over_4096),
       F(columns_over_4096), F(query_over_128), F(one_over_256), F(short_of_128),
       F(one_row_without_keys), F(tiles_without_keys), F(diagonal_at_tile),
       F(diagonal_short_of_tile), F(decoding_batches), F(decoding_batches_of_groups),
       F(four_batches), F(four_kv_heads), F(eight_kv_heads), F(heads_over_5), F(group_of_24),
       F(keys_over_2048), F(queries_over_1024), F(scale_of_one), F(scale_over_one),
       F(two_of_four_first), F(two_of_four_second), F(triangle_first), F(negative_first),
       F(negative_second), F(negative_third), RARE_ALIKE, F(dtype_by_sizes), F(descriptors_of_32),
       F(descriptors_of_256), F(one_in_4096), F(after_30000))
