/* SPDX-License-Identifier: Apache-2.0 */
/* test_rebuild_wait.c: builds that take long, side by side, too long, or whose run was killed. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/build_scene.h"
#include "tests/unit/unit.h"

#define LIMIT_MS 60000 /* for what has to happen at once */

/* Tells $STARTED the id of make, then waits for whoever opens $GO; once $QUICK exists it just
 * builds. */
static const char waits[] = "[ -e $QUICK ] || { echo $PPID > $STARTED; cat $GO; }\n"
                            "eval \"$library\" > $target\n";

/* Waits until `fd` can be read, or is at its end. */
static void await(int fd)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&ready, 1, LIMIT_MS), 1);
}

static int open_started(void)
{
    int fd = open("../started", O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

/* The id of the make that has started a build. */
static pid_t await_started(int started)
{
    char id[32] = "";
    await(started);
    assert_true(read(started, id, sizeof id - 1) > 0);
    return (pid_t)strtol(id, NULL, 10);
}

/* Resolves in a process of its own, whose standard error comes out of *stderr_text. */
static pid_t start_resolving(const char *what, int *stderr_text)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct revision r;
        struct gate_error err = {0};
        dup2(ends[1], STDERR_FILENO);
        enum gate_status status = revision_resolve(what, RECIPE(LIBRARY), &r, &err);
        if (status)
            fprintf(stderr, "%s\n", err.message);
        _exit((int)status);
    }
    close(ends[1]);
    *stderr_text = ends[0];
    return child;
}

/* Reads until `text` has come. */
static void await_text(int fd, const char *text)
{
    char got[4096] = "";
    size_t n = 0;
    while (!strstr(got, text) && n < sizeof got - 1) {
        await(fd);
        ssize_t more = read(fd, got + n, sizeof got - 1 - n);
        if (more <= 0)
            fail_msg("ended with '%s', expected '%s'", got, text);
        n += (size_t)more;
        got[n] = '\0';
    }
}

static void assert_ends_well(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), GATE_OK);
}

/* Lets what waits in "cat $GO" end. */
static void let_go(void)
{
    int go = open("../go", O_WRONLY);
    assert_true(go >= 0);
    close(go);
}

TEST_WITHIN(one_build_at_a_time, scene_enter, unit_leave_folder)
{
    char id[41];
    int one, two, started = open_started();
    struct revision r;
    scene_commit(waits, id);
    pid_t first = start_resolving(id, &one);
    await_started(started);
    await_text(one, "gate: building " LIBRARY " of commit ");
    pid_t second = start_resolving(id, &two);
    await_text(two, "gate: waiting for another build of commit ");
    let_go();
    assert_ends_well(first);
    assert_ends_well(second);
    scene_resolve(id, &r);
    assert_library_of(&r, id);
    assert_builds(1);
    assert_no_worktree();
    close(one);
    close(two);
    close(started);
}

TEST_WITHIN(waiting_for_another_build_ends, scene_enter, unit_leave_folder)
{
    char id[41];
    int stderr_text, started = open_started();
    struct revision r;
    struct gate_error err = {0};
    scene_commit(waits, id);
    pid_t child = start_resolving(id, &stderr_text);
    await_started(started);
    setenv("GATE_BUILD_TIMEOUT", "1", 1);
    assert_int_equal(revision_resolve(id, RECIPE(LIBRARY), &r, &err), GATE_ENVIRONMENT);
    assert_non_null(strstr(err.message, "another process has been building"));
    assert_int_equal(scene_worktrees(), 1);
    let_go();
    assert_ends_well(child);
    close(stderr_text);
    close(started);
}

TEST_WITHIN(time_out, scene_enter, unit_leave_folder)
{
    char id[41], c;
    int ends[2];
    struct revision r;
    struct gate_error err = {0};
    scene_commit(waits, id);
    /* What the build starts holds the pipe, so its end is the end of all of it. */
    assert_int_equal(pipe(ends), 0);
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    int started = open_started();
    setenv("GATE_BUILD_TIMEOUT", "2", 1);
    assert_int_equal(revision_resolve(id, RECIPE(LIBRARY), &r, &err), GATE_ENVIRONMENT);
    assert_non_null(strstr(err.message, "took more than the 2 s of GATE_BUILD_TIMEOUT"));
    close(ends[1]);
    await(ends[0]);
    assert_int_equal(read(ends[0], &c, 1), 0);
    close(ends[0]);
    close(started);
    assert_no_worktree();
}

TEST_WITHIN(bad_time_out, scene_enter, unit_leave_folder)
{
    static const char *const values[] = {"0", "-1", "x", "1x", "99999999999999999999", "86401"};
    char id[41];
    struct revision r;
    scene_commit(scene_builds, id);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        struct gate_error err = {0};
        setenv("GATE_BUILD_TIMEOUT", values[i], 1);
        assert_int_equal(revision_resolve(id, RECIPE(LIBRARY), &r, &err), GATE_USAGE);
        assert_non_null(strstr(err.message, "GATE_BUILD_TIMEOUT"));
    }
    assert_builds(0);
}

TEST_WITHIN(killed_run_does_not_block_the_next, scene_enter, unit_leave_folder)
{
    char id[41];
    int stderr_text, status, started = open_started();
    struct revision r;
    scene_commit(waits, id);
    pid_t child = start_resolving(id, &stderr_text);
    int make = pidfd_open(await_started(started), 0);
    assert_true(make >= 0);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    await(make); /* it does not go on by itself */
    close(make);
    assert_int_equal(scene_worktrees(), 1);
    write_text("../quick", "");
    /* One of another clone, one that git never finished, and one that it has locked. */
    char command[PATHS_MAX];
    snprintf(command, sizeof command,
             "git clone -q . ../clone && git -C ../clone worktree add -q --detach $GATE_CACHE/"
             "worktrees/%s.cloned && mkdir -p $GATE_CACHE/worktrees/%s.broken/deep && "
             "git worktree add -q --lock --detach $GATE_CACHE/worktrees/%s.held",
             id, id, id);
    scene_shell(command);
    assert_int_equal(scene_worktrees(), 4);
    scene_resolve(id, &r);
    assert_library_of(&r, id);
    assert_no_worktree();
    let_go();
    close(stderr_text);
    close(started);
}

/* Other commits are at work, or are not this one's business. */
TEST_WITHIN(worktrees_of_other_commits_stay, scene_enter, unit_leave_folder)
{
    char id[41];
    struct revision r;
    scene_commit(scene_builds, id);
    scene_shell("mkdir -p $GATE_CACHE/worktrees/" NO_COMMIT ".x");
    scene_resolve(id, &r);
    assert_int_equal(scene_worktrees(), 1);
}
