/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/cases/op_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sha2.h>

#include "gate/base/alloc.h"
#include "gate/base/file.h"
#include "gate/document/document.h"
#include "gate/document/fields_table.h"
#include "gate/library/machine_code.h"
#include "kernels/ops/dtype.h"
#include "kernels/ops/storage.h"

#define OP_FILE_MAX ((size_t)1 << 20)
#define LENGTHS_MAX 3 /* the classes of more would not fit in verify_shapes.c */
#define COUNTS_MAX 4
#define STEP_MAX ((int64_t)1 << 20)

/* ---- what the file may hold ---- */

#define OP_NAME_MAX 32
#define KEY_MAX 12
#define AXIS_MAX 40
#define EXPRESSION_MAX 200

static const char *const schemas[] = {"gate-op/1", NULL};
static const char *const kinds[] = {"length", "count", "given", NULL};
static const char *const roles[] = {"in", "inout", "out", NULL};

#define OF op_file_size
SHAPE_BY(OP_FILE_SIZE);
#undef OF
#define OF op_file_parameter
SHAPE_BY(OP_FILE_PARAMETER);
#undef OF
#define OF op_file_flag
SHAPE_BY(OP_FILE_FLAG);
#undef OF
#define OF op_file_tensor
SHAPE_BY(OP_FILE_TENSOR);
#undef OF
#define OF op_file_dtype
SHAPE_BY(OP_FILE_DTYPE);
#undef OF
#define OF op_file_variant
SHAPE_BY(OP_FILE_VARIANT);
#undef OF
#define OF op_file_limit
SHAPE_BY(OP_FILE_LIMIT);
#undef OF
#define OF op_file
SHAPE_BY(OP_FILE);
#undef OF

/* ---- what its shape does not say ---- */

size_t op_size_named(const struct op_file *f, const char *name)
{
    size_t i = 0;
    while (i < f->n_sizes && strcmp(f->sizes[i].name, name) != 0)
        i++;
    return i;
}

