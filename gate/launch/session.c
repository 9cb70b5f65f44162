/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/launch/session.h"

#include "gate/base/alloc.h"
#include "gate/base/clock.h"
#include "gate/base/seed.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define L2_MULTIPLE 3.0
#define SETS_MAX 4096
#define SETS_MEMORY_SHARE 0.25 /* of the free memory */
#define ROTATION_MAX_NS 10e6   /* a rotation that takes longer is not worth its cold label */
#define REPLAY_NS 1.0e6
#define LAUNCHES_MAX 20000
#define WORK_IN_A_ROW_NS 5e6 /* then a rest of half as long, at most REST_MAX_NS */
#define LONG_SAMPLE_NS 2.5e6 /* a sample over this rests at once */
#define REST_SHARE 0.5
#define REST_MAX_NS 2.5e6
#define WARM_NS 10e6
#define CONFIDENCE 0.99

/* ---- set-up ---- */

unsigned session_content(const struct session *s, unsigned set)
{
    return (set + s->rotation) % VERIFY_SEEDS;
}

static enum gate_status load_inputs(struct session *s, unsigned set, struct gate_error *err)
{
    unsigned content = session_content(s, set);
    struct operands *o = &s->sets[set], *master = &s->masters[content];
    if (!s->has_masters)
        return operands_fill(s->device, s->c, o, seed_at(s->seed, content), err);
    for (uint32_t i = 0; i < o->args.n_in; i++)
        TRY(device_copy(s->device, o->args.in[i].data, master->args.in[i].data,
                        problem_tensor_bytes(&o->in[i]), err));
    return GATE_OK;
}

enum gate_status session_poison(struct session *s, unsigned set, struct gate_error *err)
{
    return operands_poison(s->device, &s->sets[set], POISON_NAN, err);
}

enum gate_status session_load(struct session *s, unsigned rotation, bool poison,
                              struct gate_error *err)
{
    unsigned singly = poison && s->n_sets > VERIFY_SEEDS ? VERIFY_SEEDS : s->n_sets;
    size_t bytes = operands_bytes(&s->c->problem, operands_gaps);
    char *first = s->memory.data;
    s->rotation = rotation;
    for (unsigned i = 0; i < singly; i++) {
        TRY(load_inputs(s, i, err));
        TRY(poison ? session_poison(s, i, err) : GATE_OK);
    }
    /* What the sets hold comes again with each VERIFY_SEEDS: those that are there are copied as a
     * whole, outputs and all, twice as many with each copy. */
    for (size_t done = singly, some; done < s->n_sets; done += some) {
        some = s->n_sets - done < done ? s->n_sets - done : done;
        TRY(device_copy(s->device, first + done * bytes, first, some * bytes, err));
    }
    return GATE_OK;
}

enum gate_status session_load_anew(struct session *s, struct gate_error *err)
{
    for (unsigned i = 0; i < s->n_sets && i < VERIFY_SEEDS; i++)
        TRY(operands_fill_zones(s->device, &s->sets[i], SESSION_GAP_BYTE, err));
    return session_load(s, 0, true, err);
}

enum gate_status session_check_kept(struct session *s, char *text, size_t size,
                                    struct gate_error *err)
{
    unsigned each = operands_kept(s->sets), i = 0;
    RELEASED_BY(free_at) uint64_t *hashes = xcalloc((size_t)s->n_sets * each, sizeof *hashes);
    TRY(operands_hash_kept(s->device, s->sets, s->n_sets, hashes, err));
    while (i < s->n_sets * each && hashes[i] == s->kept[i / each % VERIFY_SEEDS][i % each])
        i++;
    text[0] = '\0';
    return i == s->n_sets * each ? GATE_OK
                                 : operands_describe_kept(s->device, &s->sets[i / each], i % each,
                                                          SESSION_GAP_BYTE, text, size, err);
}

enum gate_status session_restore(struct session *s, unsigned first, unsigned n,
                                 struct gate_error *err)
{
    for (unsigned i = first; i < first + n && s->in_place; i++)
        TRY(operands_restore(s->device, &s->sets[i % s->n_sets], err));
    return s->in_place ? device_synchronize(s->device, err) : GATE_OK;
}

enum gate_status session_replay(struct session *s, struct device_replay *replay,
                                struct device_time *out, struct gate_error *err)
{
    TRY(session_restore(s, 0, s->n_sets, err));
    return device_replay_run(s->device, replay, out, err);
}

