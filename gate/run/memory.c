/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c: what earlier runs found and need not be found again, in <cache>/memory/found.json.
 *
 * An entry says "this library was right on this problem", "the vendors' kernels took so long beside
 * it" or "this device reaches these rates". Its key is a hash of all that it depends on.
 *
 * Who can forge it? Kernels run in workers, as the same user, so a library could write to the file.
 * So it is read before the first worker starts, one run holds it until all its workers and what
 * they started are gone, and a file that changed meanwhile is thrown away. A library is known by
 * the hash that is computed here, before it is loaded, and never by what a worker says. It is
 * assumed that nothing else runs as this user that may lie: no job of somebody who is not trusted,
 * no process that outlives a run which was killed, no program that a library installed. docs/ci.md
 * says so.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "gate/base/alloc.h"
#include "gate/base/file.h"
#include "gate/base/paths.h"
#include "gate/base/process.h"
#include "gate/base/seed.h"
#include "gate/baseline/artifact.h"
#include "gate/document/fields_table.h"
#include "gate/library/machine_code.h"
#include "gate/run/run.h"
#include "version.h"

#define ENTRIES_MAX 2000 /* the newest ones; about 2 kB each */
#define FILE_MAX ((size_t)64 << 20)

static const char *const schemas[] = {"gate-memory/1", NULL};

struct memory_file {
    const char *schema;
    struct memory_entry *entries; /* the newest first */
    size_t n_entries;
};

#define OF memory_entry
SHAPE_BY(MEMORY_ENTRY);
#undef OF

#define OF memory_file
static const struct field memory_file_fields[] = {
    CHOICE(schema, REQUIRED, schemas),
    LIST(entries, REQUIRED, 0, ENTRIES_MAX, memory_entry),
};
SHAPE(memory_file);
#undef OF

struct memory {
    char path[PATHS_MAX];
    int lock;
    char library[65], program[65];
    char environment[65]; /* SHA-256 of what workers get of it */
    struct buf bytes;     /* of the file, as it was read; empty where there is none */
    struct fields_taken taken;
    struct memory_file file; /* empty where there is none */
    bool *dropped;           /* of its entries: replaced or forgotten */
    struct buf fresh;        /* entries that were put, each with a comma behind it */
    size_t n_fresh;
};

/* So many cases of a run, and at least so many, are verified whatever is remembered. */
#define ANEW_OF 10
#define ANEW_MIN 3
#define ANEW_SALT 0x766572696679u

/* ---- the file ---- */

static bool hold(struct memory *m, struct gate_error *err)
{
    char folder[PATHS_MAX], path[PATHS_MAX];
    if (artifact_cache_folder("memory", folder, err) || paths_set(path, err, "%s/lock", folder) ||
        paths_set(m->path, err, "%s/found.json", folder))
        return false;
    m->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (m->lock < 0)
        gate_fail(err, GATE_IO, "cannot open '%s': %s", path, strerror(errno));
    else if (flock(m->lock, LOCK_EX | LOCK_NB))
        gate_fail(err, GATE_IO, "another run holds '%s'", path);
    else
        return true;
    return false;
}

/* False: it cannot be read; a file that is not there is empty. */
static bool read_file(const char *path, struct buf *bytes, struct gate_error *err)
{
    buf_init(bytes, FILE_MAX);
    return (access(path, F_OK) && errno == ENOENT) || !file_read(path, bytes, err);
}

struct memory *memory_open(const char *library)
{
    struct gate_error err, unread;
    RELEASED_BY(buf_release) struct buf environment = buf_of(FILE_MAX);
    char other[PIECE_OTHER_MAX];
    struct memory *m = xcalloc(1, sizeof *m);
    *m = (struct memory){.lock = -1, .bytes = buf_of(FILE_MAX), .fresh = buf_of(FILE_MAX)};
    scrub_list(&environment);
    SHA256Data((const uint8_t *)environment.data, environment.len, m->environment);
    bool known = !piece_hash_file(library, m->library, other, &err) &&
                 !file_sha256("/proc/self/exe", m->program, &err);
    if (known && other[0])
        gate_fail(&err, GATE_IO, "'%.200s' needs '%s', which its hash does not tell", library,
                  other);
    else if (known && hold(m, &err) && read_file(m->path, &m->bytes, &err)) {
        /* A file that does not fit is of another version: nothing is known then. */
        if (m->bytes.len && fields_parse(&memory_file_shape, m->path, 1, m->bytes.data,
                                         m->bytes.len, GATE_IO, &m->file, &m->taken, &unread))
            m->file = (struct memory_file){.entries = NULL};
        m->dropped = xcalloc(m->file.n_entries, sizeof *m->dropped);
        return m;
    }
    if (known)
        fprintf(stderr, "gate run: nothing is remembered of earlier runs: %s\n", err.message);
    memory_close(m, false);
    return NULL;
}

