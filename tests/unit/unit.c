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

char unit_folder[256];

int unit_enter_folder(void **state)
{
    (void)state;
    const char *parent = getenv("TMPDIR");
    snprintf(unit_folder, sizeof unit_folder, "%s/unit.XXXXXX", parent ? parent : "/tmp");
    return mkdtemp(unit_folder) ? chdir(unit_folder) : -1;
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *where)
{
    (void)info;
    (void)type;
    (void)where;
    return remove(path);
}

int unit_leave_folder(void **state)
{
    (void)state;
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
