/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/base/toolkit.h"

#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool take(const char *file, char path[PATHS_MAX])
{
    if (strlen(file) >= PATHS_MAX || access(file, X_OK))
        return false;
    snprintf(path, PATHS_MAX, "%s", file);
    return true;
}

/* Absolute folders between colons. */
static bool find_in(const char *folders, const char *below, const char *name, char path[PATHS_MAX])
{
    char file[PATHS_MAX];
    for (; folders && *folders; folders += strcspn(folders, ":"), folders += *folders == ':') {
        int n = (int)strcspn(folders, ":");
        if (n && *folders == '/' &&
            snprintf(file, sizeof file, "%.*s%s/%s", n, folders, below, name) < (int)sizeof file &&
            take(file, path))
            return true;
    }
    return false;
}

/* Of several versions the last. */
static bool find_by_pattern(const char *pattern, char path[PATHS_MAX])
{
    glob_t found;
    bool taken = false;
    if (!glob(pattern, 0, NULL, &found))
        for (size_t i = found.gl_pathc; i-- > 0 && !taken;)
            taken = take(found.gl_pathv[i], path);
    globfree(&found);
    return taken;
}

enum gate_status toolkit_find(const char *name, const char *elsewhere, char path[PATHS_MAX],
                              struct gate_error *err)
{
    const char *home = getenv("CUDA_HOME");
    char versions[64];
    snprintf(versions, sizeof versions, "/usr/local/cuda-*/bin/%.30s", name);
    home = home && *home ? home : NULL;
    if (find_in(getenv("PATH"), "", name, path) ||
        find_in(home ? home : "/usr/local/cuda", "/bin", name, path) ||
        (!home && find_by_pattern(versions, path)) ||
        (elsewhere && find_by_pattern(elsewhere, path)))
        return GATE_OK;
    return gate_fail(err, GATE_ENVIRONMENT, "%s is neither on PATH nor in %.200s/bin%s%s", name,
                     home ? home : "/usr/local/cuda", elsewhere ? " nor as " : "",
                     elsewhere ? elsewhere : "");
}
