/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/library/machine_code.h"

#include <string.h>

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
