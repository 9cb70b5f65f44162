/* SPDX-License-Identifier: Apache-2.0 */
/* test_device_parts.c: elements, rows and tiles of an output on the host device, and integers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/ops/half.h"
#include "gate/device/device.h"
#include "tests/unit/unit.h"

/* Three tiles down and three across, of which the last ones are partial. */
enum { ROWS = 300, COLUMNS = 261, ELEMENTS = ROWS * COLUMNS, T = DEVICE_TILE };

struct output {
    struct device *device;
    double reference[ELEMENTS];
    float value[ELEMENTS];
};

static int set_up(void **state)
{
    struct output *o = calloc(1, sizeof *o);
    if (!o || device_open("host", &o->device, NULL))
        return -1;
    for (int i = 0; i < ELEMENTS; i++)
        o->value[i] = (float)(o->reference[i] = i % 3 ? 1 : -1);
    *state = o;
    return 0;
}

static int tear_down(void **state)
{
    struct output *o = *state;
    device_close(o->device);
    free(o);
    return 0;
}

static const struct device_part_rule rule = {
    .least_rms = 1, .bad_share = 1e-2, .bad_rms = 1 /* 2e-2 at +-1 */};

static struct device_comparison parts_of(struct output *o, enum kg_dtype dtype,
                                         const struct device_part_rule *r)
{
    static unsigned char raw[ELEMENTS * sizeof(float)];
    struct device_comparison found;
    struct gate_error err;
    for (int i = 0; i < ELEMENTS; i++)
        kg_store_float(raw, dtype, i, o->value[i]);
    const struct kg_tensor t = {
        raw, dtype, 3, {2, ROWS / 2, COLUMNS}, {ROWS / 2 * COLUMNS, COLUMNS, 1}};
    assert_int_equal(device_compare(o->device, &t, o->reference, r, &found, &err), GATE_OK);
    assert_int_equal(found.elements, ELEMENTS);
    return found;
}

TEST_WITHIN(equal_has_no_worst, set_up, tear_down)
{
    for (enum kg_dtype dtype = KG_F16; dtype <= KG_F32; dtype++) {
        struct device_comparison found = parts_of(*state, dtype, &rule);
        assert_true(found.bad == 0 && found.nonfinite == 0 && found.first_bad.at == -1);
        assert_true(found.error_sq == 0 && found.reference_sq == ELEMENTS);
        assert_true(found.worst_row == 0 && found.worst_tile == 0);
        assert_true(found.worst_row_at == -1 && found.worst_tile_row == -1);
    }
}

/* One wrong element in each corner of each tile, the partial ones too. */
TEST_WITHIN(an_element_in_a_corner_is_told, set_up, tear_down)
{
    struct output *o = *state;
    for (int corner = 0; corner < 36; corner++) {
        int tile_row = corner / 12, tile_column = corner / 4 % 3;
        int height = tile_row < 2 ? T : ROWS - 2 * T, width = tile_column < 2 ? T : COLUMNS - 2 * T;
        int row = tile_row * T + (corner & 1 ? height - 1 : 0);
        int column = tile_column * T + (corner & 2 ? width - 1 : 0), at = row * COLUMNS + column;
        float right = o->value[at];
        o->value[at] = right + 0.5f;
        struct device_comparison found = parts_of(o, KG_F32, &rule);
        assert_int_equal(found.bad, 1);
        assert_int_equal(found.first_bad.at, at);
        assert_true(found.first_bad.value == right + 0.5f && found.first_bad.reference == right);
        assert_int_equal(found.worst_row_at, row);
        assert_int_equal(found.worst_tile_row, tile_row);
        assert_int_equal(found.worst_tile_column, tile_column);
        assert_true(found.worst_row == sqrt(0.25 / COLUMNS));
        assert_true(found.worst_tile == sqrt(0.25 / (height * width)));
        assert_true(found.error_sq == 0.25);
        o->value[at] = right;
    }
}

TEST_WITHIN(the_first_of_equals_is_told, set_up, tear_down)
{
    struct output *o = *state;
    o->value[7 * COLUMNS + T] += 0.5f;
    o->value[5 * COLUMNS] += 0.5f;
    struct device_comparison found = parts_of(o, KG_F32, &rule);
    assert_int_equal(found.bad, 2);
    assert_int_equal(found.first_bad.at, 5 * COLUMNS);
    assert_true(found.worst_row_at == 5 && found.worst_tile_column == 0);
}

/* A small error is nobody's fault as an element, and yet it is the worst row's. */
TEST_WITHIN(a_small_error_is_not_bad, set_up, tear_down)
{
    struct output *o = *state;
    o->value[ELEMENTS - 1] += 0.019f;
    struct device_comparison found = parts_of(o, KG_F32, &rule);
    assert_true(found.bad == 0 && found.worst_row_at == ROWS - 1 && found.worst_tile_row == 2);
    o->value[ELEMENTS - 1] += 0.002f;
    assert_int_equal(parts_of(o, KG_F32, &rule).bad, 1);
}

TEST_WITHIN(what_is_not_finite_has_no_distance, set_up, tear_down)
{
    struct output *o = *state;
    o->value[9] = NAN;
    o->value[ELEMENTS - 1] = INFINITY;
    struct device_comparison found = parts_of(o, KG_BF16, &rule);
    assert_true(found.nonfinite == 2 && found.first_nonfinite.at == 9 && found.swallowed == 0);
    assert_true(found.bad == 2 && found.first_bad.at == 9);
    assert_true(isnan(found.first_bad.value) && found.first_bad.reference == o->reference[9]);
    assert_true(found.error_sq == 0 && found.worst_row == 0);
    assert_true(found.reference_sq == ELEMENTS - 2);
}

