/* SPDX-License-Identifier: Apache-2.0 */
/* test_rebuild.c: the library of a commit is built once, on its own, and checked. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/build_scene.h"
#include "gate/baseline/revision.h"
#include "tests/unit/unit.h"

static const char forgets[] = "true\n";

static const char empty[] = ": > $target\n";

TEST_WITHIN(second_resolve_does_not_rebuild, scene_enter, unit_leave_folder)
{
    struct revision r, again;
    char id[41];
    scene_commit(scene_builds, id);
    scene_resolve(id, &r);
    scene_resolve(id, &again);
    assert_builds(1);
    assert_string_equal(r.path, again.path);
    /* An artifact that is gone is made again. */
    assert_int_equal(unlink(r.path), 0);
    scene_resolve(id, &r);
    assert_library_of(&r, id);
    assert_builds(2);
    assert_int_equal(revision_resolve(id, RECIPE("../" LIBRARY), &r, NULL), GATE_USAGE);
}

TEST_WITHIN(damaged_artifact_is_refused, scene_enter, unit_leave_folder)
{
    struct revision r;
    struct gate_error err = {0};
    char id[41];
    scene_commit(scene_builds, id);
    scene_resolve(id, &r);
    assert_int_equal(truncate(r.path, 3), 0);
    assert_int_equal(revision_resolve(id, RECIPE(LIBRARY), &r, &err), GATE_ENVIRONMENT);
    assert_non_null(strstr(err.message, "refused"));
    scene_resolve(id, &r);
    assert_library_of(&r, id);
}

TEST_WITHIN(commit_that_does_not_build, scene_enter, unit_leave_folder)
{
    struct revision r;
    struct gate_error err = {0};
    char id[41], log[sizeof unit_folder + 128], typed[8];
    scene_commit(scene_fails, id);
    int input = dup(STDIN_FILENO), ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(write(ends[1], "typed", 5), 5);
    close(ends[1]);
    dup2(ends[0], STDIN_FILENO);
    assert_int_equal(revision_resolve(id, RECIPE(LIBRARY), &r, &err), GATE_ENVIRONMENT);
    assert_int_equal(read(STDIN_FILENO, typed, sizeof typed), 5); /* not by the build's "cat" */
    dup2(input, STDIN_FILENO);
    close(input);
    close(ends[0]);
    snprintf(log, sizeof log, "%s/cache/logs/%s-" LIBRARY ".log", unit_folder, id);
    assert_non_null(strstr(err.message, log));
    assert_non_null(strstr(err.message, "'make' ended with exit code 2"));
    /* The line with the error, wherever it stands, and what follows. */
    assert_non_null(
        strstr(err.message, ".log): error: \u2018x\u2019 \xef\xbf\xbd[1mmissing|after 1|after 2|"));
    assert_int_equal(access(log, R_OK), 0);
    assert_no_worktree();
    /* Nothing is remembered of it, and the next commit is none the worse. */
    assert_int_equal(revision_resolve(id, RECIPE(LIBRARY), &r, &err), GATE_ENVIRONMENT);
    assert_builds(2);
    scene_commit(scene_builds, id);
    scene_resolve(id, &r);
    assert_library_of(&r, id);
}

TEST_WITHIN(build_that_names_no_error, scene_enter, unit_leave_folder)
{
    struct revision r;
    struct gate_error err = {0};
    char id[41];
    scene_commit("for i in `seq 100`; do echo line $i; done; exit 3\n", id);
    assert_int_equal(revision_resolve(id, RECIPE(LIBRARY), &r, &err), GATE_ENVIRONMENT);
    assert_non_null(strstr(err.message, "line 99|line 100|"));
    assert_null(strstr(err.message, "line 1|"));
    assert_non_null(strstr(err.message, ".log): line ")); /* whole lines */
}

TEST_WITHIN(build_that_makes_nothing, scene_enter, unit_leave_folder)
{
    struct revision r;
    struct gate_error err = {0};
    char id[41];
    scene_commit(forgets, id);
    assert_int_equal(revision_resolve(id, RECIPE(LIBRARY), &r, &err), GATE_ENVIRONMENT);
    assert_non_null(strstr(err.message, "succeeded without making build/lib/kernel-gate/" LIBRARY));
    scene_commit(empty, id);
    assert_int_equal(revision_resolve(id, RECIPE(LIBRARY), &r, &err), GATE_USAGE);
    assert_non_null(strstr(err.message, "is empty"));
    scene_shell("git rm -q --cached Makefile && rm Makefile && git commit -q -m 'no Makefile'");
    assert_int_equal(revision_resolve("HEAD", RECIPE(LIBRARY), &r, &err), GATE_ENVIRONMENT);
    assert_no_worktree();
}

TEST_WITHIN(names_are_checked_before_they_are_paths, scene_enter, unit_leave_folder)
{
    char path[PATHS_MAX], sha256[65];
    struct gate_error err = {0};
    assert_int_equal(rebuild_commit("../escaped", RECIPE(LIBRARY), path, sha256, &err), GATE_USAGE);
    assert_int_equal(rebuild_commit(NO_COMMIT, RECIPE("../" LIBRARY), path, sha256, &err),
                     GATE_USAGE);
    assert_int_equal(access("../cache", F_OK), -1);
    assert_int_equal(rebuild_commit(NO_COMMIT, RECIPE(LIBRARY), path, sha256, &err),
                     GATE_ENVIRONMENT);
    assert_non_null(strstr(err.message, "'git worktree add' ended with exit code"));
    assert_no_worktree();
}

/* What make, a git hook or a CI job above set is not what the build sees; hooks do not run. */
TEST_WITHIN(build_is_on_its_own, scene_enter, unit_leave_folder)
{
    struct revision r;
    char id[41], now[41];
    scene_commit(scene_builds, id);
    write_text("later", "");
    scene_commit(scene_builds, now);
    write_text(".git/hooks/post-checkout", "#!/bin/sh\ntouch $HOME/hooked $QUICK\n");
    assert_int_equal(chmod(".git/hooks/post-checkout", 0700), 0);
    scene_variable("GIT_DIR", "repository/.git");
    scene_variable("GIT_INDEX_FILE", "repository/.git/index");
    setenv("MAKEFLAGS", "n", 1);
    setenv("MAKELEVEL", "3", 1);
    assert_int_equal(chdir(".."), 0); /* GIT_DIR alone says which repository */
    scene_resolve(id, &r);
    assert_int_equal(chdir("repository"), 0);
    assert_library_of(&r, id);
    assert_int_equal(access("../quick", F_OK), -1);
    char staged[8];
    scene_line("git diff --cached --name-only | wc -l", staged, sizeof staged);
    assert_int_equal(strtol(staged, NULL, 10), 0);
    assert_no_worktree();
}
