/* Library files are put together here section by section; what nvcc makes of real ones is seen
 * where nvcc is (libours.so). */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "gate/base/buf.h"
#include "gate/machine_code.h"

#define FILE_MAX ((size_t)1 << 20)

/* ---- files to read ---- */

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

/* Two kernels, and what they share. Sections count from 2: the empty one and the names come first.
 */
struct cubin {
    uint32_t architecture;
    const char *names; /* "\0first\0second": they lie at 1 and behind the next NUL */
    const char *first, *first_constants, *second, *data, *helper;
};

static const struct cubin plain = {90,  "\0one\0two", "load add store", "4 8", "load mul store",
                                   "3", "return"};

static void put_cubin(struct buf *out, const struct cubin *c)
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
    };
    put_elf(out, 190, c->architecture, sections, sizeof sections / sizeof *sections);
}

static void put_entry(struct buf *out, uint16_t kind, const struct buf *content)
{
    struct {
        uint16_t kind, version;
        uint32_t header_bytes;
        uint64_t bytes, rest[6];
    } e = {.kind = kind, .version = 257, .header_bytes = sizeof e, .bytes = content->len};
    buf_append(out, &e, sizeof e);
    buf_append(out, content->data, content->len);
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
        put_cubin(&cubin, &cubins[i]);
        put_entry(&entries, 2, &cubin);
        if (i == 0)
            put_entry(&entries, 1, &ptx);
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

static void put_library(struct buf *out, const struct cubin *cubins, size_t n)
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

static struct machine_code *read_bytes(const void *bytes, size_t n)
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

static struct machine_code *read_cubins(const struct cubin *cubins, size_t n)
{
    struct buf file;
    put_library(&file, cubins, n);
    struct machine_code *m = read_bytes(file.data, file.len);
    buf_release(&file);
    return m;
}

/* The hash of a kernel of a library of these; "" when it is not known. */
static void hash_of(const struct cubin *cubins, size_t n, const char *name, char hex[65])
{
    struct machine_code *m = read_cubins(cubins, n);
    if (!machine_code_hash(m, name, hex))
        *hex = '\0';
    machine_code_free(m);
}

static void assert_kernel(const struct cubin *other, const char *name, bool same)
{
    char was[65], is[65];
    hash_of(&plain, 1, name, was);
    hash_of(other, 1, name, is);
    assert_int_equal(strlen(was), 64);
    assert_int_equal(strlen(is), 64);
    assert_true((strcmp(was, is) == 0) == same);
}

/* ---- tests ---- */

static void test_kernels_are_found(void **state)
{
    (void)state;
    char one[65], two[65], none[65];
    struct cubin two_chips[] = {plain, plain};
    two_chips[1].architecture = 80;
    struct machine_code *m = read_cubins(two_chips, 2);
    assert_int_equal(machine_code_kernels(m), 4);
    assert_true(machine_code_hash(m, "one", one));
    assert_true(machine_code_hash(m, "two", two));
    assert_string_not_equal(one, two);
    assert_false(machine_code_hash(m, "helper", none));
    machine_code_free(m);
}

static void test_what_changes_a_kernel(void **state)
{
    (void)state;
    struct cubin c = plain;
    assert_kernel(&c, "one", true);
    c.first = "load sub store";
    assert_kernel(&c, "one", false);
    assert_kernel(&c, "two", true);
    c = plain;
    c.first_constants = "4 9";
    assert_kernel(&c, "one", false);
    assert_kernel(&c, "two", true);
    c = plain;
    c.data = "4";
    assert_kernel(&c, "one", false);
    assert_kernel(&c, "two", false);
    c = plain;
    c.helper = "loop return";
    assert_kernel(&c, "one", false);
    c = plain;
    c.architecture = 80;
    assert_kernel(&c, "one", false);
}

static void test_names_are_no_code(void **state)
{
    (void)state;
    char was[65], is[65];
    struct cubin c = plain;
    c.names = "\0one_of_another_path\0two";
    hash_of(&plain, 1, "one", was);
    hash_of(&c, 1, "one_of_another_path", is);
    assert_string_equal(was, is);
}

static void test_each_architecture_counts(void **state)
{
    (void)state;
    char was[65], is[65];
    struct cubin chips[] = {plain, plain};
    chips[1].architecture = 80;
    hash_of(chips, 2, "one", was);
    chips[1].first = "load load store";
    hash_of(chips, 2, "one", is);
    assert_string_not_equal(was, is);
    hash_of(chips, 1, "one", is);
    assert_string_not_equal(was, is);
}

/* A part that cannot be read may hold a kernel of the same name: then nothing is known. */
static void test_compressed_code_is_not_known(void **state)
{
    (void)state;
    struct buf file;
    put_library(&file, &plain, 1);
    for (size_t i = file.len; i-- > sizeof(Elf64_Ehdr);) {
        if (memcmp(file.data + i, ELFMAG, SELFMAG) != 0)
            continue;
        memcpy(file.data + i, "\x28\xb5\x2f\xfd", SELFMAG);
        break;
    }
    struct machine_code *m = read_bytes(file.data, file.len);
    assert_int_equal(machine_code_kernels(m), 0);
    machine_code_free(m);
    buf_release(&file);
}

/* Whatever a file says of itself, nothing outside of it is read: the sanitizers watch. */
static void test_broken_files(void **state)
{
    (void)state;
    struct buf file;
    char hex[65];
    put_library(&file, &plain, 1);
    for (size_t n = 0; n < file.len; n += 7)
        machine_code_free(read_bytes(file.data, n));
    for (size_t i = 0; i < file.len; i++) {
        char was = file.data[i];
        file.data[i] = (char)(was ^ 0x80);
        struct machine_code *m = read_bytes(file.data, file.len);
        machine_code_hash(m, "one", hex);
        machine_code_free(m);
        file.data[i] = was;
    }
    buf_release(&file);
}

static void test_other_files(void **state)
{
    (void)state;
    struct machine_code *m;
    struct gate_error err;
    assert_int_equal(machine_code_read("/nowhere/x.so", &m, &err), GATE_IO);
    m = read_bytes("#!/bin/sh\n", 10);
    assert_int_equal(machine_code_kernels(m), 0);
    machine_code_free(m);
    assert_int_equal(machine_code_read("/proc/self/exe", &m, &err), GATE_OK);
    assert_int_equal(machine_code_kernels(m), 0);
    machine_code_free(m);
}

static void test_what_nvcc_makes(void **state)
{
    (void)state;
    char path[512];
    struct machine_code *m;
    struct gate_error err;
    snprintf(path, sizeof path, "%s/lib/kernel-gate/libours.so", getenv("KERNEL_GATE_BUILD"));
    if (access(path, R_OK))
        skip(); /* a build without CUDA */
    assert_int_equal(machine_code_read(path, &m, &err), GATE_OK);
    assert_true(machine_code_kernels(m) >= 50);
    machine_code_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_are_found),
        cmocka_unit_test(test_what_changes_a_kernel),
        cmocka_unit_test(test_names_are_no_code),
        cmocka_unit_test(test_each_architecture_counts),
        cmocka_unit_test(test_compressed_code_is_not_known),
        cmocka_unit_test(test_broken_files),
        cmocka_unit_test(test_other_files),
        cmocka_unit_test(test_what_nvcc_makes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
