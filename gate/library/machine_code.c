/* SPDX-License-Identifier: Apache-2.0 */
/* machine_code.c: see machine_code.h. Nothing in the file is believed before it was compared with
 * the bounds of what it lies in. */
#include "gate/library/machine_code.h"

#include <elf.h>
#include <sha2.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "gate/base/alloc.h"

#define FILE_MAX_BYTES ((size_t)1 << 30)
#define KERNELS_MAX ((size_t)1 << 16)
#define FATBIN_MAGIC 0xba55ed50u
#define FATBIN_ELF 2       /* kind of an entry; 1 is PTX */
#define FATBIN_ZSTD 0x8000 /* of the flags: compressed, as by nvcc -compress-all of CUDA 13 */
#define FATBIN_LZ4 0x2000  /* as by that of CUDA 12 or in the mode "speed", which is not opened */
#define CUBIN_ENTRY 0x10   /* in st_other: a function that the host may launch */
#define CUBIN_MACHINE 190  /* EM_CUDA */

struct machine_code {
    struct piece piece;
    struct machine_kernel *kernels;
    size_t n, cap;
    void **unpacked; /* cubins that were compressed */
    size_t n_unpacked, unpacked_bytes;
    bool unread; /* there is GPU code that could not be taken apart */
};

struct fatbin_header {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes; /* of the entries behind it */
};

struct fatbin_entry {
    uint16_t kind, version;
    uint32_t header_bytes;
    uint64_t bytes; /* of what follows the header */
};

/* Behind the entry above, in a header of 64 bytes or more. */
struct fatbin_packing {
    uint32_t bytes; /* compressed; what follows fills up to a multiple of 8 */
    uint32_t other[5];
    uint64_t flags, unknown, unpacked_bytes;
};

/* ---- ELF ---- */

bool bytes_take(struct bytes b, uint64_t offset, void *to, size_t n)
{
    if (offset > b.n || n > b.n - offset)
        return false;
    memcpy(to, b.at + offset, n);
    return true;
}

static bool bytes_part(struct bytes b, uint64_t offset, uint64_t n, struct bytes *out)
{
    if (offset > b.n || n > b.n - offset)
        return false;
    *out = (struct bytes){b.at + offset, (size_t)n};
    return true;
}

static bool elf_header(struct bytes elf, Elf64_Ehdr *h)
{
    return bytes_take(elf, 0, h, sizeof *h) && memcmp(h->e_ident, ELFMAG, SELFMAG) == 0 &&
           h->e_ident[EI_CLASS] == ELFCLASS64 && h->e_ident[EI_DATA] == ELFDATA2LSB &&
           h->e_shentsize == sizeof(Elf64_Shdr);
}

static bool elf_section(struct bytes elf, size_t i, Elf64_Shdr *s)
{
    Elf64_Ehdr h;
    return elf_header(elf, &h) && i < h.e_shnum && h.e_shoff < elf.n &&
           bytes_take(elf, h.e_shoff + i * sizeof *s, s, sizeof *s);
}

bool elf_content(struct bytes elf, const Elf64_Shdr *s, struct bytes *out)
{
    if (s->sh_type == SHT_NOBITS) {
        *out = (struct bytes){elf.at, 0};
        return true;
    }
    return bytes_part(elf, s->sh_offset, s->sh_size, out);
}

const char *elf_text(struct bytes elf, size_t table, uint64_t offset)
{
    Elf64_Shdr s;
    struct bytes texts;
    if (!elf_section(elf, table, &s) || !elf_content(elf, &s, &texts) || offset >= texts.n ||
        !memchr(texts.at + offset, '\0', texts.n - offset))
        return NULL;
    return (const char *)texts.at + offset;
}