void memory_close(struct memory *m, bool keep)
{
    struct gate_error why;
    struct buf now;
    if (!m)
        return;
    bool changed = keep && m->n_fresh > 0;
    for (size_t i = 0; i < m->file.n_entries; i++)
        changed |= keep && m->dropped[i];
    bool untouched = read_file(m->path, &now, &why) && now.len == m->bytes.len &&
                     (!now.len || !memcmp(now.data, m->bytes.data, now.len));
    buf_release(&now);
    if (m->dropped && !untouched) {
        fprintf(stderr,
                "gate run: '%s' was changed while kernels ran, and not by this run: it is thrown "
                "away, and the next run verifies everything\n",
                m->path);
        unlink(m->path);
    } else if (changed) {
        RELEASED_BY(buf_release) struct buf text = buf_of(FILE_MAX);
        size_t n = m->n_fresh;
        buf_printf(&text, "{\"schema\":\"%s\",\"entries\":[\n", schemas[0]);
        buf_append(&text, m->fresh.data, m->fresh.len);
        for (size_t i = 0; i < m->file.n_entries && n < ENTRIES_MAX; i++) {
            if (m->dropped[i])
                continue;
            fields_write(&memory_entry_shape, &m->file.entries[i], &text);
            buf_puts(&text, ",\n");
            n++;
        }
        if (n)
            text.len -= 2;
        buf_puts(&text, "]}\n");
        if (m->n_fresh > ENTRIES_MAX || m->fresh.failed || text.failed)
            fprintf(stderr, "gate run: what was found is too much to be remembered\n");
        else if (file_write_atomic(m->path, text.data, text.len, &why))
            fprintf(stderr, "gate run: what was found is not remembered: %s\n", why.message);
    }
    fields_release(&memory_file_shape, &m->file);
    free(m->taken.texts);
    buf_release(&m->bytes);
    buf_release(&m->fresh);
    free(m->dropped);
    if (m->lock >= 0)
        close(m->lock);
    free(m);
}

/* ---- keys ---- */

enum finding { FINDING_VERIFICATION, FINDING_VENDORS, FINDING_CEILINGS };

static void add(SHA2_CTX *key, const char *text)
{
    SHA256Update(key, (const uint8_t *)(text ? text : ""), text ? strlen(text) + 1 : 1);
}

/* A hash of all that a finding depends on; the ceilings are of no case. The program's hash stands
 * for the version of the gate: of its checks, its references and its kernels. */
static void key_of(const struct run *run, const struct run_case *c, enum finding what, char hex[65])
{
    static const char *const kinds[] = {"verification", "vendors", "ceilings"};
    const struct document_device *d = &run->greeting->device;
    SHA2_CTX key;
    SHA256Init(&key);
    add(&key, kinds[what]);
    add(&key, GATE_VERSION);
    add(&key, run->memory->program);
    add(&key, run->memory->environment);
    add(&key, run->greeting->contract);
    add(&key, d->model);
    add(&key, d->driver);
    add(&key, d->runtime);
    if (what == FINDING_VERIFICATION) {
        add(&key, verify_tier_name(VERIFY_COMMIT));
        add(&key, run_baseline_sha256(run, c));
    } else { /* one device: what a kernel takes there is not what it takes on another of the model
              */
        char power[32];
        snprintf(power, sizeof power, "%" PRId64, d->power_limit_mw);
        add(&key, d->uuid);
        add(&key, power);
    }
    for (size_t i = 0; i < run->providers->n_libraries && what == FINDING_VENDORS; i++) {
        const struct document_library *lib = &run->providers->libraries[i];
        if (lib->role != ROLE_PROVIDER)
            continue;
        add(&key, lib->provider);
        add(&key, lib->version);
        add(&key, lib->sha256);
    }
    if (what != FINDING_CEILINGS) {
        RELEASED_BY(buf_release) struct buf problem = buf_of(1 << 20);
        fields_write(&case_file_shape, c->about->file, &problem);
        buf_puts(&problem, c->record.op_sha256 ? c->record.op_sha256 : "");
        add(&key, run->memory->library);
        add(&key, problem.data);
    }
    SHA256End(&key, hex);
}

