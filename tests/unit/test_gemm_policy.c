/* SPDX-License-Identifier: Apache-2.0 */
/* test_gemm_policy.c: every product gets a tile that its launch can carry out. */
#include "kernels/gemm/gemm_policy_sm90.h"
#include "tests/unit/unit.h"

enum { SMS = 132 };

static const int columns_of[GEMM_SM90_PAIR_192] = {256, 128, 16,  32,  64, 96,
                                                   128, 160, 192, 224, 256};

static struct gemm_sm90_choice choose(int64_t m, int64_t n, int64_t k, bool b_k)
{
    return gemm_sm90_choose(&(struct gemm_sm90_product){m, n, k, b_k}, SMS);
}

static void is_possible(int64_t m, int64_t n, int64_t k, int64_t sms)
{
    const struct gemm_sm90_choice c =
        gemm_sm90_choose(&(struct gemm_sm90_product){m, n, k, n % 3 == 0}, sms);
    if (c.tile >= GEMM_SM90_PAIR_192 && c.tile < GEMM_SM90_TILES && c.splits == 1 && !c.rest &&
        !c.stream)
        return;
    if (c.tile <= GEMM_SM90_256 || c.tile >= GEMM_SM90_PAIR_192)
        fail_msg("%lld x %lld x %lld: tile %d", (long long)m, (long long)n, (long long)k, c.tile);
    const int64_t tiles = gemm_blocks(n, 128) * gemm_blocks(m, columns_of[c.tile]);
    if (c.splits < 1 || c.splits > 8 || c.splits > gemm_blocks(k, 64) ||
        (c.splits > 1 && c.tile == GEMM_SM90_128))
        fail_msg("%lld x %lld x %lld: %d shares", (long long)m, (long long)n, (long long)k,
                 c.splits);
    if (c.stream && (c.splits != 1 || c.rest || c.tile != GEMM_SM90_TURNED_256 ||
                     tiles * gemm_blocks(k, 64) < 4 * sms))
        fail_msg("%lld x %lld x %lld: stream-K of tile %d", (long long)m, (long long)n,
                 (long long)k, c.tile);
    if (c.rest && (c.splits == 1 || tiles < sms || tiles % sms == 0))
        fail_msg("%lld x %lld x %lld: no rest of %lld tiles", (long long)m, (long long)n,
                 (long long)k, (long long)tiles);
}

/* Thin tiles where C can be written so and B is read twice at most. */
static void is_possible_in_fp8(int64_t m, int64_t n, int64_t k, int64_t sms)
{
    for (int i = 0; i < 4; i++) {
        const bool thin = i / 2 != 0 && m <= 128;
        const struct gemm_fp8_choice c = gemm_fp8_choose(m, n, k, i % 2 != 0, i / 2 != 0, sms);
        if (c.tile >= (thin ? GEMM_FP8_TILES : GEMM_FP8_THIN_16) || c.splits < 1 ||
            c.splits > (c.tile < GEMM_FP8_THIN_16 ? 1 : 3) || c.splits > gemm_blocks(k, 128))
            fail_msg("%lld x %lld x %lld: tile %d, %d shares", (long long)m, (long long)n,
                     (long long)k, c.tile, c.splits);
    }
}

TEST(every_choice_is_possible)
{
    static const int64_t sizes[] = {1,   7,   8,    63,   64,   65,    128,
                                    300, 500, 1000, 1025, 4096, 28672, 256000};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    static const int64_t sms[] = {SMS, 24, 18}; /* of 18, parts hold no cluster of three */
    for (int i = 0; i < SIZES * SIZES * SIZES * 3; i++) {
        const int64_t m = sizes[i / 3 % SIZES], n = sizes[i / 3 / SIZES % SIZES];
        const int64_t k = sizes[i / 3 / SIZES / SIZES];
        is_possible(m, n, k, sms[i % 3]);
        is_possible_in_fp8(m, n, k, sms[i % 3]);
    }
}

