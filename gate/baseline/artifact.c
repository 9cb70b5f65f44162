/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/baseline/artifact.h"

#include <errno.h>
#include <sha2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gate/base/alloc.h"
#include "gate/base/buf.h"
#include "gate/base/utf8.h"
#include "gate/base/file.h"
#include "gate/library/machine_code.h"

#define NOTE_BYTES 65 /* a SHA-256 and a newline */
#define FILE_NAME_MAX 200

/* ---- names ---- */

static enum gate_status check_sha256(const char *sha256, struct gate_error *err)
{
    if (hex_is(sha256, 64))
        return GATE_OK;
    return gate_fail(err, GATE_USAGE, "'%.80s' is not a SHA-256 of 64 lower-case hex digits",
                     sha256);
}

static enum gate_status check_library_of_commit(const char *commit, const char *file_name,
                                                struct gate_error *err)
{
    if (!hex_is(commit, 40))
        return gate_fail(err, GATE_USAGE, "'%.80s' is not a commit of 40 lower-case hex digits",
                         commit);
    size_t n = strnlen(file_name, FILE_NAME_MAX + 1);
    if (!n || n > FILE_NAME_MAX || file_name[0] == '.' || file_name[0] == '-' ||
        strspn(file_name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-") !=
            n)
        return gate_fail(err, GATE_USAGE, "'%.80s' is not the file name of a library", file_name);
    return GATE_OK;
}

/* ---- folders ---- */

enum gate_status artifact_cache_dir(char path[PATHS_MAX], struct gate_error *err)
{
    char chosen[PATHS_MAX];
    struct stat st;
    enum gate_status status;
    TRY(paths_cache(chosen, err));
    TRY(file_make_folders(chosen, 0700, err));
    char *absolute = realpath(chosen, NULL);
    if (!absolute || stat(absolute, &st))
        status =
            gate_fail(err, GATE_IO, "cannot use artifact cache '%s': %s", chosen, strerror(errno));
    else if (st.st_mode & S_IWOTH)
        status = gate_fail(err, GATE_ENVIRONMENT,
                           "everybody can write to the artifact cache '%s', and its files are "
                           "executed: remove the permission (chmod o-w) or set GATE_CACHE",
                           absolute);
    else
        status = paths_set(path, err, "%s", absolute);
    free(absolute);
    return status;
}

enum gate_status artifact_cache_folder(const char *name, char path[PATHS_MAX],
                                       struct gate_error *err)
{
    char cache[PATHS_MAX];
    TRY(artifact_cache_dir(cache, err));
    TRY(paths_set(path, err, "%s/%s", cache, name));
    return file_make_folders(path, 0700, err);
}

static enum gate_status artifact_path(const char *sha256, char path[PATHS_MAX],
                                      struct gate_error *err)
{
    char cache[PATHS_MAX];
    TRY(check_sha256(sha256, err));
    TRY(artifact_cache_dir(cache, err));
    return paths_set(path, err, "%s/artifacts/%s.so", cache, sha256);
}

/* ---- artifacts ---- */

enum presence { ABSENT, INTACT, DAMAGED };

/* Says what is at the path of an artifact; of a damaged one, `how` says what is wrong with it. */
static enum gate_status look(const char *path, const char *sha256, enum presence *out, char *how,
                             size_t how_size, struct gate_error *err)
{
    struct stat st;
    char found[65];
    if (lstat(path, &st)) {
        if (errno != ENOENT)
            return gate_fail(err, GATE_IO, "cannot look at '%s': %s", path, strerror(errno));
        *out = ABSENT;
        return GATE_OK;
    }
    *out = DAMAGED;
    snprintf(how, how_size, "is not a regular file");
    if (!S_ISREG(st.st_mode))
        return GATE_OK;
    enum gate_status status = file_sha256(path, found, err);
    if (status && lstat(path, &st) && errno == ENOENT) {
        *out = ABSENT; /* it went between the two looks */
        return GATE_OK;
    }
    if (status)
        return status;
    snprintf(how, how_size, "has hash %s", found);
    if (!strcmp(found, sha256))
        *out = INTACT;
    return GATE_OK;
}

/* A bad artifact is kept for whoever wants to know, under a name that nothing opens. */
static bool move_aside(const char *path, char aside[PATHS_MAX])
{
    if (paths_set(aside, NULL, "%s.refused", path))
        return false;
    return !rename(path, aside);
}

static enum gate_status store(const struct buf *bytes, const char *sha256, struct gate_error *err)
{
    char folder[PATHS_MAX], path[PATHS_MAX], aside[PATHS_MAX], how[96];
    enum presence presence = DAMAGED;
    TRY(artifact_path(sha256, path, err));
    TRY(artifact_cache_folder("artifacts", folder, err));
    TRY(look(path, sha256, &presence, how, sizeof how, err));
    if (presence == INTACT)
        return GATE_OK;
    if (presence == DAMAGED && !move_aside(path, aside) && errno != ENOENT)
        return gate_fail(err, GATE_IO, "artifact '%s' %s and cannot be replaced: %s", path, how,
                         strerror(errno));
    return file_write_atomic(path, bytes->data, bytes->len, err);
}

enum gate_status artifact_put(const char *library, char sha256[65], struct gate_error *err)
{
    RELEASED_BY(piece_release) struct piece piece = {.n_files = 0};
    char hash[65];
    /* Read once: what is hashed and what is written are the same bytes in memory, whatever happens
     * to the file meanwhile. */
    TRY(piece_read(library, ARTIFACT_MAX_BYTES, &piece, err));
    piece_hash(&piece, hash);
    TRY(store(&piece.bytes, hash, err));
    memcpy(sha256, hash, 65);
    return GATE_OK;
}

enum gate_status artifact_put_bytes(const struct buf *bytes, const char *sha256,
                                    char path[PATHS_MAX], struct gate_error *err)
{
    char hash[SHA256_DIGEST_STRING_LENGTH];
    TRY(artifact_path(sha256, path, err));
    SHA256Data((const uint8_t *)bytes->data, bytes->len, hash);
    if (strcmp(hash, sha256) != 0)
        return gate_fail(err, GATE_ENVIRONMENT,
                         "the file of library %.16s... has hash %.16s...: refused", sha256, hash);
    return store(bytes, sha256, err);
}

enum gate_status artifact_get(const char *sha256, char path[PATHS_MAX], struct gate_error *err)
{
    char aside[PATHS_MAX], how[96];
    enum presence presence = ABSENT;
    TRY(artifact_path(sha256, path, err));
    TRY(look(path, sha256, &presence, how, sizeof how, err));
    if (presence == INTACT)
        return GATE_OK;
    if (presence == ABSENT)
        return gate_fail(err, GATE_NO_VERDICT, "artifact '%s' does not exist", path);
    bool moved = move_aside(path, aside);
    return gate_fail(err, GATE_ENVIRONMENT, "artifact %s %s, refused; it %s '%s'", sha256, how,
                     moved ? "is now" : "could not be renamed, remove", moved ? aside : path);
}

/* ---- the index of commits ---- */

enum gate_status artifact_note_commit(const char *commit, const char *file_name, const char *sha256,
                                      struct gate_error *err)
{
    char name[64], folder[PATHS_MAX], path[PATHS_MAX], note[NOTE_BYTES + 1];
    TRY(check_library_of_commit(commit, file_name, err));
    TRY(check_sha256(sha256, err));
    snprintf(name, sizeof name, "commits/%s", commit);
    snprintf(note, sizeof note, "%s\n", sha256);
    TRY(artifact_cache_folder(name, folder, err));
    TRY(paths_set(path, err, "%s/%s", folder, file_name));
    return file_write_atomic(path, note, NOTE_BYTES, err);
}

enum gate_status artifact_get_commit(const char *commit, const char *file_name, char sha256[65],
                                     char path[PATHS_MAX], struct gate_error *err)
{
    char cache[PATHS_MAX];
    struct stat st = {0};
    RELEASED_BY(buf_release) struct buf note = buf_of(4096);
    TRY(check_library_of_commit(commit, file_name, err));
    TRY(artifact_cache_dir(cache, err));
    TRY(paths_set(path, err, "%s/commits/%s/%s", cache, commit, file_name));
    if (lstat(path, &st) && errno == ENOENT)
        return gate_fail(err, GATE_NO_VERDICT, "no %s of commit %.12s is in the artifact cache",
                         file_name, commit);
    if (!S_ISREG(st.st_mode)) /* a pipe would never end */
        return gate_fail(err, GATE_ENVIRONMENT, "'%s' is not a regular file: remove it", path);
    TRY(file_read(path, &note, err));
    bool whole = note.len == NOTE_BYTES && note.data[64] == '\n';
    if (whole)
        note.data[64] = '\0';
    if (!whole || !hex_is(note.data, 64))
        return gate_fail(err, GATE_ENVIRONMENT, "'%s' is damaged (no SHA-256): remove it", path);
    memcpy(sha256, note.data, 65);
    return artifact_get(sha256, path, err);
}