/* NULL: not known. */
static const struct memory_entry *recall(const struct run *run, const struct run_case *c,
                                         enum finding what)
{
    const struct memory *m = run->memory;
    char key[65];
    key_of(run, c, what, key);
    for (size_t i = 0; i < m->file.n_entries; i++)
        if (!m->dropped[i] && !strcmp(m->file.entries[i].key, key))
            return &m->file.entries[i];
    return NULL;
}

/* ---- before ---- */

bool run_has_providers(const struct run *run)
{
    for (size_t i = 0; i < run->providers->n_libraries; i++)
        if (run->providers->libraries[i].role == ROLE_PROVIDER)
            return true;
    return false;
}

static void recall_case(const struct run *run, struct run_case *c)
{
    bool providers = run_has_providers(run);
    if (providers && !run->policy.vendors)
        c->vendors = recall(run, c, FINDING_VENDORS);
    /* Vendors are verified beside the candidate, before they are timed. What becomes a baseline, or
     * moves one, is verified by the run that says so. The hash of a reference that loads other
     * libraries does not tell what it computes. */
    if ((providers && !c->vendors) || run->policy.ratchet ||
        (run->policy.accept_new && c->record.mode == MODE_NONE) ||
        op_of(&c->about->problem)->needs_others)
        return;
    const struct memory_entry *e = recall(run, c, FINDING_VERIFICATION);
    uint64_t seed;
    if (e && sscanf(e->seed, "%" SCNx64, &seed) == 1) {
        c->verified = e;
        c->seed = seed;
    }
}

void run_recall(struct run *run)
{
    size_t n = run->suite->n_cases, anew = (n + ANEW_OF - 1) / ANEW_OF;
    bool known = run->memory && !run->policy.full &&
                 !strcmp(run_candidate_sha256(run), run->memory->library);
    for (size_t i = 0; i < n; i++) {
        run->cases[i].seed = run->seed;
        if (known)
            recall_case(run, &run->cases[i]);
    }
    /* Of those that are remembered, those that chance puts first are verified all the same. */
    for (size_t k = 0; k < (anew > ANEW_MIN ? anew : ANEW_MIN); k++) {
        struct run_case *first = NULL;
        uint64_t least = UINT64_MAX;
        for (size_t i = 0; i < n; i++) {
            struct run_case *c = &run->cases[i];
            uint64_t drawn = seed_of_text(run->seed ^ ANEW_SALT, c->about->id);
            if (c->verified && (!first || drawn < least)) {
                first = c;
                least = drawn;
            }
        }
        if (!first)
            return;
        first->verified = NULL;
        first->seed = run->seed;
    }
}