/* The rule, where nobody would choose otherwise. */
TEST(thin_products_get_thin_tiles_and_large_ones_wide)
{
    static const struct {
        int64_t m, n, k;
        enum gemm_sm90_tile tile;
        bool shares;
    } cases[] = {
        {1, 4096, 4096, GEMM_SM90_TURNED_16, true},
        {16, 128256, 4096, GEMM_SM90_TURNED_16, false},
        {64, 128256, 4096, GEMM_SM90_TURNED_64, false},
        {128, 4096, 16384, GEMM_SM90_TURNED_128, true},
        {128, 20480, 5120, GEMM_SM90_TURNED_128, true},
        {128, 128256, 4096, GEMM_SM90_WIDE, false},
        {8192, 8192, 8192, GEMM_SM90_TURNED_256, false},
        {640, 6016, 3008, GEMM_SM90_WIDE, false},      /* 120 tiles; 141 if they were turned */
        {2048, 4544, 4544, GEMM_SM90_PAIR_192, false}, /* 198 halves of pairs in three waves */
        {3000, 5120, 4096, GEMM_SM90_PAIR_192, false},
        {3000, 5128, 4104, GEMM_SM90_PAIR_256, false}, /* lines that lie in two of the L2's */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct gemm_sm90_choice c = choose(cases[i].m, cases[i].n, cases[i].k, true);
        if (c.tile != cases[i].tile || (c.splits > 1) != cases[i].shares)
            fail_msg("case %zu: tile %d, %d shares", i, c.tile, c.splits);
    }
}

/* Sums of a tile for each block, and two flags. */
TEST(stream_k_serves_where_waves_leave_much_over)
{
    const struct gemm_sm90_product few = {1000, 3584, 18944, true}, many = {8192, 8192, 8192, true};
    assert_int_equal(gemm_sm90_workspace(&few, SMS), SMS * (256 * 128 * 4 + 2 * 4));
    assert_int_equal(gemm_sm90_workspace(&many, SMS), 0);
}

TEST(products_of_fp8_get_the_tile_that_is_measured_best)
{
    static const struct {
        int64_t m, n, k;
        bool blocks, thin;
        enum gemm_fp8_tile tile;
        int splits;
    } cases[] = {
        {8192, 8192, 8192, false, true, GEMM_FP8_192, 1},
        {4096, 4096, 7168, true, true, GEMM_FP8_128, 1},
        {2048, 7168, 2048, false, true, GEMM_FP8_128, 1},
        {2048, 7168, 2048, true, true, GEMM_FP8_192, 1}, /* costs less beside scales of blocks */
        {128, 7168, 16384, true, true, GEMM_FP8_64, 1},
        {64, 24576, 1536, false, true, GEMM_FP8_THIN_64, 1},
        {32, 7168, 16384, true, true, GEMM_FP8_THIN_32, 2},
        {8, 28672, 4096, false, true, GEMM_FP8_THIN_16, 1},
        {1, 4096, 4096, true, true, GEMM_FP8_THIN_16, 3},
        {1, 4096, 4096, true, false, GEMM_FP8_64, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct gemm_fp8_choice c = gemm_fp8_choose(cases[i].m, cases[i].n, cases[i].k,
                                                         cases[i].blocks, cases[i].thin, SMS);
        if (c.tile != cases[i].tile || c.splits != cases[i].splits)
            fail_msg("case %zu: tile %d, %d shares", i, c.tile, c.splits);
    }
}

/* Marks the stages of a piece; those that a block ends must have been begun by the ones before. */
static void cover(uint8_t *times, int64_t tiles, int64_t stages, int blocks, int block)
{
    const struct gemm_sm90_piece p = gemm_sm90_piece_of(tiles, stages, blocks, block);
    for (int64_t i = p.from; i < p.to; i++)
        times[i]++;
    int64_t missing = p.from % stages;
    if (missing == 0 || (p.from / stages + 1) * stages > p.to)
        return;
    for (int other = block - 1; missing > 0; other--) {
        assert_true(other >= 0);
        const struct gemm_sm90_piece o = gemm_sm90_piece_of(tiles, stages, blocks, other);
        assert_true(o.to > o.from && o.to == p.from - (p.from % stages - missing));
        missing -= o.to - o.from < missing ? o.to - o.from : missing;
    }
}

TEST(pieces_of_stream_k_cover_every_stage_once)
{
    static uint8_t times[300 * 330];
    for (int64_t tiles = 1; tiles < 300; tiles += 13)
        for (int64_t stages = 4; stages < 330; stages += 17)
            for (int blocks = 1; blocks <= SMS && tiles * stages >= 4 * blocks; blocks += 131) {
                memset(times, 0, sizeof times);
                for (int block = 0; block < blocks; block++)
                    cover(times, tiles, stages, blocks, block);
                for (int64_t i = 0; i < tiles * stages; i++)
                    if (times[i] != 1)
                        fail_msg("%lld tiles of %lld stages: stage %lld is computed %d times",
                                 (long long)tiles, (long long)stages, (long long)i, times[i]);
            }
}