bool elf_find(struct bytes elf, const char *name, Elf64_Shdr *s)
{
    Elf64_Ehdr h;
    if (!elf_header(elf, &h))
        return false;
    for (size_t i = 0; elf_section(elf, i, s); i++) {
        const char *own = elf_text(elf, h.e_shstrndx, s->sh_name);
        if (own && strcmp(own, name) == 0)
            return true;
    }
    return false;
}

/* ---- cubins ---- */

static bool open_cubin(struct bytes cubin, Elf64_Shdr *table)
{
    Elf64_Ehdr h;
    return elf_header(cubin, &h) && h.e_machine == CUBIN_MACHINE &&
           elf_find(cubin, ".symtab", table);
}

/* The first kernel of a cubin from symbol i on, whose name may be NULL; false: there is none. */
static bool next_kernel(struct bytes cubin, const Elf64_Shdr *table, size_t i,
                        struct machine_kernel *out)
{
    Elf64_Sym symbol;
    struct bytes symbols;
    if (!elf_content(cubin, table, &symbols))
        return false;
    for (; i < symbols.n / sizeof symbol &&
           bytes_take(symbols, i * sizeof symbol, &symbol, sizeof symbol);
         i++) {
        if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || !(symbol.st_other & CUBIN_ENTRY))
            continue;
        const char *name = elf_text(cubin, table->sh_link, symbol.st_name);
        *out = (struct machine_kernel){name, cubin, symbol.st_shndx, i};
        return true;
    }
    return false;
}

bool machine_code_find(struct bytes cubin, const char *name, struct machine_kernel *out)
{
    Elf64_Shdr table;
    if (!open_cubin(cubin, &table))
        return false;
    for (size_t i = 0; next_kernel(cubin, &table, i, out); i = out->symbol + 1)
        if (out->name && !strcmp(out->name, name))
            return true;
    return false;
}

static bool add_cubin(struct machine_code *m, struct bytes cubin)
{
    Elf64_Shdr table;
    struct machine_kernel k;
    if (!open_cubin(cubin, &table))
        return false;
    for (size_t i = 0; next_kernel(cubin, &table, i, &k); i = k.symbol + 1) {
        if (!k.name || m->n == KERNELS_MAX)
            return false;
        if (m->n == m->cap) {
            m->cap = m->cap ? 2 * m->cap : 64;
            m->kernels = xrealloc(m->kernels, m->cap, sizeof *m->kernels);
        }
        m->kernels[m->n++] = k;
    }
    return true;
}

/* ---- the container ---- */

/* In place of compressed content what it holds; content that is not compressed stays. False: it
 * cannot be opened. */
static bool unpack(struct machine_code *m, struct bytes header, struct bytes *content)
{
    struct fatbin_packing p;
    if (!bytes_take(header, sizeof(struct fatbin_entry), &p, sizeof p) ||
        !(p.flags & (FATBIN_ZSTD | FATBIN_LZ4)))
        return true;
    if (p.flags & FATBIN_LZ4 || !p.unpacked_bytes || p.bytes > content->n ||
        p.unpacked_bytes > FILE_MAX_BYTES - m->unpacked_bytes)
        return false;
    void *to = malloc((size_t)p.unpacked_bytes);
    if (!to)
        return false;
    m->unpacked = xrealloc(m->unpacked, m->n_unpacked + 1, sizeof *m->unpacked);
    m->unpacked[m->n_unpacked++] = to;
    m->unpacked_bytes += (size_t)p.unpacked_bytes;
    size_t n = ZSTD_decompress(to, (size_t)p.unpacked_bytes, content->at, p.bytes);
    *content = (struct bytes){to, (size_t)p.unpacked_bytes};
    return n == p.unpacked_bytes;
}

