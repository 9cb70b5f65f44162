/* `--against`: files, commits and bests become libraries, in a throw-away git repository. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "artifact.h"
#include "base/file.h"
#include "rebuild.h"
#include "revision.h"

#define LIBRARY "libtest.so"
#define ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define NO_COMMIT "0123456789abcdef0123456789abcdef01234567"
#define LIMIT_MS 60000 /* for what has to happen at once */

static char folder[PATHS_MAX / 4];

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

static const char builds[] = "eval \"$library\" > $target\n";
/* Tells $STARTED the id of make, then waits for whoever opens $GO; once $QUICK exists it just
 * builds. */
static const char waits[] = "[ -e $QUICK ] || { echo $PPID > $STARTED; cat $GO; }\n"
                            "eval \"$library\" > $target\n";
static const char fails[] =
    "for i in `seq 100`; do echo line $i; done\n"
    "printf 'error: \\342\\200\\230x\\342\\200\\231 \\033[1mmissing\\n' >&2\n"
    "cat; exit 3\n";
static const char forgets[] = "true\n";
static const char empty[] = ": > $target\n";

/* ---- the scene ---- */

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st;
    (void)type;
    (void)where;
    return remove(path);
}

static void set_path(const char *variable, const char *name)
{
    char path[sizeof folder + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    setenv(variable, path, 1);
}

static void shell(const char *command)
{
    if (system(command) != 0)
        fail_msg("failed: %s", command);
}

/* The first line of what a command prints. */
static void shell_line(const char *command, char *line, int size)
{
    FILE *f = popen(command, "r");
    assert_non_null(f);
    assert_non_null(fgets(line, size, f));
    line[strcspn(line, "\n")] = '\0';
    assert_int_equal(pclose(f), 0);
}

static void write_file(const char *path, const char *text)
{
    struct gate_error err = {0};
    if (file_write_atomic(path, text, strlen(text), &err))
        fail_msg("%s", err.message);
}

/* Commits the repository with another "how". */
static void commit(const char *how, char id[41])
{
    write_file("how", how);
    shell("git add -A && git commit -q --allow-empty -m change");
    shell_line("git rev-parse HEAD", id, 41);
}

/* Each test stands in "repository", which has no commit; the cache is "cache" beside it. */
static int enter_repository(void **state)
{
    (void)state;
    const char *parent = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/gate-test-revision-XXXXXX", parent ? parent : "/tmp");
    if (!mkdtemp(folder) || chdir(folder) || mkdir("repository", 0700) || chdir("repository"))
        return -1;
    set_path("GATE_CACHE", "cache");
    set_path("COUNT", "count");
    set_path("STARTED", "started");
    set_path("GO", "go");
    set_path("QUICK", "quick");
    set_path("HOME", "home");
    setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
    setenv("GIT_CONFIG_GLOBAL", "/dev/null", 1);
    setenv("GIT_CEILING_DIRECTORIES", folder, 1);
    setenv("GIT_AUTHOR_NAME", "A", 1);
    setenv("GIT_AUTHOR_EMAIL", "a@example.org", 1);
    setenv("GIT_COMMITTER_NAME", "A", 1);
    setenv("GIT_COMMITTER_EMAIL", "a@example.org", 1);
    unsetenv("GATE_BUILD_TIMEOUT");
    unsetenv("GIT_DIR");
    unsetenv("GIT_INDEX_FILE");
    unsetenv("MAKEFLAGS");
    unsetenv("MAKELEVEL");
    write_file("Makefile", makefile);
    return system("git -c init.defaultBranch=main init -q") || mkfifo("../started", 0600) ||
           mkfifo("../go", 0600);
}

static int leave_repository(void **state)
{
    (void)state;
    return chdir("/") || nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void resolve(const char *what, struct revision *r)
{
    struct gate_error err = {0};
    if (revision_resolve(what, LIBRARY, r, &err))
        fail_msg("%s: %s", what, err.message);
    assert_int_equal(err.message[0], '\0');
}

static void assert_content(const char *path, const char *expected)
{
    struct buf b;
    struct gate_error err = {0};
    buf_init(&b, 1 << 20);
    if (file_read(path, &b, &err))
        fail_msg("%s", err.message);
    assert_string_equal(b.data, expected);
    buf_release(&b);
}

static void assert_library_of(const struct revision *r, const char *id)
{
    char expected[128], sha256[65];
    struct gate_error err = {0};
    snprintf(expected, sizeof expected, "%s\nlevel 0 flags\n", id);
    assert_content(r->path, expected);
    assert_int_equal(file_sha256(r->path, sha256, &err), GATE_OK);
    assert_string_equal(r->sha256, sha256);
    assert_string_equal(r->commit, id);
}

static void assert_builds(int expected)
{
    char text[256] = "";
    for (int i = 0; i < expected; i++)
        snprintf(text + 6 * i, sizeof text - 6 * (size_t)i, "built\n");
    if (expected)
        assert_content("../count", text);
    else
        assert_int_equal(access("../count", F_OK), -1);
}

/* Of checkouts; locks stay. */
static int count_worktrees(void)
{
    int n = 0;
    DIR *d = opendir("../cache/worktrees");
    for (struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.' && !strstr(e->d_name, ".lock");
    if (d)
        closedir(d);
    return n;
}

/* Neither on the disk nor in git's books. */
static void assert_no_worktree(void)
{
    char line[16];
    assert_int_equal(count_worktrees(), 0);
    shell_line("git worktree list --porcelain | grep -c '^worktree '", line, sizeof line);
    assert_string_equal(line, "1");
}

/* ---- what is meant ---- */

static void test_file(void **state)
{
    (void)state;
    struct revision r;
    char id[41];
    commit(builds, id);
    write_file("lib.so", "abc");
    resolve("lib.so", &r);
    assert_string_equal(r.path, "./lib.so"); /* for dlopen() */
    assert_string_equal(r.sha256, ABC);
    assert_string_equal(r.commit, "");
    write_file("-C", "abc");
    resolve("-C", &r);
    assert_string_equal(r.path, "./-C");
    /* A file wins over a branch; a folder is no library, so that the branch is meant. */
    shell("git branch lib.so && git branch sub && mkdir sub");
    resolve("lib.so", &r);
    assert_string_equal(r.commit, "");
    resolve("refs/heads/lib.so", &r);
    assert_library_of(&r, id);
    resolve("sub", &r);
    assert_library_of(&r, id);
}

static void test_commits(void **state)
{
    (void)state;
    struct revision r;
    char first[41], second[41], abbreviated[13];
    commit(builds, first);
    shell("git tag -a -m tag v1 && git branch old");
    commit(builds, second);
    resolve("HEAD", &r);
    assert_library_of(&r, second);
    assert_builds(1);
    snprintf(abbreviated, sizeof abbreviated, "%.12s", first);
    const char *const names[] = {first, abbreviated, "HEAD~1", "old", "v1", "refs/heads/old"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        resolve(names[i], &r);
        assert_library_of(&r, first);
    }
    assert_builds(2);
    assert_no_worktree();
    assert_content("how", builds);
}

static void test_from_a_folder_below(void **state)
{
    (void)state;
    struct revision r;
    char id[41];
    commit(builds, id);
    shell("mkdir below");
    assert_int_equal(chdir("below"), 0);
    resolve("HEAD", &r);
    assert_int_equal(chdir(".."), 0);
    assert_library_of(&r, id);
    assert_no_worktree();
}

static void test_bad_names(void **state)
{
    (void)state;
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
    char id[41], message[sizeof folder + 64];
    commit(builds, id);
    shell("mkdir sub");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct gate_error err = {0};
        assert_int_equal(revision_resolve(names[i], LIBRARY, &r, &err), GATE_USAGE);
        snprintf(message, sizeof message, "'%s' is neither a regular file nor a revision",
                 names[i]);
        if (!strstr(err.message, message))
            fail_msg("%s", err.message);
    }
    assert_string_equal(r.path, "as it was");
    assert_int_equal(access("made", F_OK), -1);
    assert_builds(0);
}

static void test_unprintable_names(void **state)
{
    (void)state;
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
        assert_int_equal(revision_resolve(bad[i].name, LIBRARY, &r, &err), GATE_USAGE);
        assert_non_null(strstr(err.message, bad[i].message));
        assert_null(strpbrk(err.message, "\n\033"));
    }
}

static void test_without_git(void **state)
{
    (void)state;
    struct revision r;
    struct gate_error err = {0};
    char *path = strdup(getenv("PATH"));
    assert_int_equal(chdir(".."), 0);
    assert_int_equal(revision_resolve("HEAD", LIBRARY, &r, &err), GATE_USAGE);
    assert_non_null(strstr(err.message, "not a git repository"));
    setenv("PATH", "/nowhere", 1);
    assert_int_equal(revision_resolve("HEAD", LIBRARY, &r, &err), GATE_USAGE);
    assert_non_null(strstr(err.message, "cannot run 'git'"));
    setenv("PATH", path, 1);
    free(path);
}

/* ---- rebuilding ---- */

static void test_second_resolve_does_not_rebuild(void **state)
{
    (void)state;
    struct revision r, again;
    char id[41];
    commit(builds, id);
    resolve(id, &r);
    resolve(id, &again);
    assert_builds(1);
    assert_string_equal(r.path, again.path);
    /* An artifact that is gone is made again. */
    assert_int_equal(unlink(r.path), 0);
    resolve(id, &r);
    assert_library_of(&r, id);
    assert_builds(2);
    assert_int_equal(revision_resolve(id, "../" LIBRARY, &r, NULL), GATE_USAGE);
}

static void test_damaged_artifact_is_refused(void **state)
{
    (void)state;
    struct revision r;
    struct gate_error err = {0};
    char id[41];
    commit(builds, id);
    resolve(id, &r);
    assert_int_equal(truncate(r.path, 3), 0);
    assert_int_equal(revision_resolve(id, LIBRARY, &r, &err), GATE_ENVIRONMENT);
    assert_non_null(strstr(err.message, "refused"));
    resolve(id, &r);
    assert_library_of(&r, id);
}

static void test_commit_that_does_not_build(void **state)
{
    (void)state;
    struct revision r;
    struct gate_error err = {0};
    char id[41], log[sizeof folder + 128], typed[8];
    commit(fails, id);
    int input = dup(STDIN_FILENO), ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(write(ends[1], "typed", 5), 5);
    close(ends[1]);
    dup2(ends[0], STDIN_FILENO);
    assert_int_equal(revision_resolve(id, LIBRARY, &r, &err), GATE_ENVIRONMENT);
    assert_int_equal(read(STDIN_FILENO, typed, sizeof typed), 5); /* not by the build's "cat" */
    dup2(input, STDIN_FILENO);
    close(input);
    close(ends[0]);
    snprintf(log, sizeof log, "%s/cache/logs/%s-" LIBRARY ".log", folder, id);
    assert_non_null(strstr(err.message, log));
    assert_non_null(strstr(err.message, "'make' ended with exit code 2"));
    assert_non_null(strstr(err.message, "line 99|line 100|"));
    assert_non_null(strstr(err.message, "error: \u2018x\u2019 ?[1mmissing|"));
    assert_null(strstr(err.message, "line 1|"));
    assert_non_null(strstr(err.message, ".log): line ")); /* whole lines */
    assert_int_equal(access(log, R_OK), 0);
    assert_no_worktree();
    /* Nothing is remembered of it, and the next commit is none the worse. */
    assert_int_equal(revision_resolve(id, LIBRARY, &r, &err), GATE_ENVIRONMENT);
    assert_builds(2);
    commit(builds, id);
    resolve(id, &r);
    assert_library_of(&r, id);
}

static void test_build_that_makes_nothing(void **state)
{
    (void)state;
    struct revision r;
    struct gate_error err = {0};
    char id[41];
    commit(forgets, id);
    assert_int_equal(revision_resolve(id, LIBRARY, &r, &err), GATE_ENVIRONMENT);
    assert_non_null(strstr(err.message, "succeeded without making build/lib/kernel-gate/" LIBRARY));
    commit(empty, id);
    assert_int_equal(revision_resolve(id, LIBRARY, &r, &err), GATE_USAGE);
    assert_non_null(strstr(err.message, "is empty"));
    shell("git rm -q --cached Makefile && rm Makefile && git commit -q -m 'no Makefile'");
    assert_int_equal(revision_resolve("HEAD", LIBRARY, &r, &err), GATE_ENVIRONMENT);
    assert_no_worktree();
}

static void test_names_are_checked_before_they_are_paths(void **state)
{
    (void)state;
    char path[PATHS_MAX], sha256[65];
    struct gate_error err = {0};
    assert_int_equal(rebuild_commit("../escaped", LIBRARY, path, sha256, &err), GATE_USAGE);
    assert_int_equal(rebuild_commit(NO_COMMIT, "../" LIBRARY, path, sha256, &err), GATE_USAGE);
    assert_int_equal(access("../cache", F_OK), -1);
    assert_int_equal(rebuild_commit(NO_COMMIT, LIBRARY, path, sha256, &err), GATE_ENVIRONMENT);
    assert_non_null(strstr(err.message, "'git worktree add' ended with exit code"));
    assert_no_worktree();
}

/* What make, a git hook or a CI job above set is not what the build sees; hooks do not run. */
static void test_build_is_on_its_own(void **state)
{
    (void)state;
    struct revision r;
    char id[41], now[41];
    commit(builds, id);
    write_file("later", "");
    commit(builds, now);
    write_file(".git/hooks/post-checkout", "#!/bin/sh\ntouch $HOME/hooked $QUICK\n");
    assert_int_equal(chmod(".git/hooks/post-checkout", 0700), 0);
    set_path("GIT_DIR", "repository/.git");
    set_path("GIT_INDEX_FILE", "repository/.git/index");
    setenv("MAKEFLAGS", "n", 1);
    setenv("MAKELEVEL", "3", 1);
    assert_int_equal(chdir(".."), 0); /* GIT_DIR alone says which repository */
    resolve(id, &r);
    assert_int_equal(chdir("repository"), 0);
    assert_library_of(&r, id);
    assert_int_equal(access("../quick", F_OK), -1);
    char staged[8];
    shell_line("git diff --cached --name-only | wc -l", staged, sizeof staged);
    assert_int_equal(strtol(staged, NULL, 10), 0);
    assert_no_worktree();
}

/* ---- builds that take long ---- */

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

/* Resolves in a process of its own, whose standard error comes out of *complaints. */
static pid_t start_resolving(const char *what, int *complaints)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct revision r;
        struct gate_error err = {0};
        dup2(ends[1], STDERR_FILENO);
        enum gate_status status = revision_resolve(what, LIBRARY, &r, &err);
        if (status)
            fprintf(stderr, "%s\n", err.message);
        _exit((int)status);
    }
    close(ends[1]);
    *complaints = ends[0];
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

