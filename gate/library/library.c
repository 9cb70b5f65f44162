/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/library/library.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/ops/op.h"

#define MAX_KERNELS 1024
#define FILE_MAX_BYTES ((size_t)1 << 30)

/* [a-z0-9_.-]+ of at most `max` characters. */
static bool valid_name(const char *name, size_t max)
{
    if (!name)
        return false;
    size_t n = strnlen(name, max + 1);
    return n > 0 && n <= max && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_.-") == n;
}

static enum gate_status check_table(const struct kg_library *t, uint32_t kind,
                                    struct gate_error *err)
{
    if (!t)
        return gate_fail(err, GATE_WRONG, "kg_library() returned NULL");
    if (t->struct_bytes < sizeof *t || t->abi_version != KG_ABI_VERSION)
        return gate_fail(err, GATE_WRONG, "it has kernel ABI %u, this gate speaks %u",
                         t->abi_version, KG_ABI_VERSION);
    if (!valid_name(t->provider, 31) || !t->version || strnlen(t->version, 64) > 63)
        return gate_fail(err, GATE_WRONG, "its provider or version breaks the rules of kernel.h");
    if (t->device_kind != kind)
        return gate_fail(err, GATE_WRONG, "provider '%s' is for another kind of device",
                         t->provider);
    if (!t->kernels || !t->n_kernels || t->n_kernels > MAX_KERNELS)
        return gate_fail(err, GATE_WRONG, "provider '%s' offers %u kernels", t->provider,
                         t->kernels ? t->n_kernels : 0);
    for (uint32_t i = 0; i < t->n_kernels; i++) {
        const struct kg_kernel *k = t->kernels[i];
        if (!k || k->struct_bytes < sizeof *k)
            return gate_fail(err, GATE_WRONG,
                             "kernel %u of provider '%s' is not a kg_kernel of this ABI", i,
                             t->provider);
        if (!valid_name(k->name, 63))
            return gate_fail(err, GATE_WRONG, "kernel %u of provider '%s' has no valid name", i,
                             t->provider);
        if (!valid_name(k->op, 63))
            return gate_fail(err, GATE_WRONG, "kernel '%s' has no valid name of an op", k->name);
        if (!k->supports || !k->launch)
            return gate_fail(err, GATE_WRONG, "kernel '%s' lacks supports() or launch()", k->name);
        for (uint32_t j = 0; j < i; j++)
            if (!strcmp(t->kernels[j]->name, k->name))
                return gate_fail(err, GATE_WRONG, "two kernels are named '%s'", k->name);
    }
    return GATE_OK;
}

static enum gate_status load(const char *path, struct library *lib, struct gate_error *err)
{
    /* dlopen() looks a bare name up in the system's folders; a path with a slash is opened as is.
     */
    char with_slash[4096];
    snprintf(with_slash, sizeof with_slash, "%s%s", strchr(path, '/') ? "" : "./", path);
    lib->handle = dlopen(with_slash, RTLD_NOW | RTLD_LOCAL);
    if (!lib->handle)
        return gate_fail(err, GATE_WRONG, "it cannot be loaded: %s", dlerror());
    kg_library_fn get;
    *(void **)&get = dlsym(lib->handle, KG_LIBRARY_SYMBOL);
    if (!get)
        return gate_fail(err, GATE_WRONG, "it exports no '%s'", KG_LIBRARY_SYMBOL);
    lib->table = get();
    return GATE_OK;
}

/* What the loader says of a file that is cut off is a death by SIGBUS, and of one of another
 * machine that it does not exist. */
static enum gate_status check_file(const struct piece *p, struct gate_error *err)
{
    Elf64_Ehdr h, own = {0};
    const struct bytes file = {(const unsigned char *)p->bytes.data, p->bytes.len};
    if (p->manifest)
        return GATE_OK;
    if (!bytes_take(file, 0, &h, sizeof h) || memcmp(h.e_ident, ELFMAG, SELFMAG) != 0)
        return gate_fail(err, GATE_WRONG,
                         "it cannot be loaded: it begins neither as ELF nor as a bundle");
    int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    bool known = self >= 0 && pread(self, &own, sizeof own, 0) == sizeof own;
    if (self >= 0)
        close(self);
    if (known && (h.e_machine != own.e_machine || h.e_ident[EI_CLASS] != own.e_ident[EI_CLASS]))
        return gate_fail(err, GATE_WRONG,
                         "it cannot be loaded: it was built for another type of machine (ELF "
                         "machine %u, class %u; this gate is of %u, class %u)",
                         h.e_machine, h.e_ident[EI_CLASS], own.e_machine, own.e_ident[EI_CLASS]);
    const uint64_t end = h.e_shoff + (uint64_t)h.e_shnum * h.e_shentsize; /* of its headers */
    if (end < h.e_shoff || end > file.n)
        return gate_fail(err, GATE_WRONG,
                         "it cannot be loaded: it is cut off: it has %zu bytes, and its headers "
                         "speak of %ju",
                         file.n, (uintmax_t)end);
    return GATE_OK;
}

/* Copies a library into memory that has a path of its own while `*fd` is open. It stays open as
 * long as the library: dlopen() takes a path that it has opened before for the same file, and the
 * next copy would have it. */