/* The tolerance of 1e-2 is 0.03 at 2 and 0.01 at 0, that of 1e-3 a tenth of it, whatever the rule.
 */
TEST_WITHIN(elements_count_by_tolerance, set_up, tear_down)
{
    static const struct {
        double reference;
        float value;
        int over_1e2, over_1e3;
        double max_abs;
    } rows[] = {
        {2, 2.0029f, 0, 0, 0.0029},     {2, 2.0031f, 0, 1, 0.0031}, {2, 1.96875f, 1, 1, 0.03125},
        {0, 0.0009f, 0, 0, 0.0009},     {0, 0.011f, 1, 1, 0.011},   {1, NAN, 1, 1, 0},
        {1, -INFINITY, 1, 1, 0},        {NAN, NAN, 0, 0, 0},        {INFINITY, INFINITY, 0, 0, 0},
        {INFINITY, -INFINITY, 1, 1, 0}, {NAN, 1, 1, 1, 0},
    };
    struct output *o = *state;
    const struct device_part_rule exact = {.exact = true};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        o->reference[COLUMNS] = rows[i].reference;
        o->value[COLUMNS] = rows[i].value;
        for (int is_exact = 0; is_exact < 2; is_exact++) {
            struct device_comparison c = parts_of(o, KG_F32, is_exact ? &exact : &rule);
            assert_int_equal(c.over_1e2, rows[i].over_1e2);
            assert_int_equal(c.over_1e3, rows[i].over_1e3);
            assert_true(fabs(c.max_abs - rows[i].max_abs) < 1e-6);
        }
    }
}

/* Where a NaN or an infinity is due, or what rounds to one, only the same will do. */
TEST_WITHIN(what_must_not_be_finite, set_up, tear_down)
{
    struct output *o = *state;
    o->reference[0] = NAN;
    o->value[0] = NAN;
    o->reference[1] = 1e6;
    o->value[1] = INFINITY;
    struct device_comparison found = parts_of(o, KG_F16, &rule);
    assert_true(found.bad == 0 && found.nonfinite == 0);
    o->value[0] = 1;
    o->value[1] = 65504;
    found = parts_of(o, KG_F16, &rule);
    assert_true(found.bad == 2 && found.first_bad.at == 0 && isnan(found.first_bad.reference));
    assert_true(found.swallowed == 2 && found.first_swallowed.at == 0 && found.nonfinite == 0 &&
                found.error_sq == 0);
}

TEST_WITHIN(a_reference_of_zeros_is_measured_by_what_is_least, set_up, tear_down)
{
    struct output *o = *state;
    memset(o->reference, 0, sizeof o->reference);
    memset(o->value, 0, sizeof o->value);
    o->value[COLUMNS] = 0.25f;
    assert_true(parts_of(o, KG_F32, &rule).worst_row == sqrt(0.0625 / COLUMNS));
    const struct device_part_rule unknown = {0};
    struct device_comparison found = parts_of(o, KG_F32, &unknown);
    assert_true(found.worst_row == 0.25 && found.worst_row_at == 1 && found.bad == 1);
}

/* The reference rounded once: one bit more is wrong, one that rounding takes is not. */
TEST_WITHIN(exact_is_to_the_bit, set_up, tear_down)
{
    struct output *o = *state;
    const struct device_part_rule exact = {.exact = true};
    o->reference[3] = 257; /* a tie in bf16 */
    o->value[3] = 256;
    assert_int_equal(parts_of(o, KG_BF16, &exact).bad, 0);
    o->value[3] = 258;
    struct device_comparison found = parts_of(o, KG_BF16, &exact);
    assert_true(found.bad == 1 && found.first_bad.at == 3 && found.first_bad.reference == 256);
    assert_true(found.worst_row == 0 && found.reference_sq == 0);
}

TEST_WITHIN(integers_are_a_hash_of_seed_and_index, set_up, tear_down)
{
    struct output *o = *state;
    enum { LARGEST = 3, COUNT = 7000 };
    static float one[COUNT], other[COUNT];
    unsigned seen[2 * LARGEST + 1] = {0}, same = 0;
    struct gate_error err;
    assert_int_equal(device_fill_integers(o->device, one, KG_F32, COUNT, LARGEST, 5, &err),
                     GATE_OK);
    assert_int_equal(device_fill_integers(o->device, other, KG_F32, COUNT, LARGEST, 6, &err),
                     GATE_OK);
    for (int i = 0; i < COUNT; i++) {
        assert_true(one[i] == rintf(one[i]) && fabsf(one[i]) <= LARGEST);
        seen[(int)one[i] + LARGEST]++;
        same += one[i] == other[i];
    }
    for (int value = 0; value <= 2 * LARGEST; value++) /* of 1,167: 5 deviations; 0 never */
        assert_true(value == LARGEST ? !seen[value] : seen[value] > 1000 && seen[value] < 1330);
    assert_true(same > 1000 && same < 1330);
    assert_int_equal(device_fill_integers(o->device, other, KG_F32, COUNT / 2, LARGEST, 5, &err),
                     GATE_OK);
    assert_memory_equal(one, other, COUNT / 2 * sizeof *one);
}