static void test_one_build_at_a_time(void **state)
{
    (void)state;
    char id[41];
    int one, two, started = open_started();
    struct revision r;
    commit(waits, id);
    pid_t first = start_resolving(id, &one);
    await_started(started);
    await_text(one, "gate: building " LIBRARY " of commit ");
    pid_t second = start_resolving(id, &two);
    await_text(two, "gate: waiting for another build of commit ");
    let_go();
    assert_ends_well(first);
    assert_ends_well(second);
    resolve(id, &r);
    assert_library_of(&r, id);
    assert_builds(1);
    assert_no_worktree();
    close(one);
    close(two);
    close(started);
}

static void test_waiting_for_another_build_ends(void **state)
{
    (void)state;
    char id[41];
    int complaints, started = open_started();
    struct revision r;
    struct gate_error err = {0};
    commit(waits, id);
    pid_t child = start_resolving(id, &complaints);
    await_started(started);
    setenv("GATE_BUILD_TIMEOUT", "1", 1);
    assert_int_equal(revision_resolve(id, LIBRARY, &r, &err), GATE_ENVIRONMENT);
    assert_non_null(strstr(err.message, "another process has been building"));
    assert_int_equal(count_worktrees(), 1);
    let_go();
    assert_ends_well(child);
    close(complaints);
    close(started);
}

