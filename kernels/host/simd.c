/* SPDX-License-Identifier: Apache-2.0 */
/* simd.c: which instruction set to use. */
#include "kernels/host/simd.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>

/* Asked of the processor itself: not every compiler's __builtin_cpu_supports knows the name. */
static bool has_f16c(void)
{
    unsigned eax, ebx, ecx, edx;
    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C);
}

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
}

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

static bool has_generic(void)
{
    return true;
}

const struct simd *simd_select(const char *name)
{
    static const struct {
        const struct simd *simd;
        bool (*present)(void);
    } known[] = {
#if defined(__x86_64__)
        {&simd_avx512, has_avx512},
        {&simd_avx2, has_avx2},
#endif
        {&simd_generic, has_generic},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if ((!name || strcmp(name, known[i].simd->name) == 0) && known[i].present())
            return known[i].simd;
    return NULL;
}