/* Bytes of memory that a launch touches: what is updated in place counts twice as traffic. */
static double touched_bytes(const struct kg_problem *p)
{
    struct problem_tensor tensors[PROBLEM_MAX_TENSORS];
    double bytes = problem_bytes(p);
    for (unsigned i = problem_tensors(p, tensors); i-- > 0;)
        bytes -= tensors[i].begins ? (double)problem_tensor_bytes(&tensors[i]) : 0;
    return bytes;
}

/* One allocation for all sets: hundreds of small ones would take longer than the measurement. A
 * set that is alone is as large as the caches, so it has no masters: its contents are made anew. */
static enum gate_status make_sets(struct session *s, struct gate_error *err)
{
    const struct kg_problem *p = &s->c->problem;
    const size_t bytes = operands_bytes(p, operands_gaps);
    uint64_t hashes[VERIFY_SEEDS * OPERANDS_KEPT_MAX];
    /* So many that one rotation touches three times the L2; 1 when they do not fit. */
    const struct device_info *info = device_info(s->device);
    double wanted = ceil(L2_MULTIPLE * (double)info->kg.l2_bytes / touched_bytes(p));
    double fit = SETS_MEMORY_SHARE * (double)info->memory_free_bytes / problem_bytes(p);
    s->in_place = touched_bytes(p) < problem_bytes(p);
    wanted = s->in_place ? fmin(wanted, SETS_MAX) : wanted;
    s->n_sets = wanted <= 1 || wanted > SETS_MAX || wanted > fit ? 1 : (unsigned)wanted;
    s->has_masters = s->n_sets > 1;
    s->sets = xcalloc(s->n_sets, sizeof *s->sets);
    unsigned all = s->n_sets + (s->has_masters ? VERIFY_SEEDS : 0);
    TRY(device_alloc(s->device, all * bytes, &s->memory, err));
    for (unsigned i = 0; i < all; i++)
        *(i < s->n_sets ? &s->sets[i] : &s->masters[i - s->n_sets]) =
            operands_at(s->device, p, (char *)s->memory.data + i * bytes, operands_gaps);
    for (unsigned i = 0; i < VERIFY_SEEDS && s->has_masters; i++)
        TRY(operands_fill(s->device, s->c, &s->masters[i], seed_at(s->seed, i), err));
    TRY(session_load_anew(s, err));
    unsigned n = s->n_sets < VERIFY_SEEDS ? s->n_sets : VERIFY_SEEDS;
    unsigned each = operands_kept(s->sets);
    TRY(operands_hash_kept(s->device, s->sets, n, hashes, err));
    for (unsigned i = 0; i < n * each; i++)
        s->kept[i / each][i % each] = hashes[i];
    return GATE_OK;
}

/* The workspace is as large as the largest arm needs. */
static enum gate_status make_series(struct session *s, struct gate_error *err)
{
    uint64_t bytes = 0;
    for (unsigned i = 0; i < s->n_arms; i++)
        if (s->arms[i].workspace_bytes > bytes)
            bytes = s->arms[i].workspace_bytes;
    TRY(bytes ? device_alloc(s->device, (size_t)bytes, &s->workspace, err) : GATE_OK);
    for (unsigned i = 0; i < s->n_arms; i++) {
        struct series *x = &s->series[i];
        const struct arm *arm = &s->arms[i];
        s->members[s->n_members++] = i;
        x->n_copies = arm->second_copy ? 2 : 1;
        for (unsigned copy = 0; copy < x->n_copies; copy++)
            x->launch[copy] = arm_launch_of(arm, copy ? arm->second_copy : arm->kernel,
                                            &s->c->problem, s->sets, s->workspace);
        x->ns = xcalloc(2 * SESSION_ROUNDS_MAX, sizeof *x->ns);
        x->cycles = xcalloc(2 * SESSION_ROUNDS_MAX, sizeof *x->cycles);
    }
    return GATE_OK;
}

/* The member in slot `slot` of a half round: the first two change places when `other_first`. */
static unsigned member_in_slot(const struct session *s, bool other_first, unsigned slot)
{
    return other_first && s->n_members > 1 && slot < 2 ? 1 - slot : slot;
}

/* Records n launches of a copy of an arm, for good. */
static enum gate_status record(struct session *s, unsigned arm, unsigned copy, unsigned n_launches,
                               struct gate_error *err)
{
    struct series *x = &s->series[arm];
    s->at = arm;
    device_replay_free(s->device, x->replay[copy]);
    x->replay[copy] = NULL;
    x->n_launches = n_launches;
    return device_replay_record(s->device, arm_launch, &x->launch[copy], n_launches, s->delayed,
                                &x->replay[copy], err);
}