static void test_time_out(void **state)
{
    (void)state;
    char id[41], c;
    int ends[2];
    struct revision r;
    struct gate_error err = {0};
    commit(waits, id);
    /* What the build starts holds the pipe, so its end is the end of all of it. */
    assert_int_equal(pipe(ends), 0);
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    int started = open_started();
    setenv("GATE_BUILD_TIMEOUT", "2", 1);
    assert_int_equal(revision_resolve(id, LIBRARY, &r, &err), GATE_ENVIRONMENT);
    assert_non_null(strstr(err.message, "took more than the 2 s of GATE_BUILD_TIMEOUT"));
    close(ends[1]);
    await(ends[0]);
    assert_int_equal(read(ends[0], &c, 1), 0);
    close(ends[0]);
    close(started);
    assert_no_worktree();
}

static void test_bad_time_out(void **state)
{
    (void)state;
    static const char *const values[] = {"0", "-1", "x", "1x", "99999999999999999999", "86401"};
    char id[41];
    struct revision r;
    commit(builds, id);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        struct gate_error err = {0};
        setenv("GATE_BUILD_TIMEOUT", values[i], 1);
        assert_int_equal(revision_resolve(id, LIBRARY, &r, &err), GATE_USAGE);
        assert_non_null(strstr(err.message, "GATE_BUILD_TIMEOUT"));
    }
    assert_builds(0);
}

