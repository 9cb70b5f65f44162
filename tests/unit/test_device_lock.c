/* SPDX-License-Identifier: Apache-2.0 */
/* One gate at a time on a device. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gate/device/device_lock.h"
#include "tests/unit/unit.h"

#define DEVICE "GPU-../0 1"
#define FILE_NAME "kernel-gate-GPU----0-1.lock"

static int enter_folder(void **state)
{
    return unit_enter_folder(state) || setenv("GATE_LOCKS", unit_folder, 1);
}

TEST(second_is_refused_and_told_who)
{
    struct device_lock one = {0}, two = {0}, other = {0};
    struct gate_error err = {0};
    char pid[64];
    assert_int_equal(device_lock_take(DEVICE, &one, &err), GATE_OK);
    assert_int_equal(access(FILE_NAME, F_OK), 0);
    assert_int_equal(device_lock_take(DEVICE, &two, &err), GATE_ENVIRONMENT);
    snprintf(pid, sizeof pid, "another gate (process %ld)", (long)getpid());
    assert_non_null(strstr(err.message, pid));
    assert_false(two.held);
    assert_int_equal(device_lock_take("x", &other, &err), GATE_OK);
    device_lock_release(&other);
    assert_int_equal(unlink("kernel-gate-x.lock"), 0);
    device_lock_release(&one);
    device_lock_release(&one);
    assert_int_equal(device_lock_take(DEVICE, &two, &err), GATE_OK);
    device_lock_release(&two);
}

/* It lies where all jobs of the machine look, whatever temporary folder each of them has. */
TEST(a_temporary_folder_of_ones_own_is_no_lock_of_ones_own)
{
    struct device_lock one = {0}, two = {0};
    struct gate_error err = {0};
    char name[64], path[128];
    snprintf(name, sizeof name, "GPU-test-%ld", (long)getpid());
    unsetenv("GATE_LOCKS");
    setenv("TMPDIR", unit_folder, 1);
    assert_int_equal(device_lock_take(name, &one, &err), GATE_OK);
    setenv("TMPDIR", "/nowhere", 1);
    assert_int_equal(device_lock_take(name, &two, &err), GATE_ENVIRONMENT);
    device_lock_release(&one);
    snprintf(path, sizeof path, "/run/lock/kernel-gate-%s.lock", name);
    if (unlink(path)) {
        snprintf(path, sizeof path, "/dev/shm/kernel-gate-%s.lock", name);
        assert_int_equal(unlink(path), 0);
    }
    setenv("GATE_LOCKS", unit_folder, 1);
}

/* It is not held by what a holder leaves behind. */
TEST(a_holder_that_dies_lets_go)
{
    struct device_lock l = {0};
    struct gate_error err = {0};
    pid_t child = fork();
    if (child == 0)
        _exit(device_lock_take(DEVICE, &l, &err));
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(device_lock_take(DEVICE, &l, &err), GATE_OK);
    device_lock_release(&l);
}

TEST(what_is_no_plain_file_is_refused)
{
    struct device_lock l = {0};
    struct gate_error err = {0};
    unlink(FILE_NAME);
    assert_int_equal(symlink("victim", FILE_NAME), 0);
    assert_int_equal(device_lock_take(DEVICE, &l, &err), GATE_IO);
    assert_int_not_equal(access("victim", F_OK), 0);
    unlink(FILE_NAME);
    int fd = open("victim", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && write(fd, "text", 4) == 4);
    close(fd);
    assert_int_equal(link("victim", FILE_NAME), 0);
    assert_int_equal(device_lock_take(DEVICE, &l, &err), GATE_IO);
    struct stat s;
    assert_true(!stat("victim", &s) && s.st_size == 4);
    unlink("victim");
    unlink(FILE_NAME);
    assert_int_equal(mkfifo(FILE_NAME, 0600), 0);
    assert_int_equal(device_lock_take(DEVICE, &l, &err), GATE_IO);
    assert_false(l.held);
}

TESTS_WITHIN(enter_folder, unit_leave_folder)
