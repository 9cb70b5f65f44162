/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/run/target.h"

#include <glob.h>
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

static void choose_device(const char *wanted, char *device, size_t size)
{
    if (wanted && strcmp(wanted, "auto") != 0) {
        snprintf(device, size, "%s", wanted);
        return;
    }
    bool gpu = target_has_gpu();
    snprintf(device, size, "%s", gpu ? "cuda:0" : "host");
    if (!gpu)
        fprintf(stderr, "gate: no GPU found; using the host device\n");
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The vendor's libraries that are shipped, but for one that is the candidate itself; each says
 * itself when what it opens is not there. */
static enum gate_status add_vendors(struct target *t, unsigned *n, struct gate_error *err)
{
    static const char *const vendors[] = {"libcublas_provider.so", "libcublaslt_provider.so",
                                          "libeager_provider.so", "libcudnn_provider.so"};
    enum gate_status status = GATE_OK;
    for (unsigned i = 0; i < sizeof vendors / sizeof vendors[0] && !status; i++) {
        if (!strcmp(vendors[i], name_of(t->library)))
            continue;
        status = paths_library(vendors[i], t->provider_paths[*n], err);
        t->providers[*n] = t->provider_paths[*n];
        (*n)++;
    }
    return status;
}

enum gate_status target_resolve(const struct target_choice *choice, struct target *out,
                                struct gate_error *err)
{
    struct target *t = out;
    unsigned n = 0;
    enum gate_status status = GATE_OK;
    choose_device(choice->device, t->device, sizeof t->device);
    bool host = !strcmp(t->device, "host");
    if (choice->library)
        snprintf(t->library, sizeof t->library, "%s", choice->library);
    else
        status = paths_library(host ? "libhost.so" : "libours.so", t->library, err);
    for (; n < choice->n_providers; n++)
        t->providers[n] = choice->providers[n];
    if (!choice->n_providers && !choice->without_vendors && !host && !status)
        status = add_vendors(t, &n, err);
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
    return status;
}
