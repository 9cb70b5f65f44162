/* SPDX-License-Identifier: Apache-2.0 */
/*
 * piece.h: a kernel library in one piece: the shared object and the files that belong to it.
 *
 * A library names its files by KG_FILE() (kernel.h), which puts their names into a section of the
 * shared object, so that they are known without running any of its code. A manifest in
 * place of the shared object names the files of its machine code. In the folder where a library was
 * built they lie beside it. In the cache, in a copy in memory and on a server a library
 * is one piece of bytes:
 *
 *     the shared object | file 1 | ... | file n | n sizes | size of the shared object | "KGPIECE1"
 *
 * with sizes in bytes as 64 bits, little-endian. The loader reads it as the shared object that it
 * begins with. A library without files is that alone. The hash of a library is the hash of its
 * piece, so a library of which one file changed is another library.
 */
#ifndef GATE_LIBRARY_PIECE_H
#define GATE_LIBRARY_PIECE_H

#include <stddef.h>

#include "gate/base/buf.h"
#include "gate/base/error.h"
#include "kernels/kernel.h"
#include "gate/document/fields.h"
#include "gate/library/machine_code.h"

/* ---- a kernel library without host code ----
 *
 * Which machine code to launch for which problem, and how, by gate/formats/bundle.schema.json.
 * docs/bundles.md says what the keys mean. The files that it names belong to it as those of
 * KG_FILE() do to a shared object: in one piece they are a bundle.
 */

#define MANIFEST_AXES 3
#define MANIFEST_WHEN_MAX 32
#define MANIFEST_ARGUMENTS_MAX 60
#define MANIFEST_LAUNCHES_MAX 16
#define MANIFEST_KERNELS_MAX 256

/* clang-format off */
#define MANIFEST_ARGUMENT(F) \
    F(WORD, type, REQUIRED, manifest_types) \
    F(WORDS, value, REQUIRED, EXPRESSION_MAX)

#define MANIFEST_LAUNCH(F) \
    F(WORDS, code, REQUIRED, FILE_NAME_MAX) \
    F(WORDS, entry, REQUIRED, SYMBOL_MAX) \
    F(TEXTS, grid, REQUIRED, MANIFEST_AXES, EXPRESSION_MAX) \
    F(TEXTS, cluster, 0, MANIFEST_AXES, EXPRESSION_MAX) \
    F(TEXTS, block, REQUIRED, MANIFEST_AXES, EXPRESSION_MAX) \
    F(WORDS, shared, 0, EXPRESSION_MAX) \
    F(LIST, arguments, REQUIRED, 0, MANIFEST_ARGUMENTS_MAX, manifest_argument)

#define MANIFEST_KERNEL(F) \
    F(FORMED, op, REQUIRED, FORM_NAME, 63) \
    F(FORMED, name, REQUIRED, FORM_NAME, 63) \
    F(TEXTS, dtypes, REQUIRED, KG_MAX_TENSORS, 8) \
    F(TEXTS, when, 0, MANIFEST_WHEN_MAX, EXPRESSION_MAX) \
    F(WORDS, workspace, 0, EXPRESSION_MAX) \
    F(YES_NO, nondeterministic) \
    F(LIST, launches, REQUIRED, 1, MANIFEST_LAUNCHES_MAX, manifest_launch)

#define MANIFEST(F) \
    F(CHOICE, schema, REQUIRED, schemas) \
    F(FORMED, provider, REQUIRED, FORM_NAME, 31) \
    F(WORDS, version, REQUIRED, 63) \
    F(LIST, kernels, REQUIRED, 1, MANIFEST_KERNELS_MAX, manifest_kernel)

struct manifest_argument { MANIFEST_ARGUMENT(FIELD_MEMBER) };
struct manifest_launch { MANIFEST_LAUNCH(FIELD_MEMBER) };
struct manifest_kernel { MANIFEST_KERNEL(FIELD_MEMBER) };
struct manifest {
    MANIFEST(FIELD_MEMBER)
    struct fields_taken taken; /* the texts */
};
/* clang-format on */

extern const struct shape manifest_shape;
extern const char *const manifest_types[]; /* of an argument; NULL ends them */

/* Does a library begin as one? */
bool manifest_is(struct bytes library);

/* GATE_WRONG with "manifest:LINE:COLUMN: ...". The result is the caller's; NULL is freed too. */
enum gate_status manifest_parse(struct bytes text, struct manifest **out, struct gate_error *err);
void manifest_free(struct manifest *m);

/* The error for a fault in its text. */
enum gate_status manifest_fault(struct bytes text, const struct field_fault *fault,
                                struct gate_error *err);

/* ---- pieces ---- */

#define PIECE_FILES_MAX 64

struct piece {
    struct buf bytes;
    size_t object_bytes;       /* of the shared object, or of the manifest */
    struct manifest *manifest; /* NULL: it begins with no manifest */
    unsigned n_files;
    /* Names and contents are in `bytes`; a file without a name ends them. */
    struct kg_file files[PIECE_FILES_MAX + 1];
};

/*
 * Reads the library at `path`, with the files beside it that it names. A file that is no shared
 * object and no manifest has none. GATE_IO: it or one of its files cannot be read. GATE_USAGE: not
 * a regular file, or empty, or the piece has more than `most` bytes. GATE_WRONG: a name is not that
 * of a file, or stands twice, the manifest breaks its rules, or the piece is damaged. The result is
 * the caller's (piece_release).
 */
enum gate_status piece_read(const char *path, size_t most, struct piece *out,
                            struct gate_error *err);
void piece_release(struct piece *piece);

/* SHA-256 of bytes as 64 lower-case hex digits and a NUL. */
void piece_hash(const struct piece *piece, char sha256[65]);

#define PIECE_OTHER_MAX 151

/*
 * Both, of which the hash is kept. Does it tell all of the library's code: are the libraries that
 * the loader brings with it (DT_NEEDED) those of the system alone: of C, of C++, and of the GPU's
 * driver? Else the first other one is in `other` (unless that is NULL), and so is what it says of a
 * file that is not one for the loader. What a library opens by itself is not seen.
 */
enum gate_status piece_hash_file(const char *path, char sha256[65], char other[PIECE_OTHER_MAX],
                                 struct gate_error *err);

#endif
