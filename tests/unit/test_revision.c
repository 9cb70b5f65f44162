/* SPDX-License-Identifier: Apache-2.0 */
/* test_revision.c: what `--against` means: files, commits and stored baselines become libraries. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
    scene_shell("mkdir sub");
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