/* Keys of a case that have a meaning already. */
static bool is_taken(const struct op_file *f, size_t before, const char *name)
{
    static const char *const keys[] = {"op", "dtype", "threshold", "inputs", "expect"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (!strcmp(keys[i], name))
            return true;
    return op_size_named(f, name) < before;
}

/* ---- sizes ---- */

static bool read_size(struct op_reading *r, size_t at)
{
    struct own_op *own = r->own;
    const struct op_file_size *f = &own->file.sizes[at];
    if (is_taken(&own->file, at, f->name) || f->name[0] < 'a' || strpbrk(f->name, ".+-"))
        return field_refuse(
            &r->fault, "/sizes/%zu/name: '%s' is taken, or is not made of letters, digits and '_'",
            at, f->name);
    own->sizes[at] = (struct op_size){.key = f->name,
                                      .id = f->name,
                                      .axis = op_axis_of(at),
                                      .kind = (enum op_size_kind)f->kind,
                                      .at = (unsigned)at,
                                      .classes = 8,
                                      .few = f->kind == OP_LENGTH  ? 8
                                             : f->kind == OP_COUNT ? 2
                                                                   : 0};
    own->least[at] = f->least > 0 ? f->least : 1;
    own->most[at] = f->most > 0 ? f->most : OP_SIZE_MAX;
    own->step[at] = 1;
    if (own->least[at] > own->most[at])
        return field_refuse(&r->fault, "/sizes/%zu/least: must be at most %lld, which is the most",
                            at, (long long)own->most[at]);
    if ((f->kind == OP_GIVEN) != (f->n_values > 0))
        return field_refuse(&r->fault,
                            "/sizes/%zu/kind: a 'given' size has 'values', and no other has", at);
    if (f->kind != OP_GIVEN)
        return true;
    own->sizes[at].values = own->values = xcalloc(f->n_values + 1, sizeof *own->values);
    for (size_t i = 0; i < f->n_values; i++) {
        if (!(f->values[i] >= (double)own->least[at] && f->values[i] <= (double)own->most[at]) ||
            f->values[i] != floor(f->values[i]))
            return field_refuse(&r->fault, "/sizes/%zu/values: must be integers from %lld to %lld",
                                at, (long long)own->least[at], (long long)own->most[at]);
        own->values[i] = (int64_t)f->values[i];
    }
    return true;
}

static bool read_sizes(struct op_reading *r)
{
    const struct op_file *f = &r->own->file;
    unsigned n[3] = {0};
    for (size_t i = 0; i < f->n_sizes; i++) {
        if (!read_size(r, i))
            return false;
        n[f->sizes[i].kind]++;
    }
    if (!n[OP_LENGTH] || n[OP_LENGTH] > LENGTHS_MAX || n[OP_COUNT] > COUNTS_MAX || n[OP_GIVEN] > 1)
        return field_refuse(
            &r->fault,
            "/sizes: must be 1 to %d of kind 'length', at most %d of 'count' and 1 of 'given'",
            LENGTHS_MAX, COUNTS_MAX);
    return true;
}

/* ---- expressions ---- */

bool op_read_expression(struct op_reading *r, const char *pointer, const char *text,
                        struct expression *out)
{
    const char *names[OP_SIZES_MAX];
    struct gate_error err = {0};
    for (size_t i = 0; i < r->own->file.n_sizes; i++)
        names[i] = r->own->file.sizes[i].name;
    return !expression_parse(text, names, (unsigned)r->own->file.n_sizes, out, &err) ||
           field_refuse(&r->fault, "%s: %.200s", pointer, err.message);
}

/* "n % 16 == 0" says how sizes go up, and "h % kv == 0" that kv counts groups of h. */
static bool note_multiple(struct op_reading *r, size_t constraint)
{
    struct own_op *own = r->own;
    struct expression_step of;
    unsigned size;
    if (!expression_is_multiple(&own->constraints[constraint], &size, &of))
        return true;
    if (of.kind == STEP_SIZE) {
        const struct op_size *groups = &own->sizes[of.value];
        if (groups->kind == OP_COUNT && own->sizes[size].kind == OP_COUNT && of.value != size)
            own->sizes[size].multiple_of = groups->axis;
        return true;
    }
    if (of.value <= STEP_MAX)
        own->step[size] *= of.value / common_divisor(own->step[size], of.value);
    return of.value <= STEP_MAX && own->step[size] <= STEP_MAX
               ? true
               : field_refuse(&r->fault, "/constraints/%zu: sizes go up by more than 2^20",
                              constraint);
}

static bool read_expressions(struct op_reading *r)
{
    struct own_op *own = r->own;
    char pointer[40];
    for (size_t i = 0; i < own->file.n_constraints; i++) {
        snprintf(pointer, sizeof pointer, "/constraints/%zu", i);
        if (!op_read_expression(r, pointer, own->file.constraints[i], &own->constraints[i]) ||
            !note_multiple(r, i))
            return false;
    }
    return op_read_expression(r, "/flops", own->file.flops, &own->flops);
}

/* ---- parameter and flag ---- */

static double usual_parameter(const struct kg_problem *p)
{
    return op_of(p)->own->file.parameter.usual;
}

static bool read_parameter(struct op_reading *r)
{
    struct own_op *own = r->own;
    const struct op_file_parameter *f = &own->file.parameter;
    if (!own->file.has_parameter)
        return true;
    if (is_taken(&own->file, own->file.n_sizes, f->name))
        return field_refuse(&r->fault, "/parameter/name: '%s' is taken", f->name);
    if (!(f->least <= f->usual && f->usual <= f->most))
        return field_refuse(&r->fault, "/parameter/usual: must be from 'least' to 'most'");
    own->param = (struct op_param){
        .key = f->name, .at = 0, .least = f->least, .most = f->most, .usual = usual_parameter};
    own->op.param = &own->param;
    return true;
}

static bool read_flag(struct op_reading *r)
{
    struct own_op *own = r->own;
    const struct op_file_flag *f = &own->file.flag;
    if (!own->file.has_flag)
        return true;
    if (is_taken(&own->file, own->file.n_sizes, f->name) ||
        (own->file.has_parameter && !strcmp(f->name, own->file.parameter.name)))
        return field_refuse(&r->fault, "/flag/name: '%s' is taken", f->name);
    if (!strcmp(f->yes, f->no))
        return field_refuse(&r->fault, "/flag/no: ids could not tell it from 'yes'");
    own->flag = (struct op_flag){.key = f->name, .bit = KG_FLAG_OWN, .yes = f->yes, .no = f->no};
    own->op.flag = &own->flag;
    return true;
}

/* ---- all ---- */

static bool read_name(struct op_reading *r)
{
    const char *name = r->own->file.name;
    const struct op *other = op_by_name(name);
    r->own->op.name = name;
    if (strpbrk(name, "+"))
        return field_refuse(&r->fault, "/name: '%s' is no name of an op in kernel.h", name);
    if (!strcmp(name, DOCUMENT_FOREIGN))
        return field_refuse(&r->fault, "/name: '%s' stands for what other tools measured", name);
    return !other || field_refuse(&r->fault, "/name: '%s' is the name of an op that %s", name,
                                  other->own ? "another file has" : "is built in");
}

static bool read_id(struct op_reading *r)
{
    struct own_op *own = r->own;
    for (size_t i = 0; i < own->file.n_sizes; i++)
        own->id[i] = own->sizes[i].axis;
    for (size_t i = 0; i < own->file.n_id; i++) {
        const size_t size = op_size_named(&own->file, own->file.id[i]);
        if (size == own->file.n_sizes || memchr(own->id, op_axis_of(size), i))
            return field_refuse(&r->fault, "/id/%zu: '%s' is no size, or is there twice", i,
                                own->file.id[i]);
        own->id[i] = op_axis_of(size);
    }
    return !own->file.n_id || own->file.n_id == own->file.n_sizes ||
           field_refuse(&r->fault, "/id: must name each size once: two cases could have one id");
}

/* Are there sizes from which the gate gets to some that are allowed? */
static bool check_constraints(struct op_reading *r)
{
    struct own_op *own = r->own;
    static const int64_t tries[] = {1, 2, 8, 64, 100, 128, 512, 1024, 4096};
    struct kg_problem p = {.op = own->op.name};
    struct own_broken broken = {.what = NULL}, last;
    snprintf(broken.pointer, sizeof broken.pointer,
             own->file.n_constraints ? "/constraints" : "/flops");
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        for (unsigned k = 0; k < own->op.n_sizes; k++)
            p.size[k].value = tries[i];
        if (own_op_fit_sizes(own, &p))
            return true;
        broken = own_op_broken(own, &p, &last) ? last : broken;
    }
    return field_refuse(&r->fault,
                        "%s: the gate finds no sizes that meet all: begin with 'least', 'most' and "
                        "'SIZE %% NUMBER == 0'%s%.100s",
                        broken.pointer, *broken.why ? ". The last ones: " : "", broken.why);
}

