/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_memory.c: what of a run is taken from earlier ones, and what later ones may take from it.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/alloc.h"
#include "gate/base/seed.h"
#include "gate/cases/op_file.h"
#include "gate/library/needs.h"
#include "gate/run/run.h"
#include "version.h"

/* So many cases of a run, and at least so many, are verified whatever is remembered. */
#define ANEW_OF 10
#define ANEW_MIN 3
#define ANEW_SALT 0x766572696679u

/* ---- keys ---- */

#define WORDS_MAX (20 + 3 * DOCUMENT_LIBRARIES_MAX)

/* All that a finding of this kind depends on. The program's hash stands for the version of the
 * gate: of its checks, its references and its kernels. */
struct words {
    const char *list[WORDS_MAX];
    size_t n;
    char power[32];
};

static void add(struct words *w, const char *text)
{
    if (w->n + 1 < WORDS_MAX)
        w->list[w->n++] = text ? text : "";
}

static void begin(struct words *w, const struct run *run, const char *kind)
{
    const struct document_device *d = &run->greeting->device;
    *w = (struct words){.n = 0};
    add(w, kind);
    add(w, GATE_VERSION);
    add(w, memory_program(run->memory));
    add(w, memory_environment(run->memory));
    add(w, run->greeting->contract);
    add(w, d->model);
    add(w, d->driver);
    add(w, d->runtime);
}

/* One device: what a kernel takes there is not what it takes on another of this model. */
static void add_device(struct words *w, const struct run *run)
{
    const struct document_device *d = &run->greeting->device;
    snprintf(w->power, sizeof w->power, "%" PRId64, d->power_limit_mw);
    add(w, d->uuid);
    add(w, w->power);
}

static void end(struct words *w, char key[65])
{
    w->list[w->n] = NULL;
    memory_key(w->list, key);
}

static void problem_text(const struct run_case *c, struct buf *out)
{
    buf_init(out, 1 << 20);
    fields_write(&case_file, c->about->file, out);
    buf_puts(out, c->record.op_sha256 ? c->record.op_sha256 : "");
}

static void key_of_verification(const struct run *run, const struct run_case *c, char key[65])
{
    struct words w;
    struct buf problem;
    problem_text(c, &problem);
    begin(&w, run, "verification");
    add(&w, verify_tier_name(VERIFY_COMMIT));
    add(&w, memory_library(run->memory));
    add(&w, run_baseline_sha256(run, c));
    add(&w, problem.data);
    end(&w, key);
    buf_release(&problem);
}

static void key_of_vendors(const struct run *run, const struct run_case *c, char key[65])
{
    struct words w;
    struct buf problem;
    problem_text(c, &problem);
    begin(&w, run, "vendors");
    add_device(&w, run);
    add(&w, memory_library(run->memory));
    for (size_t i = 0; i < run->providers->n_libraries; i++) {
        const struct document_library *lib = &run->providers->libraries[i];
        if (lib->role != ROLE_PROVIDER)
            continue;
        add(&w, lib->provider);
        add(&w, lib->version);
        add(&w, lib->sha256);
    }
    add(&w, problem.data);
    end(&w, key);
    buf_release(&problem);
}

static void key_of_ceilings(const struct run *run, char key[65])
{
    struct words w;
    begin(&w, run, "ceilings");
    add_device(&w, run);
    end(&w, key);
}

/* ---- before ---- */

bool run_has_providers(const struct run *run)
{
    for (size_t i = 0; i < run->providers->n_libraries; i++)
        if (run->providers->libraries[i].role == ROLE_PROVIDER)
            return true;
    return false;
}

/* What becomes a baseline, or moves one, is verified by the run that says so. */
static bool may_recall(const struct run *run, const struct run_case *c)
{
    const struct own_op *own = op_of(&c->about->problem)->own;
    char other[200];
    /* The hash of a reference that loads other libraries does not tell what it computes. */
    if (own && !needs_only_system(own->reference, other, sizeof other))
        return false;
    return !run->policy.ratchet && !(run->policy.accept_new && c->record.mode == MODE_NONE);
}

static void recall_case(const struct run *run, struct run_case *c)
{
    char key[65] = "";
    bool providers = run_has_providers(run);
    if (providers && !run->policy.vendors) {
        key_of_vendors(run, c, key);
        c->vendors = memory_find(run->memory, key);
    }
    /* Vendors are verified beside the candidate, before they are timed. */
    if ((providers && !c->vendors) || !may_recall(run, c))
        return;
    key_of_verification(run, c, key);
    c->verified = memory_find(run->memory, key);
    uint64_t seed;
    if (c->verified && sscanf(c->verified->seed, "%" SCNx64, &seed) == 1)
        c->seed = seed;
    else
        c->verified = NULL;
}

/* Of those that are remembered, the one that chance puts first. */
static struct run_case *draw(const struct run *run)
{
    struct run_case *first = NULL;
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < run->suite->n_cases; i++) {
        struct run_case *c = &run->cases[i];
        uint64_t drawn = seed_of_text(run->seed ^ ANEW_SALT, c->about->id);
        if (c->verified && (!first || drawn < least)) {
            first = c;
            least = drawn;
        }
    }
    return first;
}

void run_recall(struct run *run)
{
    size_t n = run->suite->n_cases, anew = (n + ANEW_OF - 1) / ANEW_OF;
    bool known = run->memory && !run->policy.full &&
                 !strcmp(run_candidate_sha256(run), memory_library(run->memory));
    for (size_t i = 0; i < n; i++) {
        run->cases[i].seed = run->seed;
        if (known)
            recall_case(run, &run->cases[i]);
    }
    for (size_t i = 0; i < (anew > ANEW_MIN ? anew : ANEW_MIN); i++) {
        struct run_case *c = draw(run);
        if (!c)
            return;
        c->verified = NULL;
        c->seed = run->seed;
    }
}

