/* SPDX-License-Identifier: Apache-2.0 */
/* The artifact cache: what is put is what is got, and nothing else is. */
#include <dirent.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gate/baseline/artifact.h"
#include "gate/base/file.h"
#include "tests/unit/unit.h"

#define ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define COMMIT "0123456789abcdef0123456789abcdef01234567"

/* Each test has an empty cache, "cache", in a folder of its own. */
static int enter_cache(void **state)
{
    (void)state;
    char cache[sizeof unit_folder + 8];
    if (unit_enter_folder(state))
        return -1;
    snprintf(cache, sizeof cache, "%s/cache", unit_folder);
    return setenv("GATE_CACHE", cache, 1);
}

static void put_abc(void)
{
    char sha256[65] = "";
    struct gate_error err = {0};
    write_text("lib.so", "abc");
    if (artifact_put("lib.so", sha256, &err))
        fail_msg("%s", err.message);
    assert_string_equal(sha256, ABC);
    assert_int_equal(err.message[0], '\0');
}

/* Runs `body` in a process of its own, which may limit itself; true is what it returns. */
static void assert_in_child(bool (*body)(void))
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(body() ? 0 : 1);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- where it is ---- */

static void assert_cache(const char *expected)
{
    char path[PATHS_MAX], absolute[PATHS_MAX];
    struct gate_error err = {0};
    struct stat st;
    if (artifact_cache_dir(path, &err))
        fail_msg("%s", err.message);
    assert_non_null(realpath(expected, absolute));
    assert_string_equal(path, absolute);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
}

TEST_WITHIN(place, enter_cache, unit_leave_folder)
{
    char path[PATHS_MAX], text[sizeof unit_folder + 16];
    struct gate_error err = {0};
    assert_cache("cache");
    setenv("GATE_CACHE", "relative/deep//cache", 1);
    assert_cache("relative/deep/cache");
    setenv("GATE_CACHE", "", 1); /* empty is unset */
    snprintf(text, sizeof text, "%s/xdg", unit_folder);
    setenv("XDG_CACHE_HOME", text, 1);
    assert_cache("xdg/kernel-gate");
    setenv("XDG_CACHE_HOME", "xdg", 1);
    setenv("HOME", unit_folder, 1);
    assert_cache(".cache/kernel-gate");
    unsetenv("XDG_CACHE_HOME");
    unsetenv("GATE_CACHE");
    assert_cache(".cache/kernel-gate");
    unsetenv("HOME");
    assert_int_equal(artifact_cache_dir(path, &err), GATE_ENVIRONMENT);
    assert_non_null(strstr(err.message, "set GATE_CACHE"));
}

TEST_WITHIN(unusable_places, enter_cache, unit_leave_folder)
{
    char path[PATHS_MAX], name[PATHS_MAX + 100];
    struct gate_error err = {0};
    write_text("file", "x");
    setenv("GATE_CACHE", "file", 1);
    assert_int_equal(artifact_cache_dir(path, &err), GATE_IO);
    setenv("GATE_CACHE", "file/below", 1);
    assert_int_equal(artifact_cache_dir(path, &err), GATE_IO);
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    setenv("GATE_CACHE", name, 1);
    assert_int_equal(artifact_cache_dir(path, &err), GATE_ENVIRONMENT);
    assert_int_equal(mkdir("open", 0700), 0);
    assert_int_equal(chmod("open", 0777), 0);
    setenv("GATE_CACHE", "open", 1);
    assert_int_equal(artifact_cache_dir(path, &err), GATE_ENVIRONMENT);
    assert_non_null(strstr(err.message, "everybody can write"));
}

/* ---- put and get ---- */

TEST_WITHIN(put_then_get, enter_cache, unit_leave_folder)
{
    char path[PATHS_MAX];
    struct gate_error err = {0};
    put_abc();
    write_text("lib.so", "changed since");
    assert_int_equal(artifact_get(ABC, path, &err), GATE_OK);
    assert_int_equal(path[0], '/');
    assert_content(path, "abc");
    assert_int_equal(count_entries("cache/artifacts"), 1);
}