static enum gate_status copy_to_memory(const struct buf *bytes, int *fd, char *copy, size_t size,
                                       struct gate_error *err)
{
    ssize_t n = 1;
    *fd = memfd_create("kernel-library", MFD_CLOEXEC);
    for (size_t at = 0; at < bytes->len && n > 0; at += (size_t)n)
        n = *fd < 0 ? -1 : write(*fd, bytes->data + at, bytes->len - at);
    if (n <= 0)
        return gate_fail(err, GATE_IO, "it cannot be copied into memory: %s", strerror(errno));
    snprintf(copy, size, "/proc/self/fd/%d", *fd);
    return GATE_OK;
}

static void unload(struct library *lib)
{
    bundle_close(lib->bundle);
    if (lib->handle)
        dlclose(lib->handle);
    if (lib->copy >= 0)
        close(lib->copy);
    machine_code_free(lib->code);
    piece_release(&lib->piece);
    *lib = (struct library){.copy = -1};
}

enum gate_status library_open(const char *path, uint32_t kind, bool own_copy, struct library *out,
                              struct gate_error *err)
{
    struct library lib = {.copy = -1};
    char copy[64];
    const char *from = path, *slash = strrchr(path, '/');
    snprintf(lib.file, sizeof lib.file, "%s", slash ? slash + 1 : path);
    if (access(path, R_OK))
        return gate_fail(err, GATE_IO, "cannot read kernel library '%s': %s%s", path,
                         strerror(errno), errno == ENOENT ? "; build it first" : "");
    enum gate_status status = piece_read(path, FILE_MAX_BYTES, &lib.piece, err);
    if (status == GATE_USAGE) /* no regular file, or a huge one */
        status = gate_fail(err, GATE_WRONG, "%s", err->message);
    if (!status)
        status = check_file(&lib.piece, err);
    if (!status)
        piece_hash(&lib.piece, lib.sha256);
    if (!status && own_copy && !lib.piece.manifest) {
        status = copy_to_memory(&lib.piece.bytes, &lib.copy, copy, sizeof copy, err);
        from = copy;
    }
    if (!status && !lib.piece.n_files)
        piece_release(&lib.piece);
    if (!status && kind == KG_DEVICE_CUDA)
        status = machine_code_read(from, &lib.code, err);
    if (!status)
        status = lib.piece.manifest ? bundle_open(&lib.piece, &lib.bundle, &lib.table, err)
                                    : load(from, &lib, err);
    if (!status)
        status = check_table(lib.table, kind, err);
    if (status) {
        unload(&lib);
        return gate_fail_context(err, "kernel library '%s'", path);
    }
    *out = lib;
    return GATE_OK;
}

enum gate_status library_start(struct library *lib, const struct kg_device *device,
                               struct gate_error *err)
{
    enum kg_status opened = KG_OK;
    enum gate_status status = lib->bundle ? bundle_start(lib->bundle, device, err) : GATE_OK;
    if (lib->table->open)
        opened = lib->table->open(device, lib->piece.files);
    if (opened != KG_OK)
        status = gate_fail(err, GATE_WRONG, "open() returned '%s'%s", library_status_name(opened),
                           opened == KG_UNSUPPORTED ? ": what it needs is not here" : "");
    lib->started = !status;
    return status ? gate_fail_context(err, "kernel library '%s'", lib->file) : GATE_OK;
}

void library_close(struct library *lib)
{
    if (!lib->table)
        return;
    if (lib->started && lib->table->close)
        lib->table->close();
    unload(lib);
}

bool library_serves(const struct kg_kernel *k, const struct kg_problem *p,
                    const struct kg_device *device)
{
    return bundle_has(k) ? bundle_serves(k, p, device) : k->supports(p, device) != 0;
}

enum kg_status library_prepare(const struct kg_kernel *k, const struct kg_problem *p,
                               const struct kg_device *device, void **plan)
{
    *plan = NULL;
    if (bundle_has(k))
        return bundle_prepare(k, p, device, plan);
    return k->prepare ? k->prepare(p, device, plan) : KG_OK;
}

const char *library_fault(const struct kg_kernel *k)
{
    return bundle_has(k) ? bundle_fault(k) : "";
}

const struct kg_kernel *library_choose(const struct library *lib, const struct kg_problem *p,
                                       const struct kg_device *device, const char *name)
{
    for (uint32_t i = 0; i < lib->table->n_kernels; i++) {
        const struct kg_kernel *k = lib->table->kernels[i];
        if (strcmp(k->op, p->op) != 0 || (name && strcmp(name, k->name) != 0))
            continue;
        if (library_serves(k, p, device))
            return k;
    }
    return NULL;
}

const char *library_status_name(enum kg_status status)
{
    static const char *const names[] = {[KG_OK] = "ok",
                                        [KG_UNSUPPORTED] = "unsupported",
                                        [KG_BAD_ARGUMENT] = "bad argument",
                                        [KG_LAUNCH_FAILED] = "launch failed"};
    return (size_t)status < sizeof names / sizeof *names ? names[status]
                                                         : "a status that kernel.h does not know";
}