bool run_recall_ceilings(struct run *run)
{
    char key[65] = "";
    if (!run->memory || run->policy.full || run->policy.vendors)
        return false;
    key_of_ceilings(run, key);
    const struct memory_entry *e = memory_find(run->memory, key);
    if (!e || !e->has_ceilings)
        return false;
    run->ceilings.asked = true;
    run->ceilings.document = e->ceilings;
    run->ceilings.document.measured_in = e->run_uuid;
    return true;
}

/* ---- while it runs ---- */

bool run_doubts(const struct run *run, const struct run_case *c)
{
    for (int stage = STAGE_FIRST; c->verified && stage < DOCUMENT_STAGES; stage++)
        for (size_t i = 0; i < c->sequence[stage].n; i++)
            if (c->sequence[stage].process[i].log_ratio < -log1p(run_threshold(run, c)) / 2)
                return true;
    return false;
}

static void add_vendors(struct run_case *c)
{
    struct case_result *r = &c->result;
    const struct memory_entry *e = c->vendors;
    r->arms = xrealloc(r->arms, r->n_arms + e->n_arms, sizeof *r->arms);
    for (size_t i = 0; i < e->n_arms; i++) {
        struct document_arm *arm = &r->arms[r->n_arms++];
        *arm = e->arms[i];
        arm->timing.kernels = NULL; /* the memory's */
        arm->timing.n_kernels = 0;
        arm->timing.measured_in = e->run_uuid;
        arm->verify.verified_in = e->run_uuid;
    }
}

void run_add_remembered(struct run_case *c)
{
    const struct memory_entry *e = c->verified;
    for (size_t i = 0; e && i < c->result.n_arms; i++) {
        struct document_arm *arm = &c->result.arms[i];
        const struct document_arm *known =
            document_find_arm(e->arms, e->n_arms, (enum document_role)arm->role);
        if (!known || c->result.outcome != CASE_MEASURED)
            continue;
        arm->verify = known->verify;
        arm->verify.verified_in = e->run_uuid;
    }
    if (c->vendors && c->vendors->n_arms && c->result.n_arms && c->result.outcome == CASE_MEASURED)
        add_vendors(c);
}

/* ---- behind ---- */

static struct memory_entry entry_of(const struct run *run, const char *key)
{
    return (struct memory_entry){.key = key,
                                 .library_sha256 = memory_library(run->memory),
                                 .run_uuid = run->origin.uuid,
                                 .seed = run->seed_text};
}

static void remember_verification(struct run *run, const struct run_case *c)
{
    char key[65] = "";
    struct memory_entry e = entry_of(run, key);
    struct message_fingerprints texts;
    struct document_arm arms[2];
    for (size_t i = 0; i < c->result.n_arms && e.n_arms < 2; i++) {
        arms[e.n_arms] = c->result.arms[i];
        arms[e.n_arms].has_timing = false;
        e.n_arms += arms[e.n_arms].role != ROLE_PROVIDER;
    }
    e.arms = arms;
    e.n_fingerprints = message_put_fingerprints(&c->result.fingerprints, &texts);
    e.fingerprints = texts.texts;
    key_of_verification(run, c, key);
    if (e.n_fingerprints)
        memory_put(run->memory, &e);
}

/* Those that serve the problem; none of them is a finding, too. */
static void remember_vendors(struct run *run, const struct run_case *c)
{
    char key[65] = "";
    struct memory_entry e = entry_of(run, key);
    struct document_arm arms[8];
    for (size_t i = 0; i < c->result.n_arms && e.n_arms < 8; i++) {
        arms[e.n_arms] = c->result.arms[i];
        arms[e.n_arms].timing.n_kernels = 0;
        arms[e.n_arms].timing.kernels = NULL;
        arms[e.n_arms].timing.samples_ns = NULL;
        e.n_arms += arms[e.n_arms].role == ROLE_PROVIDER;
    }
    e.arms = arms;
    key_of_vendors(run, c, key);
    memory_put(run->memory, &e);
}

static void remember_ceilings(struct run *run)
{
    char key[65] = "";
    struct memory_entry e = entry_of(run, key);
    e.library_sha256 = NULL;
    e.has_ceilings = true;
    e.ceilings = run->ceilings.document;
    key_of_ceilings(run, key);
    memory_put(run->memory, &e);
}

/* A case that a worker died of, or whose provider was left out, is not remembered. */
static bool is_sound(const struct run_case *c)
{
    const struct document_arm *arm = run_arm(c, ROLE_CANDIDATE);
    return c->result.outcome == CASE_MEASURED && !c->result.message[0] && arm && arm->has_verify &&
           arm->verify.ok && arm->has_timing;
}

void run_remember(struct run *run)
{
    if (!run->memory || strcmp(run_candidate_sha256(run), memory_library(run->memory)) != 0)
        return;
    snprintf(run->seed_text, sizeof run->seed_text, "%016" PRIx64, run->seed);
    if (run->counts[VERDICT_WRONG])
        memory_forget(run->memory, memory_library(run->memory));
    for (size_t i = 0; i < run->suite->n_cases && !run->counts[VERDICT_WRONG]; i++) {
        const struct run_case *c = &run->cases[i];
        if (!is_sound(c))
            continue;
        if (!c->verified)
            remember_verification(run, c);
        if (!c->vendors && run_has_providers(run))
            remember_vendors(run, c);
    }
    const struct document_ceilings *rates = &run->ceilings.document;
    if (run->ceilings.asked && !rates->message && !rates->measured_in)
        remember_ceilings(run);
}
