/* SPDX-License-Identifier: Apache-2.0 */
/* test_revision.c: what `--against` means: files, commits and stored baselines become libraries. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/build_scene.h"
#include "tests/unit/unit.h"

#define ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

#define ENTRY(sha256, id) (&(struct baseline_entry){.library_sha256 = (sha256), .commit = (id)})

TEST_WITHIN(file, scene_enter, unit_leave_folder)
{
    struct revision r;
    char id[41];
    scene_commit(scene_builds, id);
    write_text("lib.so", "abc");
    scene_resolve("lib.so", &r);
    assert_string_equal(r.path, "./lib.so"); /* for dlopen() */
    assert_string_equal(r.sha256, ABC);
    assert_string_equal(r.commit, "");
    write_text("-C", "abc");
    scene_resolve("-C", &r);
    assert_string_equal(r.path, "./-C");
    /* A file wins over a branch; a folder is no library, so that the branch is meant. */
    scene_shell("git branch lib.so && git branch sub && mkdir sub");
    scene_resolve("lib.so", &r);
    assert_string_equal(r.commit, "");
    scene_resolve("refs/heads/lib.so", &r);
    assert_library_of(&r, id);
    scene_resolve("sub", &r);
    assert_library_of(&r, id);
}

TEST_WITHIN(commits, scene_enter, unit_leave_folder)
{
    struct revision r;
    char first[41], second[41], abbreviated[13];
    scene_commit(scene_builds, first);
    scene_shell("git tag -a -m tag v1 && git branch old");
    scene_commit(scene_builds, second);
    scene_resolve("HEAD", &r);
    assert_library_of(&r, second);
    assert_builds(1);
    snprintf(abbreviated, sizeof abbreviated, "%.12s", first);
    const char *const names[] = {first, abbreviated, "HEAD~1", "old", "v1", "refs/heads/old"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        scene_resolve(names[i], &r);
        assert_library_of(&r, first);
    }
    assert_builds(2);
    assert_no_worktree();
    assert_content("how", scene_builds);
}

TEST_WITHIN(from_a_folder_below, scene_enter, unit_leave_folder)
{
    struct revision r;
    char id[41];
    scene_commit(scene_builds, id);
    scene_shell("mkdir below");
    assert_int_equal(chdir("below"), 0);
    scene_resolve("HEAD", &r);
    assert_int_equal(chdir(".."), 0);
    assert_library_of(&r, id);
    assert_no_worktree();
}

TEST_WITHIN(bad_names, scene_enter, unit_leave_folder)
{
    static const char *const names[] = {"nope",
                                        "HEAD~7",
                                        "HEAD:how",
                                        "HEAD^{tree}",
                                        "HEAD..HEAD",
                                        "HEAD...HEAD",
                                        "HEAD...unrelated",
                                        "HEAD^@",
                                        "HEAD^!",
                                        "HEAD^-",
                                        "^HEAD",
                                        "--all",
                                        "--help",
                                        "-C",
                                        "--git-dir=/",
                                        "--output=made",
                                        "--",
                                        "$(touch made)",
                                        ";touch made",
                                        "`touch made`",
                                        "Makefile/x",
                                        NO_COMMIT,
                                        "abc^{commit} HEAD",
                                        "sub"};
    struct revision r = {.path = "as it was"};
    char id[41], message[sizeof unit_folder + 64];
    scene_commit(scene_builds, id);
    scene_shell("mkdir sub && git tag unrelated $(git commit-tree HEAD^{tree} -m x)");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct gate_error err = {0};
        assert_int_equal(revision_resolve(names[i], RECIPE(LIBRARY), &r, &err), GATE_USAGE);
        snprintf(message, sizeof message, "'%s' is neither a regular file nor a revision",
                 names[i]);
        if (!strstr(err.message, message))
            fail_msg("%s", err.message);
    }
    assert_string_equal(r.path, "as it was");
    assert_int_equal(access("made", F_OK), -1);
    assert_builds(0);
}

