/* SPDX-License-Identifier: Apache-2.0 */
/* piece.c: see machine_code.h. Nothing in the file is believed before it was compared with the
 * bounds of what it lies in. */

#include <errno.h>
#include <fcntl.h>
#include <sha2.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gate/base/alloc.h"
#include "gate/base/file.h"
#include "gate/base/paths.h"
#include "gate/base/utf8.h"
#include "gate/document/fields_table.h"
#include "gate/library/machine_code.h"
#include "kernels/kernel.h"

#define SECTION "kg_files"
#define MAGIC "KGPIECE1"
#define NUMBER_BYTES sizeof(uint64_t)
#define NAME_MAX_BYTES 100
#define HASHED_MAX_BYTES ((size_t)1 << 30)

static bool is_named_before(const struct piece *p, const char *name)
{
    for (unsigned i = 0; i < p->n_files; i++)
        if (!strcmp(p->files[i].name, name))
            return true;
    return false;
}

static enum gate_status add_name(struct piece *p, const char *name, struct gate_error *err)
{
    const size_t n = strlen(name);
    if (!n || n > NAME_MAX_BYTES || name[0] == '.' || name[0] == '-' ||
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-") != n)
        return gate_fail(err, GATE_WRONG,
                         "it names the file '%.100s', which is no name of a file: letters, digits "
                         "and _.+- only, without a folder",
                         name);
    if (p->n_files == PIECE_FILES_MAX)
        return gate_fail(err, GATE_WRONG, "it names more than %d files", PIECE_FILES_MAX);
    p->files[p->n_files++].name = name;
    return GATE_OK;
}

/* The names in the section, one behind the other; the linker may leave zeros between them. */
static enum gate_status read_names(struct piece *p, struct gate_error *err)
{
    const struct bytes object = {(const unsigned char *)p->bytes.data, p->object_bytes};
    struct bytes names;
    Elf64_Shdr s;
    if (manifest_is(object)) { /* those of its machine code, each once */
        if (!p->manifest)
            TRY(manifest_parse(object, &p->manifest, err));
        for (size_t i = 0; i < p->manifest->n_kernels; i++) {
            const struct manifest_kernel *k = &p->manifest->kernels[i];
            for (size_t j = 0; j < k->n_launches; j++)
                if (!is_named_before(p, k->launches[j].code))
                    TRY(add_name(p, k->launches[j].code, err));
        }
        return GATE_OK;
    }
    if (!elf_find(object, SECTION, &s))
        return GATE_OK;
    if (!elf_content(object, &s, &names) || (names.n && names.at[names.n - 1]))
        return gate_fail(err, GATE_WRONG, "its section '%s' is damaged", SECTION);
    for (size_t at = 0; at < names.n;) {
        const char *name = (const char *)names.at + at;
        const size_t n = strlen(name);
        at += n + 1;
        if (!n)
            continue;
        if (is_named_before(p, name))
            return gate_fail(err, GATE_WRONG, "KG_FILE() names '%.100s' twice", name);
        TRY(add_name(p, name, err));
    }
    return GATE_OK;
}

static uint64_t number_at(const struct piece *p, size_t at)
{
    uint64_t number;
    memcpy(&number, p->bytes.data + at, sizeof number);
    return number;
}

/* Finds the parts of a piece; the sizes stand behind the files. */
static enum gate_status take_apart(struct piece *p, struct gate_error *err)
{
    const size_t tail = strlen(MAGIC) + NUMBER_BYTES;
    if (p->bytes.len >= tail && number_at(p, p->bytes.len - tail) < p->bytes.len)
        p->object_bytes = number_at(p, p->bytes.len - tail);
    TRY(read_names(p, err));
    if (p->bytes.len - p->object_bytes < tail + p->n_files * NUMBER_BYTES)
        return gate_fail(err, GATE_WRONG, "the files that belong to it are cut off");
    const size_t sizes = p->bytes.len - tail - p->n_files * NUMBER_BYTES;
    size_t at = p->object_bytes;
    for (unsigned i = 0; i < p->n_files; i++) {
        const uint64_t bytes = number_at(p, sizes + i * NUMBER_BYTES);
        if (bytes > sizes - at)
            return gate_fail(err, GATE_WRONG, "the files that belong to it are damaged");
        p->files[i].data = p->bytes.data + at;
        p->files[i].bytes = bytes;
        at += bytes;
    }
    return at == sizes ? GATE_OK
                       : gate_fail(err, GATE_WRONG, "the files that belong to it are damaged");
}

/* To open a pipe may wait for ever. */
static enum gate_status read_regular(const char *path, struct buf *out, struct gate_error *err)
{
    struct stat st;
    const size_t before = out->len;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return gate_fail(err, GATE_IO, "cannot open '%s': %s", path, strerror(errno));
    enum gate_status status = GATE_OK;
    if (fstat(fd, &st))
        status = gate_fail(err, GATE_IO, "cannot look at '%s': %s", path, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        status = gate_fail(err, GATE_USAGE, "'%s' is not a regular file", path);
    else if ((uintmax_t)st.st_size > out->max - before)
        status = gate_fail(err, GATE_USAGE, "'%s' is larger than the %zu MiB a library may have",
                           path, out->max >> 20);
    else
        status = file_read_fd(fd, path, out, err);
    close(fd);
    if (!status && out->len == before)
        status = gate_fail(err, GATE_USAGE, "'%s' is empty", path);
    return status;
}

/* Puts the files beside the library behind it, and then what take_apart() needs. */
static enum gate_status put_together(struct piece *p, const char *path, struct gate_error *err)
{
    const char *slash = strrchr(path, '/');
    const size_t folder = slash ? (size_t)(slash + 1 - path) : 0;
    char beside[PATHS_MAX], names[PIECE_FILES_MAX][NAME_MAX_BYTES + 1];
    uint64_t sizes[PIECE_FILES_MAX + 1];
    const unsigned n = p->n_files;
    for (unsigned i = 0; i < n; i++) /* `bytes` moves when it grows */
        memcpy(names[i], p->files[i].name, strlen(p->files[i].name) + 1);
    for (unsigned i = 0; i < n; i++) {
        const size_t before = p->bytes.len;
        if (folder + strlen(names[i]) >= sizeof beside)
            return gate_fail(err, GATE_IO, "the path of its file '%s' is too long", names[i]);
        memcpy(beside, path, folder);
        memcpy(beside + folder, names[i], strlen(names[i]) + 1);
        enum gate_status status = read_regular(beside, &p->bytes, err);
        if (status)
            return gate_fail_context(err, "of the file '%s', which belongs to it", names[i]);
        sizes[i] = p->bytes.len - before;
    }
    sizes[n] = p->object_bytes;
    buf_append(&p->bytes, sizes, (n + 1) * NUMBER_BYTES);
    buf_append(&p->bytes, MAGIC, strlen(MAGIC));
    p->n_files = 0;
    return p->bytes.failed ? gate_fail(err, GATE_USAGE, "with its files it is too large")
                           : take_apart(p, err);
}

enum gate_status piece_read(const char *path, size_t most, struct piece *out,
                            struct gate_error *err)
{
    *out = (struct piece){0};
    buf_init(&out->bytes, most);
    enum gate_status status = read_regular(path, &out->bytes, err);
    const size_t magic = strlen(MAGIC), n = out->object_bytes = out->bytes.len;
    if (!status && n >= magic && !memcmp(out->bytes.data + n - magic, MAGIC, magic))
        status = take_apart(out, err);
    else if (!status && !(status = read_names(out, err)) && out->n_files)
        status = put_together(out, path, err);
    if (status)
        piece_release(out);
    return status;
}

void piece_release(struct piece *piece)
{
    buf_release(&piece->bytes);
    manifest_free(piece->manifest);
    *piece = (struct piece){0};
}

void piece_hash(const struct piece *piece, char sha256[65])
{
    SHA256Data((const uint8_t *)piece->bytes.data, piece->bytes.len, sha256);
}

/* ---- does the hash tell all of its code? ---- */

static bool is_system(const char *name)
{
    static const char *const prefixes[] = {
        "ld-linux",       "libc.so.",      "libm.so.",     "libdl.so.",   "librt.so.",
        "libpthread.so.", "libstdc++.so.", "libgcc_s.so.", "libcuda.so.", "linux-vdso.so."};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
            return true;
    return false;
}

/* NULL: none. */
static const char *find_other(const struct piece *p)
{
    const struct bytes elf = {(const unsigned char *)p->bytes.data, p->object_bytes};
    Elf64_Shdr s;
    struct bytes entries;
    if (p->manifest) /* it needs no loader */
        return NULL;
    if (!elf_find(elf, ".dynamic", &s) || !elf_content(elf, &s, &entries))
        return "(no section .dynamic)";
    Elf64_Dyn d;
    for (uint64_t at = 0; bytes_take(entries, at, &d, sizeof d) && d.d_tag; at += sizeof d) {
        if (d.d_tag != DT_NEEDED)
            continue;
        const char *name = elf_text(elf, s.sh_link, d.d_un.d_val);
        if (!name || !is_system(name))
            return name ? name : "(a name out of bounds)";
    }
    return NULL;
}

enum gate_status piece_hash_file(const char *path, char sha256[65], char other[PIECE_OTHER_MAX],
                                 struct gate_error *err)
{
    RELEASED_BY(piece_release) struct piece piece = {.n_files = 0};
    const enum gate_status status = piece_read(path, HASHED_MAX_BYTES, &piece, err);
    if (status)
        return status == GATE_WRONG ? gate_fail_context(err, "kernel library '%s'", path) : status;
    piece_hash(&piece, sha256);
    const char *found = other ? find_other(&piece) : NULL;
    if (other)
        utf8_print(other, PIECE_OTHER_MAX, "%s", found ? found : "");
    return GATE_OK;
}

/* ---- manifests ---- */

#define NAME "manifest"
#define MANIFEST_MAX_BYTES ((size_t)1 << 20)
#define FILE_NAME_MAX 100
#define SYMBOL_MAX 1000
#define EXPRESSION_MAX 200

const char *const manifest_types[] = {"pointer", "i8", "i16", "i32", "i64", "f32", "f64", NULL};

static const char *const schemas[] = {"gate-bundle/1", NULL};

#define OF manifest_argument
SHAPE_BY(MANIFEST_ARGUMENT);
#undef OF
#define OF manifest_launch
SHAPE_BY(MANIFEST_LAUNCH);
#undef OF
#define OF manifest_kernel
SHAPE_BY(MANIFEST_KERNEL);
#undef OF
#define OF manifest
SHAPE_BY(MANIFEST);
#undef OF

bool manifest_is(struct bytes library)
{
    return library.n && library.at[0] == '{';
}

enum gate_status manifest_parse(struct bytes text, struct manifest **out, struct gate_error *err)
{
    if (text.n > MANIFEST_MAX_BYTES)
        return gate_fail(err, GATE_WRONG, "its manifest has %zu bytes, more than 1 MiB", text.n);
    struct manifest *m = xcalloc(1, sizeof *m);
    enum gate_status status = fields_parse(&manifest_shape, NAME, 1, (const char *)text.at, text.n,
                                           GATE_WRONG, m, &m->taken, err);
    if (status)
        free(m);
    else
        *out = m;
    return status;
}

void manifest_free(struct manifest *m)
{
    if (!m)
        return;
    fields_release(&manifest_shape, m);
    free(m->taken.texts);
    free(m);
}

enum gate_status manifest_fault(struct bytes text, const struct field_fault *fault,
                                struct gate_error *err)
{
    return fields_fault(NAME, 1, (const char *)text.at, text.n, fault, GATE_WRONG, err);
}
