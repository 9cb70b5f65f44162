/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_layer_sm90.c: the Hopper layer of kernels/cuda: tensor maps, descriptors, rings, products,
 * staged stores.
 *
 * A picks one row of B for each row of D, so that each element of D must be one known element of B:
 * whatever reads an operand at a wrong place gives a wrong number.
 */
#include <math.h>
#include <string.h>

#include "kernels/ops/half.h"
#include "tests/gpu/gpu_device.h"
#include "tests/gpu/probe_sm90.h"

enum { M = 64, K = 128, N_MAX = 256 };

/* All values are whole and below 256, so that every type holds them. */
static int value_of_b(int k, int n)
{
    return (k * 37 + n * 101 + k * n) % 251;
}

static int picked(int m)
{
    return (m * 45 + 17) % K;
}

static void fill(void *to, const struct probe *p, bool is_b)
{
    const int rows = is_b ? p->n : M, major = is_b ? p->b_major : p->a_major;
    for (int r = 0; r < rows; r++)
        for (int k = 0; k < K; k++)
            kg_store_float(to, p->dtype, major ? k * rows + r : r * K + k,
                           is_b ? (float)value_of_b(k, r) : (float)(k == picked(r)));
}

struct launched {
    const struct probe *probe;
    const void *a, *b;
    void *d, *rounded;
};

static enum kg_status launch_probe(void *context, unsigned, void *stream)
{
    const struct launched *l = context;
    return l->probe->launch(l->a, l->b, l->d, l->rounded, stream);
}

static unsigned count_wrong(const void *got, uint32_t dtype, int n)
{
    unsigned wrong = 0;
    for (int m = 0; m < M; m++)
        for (int c = 0; c < n; c++)
            if (kg_load_float(got, dtype, m * n + c) != (float)value_of_b(picked(m), c))
                wrong++;
    return wrong;
}

static void check_probe(const struct probe *p)
{
    static float host[N_MAX * K];
    struct gate_error err;
    struct device_memory a = new_memory(M * K * 4), b = new_memory(N_MAX * K * 4);
    struct device_memory d = new_memory(M * N_MAX * 4), rounded = new_memory(M * N_MAX * 2);
    struct launched l = {p, a.data, b.data, d.data, rounded.data};

    fill(host, p, false);
    CHECK(is_ok(device_upload(device, a.data, host, a.bytes, &err), &err));
    fill(host, p, true);
    CHECK(is_ok(device_upload(device, b.data, host, b.bytes, &err), &err));
    CHECK(is_ok(device_fill_bytes(device, d.data, 0xff, d.bytes, &err), &err));
    CHECK(is_ok(device_fill_bytes(device, rounded.data, 0xff, rounded.bytes, &err), &err));
    CHECK(is_ok(device_launch_checked(device, launch_probe, &l, 0, &err), &err));
    CHECK(is_ok(device_download(device, host, d.data, d.bytes, &err), &err));
    unsigned wrong = count_wrong(host, KG_F32, p->n);
    if (p->dtype != KG_F32) {
        CHECK(is_ok(device_download(device, host, rounded.data, rounded.bytes, &err), &err));
        wrong += count_wrong(host, p->dtype, p->n);
    }
    printf("# %s: %u wrong\n", p->name, wrong);
    CHECK(wrong == 0);
    device_free(device, &a);
    device_free(device, &b);
    device_free(device, &d);
    device_free(device, &rounded);
}

static void test_every_way_to_read_operands(void)
{
    const struct kg_device *kg = &device_info(device)->kg;
    if (kg->cc_major != 9 || kg->cc_minor != 0) {
        tap_skip("not of compute capability 9.0");
        return;
    }
    for (unsigned i = 0; i < n_probes_sm90; i++)
        check_probe(&probes_sm90[i]);
}

int main(void)
{
    const struct tap_test tests[] = {
        {"every way to read operands gives the product", test_every_way_to_read_operands},
    };
    return run_on_device(tests, sizeof(tests) / sizeof(tests[0]));
}