/* All entries of one container; *bytes: its length with its header. */
static bool add_container(struct machine_code *m, struct bytes b, size_t *bytes)
{
    struct fatbin_header h;
    struct bytes entries, header, content;
    if (!bytes_take(b, 0, &h, sizeof h) || h.magic != FATBIN_MAGIC || h.version != 1 ||
        h.header_bytes < sizeof h || !bytes_part(b, h.header_bytes, h.bytes, &entries))
        return false;
    *bytes = h.header_bytes + (size_t)h.bytes;
    struct fatbin_entry e;
    for (size_t at = 0; at < entries.n; at += e.header_bytes + (size_t)e.bytes) {
        if (!bytes_take(entries, at, &e, sizeof e) || e.header_bytes < sizeof e ||
            e.header_bytes > entries.n - at || !bytes_part(entries, at, e.header_bytes, &header) ||
            !bytes_part(entries, at + e.header_bytes, e.bytes, &content))
            return false;
        if (e.kind == FATBIN_ELF && (!unpack(m, header, &content) || !add_cubin(m, content)))
            return false;
    }
    return true;
}

/* Containers stand one behind the other, each at a multiple of 8; zeros fill the gaps. */
static bool add_containers(struct machine_code *m, struct bytes section)
{
    size_t at = 0;
    while (at < section.n) {
        struct bytes rest = {section.at + at, section.n - at};
        uint32_t word;
        size_t bytes = 8;
        if (rest.n < 8)
            break;
        memcpy(&word, rest.at, sizeof word);
        if (word != 0 && !add_container(m, rest, &bytes))
            return false;
        at += (bytes + 7) / 8 * 8;
    }
    return true;
}

/* The code in the shared object and in the files that belong to it; a file that is neither a cubin
 * nor a container of cubins has none that is known. */
static bool add_piece(struct machine_code *m)
{
    const struct piece *p = &m->piece;
    const struct bytes object = {(const unsigned char *)p->bytes.data, p->object_bytes};
    struct bytes section;
    Elf64_Shdr s;
    Elf64_Ehdr h;
    if (elf_find(object, ".nv_fatbin", &s) &&
        (!elf_content(object, &s, &section) || !add_containers(m, section)))
        return false;
    for (unsigned i = 0; i < p->n_files; i++) {
        const struct bytes file = {p->files[i].data, (size_t)p->files[i].bytes};
        uint32_t magic = 0;
        bytes_take(file, 0, &magic, sizeof magic);
        if (elf_header(file, &h) && h.e_machine == CUBIN_MACHINE ? !add_cubin(m, file)
            : magic == FATBIN_MAGIC                              ? !add_containers(m, file)
                                                                 : false)
            return false;
    }
    return true;
}

enum gate_status machine_code_read(const char *path, struct machine_code **out,
                                   struct gate_error *err)
{
    struct machine_code *m = xcalloc(1, sizeof *m);
    enum gate_status status = piece_read(path, FILE_MAX_BYTES, &m->piece, err);
    if (status) {
        machine_code_free(m);
        return status;
    }
    if (!add_piece(m)) {
        m->n = 0; /* a part that cannot be read may hold another kernel of the same name */
        m->unread = true;
    }
    *out = m;
    return GATE_OK;
}

void machine_code_free(struct machine_code *m)
{
    if (!m)
        return;
    piece_release(&m->piece);
    for (size_t i = 0; i < m->n_unpacked; i++)
        free(m->unpacked[i]);
    free(m->unpacked);
    free(m->kernels);
    free(m);
}

size_t machine_code_kernels(const struct machine_code *m, const struct machine_kernel **out)
{
    *out = m->kernels;
    return m->n;
}

const struct machine_kernel *machine_code_on(const struct machine_code *m, const char *name,
                                             unsigned architecture)
{
    const struct machine_kernel *found = NULL;
    unsigned newest = 0;
    for (const struct machine_kernel *k = m->kernels; k < m->kernels + m->n; k++) {
        const unsigned sm = resources_of(k).architecture;
        if (strcmp(k->name, name) != 0 || sm / 10 != architecture / 10 || sm > architecture ||
            sm < newest)
            continue;
        newest = sm;
        found = k;
    }
    return found;
}

