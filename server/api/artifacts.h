/* SPDX-License-Identifier: Apache-2.0 */
/*
 * artifacts.h: files that are named by their SHA-256, in a folder beside the database.
 *
 * DIR/ab/abcd... is a whole file with that hash, always: it is written in DIR/incoming, synced, and
 * renamed. Several threads may use one `struct artifacts`; a put belongs to one thread at a time.
 */
#ifndef SERVER_API_ARTIFACTS_H
#define SERVER_API_ARTIFACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/base/error.h"

#define ARTIFACT_MAX_BYTES ((uint64_t)256 << 20)
#define ARTIFACT_MIN_FREE_BYTES ((int64_t)256 << 20) /* of the disk, else none is taken */
#define ARTIFACT_NAME_LENGTH 64                      /* lower-case hex digits */

struct artifacts;
struct artifact_put;

/* The folder is made for the first artifact. */
enum gate_status artifacts_open(const char *path, struct artifacts **out, struct gate_error *err);
void artifacts_close(struct artifacts *a); /* NULL is fine */

/* Removes what a server that was killed left half written: for the one that takes its place. */
void artifacts_clean(struct artifacts *a);

bool artifacts_is_name(const char *name);

/* A descriptor to read it, the caller's; -1: there is none. Its bytes are compared with the name,
 * once as long as nobody touches the file (a few milliseconds a megabyte). -1 as well where they
 * are others: *damaged then. */
int artifacts_find_whole(struct artifacts *a, const char *name, uint64_t *size, bool *damaged);

/* Free bytes where the artifacts lie; -1: not known. */
int64_t artifacts_free_bytes(const struct artifacts *a);

enum artifact_result {
    ARTIFACT_STORED,
    ARTIFACT_EXISTED,
    ARTIFACT_OTHER_HASH, /* these are not the bytes of that name */
    ARTIFACT_FULL,       /* no room */
    ARTIFACT_FAILED,     /* the error says why */
};

/* A put ends with a finish or an abort. NULL, with an error: it cannot begin. */
struct artifact_put *artifact_begin(struct artifacts *a, const char *name, struct gate_error *err);
/* A failure sticks, and comes out of artifact_finish(). */
void artifact_add(struct artifact_put *p, const void *bytes, size_t n);
/* Durable when it returns ARTIFACT_STORED or ARTIFACT_EXISTED. */
enum artifact_result artifact_finish(struct artifact_put *p, struct gate_error *err);
void artifact_abort(struct artifact_put *p); /* NULL is fine */

/* Reads every artifact again; `fn` is told of each that is not what its name says. */
typedef void (*artifacts_fault_fn)(void *context, const char *name, const char *what);
enum gate_status artifacts_check(struct artifacts *a, artifacts_fault_fn fn, void *context,
                                 uint64_t *n_files, struct gate_error *err);

#endif