TEST_WITHIN(put_again_changes_nothing, enter_cache, unit_leave_folder)
{
    struct stat before, after;
    put_abc();
    assert_int_equal(stat("cache/artifacts/" ABC ".so", &before), 0);
    put_abc();
    assert_int_equal(stat("cache/artifacts/" ABC ".so", &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    assert_int_equal(count_entries("cache/artifacts"), 1);
}

TEST_WITHIN(put_refuses, enter_cache, unit_leave_folder)
{
    char sha256[65] = "as it was";
    struct gate_error err = {0};
    assert_int_equal(artifact_put("none", sha256, &err), GATE_IO);
    assert_int_equal(artifact_put(".", sha256, &err), GATE_USAGE);
    assert_int_equal(artifact_put("/dev/zero", sha256, &err), GATE_USAGE);
    assert_int_equal(mkfifo("pipe", 0600), 0);
    assert_int_equal(artifact_put("pipe", sha256, &err), GATE_USAGE); /* and does not wait */
    write_text("empty", "");
    assert_int_equal(artifact_put("empty", sha256, &err), GATE_USAGE);
    int fd = open("big", O_CREAT | O_WRONLY, 0600);
    assert_int_equal(ftruncate(fd, (off_t)ARTIFACT_MAX_BYTES + 1), 0);
    close(fd);
    assert_int_equal(artifact_put("big", sha256, &err), GATE_USAGE);
    assert_string_equal(err.message, "'big' is larger than the 256 MiB a library may have");
    assert_string_equal(sha256, "as it was");
    assert_int_equal(access("cache", F_OK), -1);
}

TEST_WITHIN(absent, enter_cache, unit_leave_folder)
{
    char path[PATHS_MAX];
    struct gate_error err = {0};
    assert_int_equal(artifact_get(ABC, path, &err), GATE_NO_VERDICT);
    assert_non_null(strstr(err.message, ABC));
    assert_null(strstr(err.message, "--")); /* what is to be done depends on who asks */
    put_abc();
    assert_int_equal(unlink("cache/artifacts/" ABC ".so"), 0);
    assert_int_equal(artifact_get(ABC, path, &err), GATE_NO_VERDICT);
}

TEST_WITHIN(corrupted_is_moved_aside, enter_cache, unit_leave_folder)
{
    char path[PATHS_MAX];
    struct gate_error err = {0};
    put_abc();
    int fd = open("cache/artifacts/" ABC ".so", O_WRONLY);
    assert_int_equal(pwrite(fd, "X", 1, 1), 1);
    close(fd);
    assert_int_equal(artifact_get(ABC, path, &err), GATE_ENVIRONMENT);
    assert_non_null(strstr(err.message, "artifact " ABC " has hash "));
    assert_non_null(strstr(err.message, "refused"));
    assert_content("cache/artifacts/" ABC ".so.refused", "aXc");
    assert_int_equal(artifact_get(ABC, path, &err), GATE_NO_VERDICT);
    put_abc();
    assert_int_equal(artifact_get(ABC, path, &err), GATE_OK);
    assert_content(path, "abc");
}

TEST_WITHIN(truncated_or_odd_is_refused, enter_cache, unit_leave_folder)
{
    char path[PATHS_MAX];
    struct gate_error err = {0};
    put_abc();
    assert_int_equal(truncate("cache/artifacts/" ABC ".so", 0), 0);
    assert_int_equal(artifact_get(ABC, path, &err), GATE_ENVIRONMENT);
    /* Right bytes behind a link, which may point elsewhere tomorrow. */
    write_text("lib.so", "abc");
    assert_int_equal(symlink("../../lib.so", "cache/artifacts/" ABC ".so"), 0);
    assert_int_equal(artifact_get(ABC, path, &err), GATE_ENVIRONMENT);
    assert_non_null(strstr(err.message, "is not a regular file, refused"));
    assert_int_equal(mkfifo("cache/artifacts/" ABC ".so", 0600), 0);
    assert_int_equal(artifact_get(ABC, path, &err), GATE_ENVIRONMENT);
}

TEST_WITHIN(put_replaces_corrupted, enter_cache, unit_leave_folder)
{
    char path[PATHS_MAX];
    struct gate_error err = {0};
    put_abc();
    assert_int_equal(truncate("cache/artifacts/" ABC ".so", 1), 0);
    put_abc();
    assert_int_equal(artifact_get(ABC, path, &err), GATE_OK);
    assert_content(path, "abc");
    assert_content("cache/artifacts/" ABC ".so.refused", "a");
}

TEST_WITHIN(hostile_hashes, enter_cache, unit_leave_folder)
{
    static const char *const hostile[] = {
        "",
        "../x",
        "ba78",
        ABC "0",
        "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD",
        "../../../../../../../../../../../../../../../../../etc/passwd/aa",
        "ba7816bf8f01cfea414140de5dae2223/00361a396177a9cb410ff61f20015ad",
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015a\n",
    };
    char path[PATHS_MAX];
    put_abc();
    for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++) {
        struct gate_error err = {0};
        assert_int_equal(artifact_get(hostile[i], path, &err), GATE_USAGE);
        assert_non_null(strstr(err.message, "is not a SHA-256"));
        assert_int_equal(artifact_note_commit(COMMIT, "libours.so", hostile[i], &err), GATE_USAGE);
    }
    assert_int_equal(access("cache/commits", F_OK), -1);
}

/* ---- the index of commits ---- */

TEST_WITHIN(commit_note, enter_cache, unit_leave_folder)
{
    char sha256[65] = "", path[PATHS_MAX];
    struct gate_error err = {0};
    assert_int_equal(artifact_get_commit(COMMIT, "libours.so", sha256, path, &err),
                     GATE_NO_VERDICT);
    put_abc();
    assert_int_equal(artifact_note_commit(COMMIT, "libours.so", ABC, &err), GATE_OK);
    assert_int_equal(artifact_get_commit(COMMIT, "libhost.so", sha256, path, &err),
                     GATE_NO_VERDICT);
    assert_int_equal(artifact_get_commit(COMMIT, "libours.so", sha256, path, &err), GATE_OK);
    assert_string_equal(sha256, ABC);
    assert_content(path, "abc");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(artifact_get_commit(COMMIT, "libours.so", sha256, path, &err),
                     GATE_NO_VERDICT);
    char other[] = ABC;
    other[0] = '0';
    assert_int_equal(artifact_note_commit(COMMIT, "libours.so", other, &err), GATE_OK);
    assert_int_equal(artifact_get_commit(COMMIT, "libours.so", sha256, path, &err),
                     GATE_NO_VERDICT);
    assert_string_equal(sha256, other);
}

TEST_WITHIN(damaged_notes, enter_cache, unit_leave_folder)
{
    static const char not_hex[] =
        "../../../../../../../../../../../../../../../../../../etc/passwd\n";
    static const char *const damaged[] = {
        "", "abc\n", ABC, ABC "\n\n", "../" ABC "\n", not_hex,
    };
    const char *path = "cache/commits/" COMMIT "/libours.so";
    char sha256[65] = "as it was", library[PATHS_MAX];
    struct gate_error err = {0};
    assert_int_equal(sizeof not_hex, 66);
    assert_int_equal(artifact_note_commit(COMMIT, "libours.so", ABC, &err), GATE_OK);
    for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; i++) {
        write_text(path, damaged[i]);
        assert_int_equal(artifact_get_commit(COMMIT, "libours.so", sha256, library, &err),
                         GATE_ENVIRONMENT);
        assert_non_null(strstr(err.message, path));
    }
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(artifact_get_commit(COMMIT, "libours.so", sha256, library, &err),
                     GATE_ENVIRONMENT);
    assert_string_equal(sha256, "as it was");
}

