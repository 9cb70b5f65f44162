/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/library/needs.h"

#include <stdio.h>
#include <string.h>

#include "gate/base/file.h"
#include "gate/base/utf8.h"
#include "gate/library/manifest.h"

#define LIBRARY_BYTES_MAX ((size_t)256 << 20)

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
static const char *find_other(struct bytes elf)
{
    Elf64_Shdr s;
    struct bytes entries;
    if (manifest_is(elf)) /* it needs no loader */
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

bool needs_only_system(const char *path, char *other, size_t size)
{
    struct buf bytes;
    struct gate_error err;
    buf_init(&bytes, LIBRARY_BYTES_MAX);
    bool read = !file_read(path, &bytes, &err);
    const char *found = "(a file that cannot be read)";
    if (read)
        found = find_other((struct bytes){(const unsigned char *)bytes.data, bytes.len});
    if (found)
        utf8_print(other, size, "%.150s", found);
    buf_release(&bytes);
    return !found;
}