/* Returns the median of a copy's samples. */
static double note_copy(struct series *x, unsigned copy)
{
    double sorted[2 * SESSION_ROUNDS_MAX];
    size_t n = 0;
    for (size_t j = 0; j < x->n; j++)
        if (pairs_copy(j) % x->n_copies == copy)
            sorted[n++] = x->ns[j];
    stats_sort(sorted, n);
    x->n_timed[copy] = n;
    x->timed_ns[copy] = n ? stats_quantile(sorted, n, 0.1) : INFINITY;
    return n ? stats_quantile(sorted, n, 0.5) : INFINITY;
}

void session_note_copies(struct session *s)
{
    for (unsigned m = 0; m < s->n_members; m++) {
        struct series *x = &s->series[s->members[m]];
        double first = note_copy(x, 0);
        x->faster_copy = x->n_copies > 1 && note_copy(x, 1) < first;
    }
}

bool session_is_paired(const struct session *s)
{
    return s->n_arms > 1 && s->arms[1].role == ROLE_BASELINE;
}

/* Time per launch of the second replay of `n` launches; the first one warms up. */
static enum gate_status estimate_launch_ns(struct session *s, unsigned arm, unsigned n, double *ns,
                                           struct gate_error *err)
{
    struct device_time t = {0};
    TRY(record(s, arm, 0, n, err));
    for (int i = 0; i < 2; i++)
        TRY(session_replay(s, s->series[arm].replay[0], &t, err));
    if (!clock_can_be(t.device_ns))
        return gate_fail(err, GATE_ENVIRONMENT, SESSION_CLOCK_BROKEN, "a replay", t.device_ns);
    *ns = fmax(t.device_ns / n, 1.0);
    return GATE_OK;
}

unsigned session_sets(const struct session *s, unsigned arm)
{
    unsigned n = s->series[arm].n_launches;
    return n < s->n_sets ? n : s->n_sets;
}

bool session_is_cold(const struct session *s, unsigned arm)
{
    double bytes = touched_bytes(&s->c->problem) * session_sets(s, arm);
    return bytes >= L2_MULTIPLE * (double)device_info(s->device)->kg.l2_bytes;
}

/* A whole number of rotations that lasts about REPLAY_NS, or one where outputs are updated in
 * place; a part of one where there is no room for it. */
static unsigned launches_per_sample(const struct session *s, double launch_ns, unsigned most)
{
    const unsigned n_sets = s->n_sets;
    double rotations = s->in_place ? 1 : round(REPLAY_NS / (launch_ns * n_sets));
    double n = fmax(rotations, 1) * n_sets;
    return n <= most ? (unsigned)n : n_sets < most ? most / n_sets * n_sets : most;
}

/*
 * R: all sets, or one where a rotation would take too long or has no room in a replay (as many as
 * take about REPLAY_NS where outputs are updated in place, which no launch repeats). The
 * candidate and the baseline alone decide it: providers take part in the first process only, and
 * its regime must be that of the others. So it is decided once, and kept (sets_kept): only what
 * rotates over as many sets is comparable.
 */
static enum gate_status plan_sets(struct session *s, double *launch_ns, struct gate_error *err)
{
    bool too_long = false;
    double longest = 1;
    unsigned least_room = UINT_MAX;
    for (unsigned slot = 0; slot < s->n_arms; slot++) {
        unsigned i = s->members[member_in_slot(s, s->swap, slot)];
        TRY(estimate_launch_ns(s, i, 1, &launch_ns[i], err));
        unsigned room = device_replay_room(s->device, s->series[i].replay[0]);
        s->series[i].order = device_replay_kernels(s->device, s->series[i].replay[0]).order;
        s->series[i].n_launches_max = room < LAUNCHES_MAX ? room : LAUNCHES_MAX;
        if (s->arms[i].role == ROLE_PROVIDER)
            continue;
        too_long |= launch_ns[i] * s->n_sets > ROTATION_MAX_NS || s->n_sets > room;
        least_room = room < least_room ? room : least_room;
        longest = fmax(longest, launch_ns[i]);
    }
    unsigned most = least_room < s->n_sets ? least_room : s->n_sets;
    if (s->sets_kept > most)
        return gate_fail(err, GATE_ENVIRONMENT,
                         "the first process of this case rotated over %u sets of inputs, and here "
                         "is room for %u: their times cannot be compared",
                         s->sets_kept, most);
    const double few = s->in_place ? fmin(fmax(floor(REPLAY_NS / longest), 1), most) : 1;
    if (s->sets_kept || too_long)
        s->n_sets = s->sets_kept ? s->sets_kept : (unsigned)few;
    unsigned *one = &s->series[0].n_launches_max, *other = &s->series[1].n_launches_max;
    if (session_is_paired(s)) /* which have the same N */
        *one = *other = *one < *other ? *one : *other;
    return GATE_OK;
}

