#include "gate/verify/verify_tier.h"

#include <stdio.h>
#include <string.h>

#include "gate/verify/verify_neighbours.h"
#include "gate/verify/verify_check.h"
#include "gate/verify/verify_shapes.h"
#include "gate/verify/verify_state.h"

/* The problem itself is probed where an image of it is not larger; see verify_large.h else. */
static const size_t own_image_max[VERIFY_TIERS] = {(size_t)8 << 20, (size_t)64 << 20, 0};
static const unsigned repeats[VERIFY_TIERS] = {1, 20, 0};
static const unsigned endurance[VERIFY_TIERS] = {60, 1000, 0};

static const char *const names[VERIFY_TIERS] = {"commit", "nightly", "small"};

const char *verify_tier_name(enum verify_tier tier)
{
    return names[tier];
}

bool verify_tier_parse(const char *name, enum verify_tier *out)
{
    for (unsigned i = 0; i < VERIFY_TIERS; i++)
        if (!strcmp(names[i], name)) {
            *out = (enum verify_tier)i;
            return true;
        }
    return false;
}

bool tier_probes_itself(enum verify_tier tier, const struct kg_problem *p)
{
    return image_size(p, IMAGE_PADDED) <= own_image_max[tier];
}

/* Checks of one arm under way. */
struct round {
    struct bench bench;
    enum verify_tier tier;
    struct arm *arm;
    tier_notice_fn notice;
    void *context;
    bool served_elsewhere; /* another shape than the problem's, by the same kernel */
};

/* Is another shape to be looked at, and is there a kernel for it? That there is none is counted. */
static bool serves(struct round *r, const struct kg_problem *p)
{
    if (!r->arm->verification.ok)
        return false;
    const struct kg_kernel *kernel = bench_kernel(&r->bench, p);
    r->served_elsewhere |= kernel == r->arm->kernel;
    r->arm->verification.left_out.not_served += !kernel;
    return kernel != NULL;
}

/* A guard lies about dense tensors alone. */
static void say_check(const struct round *r, const struct check *check)
{
    char text[CHECK_TEXT_MAX], said[CHECK_TEXT_MAX + 1];
    bool guarded = check->guard == GUARD_FAR || check->layout == IMAGE_DENSE;
    check_text(check, guarded ? check->guard : GUARD_NONE, text);
    snprintf(said, sizeof said, "%s)", text);
    r->notice(r->context, r->arm, said);
}

static void say_endurance(const struct round *r, const struct kg_problem *p)
{
    char id[PROBLEM_ID_MAX], said[PROBLEM_ID_MAX + 32];
    problem_id(p, id);
    snprintf(said, sizeof said, "many launches on %s", id);
    r->notice(r->context, r->arm, said);
}

static enum gate_status check(struct round *r, const struct kg_problem *p, enum probe probe,
                              enum image_layout layout, enum guard_side guard,
                              struct gate_error *err)
{
    const struct check one = {*p, probe, layout, guard};
    if (!r->arm->verification.ok || !probe_applies(probe, p))
        return GATE_OK;
    say_check(r, &one);
    return bench_check(&r->bench, &one, err);
}

/* The probe that sees most: exact where there is one. */
static enum probe sharpest(const struct kg_problem *p)
{
    return p->op == KG_OP_ATTENTION_FWD ? PROBE_RETRIEVAL : PROBE_INTEGERS;
}

/* The n-th of the probes that apply. */
static enum probe probe_in_turn(const struct kg_problem *p, unsigned n)
{
    unsigned applying = 0;
    for (int i = 0; i < PROBES; i++)
        applying += probe_applies((enum probe)i, p);
    n %= applying;
    for (int i = 0; i < PROBES; i++)
        if (probe_applies((enum probe)i, p) && n-- == 0)
            return (enum probe)i;
    return PROBE_NORMAL;
}

static enum gate_status check_all_probes(struct round *r, const struct kg_problem *p,
                                         enum image_layout layout, struct gate_error *err)
{
    enum gate_status status = GATE_OK;
    for (int i = 0; i < PROBES && !status; i++)
        status = check(r, p, (enum probe)i, layout, GUARD_NONE, err);
    return status;
}

/* One probe with nothing mapped behind the tensors, and one with nothing before them. */
static enum gate_status check_guarded(struct round *r, const struct kg_problem *p,
                                      struct gate_error *err)
{
    enum gate_status status = check(r, p, sharpest(p), IMAGE_DENSE, GUARD_BEHIND, err);
    return status ? status : check(r, p, sharpest(p), IMAGE_DENSE, GUARD_BEFORE, err);
}