TEST_WITHIN(hostile_commits_and_names, enter_cache, unit_leave_folder)
{
    static const char *const commits[] = {"",
                                          "..",
                                          "HEAD",
                                          "0123456789abcdef",
                                          "0123456789ABCDEF0123456789abcdef01234567",
                                          "../../../../../../../../../../../../../x"};
    static const char *const names[] = {
        "", ".", "..", ".hidden", "-option", "a/b", "../libours.so", "a b", "a\nb"};
    char sha256[65], path[PATHS_MAX];
    struct gate_error err = {0};
    for (size_t i = 0; i < sizeof commits / sizeof commits[0]; i++) {
        assert_int_equal(artifact_note_commit(commits[i], "libours.so", ABC, &err), GATE_USAGE);
        assert_int_equal(artifact_get_commit(commits[i], "libours.so", sha256, path, &err),
                         GATE_USAGE);
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_int_equal(artifact_note_commit(COMMIT, names[i], ABC, &err), GATE_USAGE);
        assert_int_equal(artifact_get_commit(COMMIT, names[i], sha256, path, &err), GATE_USAGE);
    }
    assert_int_equal(access("cache", F_OK), -1);
}

/* ---- trouble ---- */

/* Eight processes put two libraries over and over; whoever looks finds them whole or not at all. */
TEST_WITHIN(concurrent_puts, enter_cache, unit_leave_folder)
{
    enum { PROCESSES = 8, ROUNDS = 20 };
    static char big[256 * 1024];
    char sha256[2][65], path[PATHS_MAX];
    struct gate_error err = {0};
    memset(big, 'b', sizeof big - 1);
    write_text("lib0.so", big);
    big[0] = 'c';
    write_text("lib1.so", big);
    for (int i = 0; i < 2; i++)
        assert_int_equal(file_sha256(i ? "lib1.so" : "lib0.so", sha256[i], &err), GATE_OK);
    pid_t children[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        for (int round = 0; children[i] == 0 && round < ROUNDS; round++) {
            char got[65];
            int which = (i + round) % 2;
            enum gate_status status = artifact_put(which ? "lib1.so" : "lib0.so", got, &err);
            if (status || strcmp(got, sha256[which]) != 0)
                _exit(1);
            status = artifact_get(got, path, &err);
            if (status && status != GATE_NO_VERDICT)
                _exit(2);
            /* Now and then it goes, so that some write while others look. */
            if (round % 5 == i % 5)
                unlink(path);
            else if (artifact_note_commit(COMMIT, "libours.so", got, &err))
                _exit(3);
            status = artifact_get_commit(COMMIT, "libours.so", got, path, &err);
            if (status && status != GATE_NO_VERDICT)
                _exit(4);
        }
        if (children[i] == 0)
            _exit(0);
    }
    int failed = 0;
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        failed += status != 0;
    }
    assert_int_equal(failed, 0);
}

