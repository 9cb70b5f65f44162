/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/run/supervisor.h"

#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gate/base/utf8.h"
#include "gate/cases/op_file.h"

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

enum gate_status target_resolve(const struct supervisor_options *choice, bool vendors,
                                struct target *t, struct gate_error *err)
{
    /* The vendor's libraries that are shipped; each says itself when what it opens is not there. */
    static const char *const files[] = {"libcublas_provider.so", "libcublaslt_provider.so",
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
        TRY(paths_installed("lib/kernel-gate", host ? "libhost.so" : "libours.so", t->library,
                            err));
    for (; n < choice->n_providers; n++)
        t->providers[n] = choice->providers[n];
    const char *slash = strrchr(t->library, '/'), *candidate = slash ? slash + 1 : t->library;
    vendors &= !choice->n_providers && !host;
    for (unsigned i = 0; vendors && i < sizeof files / sizeof *files; i++) {
        if (!strcmp(files[i], candidate))
            continue;
        TRY(paths_installed("lib/kernel-gate", files[i], t->provider_paths[n], err));
        t->providers[n] = t->provider_paths[n];
        n++;
    }
    t->options = *choice;
    t->options.device = t->device;
    t->options.library = t->library;
    t->options.providers = t->providers;
    t->options.n_providers = n;
    if (!(choice->timeout_s > 0))
        t->options.timeout_s = DEFAULT_TIMEOUT_S;
    return GATE_OK;
}

/* ---- the command of a worker ---- */

struct words {
    char *list[9 + SUPERVISOR_WRAPPER_MAX + 2 * (ARMS_MAX + PROTOCOL_BASELINES_MAX + OPS_OWN_MAX)];
    unsigned n;
};

static void add_word(struct words *w, const char *word)
{
    w->list[w->n++] = (char *)(uintptr_t)word;
}

static void add_option(struct words *w, const char *name, const char *value)
{
    add_word(w, name);
    add_word(w, value);
}

enum gate_status worker_start(const struct supervisor_options *o, const char *const *baselines,
                              unsigned n_baselines, bool with_providers, struct process *out,
                              struct gate_error *err)
{
    char found[PATHS_MAX], program[PATHS_MAX] = "";
    struct words w = {.n = 0};
    if (o->worker && strchr(o->worker, '/') && access(o->worker, X_OK))
        return gate_fail(err, GATE_IO, "cannot run worker '%s': %s", o->worker, strerror(errno));
    if (o->worker && !strchr(o->worker, '/') && toolkit_find(o->worker, NULL, found, NULL))
        return gate_fail(err, GATE_IO, "cannot run worker '%s': it is not on PATH", o->worker);
    if (!o->worker && readlink("/proc/self/exe", program, sizeof program - 1) < 0)
        return gate_fail(err, GATE_INTERNAL, "cannot find this program");
    for (unsigned i = 0; i < o->n_wrapper && i < SUPERVISOR_WRAPPER_MAX; i++)
        add_word(&w, o->wrapper[i]);
    add_word(&w, o->worker ? o->worker : program);
    if (!o->worker)
        add_word(&w, "worker");
    add_option(&w, "--device", o->device);
    if (o->library)
        add_option(&w, "--library", o->library);
    else
        add_word(&w, "--ceilings");
    for (unsigned i = 0; i < n_baselines; i++)
        add_option(&w, "--baseline", baselines[i]);
    for (unsigned i = 0; i < o->n_providers && i < ARMS_MAX - 1 && with_providers; i++)
        add_option(&w, "--provider", o->providers[i]);
    if (o->untimed)
        add_word(&w, "--untimed");
    for (size_t i = 0; o->library && own_op_at(i); i++)
        add_option(&w, "--op", own_op_at(i)->path);
    add_word(&w, NULL);
    return process_start_scrubbed(out, w.list, err);
}

/* ---- the command that looks at a case again ---- */

/* What no shell takes for more than itself. */
static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./+:";

/* Appends " --name value", quoted where it has to be; nothing for no value. */
static void add_value(char *text, size_t size, const char *name, const char *value)
{
    const char *quote = value && value[strspn(value, plain)] ? "'" : "";
    if (value)
        utf8_join(text, size, "", " --%s %s%s%s", name, quote, value, quote);
}

void reproduce_command(const struct reproduce *r, const char *case_id, bool timed, char *text,
                       size_t size)
{
    snprintf(text, size, "gate %s", timed ? "run" : "verify");
    add_value(text, size, "device", r->device);
    add_value(text, size, "suite", r->suite);
    add_value(text, size, "library", r->library);
    add_value(text, size, "filter", case_id);
    if (!timed && r->tier != VERIFY_COMMIT)
        add_value(text, size, "tier", verify_tier_name(r->tier));
    utf8_join(text, size, "", " --seed %016" PRIx64, r->seed);
}
