/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/base/paths.h"

#include <errno.h>
#include <glob.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* From the folder above the program's. */
enum gate_status paths_installed(const char *below, const char *name, char path[PATHS_MAX],
                                 struct gate_error *err)
{
    char program[PATHS_MAX];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n < 0)
        return gate_fail(err, GATE_INTERNAL, "cannot find this program: %s", strerror(errno));
    program[n] = '\0';
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(program, '/');
        if (!slash)
            return gate_fail(err, GATE_INTERNAL, "'%s' has no folder above it", program);
        *slash = '\0';
    }
    n = snprintf(path, PATHS_MAX, "%s/%s/%s", program, below, name);
    if (n >= PATHS_MAX)
        return gate_fail(err, GATE_USAGE, "the path of '%s' is too long", name);
    return GATE_OK;
}

bool paths_is_suite_file(const char *name)
{
    size_t n = strlen(name);
    return strchr(name, '/') || (n > 5 && !strcmp(name + n - 5, ".json"));
}

enum gate_status paths_suite(const char *name, char path[PATHS_MAX], struct gate_error *err)
{
    size_t n = strlen(name);
    if (paths_is_suite_file(name) && n < PATHS_MAX) {
        memcpy(path, name, n + 1);
        return GATE_OK;
    }
    char file[PATHS_MAX];
    snprintf(file, sizeof file, "%.4000s.json", name);
    TRY(paths_installed("share/kernel-gate/suites", file, path, err));
    if (access(path, R_OK))
        return gate_fail(err, GATE_USAGE,
                         "no suite is named '%s' (looked for '%s'); a suite of your own is given "
                         "as a path",
                         name, path);
    return GATE_OK;
}

enum gate_status paths_cache(char path[PATHS_MAX], struct gate_error *err)
{
    const char *own = environment_get("GATE_CACHE"), *xdg = environment_get("XDG_CACHE_HOME"),
               *home = environment_get("HOME");
    int n;
    if (own)
        n = snprintf(path, PATHS_MAX, "%s", own);
    else if (xdg && xdg[0] == '/')
        n = snprintf(path, PATHS_MAX, "%s/kernel-gate", xdg);
    else if (home && home[0] == '/')
        n = snprintf(path, PATHS_MAX, "%s/.cache/kernel-gate", home);
    else
        return gate_fail(err, GATE_ENVIRONMENT,
                         "no folder for the artifact cache: set GATE_CACHE to a folder");
    if (n >= PATHS_MAX)
        return gate_fail(err, GATE_ENVIRONMENT,
                         "the path of the artifact cache is too long: set GATE_CACHE to a shorter "
                         "one");
    return GATE_OK;
}

enum gate_status paths_set(char path[PATHS_MAX], struct gate_error *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(path, PATHS_MAX, format, args);
    va_end(args);
    if (n >= 0 && n < PATHS_MAX)
        return GATE_OK;
    errno = ENAMETOOLONG;
    return gate_fail(err, GATE_ENVIRONMENT,
                     "a path in the artifact cache is too long: set GATE_CACHE to a shorter one");
}

/* ---- the CUDA toolkit ---- */

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