TEST_WITHIN(unprintable_names, scene_enter, unit_leave_folder)
{
    static char too_long[2 * PATHS_MAX];
    memset(too_long, 'n', sizeof too_long - 1);
    const struct {
        const char *name, *message;
    } bad[] = {
        {"", "empty"},
        {"HEAD\n", "control character at its byte 5"},
        {"\033[2J", "control character at its byte 1"},
        {too_long, "too long"},
    };
    struct revision r;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct gate_error err = {0};
        assert_int_equal(revision_resolve(bad[i].name, RECIPE(LIBRARY), &r, &err), GATE_USAGE);
        assert_non_null(strstr(err.message, bad[i].message));
        assert_null(strpbrk(err.message, "\n\033"));
    }
}

TEST_WITHIN(without_git, scene_enter, unit_leave_folder)
{
    struct revision r;
    struct gate_error err = {0};
    char *path = strdup(getenv("PATH"));
    assert_int_equal(chdir(".."), 0);
    assert_int_equal(revision_resolve("HEAD", RECIPE(LIBRARY), &r, &err), GATE_USAGE);
    assert_non_null(strstr(err.message, "not a git repository"));
    setenv("PATH", "/nowhere", 1);
    assert_int_equal(revision_resolve("HEAD", RECIPE(LIBRARY), &r, &err), GATE_USAGE);
    assert_non_null(strstr(err.message, "cannot run 'git'"));
    setenv("PATH", path, 1);
    free(path);
}

TEST_WITHIN(baseline, scene_enter, unit_leave_folder)
{
    struct revision r, baseline;
    struct gate_error err = {0};
    char id[41];
    scene_commit(scene_builds, id);
    scene_resolve(id, &r);
    assert_int_equal(
        revision_resolve_baseline(ENTRY(r.sha256, ""), RECIPE(LIBRARY), &baseline, &err), GATE_OK);
    assert_string_equal(baseline.path, r.path);
    assert_string_equal(baseline.commit, "");
    assert_int_equal(unlink(r.path), 0);
    /* Without the artifact: unknown commits give it up, the right one makes it again. */
    assert_int_equal(
        revision_resolve_baseline(ENTRY(r.sha256, ""), RECIPE(LIBRARY), &baseline, &err),
        GATE_NO_VERDICT);
    assert_int_equal(
        revision_resolve_baseline(ENTRY(r.sha256, NO_COMMIT), RECIPE(LIBRARY), &baseline, &err),
        GATE_NO_VERDICT);
    assert_non_null(strstr(err.message, "does not exist"));
    err = (struct gate_error){0};
    assert_int_equal(
        revision_resolve_baseline(ENTRY(r.sha256, id), RECIPE(LIBRARY), &baseline, &err), GATE_OK);
    assert_int_equal(err.message[0], '\0');
    assert_library_of(&baseline, id);
    assert_builds(2);
}

TEST_WITHIN(baseline_with_another_hash, scene_enter, unit_leave_folder)
{
    struct revision baseline;
    struct gate_error err = {0};
    char id[41];
    scene_commit(scene_builds, id);
    assert_int_equal(revision_resolve_baseline(ENTRY(ABC, id), RECIPE(LIBRARY), &baseline, &err),
                     GATE_NO_VERDICT);
    assert_non_null(strstr(err.message, "is not recorded: refused"));
    /* Once known, it costs no second build. */
    assert_int_equal(revision_resolve_baseline(ENTRY(ABC, id), RECIPE(LIBRARY), &baseline, &err),
                     GATE_NO_VERDICT);
    assert_builds(1);
    assert_int_equal(revision_resolve_baseline(ENTRY("../x", id), RECIPE(LIBRARY), &baseline, &err),
                     GATE_USAGE);
}

TEST_WITHIN(baseline_that_does_not_build, scene_enter, unit_leave_folder)
{
    struct revision baseline;
    struct gate_error err = {0};
    char id[41];
    scene_commit(scene_fails, id);
    assert_int_equal(revision_resolve_baseline(ENTRY(ABC, id), RECIPE(LIBRARY), &baseline, &err),
                     GATE_ENVIRONMENT);
    assert_non_null(strstr(err.message, "cannot be built here"));
}

/* ---- the library of a commit is built once, on its own, and checked ---- */

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
