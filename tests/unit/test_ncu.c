/* SPDX-License-Identifier: Apache-2.0 */
/* test_ncu.c: the table of Nsight Compute, as it is and as it should not be. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/alloc.h"
#include "gate/base/buf.h"
#include "gate/base/file.h"
#include "gate/counters/counters.h"
#include "tests/unit/unit.h"

#define OCCUPANCY "sm__warps_active.avg.pct_of_peak_sustained_active"
#define READ "dram__bytes_read.sum"
#define WRITTEN "dram__bytes_write.sum"
#define HEADER "\"ID\",\"Kernel Name\",\"" OCCUPANCY "\",\"" READ "\",\"" WRITTEN "\"\n"
#define UNITS "\"\",\"\",\"%\",\"byte\",\"byte\"\n"
#define MARK "\"0\",\"_Z23" NCU_MARK "v\",\"1\",\"1\",\"1\"\n"
#define TABLE                                                                                      \
    "==PROF== Profiling \"k\": 0%....100% - 9 passes\n" HEADER UNITS MARK                          \
    "\"0\",\"one \"\"k\"\", or\ttwo\",\"61.25\",\"1,234,567\",\"1e3\"\n"                           \
    "\"1\",\"k\",n/a,\"0\",\"0\"\n"

enum { BY_OCCUPANCY = 1, BY_BYTES = 8, BY_SECTORS = 9, BY_CONFLICTS = 11 };

static enum gate_status read_text(const char *text, struct ncu_table *out)
{
    struct gate_error err;
    return ncu_read(text, strlen(text), out, 1, &err);
}

TEST(a_table)
{
    static struct ncu_table t;
    assert_int_equal(read_text(TABLE, &t), GATE_OK);
    assert_int_equal(t.n, 2);
    assert_string_equal(t.kernels[0].name, "one \"k\", or?two");
    assert_string_equal(counter_names[BY_OCCUPANCY], "occupancy");
    assert_string_equal(counter_names[BY_BYTES], "dram_bytes");
    assert_string_equal(counter_names[COUNTER_INSTRUCTIONS], "instructions");
    assert_true(t.kernels[0].values.of[BY_OCCUPANCY] == 61.25);
    assert_true(t.kernels[0].values.of[BY_BYTES] == 1235567);
    assert_true(isnan(t.kernels[1].values.of[BY_OCCUPANCY]));
    assert_true(t.kernels[1].values.of[BY_BYTES] == 0);
    assert_true(isnan(t.kernels[0].values.of[COUNTER_INSTRUCTIONS]));
}

/* Two cases of cuda_pathologies_sm90 as ncu 2025.3.1 wrote them: a product with bank conflicts, and
 * a matrix times a vector with loads that are not coalesced. */
TEST(a_table_of_an_h200)
{
    static struct ncu_table t[3];
    struct gate_error err;
    RELEASED_BY(buf_release) struct buf text = buf_of(1 << 20);
    assert_int_equal(file_read("tests/data/ncu-h200.csv", &text, &err), GATE_OK);
    assert_int_equal(ncu_read(text.data, text.len, t, 3, &err), GATE_OK);
    assert_int_equal(t[0].n, 1);
    assert_int_equal(t[1].n, 1);
    assert_int_equal(t[2].n, 0);
    for (size_t i = 0; i < COUNTERS_N; i++)
        if (isnan(t[0].kernels[0].values.of[i]))
            fail_msg("%s is not known", counter_names[i]);
    assert_true(t[0].kernels[0].values.of[BY_CONFLICTS] == 7035507);
    assert_true(t[1].kernels[0].values.of[BY_SECTORS] == 20);
    assert_true(t[1].kernels[0].values.of[BY_BYTES] == 67138560 + 2486016);
}

TEST(what_is_no_table)
{
    static struct ncu_table t;
    static const char *const bad[] = {
        "",
        "\"ID\",",
        HEADER,
        HEADER UNITS,
        HEADER "\"0\",\"k\",\"1\",\"1\",\"1\"\n", /* no units */
        HEADER UNITS "\"0\",\"k\",\"1\",\"1\"\n",
        HEADER UNITS "\"0\",\"k\",\"1\",\"1\",\"1\",\"1\"\n",
        HEADER UNITS "\"0\",\"k\",\"1\",\"1\",\"1\n",
        HEADER UNITS "\"0\",\"k\",\"1\"x,\"1\",\"1\"\n",
        HEADER UNITS "\"0\",\"k\",\"-1\",\"1\",\"1\"\n",
        HEADER UNITS "\"0\",\"k\",\"1e400\",\"1\",\"1\"\n",
        HEADER UNITS "\"0\",\"k\",\"1 2\",\"1\",\"1\"\n",
        HEADER UNITS "\"0\",\"\",\"1\",\"1\",\"1\"\n",
        "\"ID\",\"" READ "\"\n\"\",\"byte\"\n\"0\",\"1\"\n",                           /* no name */
        "\"ID\",\"Kernel Name\",\"Kernel Name\"\n\"\",\"\",\"\"\n\"0\",\"k\",\"k\"\n", /* two */
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (read_text(bad[i], &t) != GATE_IO)
            fail_msg("table %zu was read", i);
    struct gate_error err;
    assert_int_equal(ncu_read("\"ID\",\0", 6, &t, 1, &err), GATE_IO);
    assert_int_equal(read_text("==ERROR== ERR_NVGPUCTRPERM - no\n", &t), GATE_ENVIRONMENT);
}

/* Whatever is cut off, it ends, and within its memory; a sanitizer build looks. */
TEST(every_part_of_a_table)
{
    static struct ncu_table t;
    struct gate_error err;
    for (size_t n = 0; n < sizeof TABLE; n++) {
        char *part = malloc(n + 1);
        assert_non_null(part);
        memcpy(part, TABLE, n);
        ncu_read(part, n, &t, 1, &err);
        assert_true(t.n <= 2);
        free(part);
    }
}

TEST(more_than_is_kept)
{
    static struct ncu_table t;
    RELEASED_BY(buf_release) struct buf text = buf_of(1 << 20);
    buf_puts(&text, HEADER UNITS "\"9\",\"before\",\"1\",\"1\",\"1\"\n" MARK);
    for (int i = 0; i < 40; i++)
        buf_printf(&text, "\"%d\",\"k%d\",\"1\",\"1\",\"1\"\n", i, i);
    assert_int_equal(read_text(text.data, &t), GATE_OK);
    assert_int_equal(t.n, NCU_KERNELS_MAX);
    assert_string_equal(t.kernels[0].name, "k0");
    buf_clear(&text);
    for (int i = 0; i < 1100; i++)
        buf_puts(&text, i ? ",\"x\"" : "\"ID\"");
    assert_int_equal(read_text(text.data, &t), GATE_IO);
}

TEST(how_much_a_counter_moved)
{
    struct counter_values a, b;
    for (size_t i = 0; i < COUNTERS_N; i++)
        a.of[i] = b.of[i] = NAN;
    assert_true(isnan(counter_moved(BY_OCCUPANCY, &a, &b)));
    a.of[BY_OCCUPANCY] = 20;
    b.of[BY_OCCUPANCY] = 64;
    assert_true(fabs(counter_moved(BY_OCCUPANCY, &a, &b) - log(3)) < 1e-9);
    assert_true(counter_moved(BY_OCCUPANCY, &b, &a) == counter_moved(BY_OCCUPANCY, &a, &b));
    a.of[BY_BYTES] = 0;
    b.of[BY_BYTES] = 1000; /* far below what matters */
    assert_true(counter_moved(BY_BYTES, &a, &b) < 0.01);
}