/* N of each arm, in the order A B B' A'; the second copies of what has none are left out. */
static enum gate_status record_all(struct session *s, const unsigned *n, struct gate_error *err)
{
    for (unsigned at = 0; at < ARM_COPIES * s->n_arms; at++) {
        unsigned copy = at >= s->n_arms;
        unsigned slot = copy ? ARM_COPIES * s->n_arms - 1 - at : at;
        unsigned i = s->members[member_in_slot(s, s->swap, slot)];
        if (copy < s->series[i].n_copies)
            TRY(record(s, i, copy, s->arms[i].role == ROLE_BASELINE ? n[0] : n[i], err));
    }
    return GATE_OK;
}

/* N of each arm. One launch alone carries the fixed cost of a replay, so it is estimated again over
 * whole rotations; the baseline takes the candidate's, so that both carry the same. */
static enum gate_status plan_launches(struct session *s, double *launch_ns, struct gate_error *err)
{
    unsigned n[ARMS_MAX];
    for (unsigned i = 0; i < s->n_arms; i++) {
        for (unsigned copy = 0; copy < s->series[i].n_copies; copy++)
            s->series[i].launch[copy].n_sets = s->n_sets;
        /* A provider that takes much longer is not timed over a whole rotation. */
        double in_time = fmax(ROTATION_MAX_NS / launch_ns[i], 1);
        unsigned most = s->series[i].n_launches_max;
        if (s->arms[i].role == ROLE_PROVIDER && in_time < most)
            most = (unsigned)in_time;
        n[i] = launches_per_sample(s, launch_ns[i], most);
        if (s->arms[i].role == ROLE_BASELINE)
            continue;
        TRY(estimate_launch_ns(s, i, n[i], &launch_ns[i], err));
        n[i] = launches_per_sample(s, launch_ns[i], most);
    }
    return record_all(s, n, err);
}

static enum gate_status warm_up(struct session *s, struct gate_error *err)
{
    double worked_ns = 0;
    for (int round = 0; !round || (worked_ns < WARM_NS && round < 50); round++)
        for (unsigned i = 0; i < ARM_COPIES * s->n_arms; i++) {
            struct device_time t = {0};
            s->at = i / ARM_COPIES;
            if (i % ARM_COPIES < s->series[s->at].n_copies)
                TRY(session_replay(s, s->series[s->at].replay[i % ARM_COPIES], &t, err));
            worked_ns += t.device_ns;
        }
    return GATE_OK;
}

enum gate_status session_start(struct session *s, uint64_t seed, struct gate_error *err)
{
    double launch_ns[ARMS_MAX];
    s->seed = seed;
    TRY(make_sets(s, err));
    TRY(make_series(s, err));
    TRY(plan_sets(s, launch_ns, err));
    TRY(plan_launches(s, launch_ns, err));
    return warm_up(s, err);
}

void session_release(struct session *s)
{
    for (unsigned i = 0; i < s->n_arms; i++) {
        for (unsigned copy = 0; copy < ARM_COPIES; copy++)
            device_replay_free(s->device, s->series[i].replay[copy]);
        free(s->series[i].ns);
        free(s->series[i].cycles);
        s->series[i] = (struct series){0};
    }
    device_free(s->device, &s->memory);
    device_free(s->device, &s->workspace);
    free(s->sets);
    s->sets = NULL;
}

/* ---- samples ---- */

static enum gate_status take_sample(struct session *s, struct series *x, struct gate_error *err)
{
    struct device_time t;
    unsigned copy = pairs_copy(x->n) % x->n_copies;
    TRY(session_replay(s, x->replay[copy], &t, err));
    x->ns[x->n] = t.device_ns / x->n_launches;
    x->cycles[x->n] = x->ns[x->n] * t.sm_clock_mhz * 1e-3;
    x->n++;
    x->clock_sum += t.sm_clock_mhz;
    /* The least over the samples: an interrupted host looks the same as hidden work in one. */
    double hidden = t.host_ns - t.device_ns;
    if (x->n == 1 || hidden < x->least_hidden_ns)
        x->least_hidden_ns = hidden;
    if (clock_is_true())
        return GATE_OK;
    s->at = 0; /* whoever is at work: only the candidate gains by it */
    return gate_fail(err, GATE_WRONG,
                     "the clock of the process is not the system's any more: a library has put its "
                     "own in its place");
}

