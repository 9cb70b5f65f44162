/* SPDX-License-Identifier: Apache-2.0 */
/* cubin_file.c: see cubin_file.h. */
#include "tests/unit/cubin_file.h"
#include "tests/unit/unit.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include <unistd.h>

#define FILE_MAX ((size_t)1 << 20)

struct section {
    const char *name;
    Elf64_Shdr header; /* offset, size and name are filled in */
    const void *content;
    size_t bytes;
};

static uint32_t name_at(struct buf *names, const char *name)
{
    uint32_t at = (uint32_t)names->len;
    buf_append(names, name, strlen(name) + 1);
    return at;
}

/* An ELF file of the sections behind the empty one and the names'. */
static void put_elf(struct buf *out, uint16_t machine, uint32_t flags, struct section *sections,
                    uint16_t n)
{
    struct buf names, body;
    buf_init(&names, FILE_MAX);
    buf_init(&body, FILE_MAX);
    buf_putc(&names, '\0');
    Elf64_Shdr headers[16] = {0};
    for (uint16_t i = 0; i < n; i++) {
        headers[i + 2] = sections[i].header;
        headers[i + 2].sh_name = name_at(&names, sections[i].name);
        headers[i + 2].sh_offset = sizeof(Elf64_Ehdr) + body.len;
        headers[i + 2].sh_size = sections[i].bytes;
        if (headers[i + 2].sh_type == SHT_NOBITS)
            continue;
        buf_append(&body, sections[i].content, sections[i].bytes);
    }
    headers[1] = (Elf64_Shdr){
        .sh_type = SHT_STRTAB, .sh_offset = sizeof(Elf64_Ehdr) + body.len, .sh_size = names.len};
    buf_append(&body, names.data, names.len);
    Elf64_Ehdr h = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB},
                    .e_machine = machine,
                    .e_flags = flags,
                    .e_shoff = sizeof h + body.len,
                    .e_shentsize = sizeof *headers,
                    .e_shnum = (uint16_t)(n + 2),
                    .e_shstrndx = 1};
    buf_append(out, &h, sizeof h);
    buf_append(out, body.data, body.len);
    buf_append(out, headers, (size_t)(n + 2) * sizeof *headers);
    buf_release(&names);
    buf_release(&body);
}

const struct cubin cubin_plain = {90,  "\0one\0two", "load add store",   "4 8", "load mul store",
                                  "3", "return",     .compressed = false};

void cubin_put(struct buf *out, const struct cubin *c)
{
    const uint64_t text = SHF_ALLOC | SHF_EXECINSTR;
    uint32_t second = 2 + (uint32_t)strlen(c->names + 1);
    Elf64_Sym symbols[4] = {
        {0},
        {.st_name = 1, .st_info = STT_FUNC, .st_other = 0x10, .st_shndx = 4},
        {.st_name = second, .st_info = STT_FUNC, .st_other = 0x10, .st_shndx = 6},
        {.st_name = 0, .st_info = STT_FUNC, .st_shndx = 8}, /* not for the host to launch */
    };
    size_t names = second + strlen(c->names + second) + 1;
    struct section sections[] = {
        {".strtab", {.sh_type = SHT_STRTAB}, c->names, names},
        {".symtab", {.sh_type = SHT_SYMTAB, .sh_link = 2}, symbols, sizeof symbols},
        {".text.one", {.sh_type = 1, .sh_flags = text}, c->first, strlen(c->first)},
        {".nv.constant0.one",
         {.sh_type = 1, .sh_flags = SHF_ALLOC, .sh_info = 4},
         c->first_constants,
         strlen(c->first_constants)},
        {".text.two", {.sh_type = 1, .sh_flags = text}, c->second, strlen(c->second)},
        {".nv.constant3", {.sh_type = 1, .sh_flags = SHF_ALLOC}, c->data, strlen(c->data)},
        {".text.helper", {.sh_type = 1, .sh_flags = text}, c->helper, strlen(c->helper)},
        {".debug", {.sh_type = 1}, c->names, names},
        {".nv.info", {.sh_type = SHT_LOPROC}, c->info, c->info_bytes},
        {".nv.shared.one", {.sh_type = SHT_NOBITS, .sh_info = 4}, NULL, c->shared_bytes},
        {".nv.info.one", {.sh_type = SHT_LOPROC, .sh_info = 4}, c->own_info, c->own_info_bytes},
    };
    put_elf(out, 190, c->architecture, sections, sizeof sections / sizeof *sections);
}

/* The header that nvcc of CUDA 13 writes. */
static void put_entry(struct buf *out, uint16_t kind, const struct buf *content, bool compressed)
{
    struct {
        uint16_t kind, version;
        uint32_t header_bytes;
        uint64_t bytes;
        uint32_t packed_bytes, other[5];
        uint64_t flags, unknown, unpacked_bytes;
    } e = {.kind = kind, .version = 257, .header_bytes = sizeof e, .bytes = content->len};
    char packed[8192] = {0};
    const char *bytes = content->data;
    if (compressed) {
        size_t n = ZSTD_compress(packed, sizeof packed, content->data, content->len, 3);
        assert_false(ZSTD_isError(n));
        e.packed_bytes = (uint32_t)n;
        e.flags = 0x108011;
        e.unpacked_bytes = content->len;
        e.bytes = (n + 7) / 8 * 8;
        bytes = packed;
    }
    buf_append(out, &e, sizeof e);
    buf_append(out, bytes, (size_t)e.bytes);
}

/* A container of its own for each cubin, and PTX in the first. */
static void put_containers(struct buf *out, const struct cubin *cubins, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct buf cubin, entries, ptx;
        buf_init(&cubin, FILE_MAX);
        buf_init(&entries, FILE_MAX);
        buf_init(&ptx, FILE_MAX);
        buf_puts(&ptx, ".version 9.0");
        cubin_put(&cubin, &cubins[i]);
        put_entry(&entries, 2, &cubin, cubins[i].compressed);
        if (i == 0)
            put_entry(&entries, 1, &ptx, cubins[i].compressed);
        struct {
            uint32_t magic;
            uint16_t version, header_bytes;
            uint64_t bytes;
        } h = {0xba55ed50u, 1, sizeof h, entries.len};
        buf_append(out, &h, sizeof h);
        buf_append(out, entries.data, entries.len);
        while (out->len % 8 != 0)
            buf_putc(out, '\0');
        buf_release(&cubin);
        buf_release(&entries);
        buf_release(&ptx);
    }
}

void cubin_put_library(struct buf *out, const struct cubin *cubins, size_t n)
{
    struct buf containers;
    buf_init(&containers, FILE_MAX);
    buf_init(out, FILE_MAX);
    put_containers(&containers, cubins, n);
    struct section section = {".nv_fatbin", {.sh_type = 1}, containers.data, containers.len};
    put_elf(out, EM_X86_64, 0, &section, 1);
    buf_release(&containers);
    assert_false(out->failed);
}

struct machine_code *cubin_read_bytes(const void *bytes, size_t n)
{
    char path[] = "/tmp/machine-code.XXXXXX";
    struct gate_error err;
    struct machine_code *m = NULL;
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
    close(fd);
    assert_int_equal(machine_code_read(path, &m, &err), GATE_OK);
    unlink(path);
    return m;
}

struct machine_code *cubin_read(const struct cubin *cubins, size_t n)
{
    struct buf file;
    cubin_put_library(&file, cubins, n);
    struct machine_code *m = cubin_read_bytes(file.data, file.len);
    buf_release(&file);
    return m;
}