bool machine_code_is_read(const struct machine_code *m)
{
    return !m->unread;
}

/* ---- hashes ---- */

/* The sections that go to the device with this kernel. What belongs to one kernel names its code as
 * the section that it informs about; what names none is there for all. */
static bool add_to_hash(SHA2_CTX *context, const struct machine_kernel *k)
{
    unsigned char is_kernel[UINT16_MAX + 1] = {0}; /* which sections are the code of one */
    Elf64_Ehdr h;
    Elf64_Shdr s;
    struct machine_kernel any;
    struct bytes content;
    if (!elf_header(k->cubin, &h))
        return false;
    if (elf_find(k->cubin, ".symtab", &s))
        for (size_t i = 0; next_kernel(k->cubin, &s, i, &any); i = any.symbol + 1)
            is_kernel[any.text] = true;
    SHA256Update(context, (const uint8_t *)&h.e_flags, sizeof h.e_flags); /* the architecture */
    for (size_t i = 0; elf_section(k->cubin, i, &s); i++) {
        const bool own = s.sh_flags & SHF_EXECINSTR ? i == k->text || !is_kernel[i]
                                                    : s.sh_info == k->text || s.sh_info == 0;
        if (!(s.sh_flags & SHF_ALLOC) || !own)
            continue;
        const uint64_t about[] = {s.sh_type, s.sh_flags, s.sh_size, i == k->text};
        if (!elf_content(k->cubin, &s, &content))
            return false;
        SHA256Update(context, (const uint8_t *)about, sizeof about);
        SHA256Update(context, content.at, content.n);
    }
    return true;
}

bool machine_kernel_hash(const struct machine_kernel *k, char hex[65])
{
    SHA2_CTX context;
    SHA256Init(&context);
    bool known = add_to_hash(&context, k);
    SHA256End(&context, hex);
    return known;
}

/* Of two kernels of one name for the same GPUs nobody knows which one was launched. Is kernel i one
 * of such, and another than the one before it? */
static bool is_confused(const struct machine_code *m, size_t i)
{
    Elf64_Ehdr own, other;
    char hex[2][65];
    for (size_t k = i; k-- > 0;)
        if (!strcmp(m->kernels[k].name, m->kernels[i].name) &&
            elf_header(m->kernels[k].cubin, &other) && elf_header(m->kernels[i].cubin, &own) &&
            own.e_flags == other.e_flags)
            return !machine_kernel_hash(&m->kernels[k], hex[0]) ||
                   !machine_kernel_hash(&m->kernels[i], hex[1]) || strcmp(hex[0], hex[1]) != 0;
    return false;
}

bool machine_code_hash(const struct machine_code *m, const char *name, char hex[65])
{
    SHA2_CTX context;
    bool found = false;
    SHA256Init(&context);
    for (size_t i = 0; i < m->n; i++) {
        if (strcmp(m->kernels[i].name, name) != 0)
            continue;
        found = true;
        if (is_confused(m, i) || !add_to_hash(&context, &m->kernels[i]))
            return false;
    }
    SHA256End(&context, hex);
    return found;
}

/* ---- a whole file ---- */

/* Sections that are mapped, and more than a note about the build; all of a manifest. */
static bool add_host_code(SHA2_CTX *context, struct bytes file)
{
    Elf64_Ehdr h;
    Elf64_Shdr s;
    struct bytes content;
    if (manifest_is(file)) {
        SHA256Update(context, file.at, file.n);
        return true;
    }
    if (!elf_header(file, &h) || !h.e_shnum)
        return false;
    for (size_t i = 0; elf_section(file, i, &s); i++) {
        const char *name = elf_text(file, h.e_shstrndx, s.sh_name);
        if (!(s.sh_flags & SHF_ALLOC) || s.sh_type == SHT_NOTE || !name ||
            !strcmp(name, ".nv_fatbin"))
            continue;
        const uint64_t about[] = {s.sh_type, s.sh_flags, s.sh_addr, s.sh_size};
        if (!elf_content(file, &s, &content))
            return false;
        SHA256Update(context, (const uint8_t *)about, sizeof about);
        SHA256Update(context, content.at, content.n);
    }
    return true;
}

