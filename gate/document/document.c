/* SPDX-License-Identifier: Apache-2.0 */
/* document.c: run documents are read, written, compared and searched; see document.h. */
#include "gate/document/document.h"

#include <stdlib.h>
#include <string.h>

#include "gate/base/alloc.h"
#include "gate/base/file.h"
#include "gate/counters/counters.h"
#include "gate/document/fields_table.h"

#define COUNT_MAX 1e9 /* summed over the cases of a run */
#define CASE_REASON_MAX 1600
#define CASES_MAX 10000
#define KERNEL_NAME_MAX (DOCUMENT_KERNEL_NAME_SIZE - 1)
#define SIZES_MAX 48 /* three whole numbers */
#define FILE_MAX_BYTES ((size_t)256 << 20)

static const char *const kinds[] = {"host", "cuda", NULL};
const char *const document_roles[] = {"candidate", "baseline", "provider", NULL};
const char *const document_modes[] = {"paired", "number", "none", NULL};
const char *const document_stages[] = {"first", "confirmation", NULL};
static const char *const schemas[] = {"gate-run/1", NULL};

#define OF estimate
static const struct field estimate_fields[] = {
    FACTOR(value, REQUIRED),
    FACTOR(lo, REQUIRED),
    FACTOR(hi, REQUIRED),
};
SHAPE(estimate);
#undef OF

/* clang-format off */
#define OF MEMBERS_OF
#define F(kind, ...) kind(__VA_ARGS__),
#define ASIDE(members)
#define BEGIN static const struct field JOIN(OF, _fields)[] = {
#define END }; const struct shape JOIN(OF, _shape) = SHAPE_OF(OF);
#include "gate/document/document_members.h"
/* clang-format on */

/* ---- use ---- */

#define FOREIGN_LENGTH (sizeof DOCUMENT_FOREIGN - 1)

bool document_is_foreign(const struct document *d)
{
    return !strncmp(d->contract, DOCUMENT_FOREIGN "-", FOREIGN_LENGTH + 1);
}

bool document_case_is_foreign(const struct document_case *c)
{
    return !strncmp(c->id, DOCUMENT_FOREIGN "/", FOREIGN_LENGTH + 1);
}

bool document_take(const char *text, size_t len, struct document *out, struct field_fault *fault)
{
    struct fields_taken taken;
    bool good = fields_take(&document_shape, text, len, out, &taken, fault);
    out->taken = taken;
    return good;
}

enum gate_status document_parse(const char *name, unsigned first_line, const char *text, size_t len,
                                enum gate_status status, struct document *out,
                                struct gate_error *err)
{
    struct fields_taken taken;
    TRY(fields_parse(&document_shape, name, first_line, text, len, status, out, &taken, err));
    out->taken = taken;
    return GATE_OK;
}

enum gate_status document_load(const char *path, struct document *out, struct gate_error *err)
{
    RELEASED_BY(buf_release) struct buf text = buf_of(FILE_MAX_BYTES);
    TRY(file_read(path, &text, err));
    return document_parse(path, 1, text.data, text.len, GATE_IO, out, err);
}

void document_release(struct document *d)
{
    fields_release(&document_shape, d);
    free(d->taken.texts);
    d->taken = (struct fields_taken){0};
}

const struct document_arm *document_find_arm(const struct document_arm *arms, size_t n,
                                             enum document_role role)
{
    for (size_t i = 0; i < n; i++)
        if (arms[i].role == (int)role)
            return &arms[i];
    return NULL;
}

const struct document_arm *document_candidate(const struct document_case *c)
{
    return document_find_arm(c->arms, c->n_arms, ROLE_CANDIDATE);
}

const struct document_kernel *document_kernel_of(const struct document_timing *old,
                                                 const struct document_timing *new, size_t i)
{
    for (size_t k = 0; k < old->n_kernels; k++)
        if (!strcmp(old->kernels[k].name, new->kernels[i].name))
            return &old->kernels[k];
    return old->n_kernels == 1 && new->n_kernels == 1 ? &old->kernels[0] : NULL;
}

/* `element` begins with its id. */
static void keep_id(const struct shape *element, void *list, size_t *n, const char *id)
{
    char *from = list;
    size_t kept = 0;
    for (size_t i = 0; i < *n; i++) {
        char *item = from + i * element->bytes;
        if (strcmp(*(const char **)(void *)item, id) != 0)
            fields_release(element, item);
        else
            memmove(from + kept++ * element->bytes, item, element->bytes);
    }
    *n = kept;
}

void document_keep_case(struct document *d, const char *id)
{
    keep_id(&document_case_shape, d->cases, &d->n_cases, id);
    keep_id(&document_calibrated_shape, d->calibration.cases, &d->calibration.n_cases, id);
}

void document_write(const struct document *d, struct buf *out)
{
    fields_write(&document_shape, d, out);
    buf_putc(out, '\n');
}