static void test_killed_run_does_not_block_the_next(void **state)
{
    (void)state;
    char id[41];
    int complaints, status, started = open_started();
    struct revision r;
    commit(waits, id);
    pid_t child = start_resolving(id, &complaints);
    int make = pidfd_open(await_started(started), 0);
    assert_true(make >= 0);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    await(make); /* it does not go on by itself */
    close(make);
    assert_int_equal(count_worktrees(), 1);
    write_file("../quick", "");
    /* One of another clone, one that git never finished, and one that it has locked. */
    char command[PATHS_MAX];
    snprintf(command, sizeof command,
             "git clone -q . ../clone && git -C ../clone worktree add -q --detach $GATE_CACHE/"
             "worktrees/%s.cloned && mkdir -p $GATE_CACHE/worktrees/%s.broken/deep && "
             "git worktree add -q --lock --detach $GATE_CACHE/worktrees/%s.held",
             id, id, id);
    shell(command);
    assert_int_equal(count_worktrees(), 4);
    resolve(id, &r);
    assert_library_of(&r, id);
    assert_no_worktree();
    let_go();
    close(complaints);
    close(started);
}

/* Other commits are at work, or are not this one's business. */
static void test_worktrees_of_other_commits_stay(void **state)
{
    (void)state;
    char id[41];
    struct revision r;
    commit(builds, id);
    shell("mkdir -p $GATE_CACHE/worktrees/" NO_COMMIT ".x");
    resolve(id, &r);
    assert_int_equal(count_worktrees(), 1);
}

