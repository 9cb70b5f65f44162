/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files in and out: nothing half written, nothing left behind. */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gate/base/file.h"
#include "tests/unit/unit.h"

static int leave_folder(void **)
{
    unlink("target");
    unlink("link");
    return chdir("/") == 0 && rmdir(unit_folder) == 0 ? 0 : -1;
}

TEST(write_and_replace)
{
    write_text("target", "one");
    assert_content("target", "one");
    assert_int_equal(chmod("target", 0640), 0);
    write_text("./target", "two");
    assert_content("target", "two");
    struct stat st;
    assert_int_equal(stat("target", &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
    assert_int_equal(count_entries("."), 1);
}

TEST(link_stays)
{
    write_text("target", "old");
    assert_int_equal(symlink("target", "link"), 0);
    write_text("link", "new");
    struct stat st;
    assert_int_equal(lstat("link", &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_content("target", "new");
    assert_int_equal(unlink("link"), 0);
}

TEST(why_a_folder_cannot_be_made)
{
    struct gate_error err = {0};
    assert_int_equal(symlink("nowhere", "link"), 0);
    assert_int_equal(file_make_folders("link/below", 0777, &err), GATE_IO);
    assert_string_equal(err.message, "cannot make folder 'link': File exists");
    assert_int_equal(unlink("link"), 0);
}

TEST(refused_targets)
{
    struct gate_error err = {0};
    char name[NAME_MAX + 2];
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    assert_int_equal(file_write_atomic(".", "x", 1, &err), GATE_IO);
    assert_non_null(strstr(err.message, "'.'"));
    assert_int_equal(file_write_atomic("none/target", "x", 1, &err), GATE_IO);
    assert_int_equal(file_write_atomic(name, "x", 1, &err), GATE_IO);
    assert_int_equal(file_write_atomic("/dev/full", "x", 1, &err), GATE_IO);
    name[NAME_MAX] = '\0';
    write_text(name, "longest name");
    assert_int_equal(unlink(name), 0);
}

/* A write that fails in the middle: the size limit stands in for a full disk. */
TEST(full_disk_leaves_target)
{
    write_text("target", "as it was");
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct rlimit limit = {4096, 4096};
        static const char big[65536];
        struct gate_error err = {0};
        signal(SIGXFSZ, SIG_IGN);
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
            _exit(2);
        bool refused = file_write_atomic("target", big, sizeof(big), &err) == GATE_IO &&
                       strstr(err.message, "cannot write 'target'");
        _exit(refused ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_content("target", "as it was");
    assert_int_equal(count_entries("."), 1);
}

TEST(pipe_is_written_directly)
{
    int ends[2];
    char path[64], got[8] = "";
    assert_int_equal(pipe(ends), 0);
    snprintf(path, sizeof(path), "/dev/fd/%d", ends[1]);
    write_text(path, "piped");
    assert_int_equal(read(ends[0], got, sizeof(got)), 5);
    assert_string_equal(got, "piped");
    close(ends[0]);
    close(ends[1]);
}

TEST(writer_in_pieces)
{
    struct gate_error err = {0};
    struct file_writer *w;
    write_text("target", "before");
    assert_int_equal(file_writer_open("target", &w, &err), GATE_OK);
    assert_int_equal(file_writer_put(w, "af", 2, &err), GATE_OK);
    assert_content("target", "before");
    assert_int_equal(file_writer_put(w, "ter", 3, &err), GATE_OK);
    assert_int_equal(file_writer_commit(w, &err), GATE_OK);
    assert_content("target", "after");
    assert_int_equal(file_writer_open("target", &w, &err), GATE_OK);
    assert_int_equal(file_writer_put(w, "lost", 4, &err), GATE_OK);
    file_writer_abort(w);
    assert_content("target", "after");
    assert_int_equal(count_entries("."), 1);
}

TEST(read_faults)
{
    struct buf b;
    struct gate_error err = {0};
    buf_init(&b, 4);
    write_text("target", "12345");
    assert_int_equal(file_read("target", &b, &err), GATE_IO);
    assert_string_equal(err.message, "'target' is larger than the 4 bytes allowed");
    assert_int_equal(file_read("none", &b, &err), GATE_IO);
    assert_string_equal(err.message, "cannot open 'none': No such file or directory");
    assert_int_equal(file_read(".", &b, &err), GATE_IO);
    assert_string_equal(err.message, "cannot read '.': Is a directory");
    buf_release(&b);
}

TEST(sha256)
{
    char hex[65];
    struct gate_error err = {0};
    write_text("target", "abc");
    assert_int_equal(file_sha256("target", hex, &err), GATE_OK);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    write_text("target", "");
    assert_int_equal(file_sha256("target", hex, &err), GATE_OK);
    assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_int_equal(file_sha256("none", hex, &err), GATE_IO);
}

TESTS_WITHIN(unit_enter_folder, leave_folder)