enum gate_status machine_code_of_file(const char *path, char hex[65], struct gate_error *err)
{
    struct machine_code *m;
    SHA2_CTX context;
    TRY(machine_code_read(path, &m, err));
    SHA256Init(&context);
    const struct piece *p = &m->piece;
    bool known =
        !m->unread && add_host_code(&context, (struct bytes){(const unsigned char *)p->bytes.data,
                                                             p->object_bytes});
    for (size_t i = 0; i < m->n && known; i++)
        known = add_to_hash(&context, &m->kernels[i]);
    for (unsigned i = 0; i < p->n_files; i++) {
        SHA256Update(&context, (const uint8_t *)p->files[i].name, strlen(p->files[i].name) + 1);
        SHA256Update(&context, p->files[i].data, (size_t)p->files[i].bytes);
    }
    SHA256End(&context, hex);
    machine_code_free(m);
    return known ? GATE_OK
                 : gate_fail(err, GATE_NO_VERDICT, "the machine code of '%s' cannot be read", path);
}

/* ---- resources ---- */

#define FORM_BYTE 2  /* an attribute whose value is a byte of its head */
#define FORM_SHORT 3 /* of two bytes there */
#define FORM_SIZED 4
#define ATTRIBUTE_STACK 0x11
#define ATTRIBUTE_PARAMETER 0x17
#define ATTRIBUTE_PARAMETERS 0x19 /* bytes of all */
#define ATTRIBUTE_REGISTERS 0x2f
#define ATTRIBUTE_BARRIERS 0x4c
#define ABI_OF_CUDA_13 8
#define RESERVED_SHARED 1024 /* CUDA's own, where there is a section .nv.shared.reserved.0 */
#define INSTRUCTION_BYTES 16 /* from sm_70 on */
#define OPCODE_STL 0x387
#define OPCODE_LDL 0x983

const char *const resource_names[RESOURCE_COUNT] = {
    "registers", "stack", "local_stores", "local_loads", "shared", "barriers", "code"};

struct attribute {
    uint8_t form, number;
    uint16_t value; /* of FORM_SIZED how many bytes follow */
};

/* What an attribute says of a function: its symbol and a figure. */
struct figure {
    uint32_t symbol, value;
};

struct parameter {
    uint32_t unused;
    uint16_t place, offset;
    uint32_t packed; /* its bytes, from bit 18 on */
};

/* What attributes say of a kernel's parameters. */
struct parameters {
    unsigned end, all; /* where the last one ends, and how many bytes there are */
    uint64_t seen;     /* a bit for each place */
    bool bad;
};

static void read_parameter(struct bytes content, struct parameters *p, struct resources *out)
{
    struct parameter one;
    if (!bytes_take(content, 0, &one, sizeof one) || one.place >= CUBIN_PARAMETERS_MAX) {
        p->bad = true;
        return;
    }
    const uint16_t bytes = (uint16_t)(one.packed >> 18);
    p->seen |= (uint64_t)1 << one.place;
    out->parameter_bytes[one.place] = bytes;
    if (one.offset + (unsigned)bytes > p->end)
        p->end = one.offset + (unsigned)bytes;
}

