/* SPDX-License-Identifier: Apache-2.0 */
/* worker_start.c: the command line of a worker. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "gate/base/paths.h"
#include "gate/cases/op_file.h"
#include "gate/launch/arm.h"
#include "gate/run/supervisor.h"

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
