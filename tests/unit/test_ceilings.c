/* SPDX-License-Identifier: Apache-2.0 */
/* test_ceilings.c: what a device reaches, by runs that are made up, and how much of it a case does.
 */
#include <math.h>
#include <string.h>

#include "gate/run/run.h"
#include "gate/worker/worker.h"
#include "tests/unit/scripted_device.h"
#include "tests/unit/unit.h"

#define assert_near(a, b, by) assert_true(fabs((a) - (b)) <= (by))

/* A round of a kind takes so long, or a thousandth more or less by turns. */
static struct {
    double round_ns[CEILINGS], overhead_ns, work[CEILINGS];
    double ns[CEILINGS]; /* worked in all */
    unsigned runs[CEILINGS];
    enum device_ceiling broken; /* a kind that fails; CEILINGS: none */
} script;

static enum gate_status run(struct device *, enum device_ceiling which, unsigned rounds,
                            struct device_ceiling_run *out, struct gate_error *err)
{
    unsigned n = script.runs[which]++;
    if (which == script.broken)
        return gate_fail(err, GATE_ENVIRONMENT, "is broken");
    double turn = n % 3 == 0 ? 0.999 : n % 3 == 1 ? 1 : 1.001;
    out->work = rounds * script.work[which];
    out->device_ns = (script.overhead_ns + rounds * script.round_ns[which]) * turn;
    script.ns[which] += out->device_ns;
    return GATE_OK;
}

static int open_scripted(void **state)
{
    struct device *d = scripted_open();
    scripted.ceiling_run = run;
    memset(&script, 0, sizeof script);
    script.overhead_ns = 3000;
    script.broken = CEILINGS;
    for (int i = 0; i < CEILINGS; i++) { /* of memory a round is long */
        script.round_ns[i] = i <= CEILING_COPY ? 900e3 : 600;
        script.work[i] = script.round_ns[i] * (i <= CEILING_COPY ? 4000 : 800e3) * (1 + 0.01 * i);
    }
    d->info.peaks = (struct device_peaks){
        .fp16_flops = 990e12, .tf32_flops = 990e12, .fp32_flops = 990e12, .bytes_per_s = 4.8e12};
    *state = d;
    return 0;
}

TEST_WITHIN(the_median_of_samples_of_a_millisecond_is_found, open_scripted, scripted_close)
{
    struct document_ceilings c = {.message = NULL};
    struct gate_error err = {0};
    assert_int_equal(ceilings_measure(*state, &c, &err), GATE_OK);
    assert_null(c.message);
    /* what a launch costs is in them, as it is in those of a kernel under test */
    assert_near(c.read_gbps, 4000 * 900.0 / 903, 1e-6);
    assert_near(c.copy_gbps, 4000 * 1.01 * 900.0 / 903, 1e-6);
    assert_near(c.fp16_tflops, 800 * 1.02, 800 * 0.004);
    assert_near(c.bf16_tflops / c.fp16_tflops, 1.03 / 1.02, 1e-9);
    assert_near(c.tf32_tflops / c.fp16_tflops, 1.04 / 1.02, 1e-9);
    assert_near(c.fp32_tflops / c.fp16_tflops, 1.05 / 1.02, 1e-9);
    for (int i = 0; i < CEILINGS; i++) { /* 100 ms to warm up, then 25 ms */
        assert_true(script.ns[i] > 121e6 && script.ns[i] < 128e6);
        assert_true(script.runs[i] >= 125 && script.runs[i] < 140);
    }
}

TEST_WITHIN(what_is_5_percent_faster_than_the_datasheet_is_refused, open_scripted, scripted_close)
{
    struct device *d = *state;
    struct document_ceilings c;
    struct gate_error err = {0};
    double rate = 4000e9 * 900.0 / 903;
    d->info.peaks.bytes_per_s = rate * 1.01 / 1.0499; /* that of the copy, which is faster */
    assert_int_equal(ceilings_measure(d, &c, &err), GATE_OK);
    d->info.peaks.bytes_per_s = rate * 1.01 / 1.0501;
    assert_int_equal(ceilings_measure(d, &c, &err), GATE_ENVIRONMENT);
    assert_non_null(strstr(err.message, "copy kernel seems to reach 4.027e+12 a second, and the "
                                        "data sheet says 3.83"));
    d->info.peaks.bytes_per_s = 0; /* it is not known */
    assert_int_equal(ceilings_measure(d, &c, &err), GATE_OK);
    d->info.peaks.tf32_flops = 700e12;
    assert_int_equal(ceilings_measure(d, &c, &err), GATE_ENVIRONMENT);
    assert_non_null(strstr(err.message, "TF32 product"));
}

TEST_WITHIN(one_that_fails_leaves_none, open_scripted, scripted_close)
{
    struct document_ceilings c;
    struct gate_error err = {0};
    script.broken = CEILING_TF32;
    assert_int_equal(ceilings_measure(*state, &c, &err), GATE_ENVIRONMENT);
    assert_string_equal(err.message, "is broken");
}

TEST_WITHIN(a_clock_that_stands_is_no_ceiling, open_scripted, scripted_close)
{
    struct document_ceilings c;
    struct gate_error err = {0};
    script.overhead_ns = script.round_ns[CEILING_READ] = 0;
    assert_int_equal(ceilings_measure(*state, &c, &err), GATE_ENVIRONMENT);
    assert_string_equal(err.message, "the ceiling's read kernel took 0 ns");
}

TEST(the_host_has_none)
{
    struct device *d = NULL;
    struct document_ceilings c;
    struct gate_error err = {0};
    assert_int_equal(device_open("host", &d, &err), GATE_OK);
    assert_int_equal(ceilings_measure(d, &c, &err), GATE_ENVIRONMENT);
    assert_string_equal(err.message, "the ceiling of a host is not measured");
    device_close(d);
}

TEST(a_share_is_of_the_memory_or_of_the_arithmetic)
{
    struct document_ceilings c = {.read_gbps = 4000,
                                  .copy_gbps = 3000,
                                  .fp16_tflops = 800,
                                  .bf16_tflops = 500,
                                  .tf32_tflops = 300,
                                  .fp32_tflops = 60};
    const struct document_timing compute = {.tflops = 400, .gbps = 1000};
    const struct document_timing memory = {.tflops = 1, .gbps = 3000};
    assert_near(run_ceilings_share(&c, "fp16", &compute), 0.5, 1e-12);
    assert_near(run_ceilings_share(&c, "bf16", &compute), 0.8, 1e-12);
    assert_near(run_ceilings_share(&c, "tf32", &compute), 4.0 / 3, 1e-12);
    assert_near(run_ceilings_share(&c, "fp32", &compute), 4, 1e-12);
    c.tf32_tflops = 150; /* three products take longer than the multiply-adds */
    assert_near(run_ceilings_share(&c, "fp32", &compute), 400 / 60.0, 1e-12);
    assert_near(run_ceilings_share(&c, "fp16", &memory), 0.75, 1e-12);
    c.copy_gbps = 6000; /* as where reading alone cannot use all of the memory */
    assert_near(run_ceilings_share(&c, "fp16", &memory), 0.5, 1e-12);
    c.fp16_tflops = NAN;
    assert_true(isnan(run_ceilings_share(&c, "fp16", &memory)));
    c.copy_gbps = c.read_gbps = 0;
    assert_true(isnan(run_ceilings_share(&c, "bf16", &memory)));
}
