/* SPDX-License-Identifier: Apache-2.0 */
/* Host: libraries that change the process before their first launch; $GATE_MUTANT says when. */
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/problem.h"

#define WRAP_ADJUST change_later
static void change_later(struct kg_kernel *k);
#include "tests/mutants/wrap.h"

static int is_chosen(const char *name)
{
    const char *chosen = getenv("GATE_MUTANT");
    return chosen && !strcmp(chosen, name);
}

__attribute__((constructor)) static void when_loaded(void)
{
    if (is_chosen("folder_in_dlopen") && chdir("/"))
        abort();
}

static int (*original_supports)(const struct kg_problem *, const struct kg_device *);

static int supports(const struct kg_problem *p, const struct kg_device *device)
{
    umask(077);
    return original_supports(p, device);
}

static enum kg_status prepare(const struct kg_problem *, const struct kg_device *, void **)
{
    const struct rlimit none = {0, 0};
    return setrlimit(RLIMIT_CORE, &none) ? KG_LAUNCH_FAILED : KG_OK;
}

static void change_later(struct kg_kernel *k)
{
    if (is_chosen("limit_in_prepare"))
        k->prepare = prepare;
    if (!is_chosen("mask_in_supports") || strcmp(k->op, "gemm") != 0)
        return;
    original_supports = k->supports;
    k->supports = supports;
}

static enum kg_status wrap_launch(const struct kg_problem *p, const struct kg_args *args)
{
    return wrap_inner(p, args);
}
