/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elf.h: sections of ELF files of 64 bits, little-endian. Nothing in the file is believed before it
 * was compared with the bounds of what it lies in: false or NULL is what does not lie there.
 */
#ifndef GATE_LIBRARY_ELF_H
#define GATE_LIBRARY_ELF_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes {
    const unsigned char *at;
    size_t n;
};

/* Copies a struct out, since nothing in a file need be aligned. */
bool bytes_take(struct bytes b, uint64_t offset, void *to, size_t n);
bool bytes_part(struct bytes b, uint64_t offset, uint64_t n, struct bytes *out);

bool elf_header(struct bytes elf, Elf64_Ehdr *h);
bool elf_section(struct bytes elf, size_t i, Elf64_Shdr *s);
bool elf_content(struct bytes elf, const Elf64_Shdr *s, struct bytes *out);

/* A text of a table of texts; NULL: none begins there, or it does not end. */
const char *elf_text(struct bytes elf, size_t table, uint64_t offset);

/* The first section of that name. */
bool elf_find(struct bytes elf, const char *name, Elf64_Shdr *s);

#endif
