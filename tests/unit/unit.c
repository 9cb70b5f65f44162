/* SPDX-License-Identifier: Apache-2.0 */
/* unit.c: see unit.h. */
#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate/base/file.h"
#include "tests/unit/unit.h"

#define TESTS_MAX 100

static struct CMUnitTest tests[TESTS_MAX];
static int lines[TESTS_MAX];
static size_t n_tests;
static CMFixtureFunction group_set_up, group_tear_down;

/* Constructors may run in any order: a test's place is that of its line. */
void unit_list(int line, struct CMUnitTest test)
{
    size_t at = n_tests++;
    if (n_tests > TESTS_MAX)
        abort();
    for (; at && lines[at - 1] > line; at--) {
        lines[at] = lines[at - 1];
        tests[at] = tests[at - 1];
    }
    lines[at] = line;
    tests[at] = test;
}

void unit_group(CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
    group_set_up = set_up;
    group_tear_down = tear_down;
}

/* The tools of tests, which are linked with this file too, have their own. */
__attribute__((weak)) int main(void)
{
    return _cmocka_run_group_tests("tests", tests, n_tests, group_set_up, group_tear_down);
}

char unit_folder[256];

int unit_enter_folder(void **)
{
    const char *parent = getenv("TMPDIR");
    snprintf(unit_folder, sizeof unit_folder, "%s/unit.XXXXXX", parent ? parent : "/tmp");
    return mkdtemp(unit_folder) ? chdir(unit_folder) : -1;
}

static int remove_entry(const char *path, const struct stat *, int, struct FTW *)
{
    return remove(path);
}

int unit_leave_folder(void **)
{
    return chdir("/") || nftw(unit_folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

void write_text(const char *path, const char *text)
{
    struct gate_error err = {0};
    if (file_write_atomic(path, text, strlen(text), &err))
        fail_msg("%s", err.message);
}

void assert_content(const char *path, const char *expected)
{
    struct buf b;
    struct gate_error err = {0};
    buf_init(&b, 1 << 20);
    if (file_read(path, &b, &err))
        fail_msg("%s", err.message);
    assert_string_equal(b.data, expected);
    buf_release(&b);
}

int count_entries(const char *folder)
{
    DIR *d = opendir(folder);
    assert_non_null(d);
    int n = 0;
    for (struct dirent *e; (e = readdir(d));)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return n;
}