static bool build(struct op_reading *r)
{
    struct own_op *own = r->own;
    own->op.sizes = own->sizes;
    own->op.n_sizes = (unsigned)own->file.n_sizes;
    own->op.tensors = own->tensors;
    own->op.id = own->id;
    own->op.own = own;
    own->op.multilinear = own->file.multilinear == YES;
    if (!read_name(r) || !read_sizes(r) || !read_expressions(r) || !read_parameter(r) ||
        !read_flag(r) || !op_read_tensors(r) || !read_id(r))
        return false;
    for (size_t i = 0; i < own->file.n_error_limits; i++)
        if (!op_row_by_name(&own->op, own->file.error_limits[i].dtype))
            return field_refuse(&r->fault, "/error_limits/%.60s: no case has this dtype",
                                own->file.error_limits[i].dtype);
    own_op_complete(own);
    return check_constraints(r);
}

enum gate_status own_op_parse(const char *name, const char *text, size_t len, struct own_op **out,
                              struct gate_error *err)
{
    struct op_reading r = {.own = xcalloc(1, sizeof *r.own)};
    enum gate_status status = fields_parse(&op_file_shape, name, 1, text, len, GATE_USAGE,
                                           &r.own->file, &r.own->taken, err);
    if (status) {
        free(r.own);
        return status;
    }
    if (!build(&r)) {
        own_op_free(r.own);
        return fields_fault(name, 1, text, len, &r.fault, GATE_USAGE, err);
    }
    *out = r.own;
    return GATE_OK;
}

void own_op_free(struct own_op *own)
{
    fields_release(&op_file_shape, &own->file);
    free(own->taken.texts);
    free(own->values);
    free(own);
}

/* ---- those in use ---- */

static const struct op *used[OPS_OWN_MAX];
static size_t n_used;

const struct own_op *own_op_at(size_t n)
{
    return n < n_used ? used[n]->own : NULL;
}

bool own_op_beside(const char *path, const char *name, char out[PATHS_MAX])
{
    const char *slash = strrchr(path, '/');
    const int folder = slash && name[0] != '/' ? (int)(slash - path) + 1 : 0;
    return (size_t)snprintf(out, PATHS_MAX, "%.*s%s", folder, path, name) < PATHS_MAX;
}

/* Of all files, so that what was known of another definition is not taken for this one's. */
static void hash_definition(struct own_op *own, const struct buf *text)
{
    char reference[65], other[PIECE_OTHER_MAX];
    SHA2_CTX context;
    bool needs_others = false;
    own->op.needs_others = true; /* where one cannot be read */
    SHA256Init(&context);
    SHA256Update(&context, (const uint8_t *)text->data, text->len);
    for (int i = 0; i < 2; i++) {
        const char *library = i ? own->second : own->reference;
        if (!*library)
            continue;
        if (piece_hash_file(library, reference, other, NULL))
            return;
        SHA256Update(&context, (const uint8_t *)reference, strlen(reference));
        needs_others |= other[0] != '\0';
    }
    own->op.needs_others = needs_others;
    SHA256End(&context, own->sha256);
    own->op.sha256 = own->sha256;
}

enum gate_status own_op_use(const char *path, struct gate_error *err)
{
    RELEASED_BY(buf_release) struct buf text = buf_of(OP_FILE_MAX);
    struct own_op *own;
    for (size_t i = 0; i < n_used; i++)
        if (!strcmp(used[i]->own->path, path))
            return GATE_OK;
    TRY(file_read(path, &text, err));
    TRY(own_op_parse(path, text.data, text.len, &own, err));
    const char *second = own->file.second_reference;
    if (n_used == OPS_OWN_MAX ||
        (size_t)snprintf(own->path, sizeof own->path, "%s", path) >= sizeof own->path ||
        !own_op_beside(path, own->file.reference, own->reference) ||
        (second && !own_op_beside(path, second, own->second))) {
        own_op_free(own);
        return gate_fail(err, GATE_USAGE, "'%s': a suite has at most %d ops of its own", path,
                         OPS_OWN_MAX);
    }
    hash_definition(own, &text);
    used[n_used++] = &own->op;
    op_use(used, n_used);
    return GATE_OK;
}
