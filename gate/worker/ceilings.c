/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/worker/worker.h"

#include <math.h>

#include "gate/base/clock.h"
#include "gate/decide/stats.h"

#define SAMPLE_NS 1e6
#define WARM_NS 100e6
#define WARM_RUNS_MAX 10000 /* of no more than a few microseconds each, if the clock is true */
#define ROUNDS_MAX 1e8
#define SAMPLES 25
#define OVER_DATASHEET 1.05

static const char *const names[CEILINGS] = {"read",         "copy",         "fp16 product",
                                            "bf16 product", "TF32 product", "fp32 arithmetic"};

static enum gate_status run(struct device *d, enum device_ceiling which, unsigned rounds,
                            struct device_ceiling_run *out, struct gate_error *err)
{
    TRY(device_ceiling_run(d, which, rounds, out, err));
    if (!clock_can_be(out->device_ns))
        return gate_fail(err, GATE_ENVIRONMENT, "the ceiling's %s kernel took %g ns", names[which],
                         out->device_ns);
    return GATE_OK;
}

/* In bytes or FLOP a second. The device warms up with as many rounds as a sample has. */
static enum gate_status measure(struct device *d, enum device_ceiling which, double *rate,
                                struct gate_error *err)
{
    struct device_ceiling_run r = {.work = 0};
    const struct device_peaks *p = &device_info(d)->peaks;
    const double datasheet[CEILINGS] = {p->bytes_per_s, p->bytes_per_s, p->fp16_flops,
                                        p->fp16_flops,  p->tf32_flops,  p->fp32_flops};
    double rates[SAMPLES], worked_ns = 0, most = datasheet[which]; /* 0: not known */
    unsigned rounds = 1;
    for (unsigned i = 0; worked_ns < WARM_NS && i < WARM_RUNS_MAX; i++) {
        TRY(run(d, which, rounds, &r, err));
        worked_ns += r.device_ns;
        rounds = (unsigned)fmin(fmax(round(rounds * SAMPLE_NS / r.device_ns), 1), ROUNDS_MAX);
    }
    for (unsigned i = 0; i < SAMPLES; i++) {
        TRY(run(d, which, rounds, &r, err));
        rates[i] = r.work / r.device_ns * 1e9;
    }
    *rate = stats_middle(rates, SAMPLES);
    if (most > 0 && *rate > OVER_DATASHEET * most)
        return gate_fail(err, GATE_ENVIRONMENT,
                         "the ceiling's %s kernel seems to reach %.4g a second, and the data sheet "
                         "says %.4g",
                         names[which], *rate, most);
    return GATE_OK;
}

enum gate_status ceilings_measure(struct device *d, struct document_ceilings *out,
                                  struct gate_error *err)
{
    double rates[CEILINGS];
    for (int i = 0; i < CEILINGS; i++)
        TRY(measure(d, (enum device_ceiling)i, &rates[i], err));
    *out = (struct document_ceilings){.read_gbps = rates[CEILING_READ] / 1e9,
                                      .copy_gbps = rates[CEILING_COPY] / 1e9,
                                      .fp16_tflops = rates[CEILING_FP16] / 1e12,
                                      .bf16_tflops = rates[CEILING_BF16] / 1e12,
                                      .tf32_tflops = rates[CEILING_TF32] / 1e12,
                                      .fp32_tflops = rates[CEILING_FP32] / 1e12};
    return GATE_OK;
}