/* ---- stored bests ---- */

static void test_best(void **state)
{
    (void)state;
    struct revision r, best;
    struct gate_error err = {0};
    char id[41];
    commit(builds, id);
    resolve(id, &r);
    assert_int_equal(revision_resolve_best(r.sha256, "", LIBRARY, &best, &err), GATE_OK);
    assert_string_equal(best.path, r.path);
    assert_string_equal(best.commit, "");
    assert_int_equal(unlink(r.path), 0);
    /* Without the artifact: unknown commits give it up, the right one makes it again. */
    assert_int_equal(revision_resolve_best(r.sha256, "", LIBRARY, &best, &err), GATE_NO_VERDICT);
    assert_int_equal(revision_resolve_best(r.sha256, NO_COMMIT, LIBRARY, &best, &err),
                     GATE_NO_VERDICT);
    assert_non_null(strstr(err.message, "there is no artifact"));
    err = (struct gate_error){0};
    assert_int_equal(revision_resolve_best(r.sha256, id, LIBRARY, &best, &err), GATE_OK);
    assert_int_equal(err.message[0], '\0');
    assert_library_of(&best, id);
    assert_builds(2);
}

static void test_best_with_another_hash(void **state)
{
    (void)state;
    struct revision best;
    struct gate_error err = {0};
    char id[41];
    commit(builds, id);
    assert_int_equal(revision_resolve_best(ABC, id, LIBRARY, &best, &err), GATE_NO_VERDICT);
    assert_non_null(strstr(err.message, ABC ": refused"));
    /* Once known, it costs no second build. */
    assert_int_equal(revision_resolve_best(ABC, id, LIBRARY, &best, &err), GATE_NO_VERDICT);
    assert_builds(1);
    assert_int_equal(revision_resolve_best("../x", id, LIBRARY, &best, &err), GATE_USAGE);
}

static void test_best_that_does_not_build(void **state)
{
    (void)state;
    struct revision best;
    struct gate_error err = {0};
    char id[41];
    commit(fails, id);
    assert_int_equal(revision_resolve_best(ABC, id, LIBRARY, &best, &err), GATE_ENVIRONMENT);
    assert_non_null(strstr(err.message, "cannot be built here"));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, enter_repository, leave_repository)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_file),
        TEST(test_commits),
        TEST(test_from_a_folder_below),
        TEST(test_bad_names),
        TEST(test_unprintable_names),
        TEST(test_without_git),
        TEST(test_second_resolve_does_not_rebuild),
        TEST(test_damaged_artifact_is_refused),
        TEST(test_commit_that_does_not_build),
        TEST(test_build_that_makes_nothing),
        TEST(test_names_are_checked_before_they_are_paths),
        TEST(test_build_is_on_its_own),
        TEST(test_one_build_at_a_time),
        TEST(test_waiting_for_another_build_ends),
        TEST(test_time_out),
        TEST(test_bad_time_out),
        TEST(test_killed_run_does_not_block_the_next),
        TEST(test_worktrees_of_other_commits_stay),
        TEST(test_best),
        TEST(test_best_with_another_hash),
        TEST(test_best_that_does_not_build),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
