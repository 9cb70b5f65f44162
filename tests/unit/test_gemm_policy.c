/* SPDX-License-Identifier: Apache-2.0 */
/* test_gemm_policy.c: every product gets a tile that its launch can carry out. */
#include "kernels/gemm/gemm_policy_sm90.h"
#include "tests/unit/unit.h"

enum { SMS = 132 };

static const int columns_of[GEMM_SM90_TILES] = {256, 128, 16, 32, 64, 96, 128, 160, 192, 224, 256};

static void is_possible(int64_t m, int64_t n, int64_t k, int64_t sms)
{
    const struct gemm_sm90_choice c = gemm_sm90_choose(m, n, k, sms);
    const int64_t tiles = gemm_blocks(n, 128) * gemm_blocks(m, columns_of[c.tile]);
    if (c.tile <= GEMM_SM90_256 || c.tile >= GEMM_SM90_TILES)
        fail_msg("%lld x %lld x %lld: tile %d", (long long)m, (long long)n, (long long)k, c.tile);
    if (c.splits < 1 || c.splits > 8 || c.splits > gemm_blocks(k, 64) ||
        (c.splits > 1 && c.tile == GEMM_SM90_128))
        fail_msg("%lld x %lld x %lld: %d shares", (long long)m, (long long)n, (long long)k,
                 c.splits);
    if (c.rest && (c.splits == 1 || tiles < sms || tiles % sms == 0))
        fail_msg("%lld x %lld x %lld: no rest of %lld tiles", (long long)m, (long long)n,
                 (long long)k, (long long)tiles);
}

TEST(every_choice_is_possible)
{
    static const int64_t sizes[] = {1, 7, 8, 63, 64, 65, 128, 500, 1000, 4096, 28672, 256000};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    for (int i = 0; i < SIZES * SIZES * SIZES; i++) {
        const int64_t m = sizes[i % SIZES], n = sizes[i / SIZES % SIZES];
        is_possible(m, n, sizes[i / SIZES / SIZES], SMS);
        is_possible(m, n, sizes[i / SIZES / SIZES], 24);
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
        {8192, 8192, 8192, GEMM_SM90_TURNED_256, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct gemm_sm90_choice c = gemm_sm90_choose(cases[i].m, cases[i].n, cases[i].k, SMS);
        if (c.tile != cases[i].tile || (c.splits > 1) != cases[i].shares)
            fail_msg("case %zu: tile %d, %d shares", i, c.tile, c.splits);
    }
}
