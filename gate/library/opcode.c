/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/library/machine_code.h"

#include <stddef.h>
#include <string.h>

static const struct opcode {
    const char *name;
    bool work;
    const char *meaning;
} opcodes[] = {
    {"PREEXIT", true, "lets the next launch start early"},
    {"ACQBULK", true, "waits for the launch before it, after an early start"},
    {"HGMMA", true, "matrix product of a warpgroup, 16-bit or TF32"},
    {"QGMMA", true, "matrix product of a warpgroup, fp8"},
    {"IGMMA", true, "matrix product of a warpgroup, int8"},
    {"BGMMA", true, NULL},
    {"HMMA", true, "matrix product of a warp, 16-bit or TF32"},
    {"IMMA", true, NULL},
    {"QMMA", true, NULL},
    {"DMMA", true, NULL},
    {"FFMA", true, "fp32 multiply-add"},
    {"FFMA2", true, NULL},
    {"FMUL", true, NULL},
    {"FADD", true, NULL},
    {"HFMA2", true, NULL},
    {"HMUL2", true, NULL},
    {"DFMA", true, NULL},
    {"MUFU", true, "exponential, reciprocal or another special function"},
    {"SHFL", true, "exchanges values within a warp"},
    {"LDG", true, "loads from global memory"},
    {"STG", true, "stores to global memory"},
    {"LDGSTS", true, "copies from global to shared memory"},
    {"UTMALDG", true, "loads a tile by the tensor memory accelerator"},
    {"UTMASTG", true, "stores a tile by the tensor memory accelerator"},
    {"UBLKCP", true, "copies a block of memory in bulk"},
    {"LDS", true, "loads from shared memory"},
    {"STS", true, "stores to shared memory"},
    {"LDSM", true, NULL},
    {"STSM", true, NULL},
    {"LDL", true, "loads a spilled register or a local array"},
    {"STL", true, "stores a spilled register or a local array"},
    {"ATOM", true, NULL},
    {"ATOMG", true, NULL},
    {"ATOMS", true, NULL},
    {"RED", true, NULL},
    {"REDG", true, NULL},
    {"BAR", true, "barrier of a block"},
    {"SYNCS", true, "arrives or waits at a barrier in shared memory (mbarrier)"},
    {"MEMBAR", true, "waits until memory operations are visible"},
    {"UCGABAR_WAIT", true, "barrier of a cluster"},
    {"ISETP", false, "compares integers, as for a bound or a mask"},
    {"FSEL", false, "selects one of two values, as for a mask"},
    {"P2R", false, "moves predicates to a register, as for a mask"},
    {"BRA", false, "branch"},
};

static const struct opcode *find(const char *name)
{
    for (size_t i = 0; i < sizeof opcodes / sizeof *opcodes; i++)
        if (!strcmp(opcodes[i].name, name))
            return &opcodes[i];
    return NULL;
}

const char *opcode_meaning(const char *opcode)
{
    const struct opcode *o = find(opcode);
    return o ? o->meaning : NULL;
}

bool opcode_is_work(const char *opcode)
{
    const struct opcode *o = find(opcode);
    return o && o->work;
}