/* Rests stand between rounds, so that the two halves of a round see the same chip, unless the
 * samples alone are long. */
enum gate_status session_round(struct session *s, struct gate_error *err)
{
    double work_ns = 0;
    unsigned n = s->n_members;
    bool other_first = s->swap != (s->rounds++ % 2 == 1); /* so that pairs_kind() is right */
    for (unsigned i = 0; i < 2 * n; i++) {
        s->at = s->members[member_in_slot(s, other_first, i < n ? i : 2 * n - 1 - i)];
        struct series *x = &s->series[s->at];
        TRY(take_sample(s, x, err));
        double sample_ns = x->ns[x->n - 1] * x->n_launches;
        bool last = i + 1 == 2 * n;
        work_ns += sample_ns;
        if (sample_ns > LONG_SAMPLE_NS || (last && work_ns > WORK_IN_A_ROW_NS)) {
            TRY(device_rest(s->device, fmin(REST_SHARE * work_ns, REST_MAX_NS), err));
            work_ns = 0;
        }
    }
    return GATE_OK;
}

void session_clear(struct session *s)
{
    s->rounds = 0;
    for (unsigned i = 0; i < s->n_members; i++) {
        s->series[s->members[i]].n = 0;
        s->series[s->members[i]].clock_sum = 0;
    }
}

void session_select(struct session *s, const unsigned *members, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        s->members[i] = members[i];
    s->n_members = n;
    session_clear(s);
}

/* ---- statistics ---- */

struct estimate session_ratio(const struct session *s, unsigned i)
{
    return pairs_ratio(s->series[0].ns, s->series[i].ns, s->series[i].n);
}

double session_ratio_cycles(const struct session *s, unsigned i)
{
    return pairs_ratio(s->series[0].cycles, s->series[i].cycles, s->series[i].n).value;
}

struct session_quantiles session_quantiles(const struct session *s, unsigned i)
{
    const struct series *x = &s->series[i];
    double sorted[2 * SESSION_ROUNDS_MAX];
    memcpy(sorted, x->ns, x->n * sizeof *sorted);
    stats_sort(sorted, x->n);
    return (struct session_quantiles){.p50 = stats_median(sorted, x->n, CONFIDENCE),
                                      .p10 = stats_quantile(sorted, x->n, 0.1),
                                      .p90 = stats_quantile(sorted, x->n, 0.9)};
}

/* ---- pairs ---- */

unsigned pairs_kind(size_t j)
{
    return j / 2 % PAIRS_KINDS;
}

unsigned pairs_copy(size_t j)
{
    return pairs_kind(j) / 2;
}

/* Moves the kinds that are there to the average of their medians. */
static void level_kinds(double *logs, size_t n, double *scratch)
{
    double medians[PAIRS_KINDS], sum = 0;
    unsigned kinds = n / 2 < PAIRS_KINDS ? (unsigned)((n + 1) / 2) : PAIRS_KINDS;
    for (unsigned kind = 0; kind < kinds; kind++) {
        size_t m = 0;
        for (size_t j = 0; j < n; j++)
            if (pairs_kind(j) == kind)
                scratch[m++] = logs[j];
        sum += medians[kind] = stats_middle(scratch, m);
    }
    for (size_t j = 0; j < n; j++)
        logs[j] += sum / kinds - medians[pairs_kind(j)];
}

/* Means of the two pairs of each round; returns how many rounds there are. */
static size_t take_rounds(const double *logs, size_t n, double *rounds)
{
    for (size_t r = 0; r < n / 2; r++)
        rounds[r] = (logs[2 * r] + logs[2 * r + 1]) / 2;
    return n / 2;
}

struct estimate pairs_ratio(const double *a, const double *b, size_t n)
{
    RELEASED_BY(free_at) double *logs = xcalloc(2 * n, sizeof *logs);
    double *scratch = logs + n, half = 0;
    bool several = n / 2 >= 2 * (size_t)PAIRS_KINDS; /* of each kind */
    bool measured = n > 0;
    for (size_t j = 0; j < n && measured; j++) {
        measured = a[j] > 0 && b[j] > 0;
        logs[j] = measured ? log(a[j] / b[j]) : 0;
    }
    if (!measured)
        return (struct estimate){0};
    if (!several)
        half = stats_mean_half_width(scratch, take_rounds(logs, n, scratch), 1);
    level_kinds(logs, n, scratch);
    if (several)
        half = stats_mean_half_width(scratch, take_rounds(logs, n, scratch), PAIRS_KINDS);
    double value = stats_middle(logs, n);
    return (struct estimate){exp(value), exp(value - half), exp(value + half)};
}
