/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/base/environment.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

const struct environment_variable environment_variables[] = {
    {"GATE_DB", "the history; default: database of gate.json, else ./gate.db", false},
    {"GATE_BASELINES", "folder of the baselines; default: gate.json, else ./baselines", false},
    {"GATE_CACHE", "binaries of baselines and of stored runs; default: ~/.cache/kernel-gate",
     false},
    {"GATE_BUILD_TIMEOUT", "seconds for the build of a commit; default: 900", false},
    {"GATE_SERVER", "the tracking server", false},
    {"GATE_TOKEN", "the server's token", true},
    {"GATE_TOKEN_FILE", "a file with the server's token", false},
    {"GATE_CA_FILE", "certificates to trust in place of the system's", false},
    {"GATE_COMMENT_TOKEN", "of `gate comment`; default: $GITHUB_TOKEN or $GITLAB_TOKEN", true},
    {"GATE_SPOOL", "what is still to be sent; default: ~/.local/state/kernel-gate/spool", false},
    {NULL, NULL, false},
};

const char *environment_get(const char *name)
{
    const struct environment_variable *v = environment_variables;
    while (v->name && strcmp(v->name, name) != 0)
        v++;
    assert(v->name);
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}
