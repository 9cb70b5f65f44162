/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_cuda_users.c: which listed processes are believed to use a GPU, on a made-up /proc.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gate/device/nvml.h"
#include "tests/unit/unit.h"

/* Path of an entry of a process; NULL as leaf: its folder. Valid until the next call. */
static const char *path_of(int pid, const char *leaf)
{
    static char path[512];
    snprintf(path, sizeof(path), "%s/%d%s%s", unit_folder, pid, leaf ? "/" : "", leaf ? leaf : "");
    return path;
}

static void write_file(int pid, const char *leaf, const char *text)
{
    write_text(path_of(pid, leaf), text);
}

/* A process in a state such as 'S', without open files. */
static void add_process(int pid, const char *name, char state)
{
    char stat[128];
    assert_int_equal(mkdir(path_of(pid, NULL), 0700), 0);
    assert_int_equal(mkdir(path_of(pid, "fd"), 0700), 0);
    snprintf(stat, sizeof(stat), "%d (%s) %c 1 1 0 0", pid, name, state);
    write_file(pid, "stat", stat);
    snprintf(stat, sizeof(stat), "%s\n", name);
    write_file(pid, "comm", stat);
}

/* Links as those of /proc: most lead nowhere that could be opened. */
static void add_open_file(int pid, int fd, const char *target)
{
    char leaf[32];
    snprintf(leaf, sizeof(leaf), "fd/%d", fd);
    assert_int_equal(symlink(target, path_of(pid, leaf)), 0);
}

TEST_WITHIN(a_user_is_alive_and_holds_a_device_file, unit_enter_folder, unit_leave_folder)
{
    static const struct {
        const char *name;
        char state;
        const char *files[3];
        bool is_user;
    } cases[] = {
        {"python3", 'R', {"/dev/null", "socket:[4711]", "/dev/nvidia-uvm"}, true},
        {"train", 'S', {"/dev/nvidia3"}, true}, /* whatever its number */
        {"bash", 'S', {"/dev/null", "/srv/dev/nvidia0", "/dev/nvme0"}, false},
        {"a) S (b", 'Z', {"/dev/nvidia0"}, false}, /* a zombie */
        {"Z) Z (Z", 'S', {"/dev/nvidia0"}, true},
    };
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        add_process(10 + i, cases[i].name, cases[i].state);
        for (int fd = 0; fd < 3 && cases[i].files[fd]; fd++)
            add_open_file(10 + i, fd, cases[i].files[fd]);
        assert_int_equal(cuda_user_is_alive(unit_folder, 10 + i), cases[i].is_user);
    }
    for (int nobody = -1; nobody < 10; nobody++)
        assert_false(cuda_user_is_alive(unit_folder, nobody));
}

/* A loop of links stands for a folder that may not be read: unlike a mode it also stops root. */
TEST_WITHIN(unreadable_process_counts, unit_enter_folder, unit_leave_folder)
{
    add_process(10, "root-only", 'S');
    assert_int_equal(rmdir(path_of(10, "fd")), 0);
    assert_int_equal(symlink("fd", path_of(10, "fd")), 0);
    assert_true(cuda_user_is_alive(unit_folder, 10));
}

TEST_WITHIN(find_skips_self_and_the_dead, unit_enter_folder, unit_leave_folder)
{
    const pid_t pids[] = {5, 6, 7, 8};
    struct cuda_user user = {0};
    add_process(5, "gate", 'R');
    add_open_file(5, 3, "/dev/nvidia0");
    add_process(7, "bash", 'S');
    assert_false(cuda_users_find(unit_folder, pids, 4, 5, &user));
    assert_int_equal(user.pid, 0);

    add_process(8, "python3", 'S');
    add_open_file(8, 3, "/dev/nvidia0");
    assert_true(cuda_users_find(unit_folder, pids, 4, 5, &user));
    assert_int_equal(user.pid, 8);
    assert_string_equal(user.name, "python3");

    assert_true(cuda_users_find(unit_folder, pids, 4, 99, &user));
    assert_int_equal(user.pid, 5);
    assert_false(cuda_users_find(unit_folder, pids, 0, 99, &user));
}

TEST_WITHIN(name_is_optional, unit_enter_folder, unit_leave_folder)
{
    const pid_t pid = 12;
    struct cuda_user user;
    add_process(12, "short-lived", 'S');
    add_open_file(12, 3, "/dev/nvidia0");
    assert_int_equal(unlink(path_of(12, "comm")), 0);
    assert_true(cuda_users_find(unit_folder, &pid, 1, 1, &user));
    assert_string_equal(user.name, "?");
}

/* The real one: this process holds no GPU. */
TEST_WITHIN(real_proc, unit_enter_folder, unit_leave_folder)
{
    assert_false(cuda_user_is_alive("/proc", getpid()));
}

TEST(list_is_known_by_oneself)
{
    static const pid_t pids[] = {7, 8, 9};
    assert_true(cuda_users_are_known(pids, 3, 9));
    assert_false(cuda_users_are_known(pids, 2, 9));
    assert_false(cuda_users_are_known(NULL, 0, 9));
}

TEST(the_new_one_is_oneself)
{
    static const pid_t before[] = {7, 8}, now[] = {8, 9, 7}, two[] = {7, 9, 10};
    assert_int_equal(cuda_users_self(before, 2, now, 3, 8), 8);
    assert_int_equal(cuda_users_self(before, 2, now, 3, 30), 9);
    assert_int_equal(cuda_users_self(before, 2, two, 3, 30), 0);
    assert_int_equal(cuda_users_self(before, 2, before, 2, 30), 0);
    assert_int_equal(cuda_users_self(before, 0, NULL, 0, 30), 0);
}
