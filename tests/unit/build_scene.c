/* SPDX-License-Identifier: Apache-2.0 */
/* build_scene.c: see build_scene.h. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gate/base/file.h"
#include "tests/unit/build_scene.h"
#include "tests/unit/unit.h"

/*
 * What a build does is up to the commit's "how". It notes each build in $COUNT; the library holds
 * the commit, as make and git in the worktree see it, and whether make was started afresh.
 */
static const char makefile[] =
    "build/lib/kernel-gate/" LIBRARY ":\n"
    "\t@echo built >> $(COUNT); mkdir -p $(@D)\n"
    "\t@. ./how\n"
    "library = { git rev-parse HEAD; echo level $(MAKELEVEL) flags $(filter -n,$(MAKEFLAGS)); }\n"
    "export library\n"
    "export target := $(CURDIR)/build/lib/kernel-gate/" LIBRARY "\n";

const char scene_builds[] = "eval \"$library\" > $target\n";

const char scene_fails[] =
    "for i in `seq 100`; do echo line $i; done\n"
    "printf 'error: \\342\\200\\230x\\342\\200\\231 \\033[1mmissing\\n' >&2\n"
    "for i in `seq 100`; do echo after $i; done\n"
    "cat; exit 3\n";

void scene_variable(const char *variable, const char *name)
{
    char path[sizeof unit_folder + 64];
    snprintf(path, sizeof path, "%s/%s", unit_folder, name);
    setenv(variable, path, 1);
}

void scene_shell(const char *command)
{
    if (system(command) != 0)
        fail_msg("failed: %s", command);
}

void scene_line(const char *command, char *line, int size)
{
    FILE *f = popen(command, "r");
    assert_non_null(f);
    assert_non_null(fgets(line, size, f));
    line[strcspn(line, "\n")] = '\0';
    assert_int_equal(pclose(f), 0);
}

void scene_commit(const char *how, char id[41])
{
    write_text("how", how);
    scene_shell("git add -A && git commit -q --allow-empty -m change");
    scene_line("git rev-parse HEAD", id, 41);
}

int scene_enter(void **state)
{
    if (unit_enter_folder(state) || mkdir("repository", 0700) || chdir("repository"))
        return -1;
    scene_variable("GATE_CACHE", "cache");
    scene_variable("COUNT", "count");
    scene_variable("STARTED", "started");
    scene_variable("GO", "go");
    scene_variable("QUICK", "quick");
    scene_variable("HOME", "home");
    setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
    setenv("GIT_CONFIG_GLOBAL", "/dev/null", 1);
    setenv("GIT_CEILING_DIRECTORIES", unit_folder, 1);
    setenv("GIT_AUTHOR_NAME", "A", 1);
    setenv("GIT_AUTHOR_EMAIL", "a@example.org", 1);
    setenv("GIT_COMMITTER_NAME", "A", 1);
    setenv("GIT_COMMITTER_EMAIL", "a@example.org", 1);
    unsetenv("GATE_BUILD_TIMEOUT");
    unsetenv("GIT_DIR");
    unsetenv("GIT_INDEX_FILE");
    unsetenv("MAKEFLAGS");
    unsetenv("MAKELEVEL");
    write_text("Makefile", makefile);
    return system("git -c init.defaultBranch=main init -q") || mkfifo("../started", 0600) ||
           mkfifo("../go", 0600);
}

void scene_resolve(const char *what, struct revision *r)
{
    struct gate_error err = {0};
    if (revision_resolve(what, RECIPE(LIBRARY), r, &err))
        fail_msg("%s: %s", what, err.message);
    assert_int_equal(err.message[0], '\0');
}

void assert_library_of(const struct revision *r, const char *id)
{
    char expected[128], sha256[65];
    struct gate_error err = {0};
    snprintf(expected, sizeof expected, "%s\nlevel 0 flags\n", id);
    assert_content(r->path, expected);
    assert_int_equal(file_sha256(r->path, sha256, &err), GATE_OK);
    assert_string_equal(r->sha256, sha256);
    assert_string_equal(r->commit, id);
}

void assert_builds(int expected)
{
    char text[256] = "";
    for (int i = 0; i < expected; i++)
        snprintf(text + 6 * i, sizeof text - 6 * (size_t)i, "built\n");
    if (expected)
        assert_content("../count", text);
    else
        assert_int_equal(access("../count", F_OK), -1);
}

int scene_worktrees(void)
{
    int n = 0;
    DIR *d = opendir("../cache/worktrees");
    for (struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.' && !strstr(e->d_name, ".lock");
    if (d)
        closedir(d);
    return n;
}

void assert_no_worktree(void)
{
    char line[16];
    assert_int_equal(scene_worktrees(), 0);
    scene_line("git worktree list --porcelain | grep -c '^worktree '", line, sizeof line);
    assert_string_equal(line, "1");
}
