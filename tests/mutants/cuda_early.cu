/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA: libraries that change the device before their first launch; $GATE_MUTANT says when. */
#include <cuda_runtime.h>
#include <string.h>

#include "kernels/problem.h"

#define WRAP_ADJUST change_later
static void change_later(struct kg_kernel *k);
#include "tests/mutants/wrap.h"

static bool is_chosen(const char *name)
{
    const char *chosen = getenv("GATE_MUTANT");
    return chosen && !strcmp(chosen, name);
}

static bool set_limit(enum cudaLimit limit, size_t bytes)
{
    return cudaDeviceSetLimit(limit, bytes) == cudaSuccess;
}

__attribute__((constructor)) static void when_loaded(void)
{
    if (is_chosen("printf_in_dlopen") && !set_limit(cudaLimitPrintfFifoSize, (size_t)4 << 20))
        abort();
}

static enum kg_status prepare(const struct kg_problem *, const struct kg_device *, void **)
{
    return set_limit(cudaLimitPersistingL2CacheSize, (size_t)4 << 20) ? KG_OK : KG_LAUNCH_FAILED;
}

static void change_later(struct kg_kernel *k)
{
    if (is_chosen("l2_in_prepare"))
        k->prepare = prepare;
}

static enum kg_status wrap_launch(const struct kg_problem *p, const struct kg_args *args)
{
    return wrap_inner(p, args);
}
