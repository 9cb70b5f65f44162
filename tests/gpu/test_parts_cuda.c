/* SPDX-License-Identifier: Apache-2.0 */
/* test_parts_cuda.c: elements, rows and tiles of an output, and integers, on a GPU as on the host.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gate/device/device.h"
#include "kernels/ops/storage.h"
#include "tests/gpu/gpu_device.h"

static const enum kg_dtype dtypes[] = {KG_F16, KG_BF16, KG_F32, KG_E4M3, KG_E5M2, KG_I8};
enum { N_DTYPES = sizeof dtypes / sizeof dtypes[0] };

static uint64_t random_state = 88172645463325252u;

static double draw(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (double)(random_state >> 11) * 0x1p-52 - 1;
}

static bool same_number(double x, double y)
{
    return fabs(x - y) <= 1e-12 * fabs(y) || (isnan(x) && isnan(y)) || x == y;
}

static bool same_element(const struct device_element *x, const struct device_element *y)
{
    return x->at == y->at && (x->at < 0 || (same_number(x->value, y->value) &&
                                            same_number(x->reference, y->reference)));
}

static bool same_parts(const struct device_comparison *x, const struct device_comparison *y)
{
    bool same = CHECK(x->elements == y->elements);
    same &= CHECK(x->bad == y->bad && x->nonfinite == y->nonfinite);
    same &= CHECK(x->swallowed == y->swallowed);
    same &= CHECK(x->over_1e2 == y->over_1e2 && x->over_1e3 == y->over_1e3);
    same &= CHECK(same_number(x->max_abs, y->max_abs));
    same &= CHECK(same_element(&x->first_bad, &y->first_bad));
    same &= CHECK(same_element(&x->first_nonfinite, &y->first_nonfinite));
    same &= CHECK(same_element(&x->first_swallowed, &y->first_swallowed));
    same &= CHECK(same_number(x->reference_sq, y->reference_sq));
    same &= CHECK(same_number(x->error_sq, y->error_sq));
    same &= CHECK(same_number(x->worst_row, y->worst_row));
    same &= CHECK(same_number(x->worst_tile, y->worst_tile));
    same &= CHECK(x->worst_row_at == y->worst_row_at);
    same &= CHECK(x->worst_tile_row == y->worst_tile_row);
    same &= CHECK(x->worst_tile_column == y->worst_tile_column);
    return same;
}

/* An output on the host. */
struct output {
    struct kg_tensor tensor;
    double *reference;
    int64_t elements;
};

static struct output new_output(enum kg_dtype dtype, int64_t rows, int64_t columns)
{
    struct output o = {{NULL, dtype, 2, {rows, columns}, {columns, 1}}, NULL, rows * columns};
    o.tensor.data = malloc((size_t)o.elements * kg_dtype_bytes(dtype));
    o.reference = malloc((size_t)o.elements * sizeof(double));
    for (int64_t i = 0; i < o.elements; i++) {
        o.reference[i] = draw() * 64;
        storage_put(o.tensor.data, dtype, i, o.reference[i] * (1 + draw() * 1e-3));
    }
    return o;
}

static void free_output(struct output *o)
{
    free(o->tensor.data);
    free(o->reference);
}

static struct device_comparison on_device(const struct output *o,
                                          const struct device_part_rule *rule)
{
    struct device_comparison found = {0}, again = {0};
    struct gate_error err;
    const size_t bytes = (size_t)o->elements * kg_dtype_bytes((enum kg_dtype)o->tensor.dtype);
    struct device_memory value = new_memory(bytes);
    struct device_memory reference = new_memory((size_t)o->elements * sizeof(double));
    struct kg_tensor t = o->tensor;
    t.data = value.data;
    CHECK(is_ok(device_upload(device, value.data, o->tensor.data, bytes, &err), &err));
    CHECK(is_ok(device_upload(device, reference.data, o->reference, reference.bytes, &err), &err));
    CHECK(is_ok(device_compare(device, &t, reference.data, rule, &found, &err), &err));
    CHECK(is_ok(device_compare(device, &t, reference.data, rule, &again, &err), &err));
    CHECK(memcmp(&found, &again, sizeof found) == 0);
    device_free(device, &value);
    device_free(device, &reference);
    return found;
}

