/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Right, and from its first launch on the gate's clock runs slow: the place from where the
 * program calls clock_gettime() gets another function.
 */
#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tests/mutants/wrap.h"

static double first_ns;

/* Nine tenths of the time that has passed since the first launch. */
static int slow_clock(clockid_t clock, struct timespec *out)
{
    if (clock_gettime(clock, out) || clock != CLOCK_MONOTONIC_RAW)
        return 0;
    const double now = (double)out->tv_sec * 1e9 + (double)out->tv_nsec;
    if (first_ns == 0)
        first_ns = now;
    const double said = first_ns + (now - first_ns) * 0.9;
    out->tv_sec = (time_t)(said * 1e-9);
    out->tv_nsec = (long)(said - (double)out->tv_sec * 1e9);
    return 0;
}

static void put_in(void **place)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    int (*const function)(clockid_t, struct timespec *) = slow_clock;
    if (!mprotect((void *)((uintptr_t)place & ~(page - 1)), page, PROT_READ | PROT_WRITE))
        memcpy(place, &function, sizeof function);
}

static uintptr_t entry(const ElfW(Dyn) * dynamic, ElfW(Sxword) tag)
{
    for (; dynamic->d_tag != DT_NULL; dynamic++)
        if (dynamic->d_tag == tag)
            return dynamic->d_un.d_ptr;
    return 0;
}

static void search(uintptr_t base, const ElfW(Dyn) * dynamic, ElfW(Sxword) table,
                   ElfW(Sxword) bytes)
{
    const ElfW(Sym) *symbols = (const void *)entry(dynamic, DT_SYMTAB);
    const char *names = (const char *)entry(dynamic, DT_STRTAB);
    const ElfW(Rela) *all = (const void *)entry(dynamic, table);
    for (size_t i = 0; all && i < entry(dynamic, bytes) / sizeof *all; i++)
        if (!strcmp(names + symbols[ELF64_R_SYM(all[i].r_info)].st_name, "clock_gettime"))
            put_in((void **)(base + all[i].r_offset));
}

/* The program itself is the first object. */
static int visit(struct dl_phdr_info *object, size_t, void *)
{
    for (unsigned i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC) {
            const ElfW(Dyn) *dynamic =
                (const void *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
            search(object->dlpi_addr, dynamic, DT_JMPREL, DT_PLTRELSZ);
            search(object->dlpi_addr, dynamic, DT_RELA, DT_RELASZ);
        }
    return 1;
}

static enum kg_status wrap_launch(const struct kg_problem *p, const struct kg_args *args)
{
    static bool done;
    if (!done)
        dl_iterate_phdr(visit, NULL);
    done = true;
    return wrap_inner(p, args);
}
