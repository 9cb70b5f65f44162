/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.h: whole files in and out, and nothing half written.
 */
#ifndef GATE_BASE_FILE_H
#define GATE_BASE_FILE_H

#include <sys/types.h>

#include "gate/base/buf.h"
#include "gate/base/error.h"

/* Appends the file's bytes to `out`. GATE_IO when it cannot be read or is larger than out->max. */
enum gate_status file_read(const char *path, struct buf *out, struct gate_error *err);

/* The same of an open descriptor, such as standard input; `name` is for messages. */
enum gate_status file_read_fd(int fd, const char *name, struct buf *out, struct gate_error *err);

/*
 * Writes a temporary file beside `path`, syncs it, and renames it over `path`; on any failure
 * `path` is as it was and the temporary file is gone. A path that is not a regular file (a pipe,
 * a device) is written directly, and so is standard output, for which `path` is NULL.
 */
enum gate_status file_write_atomic(const char *path, const void *bytes, size_t n,
                                   struct gate_error *err);

/* The same in pieces. The writer ends with a commit, failed or not, or with an abort. */
struct file_writer;
enum gate_status file_writer_open(const char *path, struct file_writer **out,
                                  struct gate_error *err);
enum gate_status file_writer_put(struct file_writer *w, const void *bytes, size_t n,
                                 struct gate_error *err);
enum gate_status file_writer_commit(struct file_writer *w, struct gate_error *err);
void file_writer_abort(struct file_writer *w); /* NULL is fine */

/* Makes a folder and those above it that are not there, with a mode from which the umask is taken:
 * 0700 for what is the user's alone, 0777 in a repository. */
enum gate_status file_make_folders(const char *path, mode_t mode, struct gate_error *err);

/* $TMPDIR, or /tmp where it is not set or empty. */
const char *file_temporary_folder(void);

/* SHA-256 of a file as 64 lower-case hex digits and a NUL. */
enum gate_status file_sha256(const char *path, char hex[65], struct gate_error *err);

#endif
