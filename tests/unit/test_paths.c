/* SPDX-License-Identifier: Apache-2.0 */
/* test_paths.c: where programs of the CUDA toolkit are looked for. */
#include "gate/base/paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#define NAME "nvdisasm"

static const char *in_folder(const char *name)
{
    static char path[PATHS_MAX];
    snprintf(path, sizeof path, "%s/%s", unit_folder, name);
    return path;
}

/* A program in a folder of the unit_folder; the folder is made. */
static void put(const char *folder)
{
    char file[200];
    assert_int_equal(mkdir(in_folder(folder), 0700), 0);
    snprintf(file, sizeof file, "%s/" NAME, folder);
    FILE *f = fopen(in_folder(file), "we");
    assert_non_null(f);
    fclose(f);
    assert_int_equal(chmod(in_folder(file), 0700), 0);
}

static void expect(const char *folder, const char *elsewhere)
{
    char path[PATHS_MAX] = "", file[200];
    struct gate_error err = {0};
    enum gate_status status = toolkit_find(NAME, elsewhere, path, &err);
    if (folder) {
        snprintf(file, sizeof file, "%s/" NAME, folder);
        assert_int_equal(status, GATE_OK);
        assert_string_equal(path, in_folder(file));
    } else {
        assert_int_equal(status, GATE_ENVIRONMENT);
        assert_non_null(strstr(err.message, NAME " is neither on PATH nor in "));
        assert_non_null(strstr(err.message, unit_folder));
    }
}

TEST_WITHIN(order, unit_enter_folder, unit_leave_folder)
{
    char search[2 * PATHS_MAX], elsewhere[PATHS_MAX];
    snprintf(elsewhere, sizeof elsewhere, "%s/own-*/" NAME, unit_folder);
    setenv("CUDA_HOME", unit_folder, 1);
    setenv("PATH", "", 1);
    expect(NULL, NULL);
    expect(NULL, elsewhere);
    put("own-2.9");
    put("own-2.8");
    expect("own-2.9", elsewhere);
    expect(NULL, NULL);
    put("bin");
    expect("bin", elsewhere);
    put("on-path");
    setenv("PATH", "on-path", 1); /* a folder that is not absolute could be anybody's */
    expect("bin", NULL);
    snprintf(search, sizeof search, ":/nowhere:%s/on-path:%s/own-2.8", unit_folder, unit_folder);
    setenv("PATH", search, 1);
    expect("on-path", elsewhere);
    assert_int_equal(chmod(in_folder("on-path/" NAME), 0600), 0);
    if (access(in_folder("on-path/" NAME), X_OK))
        expect("own-2.8", elsewhere);
}
