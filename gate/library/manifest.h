/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest.h: a kernel library without host code: which machine code to launch for which problem,
 * and how, by gate/formats/bundle.schema.json. docs/bundles.md says what the keys mean.
 *
 * The files that it names belong to it as those of KG_FILE() do to a shared object (piece.h): in
 * one piece they are a bundle.
 */
#ifndef GATE_LIBRARY_MANIFEST_H
#define GATE_LIBRARY_MANIFEST_H

#include "gate/base/error.h"
#include "gate/document/fields.h"
#include "gate/library/elf.h"

#define MANIFEST_AXES 3
#define MANIFEST_WHEN_MAX 32
#define MANIFEST_ARGUMENTS_MAX 60
#define MANIFEST_LAUNCHES_MAX 16
#define MANIFEST_KERNELS_MAX 256

/* Members have the names of their keys. */
struct manifest_argument {
    int type; /* the place in manifest_types */
    const char *value;
};

struct manifest_launch {
    const char *code, *entry, *shared;
    const char **grid, **cluster, **block;
    size_t n_grid, n_cluster, n_block;
    struct manifest_argument *arguments;
    size_t n_arguments;
};

struct manifest_kernel {
    const char *op, *name, *workspace;
    const char **dtypes, **when;
    size_t n_dtypes, n_when;
    enum yes_no nondeterministic;
    struct manifest_launch *launches;
    size_t n_launches;
};

struct manifest {
    const char *schema, *provider, *version;
    struct manifest_kernel *kernels;
    size_t n_kernels;
    struct fields_taken taken; /* the texts */
};

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

#endif