/* Gives up what makes root stand above permissions. */
static bool obey_permissions(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0, 0, 0}};
    return !syscall(SYS_capset, &header, none);
}

static bool read_only(void)
{
    char sha256[65], path[PATHS_MAX];
    struct gate_error err = {0};
    return obey_permissions() && !artifact_get(ABC, path, &err) &&
           !artifact_put("lib.so", sha256, &err) &&
           artifact_put("other.so", sha256, &err) == GATE_IO &&
           strstr(err.message, "Permission denied") &&
           artifact_note_commit(COMMIT, "libours.so", ABC, &err) == GATE_IO &&
           strstr(err.message, "cannot make folder");
}

static bool read_only_and_damaged(void)
{
    char path[PATHS_MAX];
    struct gate_error err = {0};
    return obey_permissions() && artifact_get(ABC, path, &err) == GATE_ENVIRONMENT &&
           strstr(err.message, "could not be renamed, remove");
}

TEST_WITHIN(read_only_cache, enter_cache, unit_leave_folder)
{
    write_text("other.so", "other");
    put_abc();
    assert_int_equal(chmod("cache/artifacts", 0555), 0);
    assert_int_equal(chmod("cache", 0555), 0);
    assert_in_child(read_only);
    assert_int_equal(truncate("cache/artifacts/" ABC ".so", 1), 0);
    assert_in_child(read_only_and_damaged);
    assert_int_equal(chmod("cache", 0700), 0);
    assert_int_equal(chmod("cache/artifacts", 0700), 0);
}
