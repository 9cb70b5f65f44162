/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/run/memory.h"

#include <errno.h>
#include <fcntl.h>
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
#include "gate/baseline/artifact.h"
#include "gate/document/fields_table.h"
#include "gate/library/needs.h"
#include "gate/library/piece.h"

#define ENTRIES_MAX 2000 /* the newest ones; about 2 kB each */
#define FILE_MAX ((size_t)64 << 20)

static const char *const schemas[] = {"gate-memory/1", NULL};

struct memory_file {
    const char *schema;
    struct memory_entry *entries; /* the newest first */
    size_t n_entries;
};

#define OF memory_entry
static const struct field memory_entry_fields[] = {
    FORMED(key, REQUIRED, FORM_SHA256, TEXT_MAX),
    FORMED(library_sha256, 0, FORM_SHA256, TEXT_MAX),
    FORMED(run_uuid, REQUIRED, FORM_UUID, TEXT_MAX),
    FORMED(seed, REQUIRED, FORM_SEED, TEXT_MAX),
    TEXTS(fingerprints, 0, 16, 16),
    MAYBE(ceilings, 0, document_ceilings_shape),
    LIST(arms, 0, 0, 8, document_arm_shape),
};
SHAPE(memory_entry);
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
    struct buf bytes;     /* of the file, as it was read */
    bool there;           /* the file */
    struct fields_taken taken;
    struct memory_file file; /* empty where there is none */
    bool *dropped;           /* of its entries: replaced or forgotten */
    struct buf fresh;        /* entries that were put, each with a comma behind it */
    size_t n_fresh;
};

/* ---- reading ---- */

static bool hold(struct memory *m, struct gate_error *err)
{
    char folder[PATHS_MAX], path[PATHS_MAX];
    if (artifact_cache_folder("memory", folder, err))
        return false;
    int n = snprintf(path, sizeof path, "%s/lock", folder);
    int k = snprintf(m->path, sizeof m->path, "%s/found.json", folder);
    if (n < 0 || (size_t)n >= sizeof path || k < 0 || (size_t)k >= sizeof m->path) {
        gate_fail(err, GATE_IO, "the path of the cache is too long");
        return false;
    }
    m->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (m->lock < 0)
        gate_fail(err, GATE_IO, "cannot open '%s': %s", path, strerror(errno));
    else if (flock(m->lock, LOCK_EX | LOCK_NB))
        gate_fail(err, GATE_IO, "another run holds '%s'", path);
    else
        return true;
    return false;
}

/* A file that does not fit is of another version: nothing is known then. */
static void parse(struct memory *m)
{
    struct gate_error unread;
    m->file = (struct memory_file){.entries = NULL};
    if (m->there && fields_parse(&memory_file, m->path, 1, m->bytes.data, m->bytes.len, GATE_IO,
                                 &m->file, &m->taken, &unread))
        m->file = (struct memory_file){.entries = NULL};
    m->dropped = xcalloc(m->file.n_entries, sizeof *m->dropped);
}

static void hash_environment(char hex[65])
{
    struct buf list;
    SHA2_CTX context;
    buf_init(&list, FILE_MAX);
    scrub_list(&list);
    SHA256Init(&context);
    SHA256Update(&context, (const uint8_t *)list.data, list.len);
    SHA256End(&context, hex);
    buf_release(&list);
}

/* False: it cannot be read, and `bytes` are none; a file that is not there is empty. */
static bool read_file(const char *path, struct buf *bytes, bool *there, struct gate_error *err)
{
    buf_init(bytes, FILE_MAX);
    *there = !access(path, F_OK) || errno != ENOENT;
    return !*there || !file_read(path, bytes, err);
}

static bool open_for(struct memory *m, const char *library, struct gate_error *err)
{
    char other[200];
    if (!needs_only_system(library, other, sizeof other)) {
        gate_fail(err, GATE_IO, "'%.200s' needs '%.150s', which its hash does not tell", library,
                  other);
        return false;
    }
    return hold(m, err) && read_file(m->path, &m->bytes, &m->there, err);
}

