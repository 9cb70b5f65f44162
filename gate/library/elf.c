/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/library/machine_code.h"

#include <string.h>

bool bytes_take(struct bytes b, uint64_t offset, void *to, size_t n)
{
    if (offset > b.n || n > b.n - offset)
        return false;
    memcpy(to, b.at + offset, n);
    return true;
}

bool bytes_part(struct bytes b, uint64_t offset, uint64_t n, struct bytes *out)
{
    if (offset > b.n || n > b.n - offset)
        return false;
    *out = (struct bytes){b.at + offset, (size_t)n};
    return true;
}

bool elf_header(struct bytes elf, Elf64_Ehdr *h)
{
    return bytes_take(elf, 0, h, sizeof *h) && memcmp(h->e_ident, ELFMAG, SELFMAG) == 0 &&
           h->e_ident[EI_CLASS] == ELFCLASS64 && h->e_ident[EI_DATA] == ELFDATA2LSB &&
           h->e_shentsize == sizeof(Elf64_Shdr);
}

bool elf_section(struct bytes elf, size_t i, Elf64_Shdr *s)
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
