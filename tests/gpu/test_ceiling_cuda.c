/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_ceiling_cuda.c: what the gate's own kernels reach on this GPU, beside its data sheet.
 */
#include <math.h>

#include "gate/worker/worker.h"
#include "tests/gpu/gpu_device.h"

#define LEAST 0.5 /* of the data sheet */
#define MOST 1.05
#define APART 0.03 /* two measurements in a row */

static const char *const names[] = {"read GB/s",    "copy GB/s",    "fp16 TFLOP/s",
                                    "bf16 TFLOP/s", "TF32 TFLOP/s", "fp32 TFLOP/s"};

static void read_rates(double rates[CEILINGS])
{
    struct document_ceilings c = {.message = NULL};
    struct gate_error err = {0};
    if (!CHECK(is_ok(ceilings_measure(device, &c, &err), &err)))
        exit(1);
    const double all[CEILINGS] = {c.read_gbps,   c.copy_gbps,   c.fp16_tflops,
                                  c.bf16_tflops, c.tf32_tflops, c.fp32_tflops};
    for (int i = 0; i < CEILINGS; i++)
        rates[i] = all[i];
}

static void test_ceilings_are_near_the_datasheet_and_repeat(void)
{
    const struct device_peaks *p = &device_info(device)->peaks;
    const double sheet[CEILINGS] = {p->bytes_per_s / 1e9, p->bytes_per_s / 1e9,
                                    p->fp16_flops / 1e12, p->fp16_flops / 1e12,
                                    p->tf32_flops / 1e12, p->fp32_flops / 1e12};
    double first[CEILINGS], again[CEILINGS];
    read_rates(first);
    read_rates(again);
    for (int i = 0; i < CEILINGS; i++) {
        printf("# %s: %.5g, again %.5g; data sheet %.5g\n", names[i], first[i], again[i], sheet[i]);
        CHECK(fabs(again[i] / first[i] - 1) <= APART);
        CHECK(sheet[i] <= 0 || (first[i] >= LEAST * sheet[i] && first[i] <= MOST * sheet[i]));
    }
}

/* A round more is more work, whose result is looked at. */
static void test_each_number_of_rounds_has_its_result(void)
{
    static const unsigned rounds[] = {1, 2, 3, 100};
    for (int which = 0; which < CEILINGS; which++)
        for (size_t i = 0; i < sizeof(rounds) / sizeof(rounds[0]); i++) {
            struct device_ceiling_run r;
            struct gate_error err = {0};
            if (rounds[i] == 100 && which <= CEILING_COPY)
                continue;
            CHECK(is_ok(device_ceiling_run(device, (enum device_ceiling)which, rounds[i], &r, &err),
                        &err));
            CHECK(r.work > 0);
        }
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"the ceilings are near the data sheet, and repeat within 3 %",
         test_ceilings_are_near_the_datasheet_and_repeat},
        {"each number of rounds has its result", test_each_number_of_rounds_has_its_result},
    };
    return run_on_device(tests, sizeof(tests) / sizeof(tests[0]));
}