struct memory *memory_open(const char *library)
{
    struct gate_error err;
    struct memory *m = xcalloc(1, sizeof *m);
    m->lock = -1;
    buf_init(&m->bytes, FILE_MAX);
    buf_init(&m->fresh, FILE_MAX);
    bool known = !piece_hash_file(library, m->library, &err) &&
                 !file_sha256("/proc/self/exe", m->program, &err);
    hash_environment(m->environment);
    if (known && open_for(m, library, &err)) {
        parse(m);
        return m;
    }
    if (known)
        fprintf(stderr, "gate run: nothing is remembered of earlier runs: %s\n", err.message);
    memory_close(m, false);
    return NULL;
}

const char *memory_library(const struct memory *m)
{
    return m->library;
}

const char *memory_program(const struct memory *m)
{
    return m->program;
}

const char *memory_environment(const struct memory *m)
{
    return m->environment;
}

void memory_key(const char *const *texts, char key[65])
{
    SHA2_CTX context;
    SHA256Init(&context);
    for (size_t i = 0; texts[i]; i++)
        SHA256Update(&context, (const uint8_t *)texts[i], strlen(texts[i]) + 1);
    SHA256End(&context, key);
}

const struct memory_entry *memory_find(const struct memory *m, const char *key)
{
    for (size_t i = 0; i < m->file.n_entries; i++)
        if (!m->dropped[i] && !strcmp(m->file.entries[i].key, key))
            return &m->file.entries[i];
    return NULL;
}

/* ---- writing ---- */

void memory_put(struct memory *m, const struct memory_entry *e)
{
    for (size_t i = 0; i < m->file.n_entries; i++)
        m->dropped[i] |= !strcmp(m->file.entries[i].key, e->key);
    fields_write(&memory_entry, e, &m->fresh);
    buf_puts(&m->fresh, ",\n");
    m->n_fresh++;
}

void memory_forget(struct memory *m, const char *library_sha256)
{
    for (size_t i = 0; i < m->file.n_entries; i++) {
        const char *of = m->file.entries[i].library_sha256;
        m->dropped[i] |= of && !strcmp(of, library_sha256);
    }
}

static void put_file(const struct memory *m, struct buf *out)
{
    size_t n = m->n_fresh;
    buf_printf(out, "{\"schema\":\"%s\",\"entries\":[\n", schemas[0]);
    buf_append(out, m->fresh.data, m->fresh.len);
    for (size_t i = 0; i < m->file.n_entries && n < ENTRIES_MAX; i++) {
        if (m->dropped[i])
            continue;
        fields_write(&memory_entry, &m->file.entries[i], out);
        buf_puts(out, ",\n");
        n++;
    }
    if (n)
        out->len -= 2;
    buf_puts(out, "]}\n");
}

/* The file is as it was read. */
static bool is_untouched(const struct memory *m)
{
    struct buf now;
    struct gate_error unread;
    bool there, same = read_file(m->path, &now, &there, &unread) && there == m->there &&
                       now.len == m->bytes.len &&
                       (!now.len || !memcmp(now.data, m->bytes.data, now.len));
    buf_release(&now);
    return same;
}

static void save(const struct memory *m)
{
    struct buf text;
    struct gate_error err;
    buf_init(&text, FILE_MAX);
    put_file(m, &text);
    if (m->n_fresh > ENTRIES_MAX || m->fresh.failed || text.failed)
        fprintf(stderr, "gate run: what was found is too much to be remembered\n");
    else if (file_write_atomic(m->path, text.data, text.len, &err))
        fprintf(stderr, "gate run: what was found is not remembered: %s\n", err.message);
    buf_release(&text);
}

void memory_close(struct memory *m, bool keep)
{
    bool changed = keep && m && m->n_fresh > 0;
    if (!m)
        return;
    for (size_t i = 0; i < m->file.n_entries; i++)
        changed |= keep && m->dropped[i];
    if (m->dropped && !is_untouched(m)) {
        fprintf(stderr,
                "gate run: '%s' was changed while kernels ran, and not by this run: it is thrown "
                "away, and the next run verifies everything\n",
                m->path);
        unlink(m->path);
    } else if (changed) {
        save(m);
    }
    fields_release(&memory_file, &m->file);
    free(m->taken.texts);
    buf_release(&m->bytes);
    buf_release(&m->fresh);
    free(m->dropped);
    if (m->lock >= 0)
        close(m->lock);
    free(m);
}
