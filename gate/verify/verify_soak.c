#include "gate/verify/verify_soak.h"

#include <stdio.h>

#include "gate/base/clock.h"
#include "gate/verify/verify.h"

/* Launches of the problem itself: what fits into `ns`, but no more than `most`; and no fewer than
 * FEW where so many fit into `few_ns`, or else FEWEST, for those that take milliseconds. */
static const struct {
    double ns, few_ns;
    unsigned most;
} bounds[VERIFY_TIERS] = {{2.5e6, 10e6, 60}, {100e6, 200e6, 1000}, {0, 0, 0}};
#define FEW 16
#define FEWEST 6

/* ---- what is lost ---- */

enum gate_status means_count(struct device *d, struct means *m, unsigned at, struct gate_error *err)
{
    m->process[at] = state_memory();
    m->counts[at] = state_count();
    return device_state_read(d, &m->device[at], err);
}

void means_compare(struct device *d, const struct means *m, unsigned launches,
                   struct verification *v)
{
    /* A CUDA driver takes memory of the process when it pleases. */
    if (device_info(d)->kg.kind == KG_DEVICE_HOST)
        state_find_leak(m->process, launches, v);
    state_find_gathering(m->counts, launches, v);
    state_find_device_leak(m->device, launches, v);
}

/* ---- the problem itself ---- */

unsigned endure_launches(enum verify_tier tier, double ns)
{
    double least = bounds[tier].most ? (FEW * ns <= bounds[tier].few_ns ? FEW : FEWEST) : 0;
    double n = ns > 0 ? bounds[tier].ns / ns : bounds[tier].most;
    n = n < least ? least : n > bounds[tier].most ? bounds[tier].most : n;
    return (unsigned)n / 2 * 2;
}

/* The first launch, and how long it took. */
static enum gate_status launch_timed(const struct verify_job *job, struct arm *arm, double *ns,
                                     uint64_t *hash, struct gate_error *err)
{
    double begin_ns = clock_ns();
    enum gate_status status = verify_launch(job, arm, err);
    *ns = clock_ns() - begin_ns;
    return status ? status : operands_hash_outputs(job->device, job->operands, 1, hash, err);
}

static enum gate_status launch_counted(const struct verify_job *job, struct arm *arm, unsigned n,
                                       struct means *means, struct gate_error *err)
{
    enum gate_status status = means_count(job->device, means, 0, err);
    for (unsigned i = 0; i < n && !status; i++) {
        status = verify_launch(job, arm, err);
        if (!status && i + 1 == n / 2)
            status = means_count(job->device, means, 1, err);
    }
    return status ? status : means_count(job->device, means, 2, err);
}

enum gate_status endure_own(const struct verify_job *job, struct arm *arm, struct gate_error *err)
{
    struct verification *v = &arm->verification;
    struct means means = {0};
    uint64_t first = 0, last = 0;
    double ns = 0;
    job->notice(job->context, arm, "many launches on the problem itself");
    enum gate_status status = launch_timed(job, arm, &ns, &first, err);
    unsigned n = endure_launches(job->tier, ns);
    if (!status)
        status = launch_counted(job, arm, n, &means, err);
    if (!status)
        status = operands_hash_outputs(job->device, job->operands, 1, &last, err);
    if (status)
        return status;
    v->checks++;
    means_compare(job->device, &means, n, v);
    if (last == first || (arm->kernel->flags & KG_KERNEL_NONDETERMINISTIC))
        return GATE_OK;
    v->ok = false;
    if (!v->message[0])
        snprintf(v->message, sizeof v->message,
                 "after %u more launches on the same inputs it gives other bits; the kernel does "
                 "not declare itself non-deterministic",
                 n);
    return GATE_OK;
}