/* `own`: they are of this kernel alone. */
static void read_attributes(struct bytes b, const struct machine_kernel *k, bool own,
                            struct parameters *p, struct resources *out)
{
    struct attribute a;
    for (size_t at = 0; bytes_take(b, at, &a, sizeof a);) {
        struct bytes content = {0};
        struct figure f;
        at += sizeof a;
        if (a.form == FORM_SIZED && !bytes_part(b, at, a.value, &content)) {
            p->bad |= own;
            return;
        }
        at += (content.n + 3) / 4 * 4;
        if (a.form == FORM_BYTE && a.number == ATTRIBUTE_BARRIERS)
            out->of[RESOURCE_BARRIERS] = a.value & 0xff;
        if (own && a.form == FORM_SHORT && a.number == ATTRIBUTE_PARAMETERS)
            p->all = a.value;
        if (own && a.form == FORM_SIZED && a.number == ATTRIBUTE_PARAMETER)
            read_parameter(content, p, out);
        if (a.form != FORM_SIZED || !bytes_take(content, 0, &f, sizeof f) || f.symbol != k->symbol)
            continue;
        if (a.number == ATTRIBUTE_REGISTERS)
            out->of[RESOURCE_REGISTERS] = f.value;
        if (a.number == ATTRIBUTE_STACK)
            out->of[RESOURCE_STACK] = f.value;
    }
}

static void take_section(const struct machine_kernel *k, size_t i, const Elf64_Shdr *s,
                         const char *name, struct parameters *p, struct resources *out)
{
    struct bytes content;
    bool own = s->sh_info == k->text;
    if (!elf_content(k->cubin, s, &content))
        return;
    if (i == k->text) {
        static const unsigned char widths[8] = {1, 1, 2, 2, 4, 8, 16, 0}; /* by bits 73 to 75 */
        uint64_t words[2];
        out->of[RESOURCE_CODE] = (int64_t)content.n;
        if (out->architecture < 70)
            return;
        out->of[RESOURCE_LOCAL_STORES] = out->of[RESOURCE_LOCAL_LOADS] = 0;
        for (size_t at = 0; bytes_take(content, at, words, sizeof words); at += INSTRUCTION_BYTES) {
            const unsigned opcode = words[0] & 0xfff, width = widths[words[1] >> 9 & 7];
            if (opcode == OPCODE_STL)
                out->of[RESOURCE_LOCAL_STORES] += width;
            if (opcode == OPCODE_LDL)
                out->of[RESOURCE_LOCAL_LOADS] += width;
        }
    } else if (!strcmp(name, ".nv.info") || (own && !strncmp(name, ".nv.info.", 9))) {
        read_attributes(content, k, own, p, out);
    } else if (own && !strncmp(name, ".nv.shared.", 11) && s->sh_size <= UINT32_MAX) {
        out->of[RESOURCE_SHARED] = (int64_t)s->sh_size;
    }
}

struct resources resources_of(const struct machine_kernel *k)
{
    struct resources r = {0};
    Elf64_Ehdr h;
    Elf64_Shdr s;
    struct parameters p = {.bad = false};
    bool reserved = false;
    int n = 0;
    r.n_parameters = -1;
    for (size_t i = 0; i < RESOURCE_COUNT; i++)
        r.of[i] = -1;
    if (!elf_header(k->cubin, &h))
        return r;
    bool known = h.e_ident[EI_ABIVERSION] >= ABI_OF_CUDA_13;
    r.architecture = (known ? h.e_flags >> 8 : h.e_flags) & 0xff;
    r.of[RESOURCE_SHARED] = 0;
    if (known)
        r.of[RESOURCE_BARRIERS] = 0;
    for (size_t i = 1; elf_section(k->cubin, i, &s); i++) {
        const char *name = elf_text(k->cubin, h.e_shstrndx, s.sh_name);
        if (!name)
            continue;
        reserved |= !strcmp(name, ".nv.shared.reserved.0");
        take_section(k, i, &s, name, &p, &r);
    }
    if (known && reserved && r.of[RESOURCE_SHARED] >= RESERVED_SHARED)
        r.of[RESOURCE_SHARED] -= RESERVED_SHARED;
    while (p.seen >> n & 1)
        n++;
    if (!p.bad && !(p.seen >> n) && p.end == p.all) /* none is left out */
        r.n_parameters = n;
    return r;
}