bool run_recall_ceilings(struct run *run)
{
    if (!run->memory || run->policy.full || run->policy.vendors)
        return false;
    const struct memory_entry *e = recall(run, run->cases, FINDING_CEILINGS);
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

/* An arm of the memory's as one of a run's: the lists that a run may release are its own, or not
 * there. */
static struct document_verify verify_of(const struct memory_entry *e,
                                        const struct document_arm *arm)
{
    struct document_verify v = arm->verify;
    v.outputs = v.n_outputs ? xcalloc(v.n_outputs, sizeof *v.outputs) : NULL;
    for (size_t i = 0; i < v.n_outputs; i++)
        v.outputs[i] = arm->verify.outputs[i];
    v.verified_in = e->run_uuid;
    return v;
}

void run_add_remembered(struct run_case *c)
{
    struct case_result *r = &c->result;
    const struct memory_entry *e = c->verified;
    if (r->outcome != CASE_MEASURED)
        return;
    for (size_t i = 0; e && i < r->n_arms; i++) {
        struct document_arm *arm = &r->arms[i];
        const struct document_arm *known =
            document_find_arm(e->arms, e->n_arms, (enum document_role)arm->role);
        if (!known)
            continue;
        free(arm->verify.outputs);
        arm->verify = verify_of(e, known);
    }
    e = c->vendors;
    if (!e || !e->n_arms || !r->n_arms)
        return;
    r->arms = xrealloc(r->arms, r->n_arms + e->n_arms, sizeof *r->arms);
    for (size_t i = 0; i < e->n_arms; i++) {
        struct document_arm *arm = &r->arms[r->n_arms++];
        *arm = e->arms[i];
        arm->timing.kernels = NULL; /* the memory's */
        arm->timing.n_kernels = 0;
        arm->timing.measured_in = e->run_uuid;
        arm->verify = verify_of(e, &e->arms[i]);
    }
}

/* ---- behind ---- */

/* Stores a finding in place of what has the same key. Of vendors those are kept that serve the
 * problem; none of them is a finding, too. */
static void remember(struct run *run, const struct run_case *c, enum finding what)
{
    struct memory *m = run->memory;
    char key[65];
    struct memory_entry e = {.key = key,
                             .library_sha256 = what != FINDING_CEILINGS ? m->library : NULL,
                             .run_uuid = run->origin.uuid,
                             .seed = run->seed_text,
                             .has_ceilings = what == FINDING_CEILINGS,
                             .ceilings = run->ceilings.document};
    struct document_arm arms[ARMS_MAX];
    const size_t n_arms = what != FINDING_CEILINGS ? c->result.n_arms : 0;
    for (size_t i = 0; i < n_arms && e.n_arms < ARMS_MAX; i++) {
        struct document_arm *arm = &arms[e.n_arms];
        *arm = c->result.arms[i];
        arm->has_timing &= what == FINDING_VENDORS;
        arm->timing.n_kernels = 0;
        arm->timing.kernels = NULL;
        arm->timing.samples_ns = NULL;
        e.n_arms += (arm->role == ROLE_PROVIDER) == (what == FINDING_VENDORS);
    }
    e.arms = arms;
    if (what == FINDING_VERIFICATION) {
        e.n_fingerprints = c->result.n_fingerprints;
        e.fingerprints = c->result.fingerprints;
        if (e.n_fingerprints != VERIFY_SEEDS)
            return;
    }
    key_of(run, c, what, key);
    for (size_t i = 0; i < m->file.n_entries; i++)
        m->dropped[i] |= !strcmp(m->file.entries[i].key, key);
    fields_write(&memory_entry_shape, &e, &m->fresh);
    buf_puts(&m->fresh, ",\n");
    m->n_fresh++;
}

void run_remember(struct run *run)
{
    const struct document_ceilings *rates = &run->ceilings.document;
    const size_t n_wrong = run->counts[VERDICT_WRONG];
    struct memory *m = run->memory;
    if (!m || strcmp(run_candidate_sha256(run), m->library) != 0)
        return;
    snprintf(run->seed_text, sizeof run->seed_text, "%016" PRIx64, run->seed);
    /* A library that was wrong is not believed any more. */
    for (size_t i = 0; i < m->file.n_entries && n_wrong; i++) {
        const char *of = m->file.entries[i].library_sha256;
        m->dropped[i] |= of && !strcmp(of, m->library);
    }
    for (size_t i = 0; i < run->suite->n_cases && !n_wrong; i++) {
        const struct run_case *c = &run->cases[i];
        const struct document_arm *arm = run_arm(c, ROLE_CANDIDATE);
        /* A case that a worker died of, or whose provider was left out, is not remembered. */
        if (c->result.outcome != CASE_MEASURED || c->result.said[0] || !arm || !arm->has_verify ||
            !arm->verify.ok || !arm->has_timing)
            continue;
        if (!c->verified)
            remember(run, c, FINDING_VERIFICATION);
        if (!c->vendors && run_has_providers(run))
            remember(run, c, FINDING_VENDORS);
    }
    if (run->ceilings.asked && !rates->message && !rates->measured_in)
        remember(run, run->cases, FINDING_CEILINGS);
}
