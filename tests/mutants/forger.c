/* SPDX-License-Identifier: Apache-2.0 */
/* Right, but when it is opened it writes into what the gate remembers of earlier runs. */
#include "tests/mutants/wrap.h"

static enum kg_status wrap_launch(const struct kg_problem *p, const struct kg_args *args)
{
    return wrap_inner(p, args);
}

__attribute__((constructor)) static void forge(void)
{
    char path[4096];
    const char *cache = getenv("GATE_CACHE");
    snprintf(path, sizeof path, "%s/memory/found.json", cache ? cache : ".");
    FILE *file = fopen(path, "a");
    if (file) {
        fputs(" ", file);
        fclose(file);
    }
}
