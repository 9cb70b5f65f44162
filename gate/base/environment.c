/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/base/paths.h"

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
    {"GATE_CA_FILE", "certificates to trust instead of the system's", false},
    {"GATE_COMMENT_TOKEN", "the token of `gate comment`; default: $GITHUB_TOKEN or $GITLAB_TOKEN",
     true},
    {"GITHUB_TOKEN", "the token of `gate comment` on GitHub", true},
    {"GITLAB_TOKEN", "the token of `gate comment` on GitLab", true},
    {"KG_CUDNN",
     "the cuDNN library to open; default: the one of the first `python3`, else where the loader "
     "looks",
     false},
    {"KG_HOST_ISA",
     "instruction set of the kernels on a CPU: avx512, avx2 or generic; default: the best that it "
     "has",
     false},
    {"CUDA_VISIBLE_DEVICES", "the GPUs that CUDA and `--device all` may use", false},
    {"CUDA_HOME", "the CUDA toolkit, when its programs are not on PATH; default: /usr/local/cuda",
     false},
    {"PATH", "where programs are found: git, sh, python3, nvdisasm, ncu, curl", false},
    {"HOME", "the home folder, ~ in this table", false},
    {"XDG_CACHE_HOME", "replaces ~/.cache", false},
    {"TMPDIR", "folder of temporary files; default: /tmp", false},
    {"GATE_LOCKS",
     "folder of the locks that allow one run at a time on a device; default: /run/lock, else "
     "/dev/shm",
     false},
    {"NO_COLOR", "any value turns colours off", false},
    {"CI", "any value but false: `gate run --filter` needs --partial", false},
    {"TERM", "dumb or unset turns colours off", false},
    {"COLUMNS", "width of tables; default: that of the terminal", false},
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