static enum gate_status check_own(struct round *r, const struct kg_problem *p,
                                  struct gate_error *err)
{
    if (!tier_probes_itself(r->tier, p)) {
        r->arm->verification.left_out.too_large++;
        return GATE_OK;
    }
    enum gate_status status = check_all_probes(r, p, IMAGE_DENSE, err);
    return status ? status : check_guarded(r, p, err);
}

/* A neighbour in the commit tier: the sharpest probe in one layout, another probe in the next. The
 * dense ones are guarded on one side, but for a sanitizer, which watches memory by itself. */
static enum gate_status check_neighbour(struct round *r, const struct kg_problem *p, unsigned n,
                                        struct gate_error *err)
{
    enum image_layout layout = (enum image_layout)(n % IMAGE_LAYOUTS);
    enum image_layout next = (enum image_layout)((n + 2) % IMAGE_LAYOUTS);
    if (r->tier == VERIFY_SMALL)
        return check(r, p, sharpest(p), layout, GUARD_NONE, err);
    enum gate_status status = check(r, p, sharpest(p), layout, GUARD_BEHIND, err);
    return status
               ? status
               : check(r, p, probe_in_turn(p, n), next, n % 2 ? GUARD_BEFORE : GUARD_BEHIND, err);
}

static enum gate_status check_neighbour_fully(struct round *r, const struct kg_problem *p,
                                              struct gate_error *err)
{
    enum gate_status status = check_guarded(r, p, err);
    for (int layout = 0; layout < IMAGE_LAYOUTS && !status; layout++)
        status = check_all_probes(r, p, (enum image_layout)layout, err);
    return status;
}

static enum gate_status check_neighbours(struct round *r, const struct kg_problem *p,
                                         struct gate_error *err)
{
    struct kg_problem around[SHAPES_MAX];
    unsigned n = shapes_around(p, r->tier == VERIFY_NIGHTLY, around);
    enum gate_status status = GATE_OK;
    for (unsigned i = 0; i < n && !status; i++)
        if (serves(r, &around[i]))
            status = r->tier == VERIFY_NIGHTLY ? check_neighbour_fully(r, &around[i], err)
                                               : check_neighbour(r, &around[i], i, err);
    return status;
}

/* Offsets that fit no int. */
static enum gate_status check_far(struct round *r, const struct kg_problem *p,
                                  struct gate_error *err)
{
    const struct kg_problem small = far_problem(p);
    if (r->tier == VERIFY_SMALL || !serves(r, &small))
        return GATE_OK;
    return check(r, &small, sharpest(&small), IMAGE_DENSE, GUARD_FAR, err);
}

/* On the first neighbour that is served: small, and not a shape that was tuned for. */
static enum gate_status check_endurance(struct round *r, const struct kg_problem *p,
                                        struct gate_error *err)
{
    struct kg_problem around[SHAPES_MAX];
    unsigned n = endurance[r->tier] ? shapes_around(p, false, around) : 0;
    for (unsigned i = 0; i < n; i++)
        if (bench_serves(&r->bench, &around[i])) {
            say_endurance(r, &around[i]);
            return bench_endure(&r->bench, &around[i], endurance[r->tier], err);
        }
    return GATE_OK;
}

enum gate_status tier_checks(struct device *d, const struct kg_problem *p, uint64_t seed,
                             enum verify_tier tier, struct arm *arm, tier_notice_fn notice,
                             void *context, struct gate_error *err)
{
    struct state before, now;
    struct device_state device_before, device_now;
    bool counted = device_info(d)->kg.kind == KG_DEVICE_HOST;
    struct round r = {.bench = {.device = d,
                                .arm = arm,
                                .seed = seed,
                                .repeats = repeats[tier],
                                .found = &arm->verification},
                      .tier = tier,
                      .arm = arm,
                      .notice = notice,
                      .context = context};
    state_read(counted, &before);
    enum gate_status status = device_state_read(d, &device_before, err);
    if (!status)
        status = check_own(&r, p, err);
    if (!status)
        status = check_neighbours(&r, p, err);
    if (!status && arm->verification.ok)
        status = around_checks(&r.bench, p, tier, notice, context, &r.served_elsewhere, err);
    if (!status)
        status = check_far(&r, p, err);
    if (!status && arm->verification.ok)
        status = check_endurance(&r, p, err);
    arm->verification.own_shape_only = !status && arm->verification.ok && !r.served_elsewhere;
    state_read(counted, &now);
    state_compare(&before, &now, &arm->verification);
    if (!status)
        status = device_state_read(d, &device_now, err);
    if (!status)
        status = state_compare_device(&device_before, &device_now, &arm->verification, err);
    bench_release(&r.bench);
    return status;
}
