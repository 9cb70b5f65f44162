/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/library/piece.h"

#include <stdlib.h>

#include "gate/base/alloc.h"
#include "gate/document/fields_table.h"
#include "kernels/kernel.h"

#define NAME "manifest"
#define MANIFEST_MAX_BYTES ((size_t)1 << 20)
#define FILE_NAME_MAX 100
#define SYMBOL_MAX 1000
#define EXPRESSION_MAX 200

const char *const manifest_types[] = {"pointer", "i8", "i16", "i32", "i64", "f32", "f64", NULL};

static const char *const schemas[] = {"gate-bundle/1", NULL};

#define OF manifest_argument
static const struct field one_argument_fields[] = {
    WORD(type, REQUIRED, manifest_types),
    WORDS(value, REQUIRED, EXPRESSION_MAX),
};
SHAPE(one_argument);
#undef OF

#define OF manifest_launch
static const struct field one_launch_fields[] = {
    WORDS(code, REQUIRED, FILE_NAME_MAX),
    WORDS(entry, REQUIRED, SYMBOL_MAX),
    TEXTS(grid, REQUIRED, MANIFEST_AXES, EXPRESSION_MAX),
    TEXTS(cluster, 0, MANIFEST_AXES, EXPRESSION_MAX),
    TEXTS(block, REQUIRED, MANIFEST_AXES, EXPRESSION_MAX),
    WORDS(shared, 0, EXPRESSION_MAX),
    LIST(arguments, REQUIRED, 0, MANIFEST_ARGUMENTS_MAX, one_argument),
};
SHAPE(one_launch);
#undef OF

#define OF manifest_kernel
static const struct field one_kernel_fields[] = {
    FORMED(op, REQUIRED, FORM_NAME, 63),
    FORMED(name, REQUIRED, FORM_NAME, 63),
    TEXTS(dtypes, REQUIRED, KG_MAX_TENSORS, 8),
    TEXTS(when, 0, MANIFEST_WHEN_MAX, EXPRESSION_MAX),
    WORDS(workspace, 0, EXPRESSION_MAX),
    YES_NO(nondeterministic),
    LIST(launches, REQUIRED, 1, MANIFEST_LAUNCHES_MAX, one_launch),
};
SHAPE(one_kernel);
#undef OF

#define OF manifest
static const struct field manifest_fields[] = {
    CHOICE(schema, REQUIRED, schemas),
    FORMED(provider, REQUIRED, FORM_NAME, 31),
    WORDS(version, REQUIRED, 63),
    LIST(kernels, REQUIRED, 1, MANIFEST_KERNELS_MAX, one_kernel),
};
const struct shape manifest_shape = SHAPE_OF(manifest);
#undef OF

bool manifest_is(struct bytes library)
{
    return library.n && library.at[0] == '{';
}

enum gate_status manifest_parse(struct bytes text, struct manifest **out, struct gate_error *err)
{
    if (text.n > MANIFEST_MAX_BYTES)
        return gate_fail(err, GATE_WRONG, "its manifest has %zu bytes, more than 1 MiB", text.n);
    struct manifest *m = xcalloc(1, sizeof *m);
    enum gate_status status = fields_parse(&manifest_shape, NAME, 1, (const char *)text.at, text.n,
                                           GATE_WRONG, m, &m->taken, err);
    if (status)
        free(m);
    else
        *out = m;
    return status;
}

void manifest_free(struct manifest *m)
{
    if (!m)
        return;
    fields_release(&manifest_shape, m);
    free(m->taken.texts);
    free(m);
}

enum gate_status manifest_fault(struct bytes text, const struct field_fault *fault,
                                struct gate_error *err)
{
    return fields_fault(NAME, 1, (const char *)text.at, text.n, fault, GATE_WRONG, err);
}
