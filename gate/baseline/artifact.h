/* SPDX-License-Identifier: Apache-2.0 */
/*
 * artifact.h: kernel libraries kept by what is in them, so that a stored baseline can be run again.
 *
 *     <cache>/artifacts/<sha256>.so        a library with its files, in one piece (machine_code.h);
 * never changed once it is there <cache>/commits/<commit>/<file>      the SHA-256 of a commit's
 * library, and a newline
 *
 * The cache is $GATE_CACHE, else $XDG_CACHE_HOME/kernel-gate, else $HOME/.cache/kernel-gate.
 * Nothing is ever deleted from it: removing the whole folder, or any file of it, is safe at any
 * time. What lies there is loaded and run, so a cache that everybody can write to is refused.
 *
 * A SHA-256 is 64 and a commit 40 lower-case hex digits, each with a NUL. A text that is not one is
 * GATE_USAGE and never becomes part of a path.
 */
#ifndef GATE_BASELINE_ARTIFACT_H
#define GATE_BASELINE_ARTIFACT_H

#include <stddef.h>

#include "gate/base/buf.h"
#include "gate/base/error.h"
#include "gate/base/paths.h"

#define ARTIFACT_MAX_BYTES ((size_t)256 << 20)

/* The absolute path of the cache, made with mode 0700 if need be. GATE_ENVIRONMENT: no variable
 * says where, or it is not safe; GATE_IO: it cannot be made. */
enum gate_status artifact_cache_dir(char path[PATHS_MAX], struct gate_error *err);

/* The same of a folder of the cache ("worktrees"). */
enum gate_status artifact_cache_folder(const char *name, char path[PATHS_MAX],
                                       struct gate_error *err);

/*
 * Copies a library and the files that belong to it into the cache, whole or not at all; one that is
 * there already stays, one that is damaged is replaced. *sha256 is that of the bytes written. Any
 * number of processes may do this at once. GATE_USAGE: not a regular file, empty, or over
 * ARTIFACT_MAX_BYTES; GATE_IO: it cannot be read or written.
 */
enum gate_status artifact_put(const char *library, char sha256[65], struct gate_error *err);

/* The same of bytes that must have this hash. GATE_ENVIRONMENT: they have another; nothing is
 * written. */
enum gate_status artifact_put_bytes(const struct buf *bytes, const char *sha256,
                                    char path[PATHS_MAX], struct gate_error *err);

/*
 * The path of an artifact, whose hash is computed anew each time. GATE_NO_VERDICT: it is not
 * there. GATE_ENVIRONMENT: what is there has another hash; it is renamed to "<path>.refused".
 * The code that loads the file later compares the hash of what was loaded (library_open()) once
 * more.
 */
enum gate_status artifact_get(const char *sha256, char path[PATHS_MAX], struct gate_error *err);

/* Remembers that `sha256` is the library `file_name` ("libours.so") of a commit: only for one built
 * from exactly that commit. The last note wins. */
enum gate_status artifact_note_commit(const char *commit, const char *file_name, const char *sha256,
                                      struct gate_error *err);

/* artifact_get() of what was noted last, *sha256. GATE_NO_VERDICT: nothing was. GATE_ENVIRONMENT:
 * the note is damaged. */
enum gate_status artifact_get_commit(const char *commit, const char *file_name, char sha256[65],
                                     char path[PATHS_MAX], struct gate_error *err);

#endif
