/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/run/target.h"

#include <glob.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_TIMEOUT_S 60.0

/* Device nodes tell that a GPU is there without opening it, even when its driver is broken: such a
 * machine is refused by the worker rather than measured on its host by accident. */
bool target_has_gpu(void)
{
    glob_t found;
    bool any = !glob("/dev/nvidia[0-9]*", 0, NULL, &found) && found.gl_pathc > 0;
    globfree(&found);
    return any || !access("/dev/dxg", F_OK);
}

enum gate_status target_resolve(const struct target_choice *choice, struct target *t,
                                struct gate_error *err)
{
    /* The vendor's libraries that are shipped; each says itself when what it opens is not there. */
    static const char *const vendors[] = {"libcublas_provider.so", "libcublaslt_provider.so",
                                          "libeager_provider.so", "libcudnn_provider.so"};
    bool any = !choice->device || !strcmp(choice->device, "auto");
    bool host = any ? !target_has_gpu() : !strcmp(choice->device, "host");
    unsigned n = 0;
    if (any && host)
        fprintf(stderr, "gate: no GPU found; using the host device\n");
    snprintf(t->device, sizeof t->device, "%s", !any ? choice->device : host ? "host" : "cuda:0");
    if (choice->library)
        snprintf(t->library, sizeof t->library, "%s", choice->library);
    else
        TRY(paths_library(host ? "libhost.so" : "libours.so", t->library, err));
    for (; n < choice->n_providers; n++)
        t->providers[n] = choice->providers[n];
    const char *slash = strrchr(t->library, '/'), *candidate = slash ? slash + 1 : t->library;
    bool beside = !choice->n_providers && !choice->without_vendors && !host;
    for (unsigned i = 0; beside && i < sizeof vendors / sizeof vendors[0]; i++) {
        if (!strcmp(vendors[i], candidate))
            continue;
        TRY(paths_library(vendors[i], t->provider_paths[n], err));
        t->providers[n] = t->provider_paths[n];
        n++;
    }
    t->options = (struct supervisor_options){
        .worker = choice->worker,
        .wrapper = choice->wrapper,
        .n_wrapper = choice->n_wrapper,
        .wrapper_judges = choice->n_wrapper > 0,
        .device = t->device,
        .library = t->library,
        .providers = t->providers,
        .n_providers = n,
        .untimed = choice->untimed,
        .timeout_s = choice->timeout_s > 0 ? choice->timeout_s : DEFAULT_TIMEOUT_S};
    return GATE_OK;
}

/* ---- the command ---- */

/* What no shell takes for more than itself. */
static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./+:";

/* Appends " --name value", quoted where it has to be; nothing for no value. */
static size_t add_value(char *text, size_t size, size_t used, const char *name, const char *value)
{
    if (!value || used >= size)
        return used;
    const char *quote = value[strspn(value, plain)] ? "'" : "";
    return used +
           (size_t)snprintf(text + used, size - used, " --%s %s%s%s", name, quote, value, quote);
}

void reproduce_command(const struct reproduce *r, const char *case_id, bool timed, char *text,
                       size_t size)
{
    size_t used = (size_t)snprintf(text, size, "gate %s", timed ? "run" : "verify");
    used = add_value(text, size, used, "device", r->device);
    used = add_value(text, size, used, "suite", r->suite);
    used = add_value(text, size, used, "library", r->library);
    used = add_value(text, size, used, "filter", case_id);
    if (!timed && r->tier != VERIFY_COMMIT)
        used = add_value(text, size, used, "tier", verify_tier_name(r->tier));
    if (used < size)
        snprintf(text + used, size - used, " --seed %016" PRIx64, r->seed);
}