static void check(const struct output *o, const struct device_part_rule *rule)
{
    struct device_comparison expected = {0};
    const struct device_comparison found = on_device(o, rule);
    host_parts(&o->tensor, o->reference, rule, &expected);
    if (!same_parts(&found, &expected))
        printf("# dtype %u, %lld x %lld, exact %d\n", o->tensor.dtype,
               (long long)o->tensor.shape[0], (long long)o->tensor.shape[1], rule->exact);
}

static const struct device_part_rule rules[] = {
    {false, 37, 8e-4, 37}, {false, 0.037, 4e-3, 0}, {false, 0, 0, 0}, {true, 0, 0, 0}};

static void check_all_rules(const struct output *o)
{
    for (size_t r = 0; r < sizeof(rules) / sizeof(rules[0]); r++)
        check(o, &rules[r]);
}

static void test_parts_of_many_shapes(void)
{
    static const int64_t shapes[][2] = {{1, 1},     {1, 70001}, {70001, 1}, {128, 128},
                                        {129, 127}, {300, 261}, {1000, 64}, {67000, 3}};
    for (int i = 0; i < N_DTYPES; i++)
        for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
            struct output o = new_output(dtypes[i], shapes[s][0], shapes[s][1]);
            check_all_rules(&o);
            free_output(&o);
        }
}

static void test_parts_that_are_not_finite(void)
{
    for (int i = 0; i < N_DTYPES; i++) {
        struct output o = new_output(dtypes[i], 300, 261);
        storage_put(o.tensor.data, o.tensor.dtype, 70000, NAN);
        storage_put(o.tensor.data, o.tensor.dtype, 300, INFINITY);
        o.reference[300] = NAN;
        o.reference[301] = INFINITY;
        o.reference[77777] = 1e39; /* an infinity in any dtype that has one */
        storage_put(o.tensor.data, o.tensor.dtype, 77777, INFINITY);
        check_all_rules(&o);
        free_output(&o);
    }
}

/* All of it as it must be but one element, in each corner of the last tile. */
static void test_one_element_is_found(void)
{
    enum { ROWS = 300, COLUMNS = 261 };
    static const int64_t places[] = {0, 256 * COLUMNS + 256, 256 * COLUMNS + 260,
                                     299 * COLUMNS + 256, 299 * COLUMNS + 260};
    struct output o = new_output(KG_F32, ROWS, COLUMNS);
    for (int64_t i = 0; i < o.elements; i++) {
        o.reference[i] = 1;
        kg_store_float(o.tensor.data, KG_F32, i, 1);
    }
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        kg_store_float(o.tensor.data, KG_F32, places[i], 3);
        const struct device_comparison found = on_device(&o, &rules[0]);
        CHECK(found.bad == 1 && found.first_bad.at == places[i]);
        CHECK(found.first_bad.value == 3 && found.first_bad.reference == 1 && found.error_sq == 4);
        CHECK(found.worst_row_at == places[i] / COLUMNS);
        check_all_rules(&o);
        kg_store_float(o.tensor.data, KG_F32, places[i], 1);
    }
    free_output(&o);
}

static void test_integers_are_those_of_the_host(void)
{
    enum { COUNT = 300007, LARGEST = 15 };
    struct device *host = NULL;
    struct gate_error err;
    if (!CHECK(is_ok(device_open("host", &host, &err), &err)))
        return;
    float *expected = malloc(COUNT * sizeof(float)), *got = malloc(COUNT * sizeof(float));
    struct device_memory m = new_memory(COUNT * sizeof(float));
    for (int i = 0; dtypes[i] != KG_I8; i++) {
        const enum kg_dtype t = dtypes[i];
        const size_t bytes = COUNT * kg_dtype_bytes(t);
        CHECK(is_ok(device_fill_integers(host, expected, t, COUNT, LARGEST, 77, &err), &err));
        CHECK(is_ok(device_fill_integers(device, m.data, t, COUNT, LARGEST, 77, &err), &err));
        CHECK(is_ok(device_download(device, got, m.data, bytes, &err), &err));
        CHECK(memcmp(got, expected, bytes) == 0);
    }
    device_free(device, &m);
    device_close(host);
    free(expected);
    free(got);
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"parts_of_many_shapes", test_parts_of_many_shapes},
        {"parts_that_are_not_finite", test_parts_that_are_not_finite},
        {"one_element_is_found", test_one_element_is_found},
        {"integers_are_those_of_the_host", test_integers_are_those_of_the_host},
    };
    return run_on_device(tests, sizeof(tests) / sizeof(tests[0]));
}
