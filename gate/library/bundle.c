/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/library/library.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/alloc.h"
#include "gate/base/expression.h"
#include "gate/library/machine_code.h"
#include "kernels/ops/op.h"
#include "kernels/ops/storage.h"

/* What expressions know of a problem: its sizes, these, and of each tensor the address and the
 * strides. */
enum fact { FACT_TF32, FACT_FLAG, FACT_SM_COUNT, FACT_WORKSPACE, FACTS_FIXED };
static const char *const fixed_facts[FACTS_FIXED] = {"tf32", "flag", "sm_count", "workspace"};

#define TENSOR_FACTS (1 + KG_MAX_RANK)
#define FACTS_MAX (OP_SIZES_MAX + FACTS_FIXED + OP_TENSORS_MAX * TENSOR_FACTS)

enum part { GRID, CLUSTER, BLOCK, PARTS };
static const char *const part_names[PARTS] = {"grid", "cluster", "block"};

struct argument {
    struct expression value;
    double number;         /* of a float, if it is no parameter */
    const char *parameter; /* NULL: none */
};

struct launch {
    const struct manifest_launch *file;
    struct expression size[PARTS][MANIFEST_AXES], shared;
    struct argument *arguments;
    size_t code; /* which of the files */
    unsigned architecture;
    unsigned allowed; /* bytes of shared memory, by the driver */
    void *function;
};

struct kernel {
    struct kg_kernel kernel; /* the first member: so a kernel is found */
    struct bundle *bundle;
    const struct manifest_kernel *file;
    const struct op *op; /* NULL: not known */
    struct expression *when, workspace;
    struct launch *launches;
};

struct bundle {
    struct bytes text; /* of the manifest */
    const struct manifest *manifest;
    struct kernel *kernels;
    const struct kg_kernel **list;
    struct kg_library table;
    struct kg_file files[PIECE_FILES_MAX];
    void *modules[PIECE_FILES_MAX];
    unsigned n_files;
    int64_t sm_count;
    struct field_fault fault;
    char why[1024];
};

static const struct {
    uint32_t bytes;
    bool is_float;
} types[] = {{8, false}, {1, false}, {2, false}, {4, false}, {8, false}, {4, true}, {8, true}};

/* A member of a kernel, or of one of its launches. Its pointer is made for a fault alone. */
#define NONE SIZE_MAX
struct place {
    const struct kernel *kernel;
    size_t launch; /* NONE: it is the kernel's own */
    const char *list;
    size_t at; /* NONE: it is no element */
    const char *member;
};

/* Always false, for a caller's `return`. */
__attribute__((format(printf, 2, 3))) static bool refuse(struct place where, const char *format,
                                                         ...)
{
    struct bundle *b = where.kernel->bundle;
    char launch[32] = "", element[24] = "";
    va_list args;
    if (where.launch != NONE)
        snprintf(launch, sizeof launch, "/launches/%zu", where.launch);
    if (where.at != NONE)
        snprintf(element, sizeof element, "/%zu", where.at);
    b->fault = (struct field_fault){.of_key = false};
    snprintf(b->fault.pointer, sizeof b->fault.pointer, "/kernels/%zu%s/%s%s%s",
             (size_t)(where.kernel - b->kernels), launch, where.list, element,
             where.member ? where.member : "");
    va_start(args, format);
    vsnprintf(b->fault.message, sizeof b->fault.message, format, args);
    va_end(args);
    return false;
}

/* ---- what expressions know ---- */

struct fact_names {
    char texts[FACTS_MAX][24];
    const char *list[FACTS_MAX];
    unsigned n;
};

static void name_facts(const struct op *op, struct fact_names *out)
{
    const unsigned n_in = op_inputs(op);
    out->n = 0;
    for (unsigned i = 0; i < op->n_sizes; i++)
        out->list[out->n++] = op->sizes[i].key;
    for (unsigned i = 0; i < FACTS_FIXED; i++)
        out->list[out->n++] = fixed_facts[i];
    for (unsigned i = 0; i < op->n_tensors * TENSOR_FACTS; i++) {
        const unsigned t = i / TENSOR_FACTS, axis = i % TENSOR_FACTS;
        char *text = out->texts[out->n], stride[12] = "";
        if (axis)
            snprintf(stride, sizeof stride, "_stride%u", axis - 1);
        snprintf(text, sizeof out->texts[0], "%s%u%s", t < n_in ? "in" : "out",
                 t < n_in ? t : t - n_in, stride);
        out->list[out->n++] = text;
    }
}

/* Without a call: dense tensors at 0, which is a multiple of all. */
static void fill_facts(const struct kernel *k, const struct kg_problem *p,
                       const struct kg_args *args, int64_t facts[FACTS_MAX])
{
    const struct op *op = k->op;
    const unsigned n_in = op_inputs(op);
    int64_t *to = facts;
    for (unsigned i = 0; i < op->n_sizes; i++)
        *to++ = op_size(p, &op->sizes[i]);
    to[FACT_TF32] = (p->flags & KG_FLAG_TF32) != 0;
    to[FACT_FLAG] = op->flag && p->flags & op->flag->bit;
    to[FACT_SM_COUNT] = k->bundle->sm_count;
    to[FACT_WORKSPACE] = args ? (int64_t)(uintptr_t)args->workspace : 0;
    to += FACTS_FIXED;
    for (unsigned i = 0; i < op->n_tensors; i++, to += TENSOR_FACTS) {
        const struct kg_shape shape = op_shape_of(p, i);
        const struct kg_tensor *t = !args ? NULL : i < n_in ? &args->in[i] : &args->out[i - n_in];
        int64_t stride = 1;
        to[0] = t ? (int64_t)(uintptr_t)t->data : 0;
        for (uint32_t axis = KG_MAX_RANK; axis-- > 0;) {
            to[1 + axis] = axis >= shape.rank ? 0 : t ? t->stride[axis] : stride;
            if (axis < shape.rank)
                stride *= shape.size[axis];
        }
    }
}

/* ---- reading ---- */

static bool read_expression(struct place where, const struct fact_names *facts, const char *text,
                            struct expression *out)
{
    struct gate_error err = {0};
    return !expression_parse(text, facts->list, facts->n, out, &err) ||
           refuse(where, "%.200s", err.message);
}

static bool read_argument(struct place where, const struct fact_names *facts,
                          const struct manifest_argument *f, struct argument *out)
{
    char *end;
    const struct op *op = where.kernel->op;
    if (!types[f->type].is_float)
        return read_expression(where, facts, f->value, &out->value);
    out->number = strtod(f->value, &end);
    if (!*end && isfinite(out->number))
        return true;
    out->parameter = f->value;
    return (op->param && !strcmp(op->param->key, f->value)) ||
           refuse(where, "must be a number or a parameter of %s", op->name);
}

/* Are the arguments those that the machine code takes? */
static bool check_code(const struct kernel *k, struct launch *l, size_t at)
{
    struct bundle *b = k->bundle;
    struct machine_kernel code;
    while (strcmp(b->files[l->code].name, l->file->code) != 0) /* the piece has it */
        l->code++;
    const struct kg_file *file = &b->files[l->code];
    if (!machine_code_find((struct bytes){file->data, (size_t)file->bytes}, l->file->entry, &code))
        return refuse((struct place){k, at, "entry", NONE, NULL},
                      "no kernel of '%s' has this name, or that is no cubin", file->name);
    const struct resources takes = resources_of(&code);
    const int n = takes.n_parameters;
    l->architecture = takes.architecture;
    if (n < 0 || (size_t)n != l->file->n_arguments)
        return refuse((struct place){k, at, "arguments", NONE, NULL},
                      n < 0 ? "what the kernel takes cannot be read in '%s'"
                            : "'%s' has a kernel of %d parameters, and here are %zu",
                      file->name, n, l->file->n_arguments);
    for (size_t i = 0; i < l->file->n_arguments; i++) {
        const int type = l->file->arguments[i].type;
        if (takes.parameter_bytes[i] != types[type].bytes)
            return refuse((struct place){k, at, "arguments", i, "/type"},
                          "the kernel takes %u bytes there, and '%s' has %u",
                          takes.parameter_bytes[i], manifest_types[type], types[type].bytes);
    }
    return true;
}

static bool read_launch(const struct kernel *k, const struct fact_names *facts, size_t at)
{
    struct launch *l = &k->launches[at];
    const struct manifest_launch *f = l->file = &k->file->launches[at];
    const char **const texts[PARTS] = {f->grid, f->cluster, f->block};
    const size_t n[PARTS] = {f->n_grid, f->n_cluster, f->n_block};
    for (unsigned part = 0; part < PARTS; part++)
        for (unsigned i = 0; i < MANIFEST_AXES; i++) {
            const struct place where = {k, at, part_names[part], i, NULL};
            if (!read_expression(where, facts, i < n[part] ? texts[part][i] : "1",
                                 &l->size[part][i]))
                return false;
        }
    if (!read_expression((struct place){k, at, "shared", NONE, NULL}, facts,
                         f->shared ? f->shared : "0", &l->shared))
        return false;
    l->arguments = xcalloc(f->n_arguments + 1, sizeof *l->arguments);
    for (size_t i = 0; i < f->n_arguments; i++) {
        const struct place where = {k, at, "arguments", i, "/value"};
        if (!read_argument(where, facts, &f->arguments[i], &l->arguments[i]))
            return false;
    }
    return check_code(k, l, at);
}

static bool read_kernel(struct kernel *k)
{
    struct fact_names facts;
    const struct manifest_kernel *f = k->file;
    if (!k->op)
        return true;
    name_facts(k->op, &facts);
    if (f->n_dtypes != 1 && f->n_dtypes != k->op->n_tensors)
        return refuse((struct place){k, NONE, "dtypes", NONE, NULL},
                      "must be one dtype, or one for each of the %u tensors of %s",
                      k->op->n_tensors, k->op->name);
    for (size_t i = 0; i < f->n_dtypes; i++)
        if (!storage_by_name(f->dtypes[i]))
            return refuse((struct place){k, NONE, "dtypes", i, NULL}, "no dtype is named '%s'",
                          f->dtypes[i]);
    for (size_t i = 0; i < f->n_when; i++)
        if (!read_expression((struct place){k, NONE, "when", i, NULL}, &facts, f->when[i],
                             &k->when[i]))
            return false;
    if (!read_expression((struct place){k, NONE, "workspace", NONE, NULL}, &facts,
                         f->workspace ? f->workspace : "0", &k->workspace))
        return false;
    for (size_t i = 0; i < f->n_launches; i++)
        if (!read_launch(k, &facts, i))
            return false;
    return true;
}

/* ---- a call ---- */

struct call {
    struct driver_launch launch;
    uint64_t values[CUBIN_PARAMETERS_MAX];
    void *arguments[CUBIN_PARAMETERS_MAX];
};

static bool value_of(struct place where, const struct expression *e, const int64_t *facts,
                     int64_t least, int64_t most, int64_t *out)
{
    const char *why = "";
    if (!expression_value(e, facts, out, &why))
        return refuse(where, "%s for this problem", why);
    return (*out >= least && *out <= most) ||
           refuse(where, "must be from %lld to %lld, is %lld for this problem", (long long)least,
                  (long long)most, (long long)*out);
}

/* Do the conditions hold? -1: one has no value. */
static int conditions_hold(const struct kernel *k, const int64_t *facts)
{
    for (size_t i = 0; i < k->file->n_when; i++) {
        int64_t value;
        if (!value_of((struct place){k, NONE, "when", i, NULL}, &k->when[i], facts, INT64_MIN,
                      INT64_MAX, &value))
            return -1;
        if (!value)
            return 0;
    }
    return 1;
}

static bool take_shape(const struct kernel *k, size_t at, const int64_t *facts,
                       struct driver_launch *out)
{
    const struct launch *l = &k->launches[at];
    static const int64_t most[PARTS][MANIFEST_AXES] = {
        {INT32_MAX, UINT16_MAX, UINT16_MAX}, {16, 16, 16}, {1024, 1024, 64}};
    unsigned *const sizes[PARTS] = {out->grid, out->cluster, out->block};
    int64_t value;
    for (unsigned part = 0; part < PARTS; part++)
        for (unsigned i = 0; i < MANIFEST_AXES; i++) {
            const struct place where = {k, at, part_names[part], i, NULL};
            if (!value_of(where, &l->size[part][i], facts, 1, most[part][i], &value))
                return false;
            sizes[part][i] = (unsigned)value;
        }
    if (!value_of((struct place){k, at, "shared", NONE, NULL}, &l->shared, facts, 0, INT32_MAX,
                  &value))
        return false;
    out->shared = (unsigned)value;
    for (unsigned i = 0; i < MANIFEST_AXES; i++)
        if (out->grid[i] % out->cluster[i])
            return refuse((struct place){k, at, "cluster", i, NULL},
                          "must divide the grid, which is %u for this problem", out->grid[i]);
    const unsigned threads = out->block[0] * out->block[1] * out->block[2];
    return threads <= 1024 || refuse((struct place){k, at, "block", NONE, NULL},
                                     "must be at most 1024 threads, are %u", threads);
}

static bool take_argument(const struct kernel *k, size_t launch, size_t at,
                          const struct kg_problem *p, const int64_t *facts, uint64_t *out)
{
    const struct argument *a = &k->launches[launch].arguments[at];
    const int type = k->launches[launch].file->arguments[at].type;
    const unsigned bits = 8 * types[type].bytes;
    int64_t value = 0;
    if (types[type].is_float) {
        const double x = a->parameter ? kg_param(p, a->parameter) : a->number;
        const float single = (float)x;
        memcpy(out, bits == 64 ? (const void *)&x : &single, bits / 8);
        return true;
    }
    const int64_t most = INT64_MAX >> (64 - bits);
    bool good = value_of((struct place){k, launch, "arguments", at, "/value"}, &a->value, facts,
                         -most - 1, most, &value);
    *out = (uint64_t)value;
    return good;
}

static bool make_call(const struct kernel *k, size_t at, const struct kg_problem *p,
                      const int64_t *facts, struct call *out)
{
    const struct launch *l = &k->launches[at];
    *out = (struct call){.launch = {.function = l->function, .arguments = out->arguments}};
    if (!take_shape(k, at, facts, &out->launch))
        return false;
    for (size_t i = 0; i < l->file->n_arguments; i++) {
        out->arguments[i] = &out->values[i];
        if (!take_argument(k, at, i, p, facts, &out->values[i]))
            return false;
    }
    return true;
}

/* ---- the table's functions ---- */

#define KERNEL_OF(k) ((const struct kernel *)(const void *)(k))

/* In the table for those who look whether there is one: bundle_serves() answers. */
static int supports(const struct kg_problem *, const struct kg_device *)
{
    return 0;
}

static uint64_t workspace_bytes(const struct kg_problem *p, const struct kg_device *, void *plan)
{
    const struct kernel *k = plan;
    int64_t facts[FACTS_MAX], value = 0;
    const char *why;
    fill_facts(k, p, NULL, facts);
    return expression_value(&k->workspace, facts, &value, &why) && value > 0 ? (uint64_t)value : 0;
}

static enum kg_status launch(const struct kg_problem *p, const struct kg_args *args)
{
    const struct kernel *k = args->plan;
    int64_t facts[FACTS_MAX];
    struct call call;
    if (!k)
        return KG_BAD_ARGUMENT;
    fill_facts(k, p, args, facts);
    if (conditions_hold(k, facts) != 1)
        return KG_UNSUPPORTED;
    for (size_t i = 0; i < k->file->n_launches; i++) {
        if (!make_call(k, i, p, facts, &call))
            return KG_UNSUPPORTED;
        call.launch.stream = args->stream;
        if (!driver_launch(&call.launch))
            return KG_LAUNCH_FAILED;
    }
    return KG_OK;
}

bool bundle_has(const struct kg_kernel *k)
{
    return k->launch == launch;
}

/* The architecture of code that this GPU cannot run; 0: it runs all. Code of another revision of
 * the same generation runs if it is not of a later one. */
static unsigned other_architecture(const struct kernel *k, const struct kg_device *d)
{
    for (size_t i = 0; i < k->file->n_launches; i++) {
        const unsigned architecture = k->launches[i].architecture;
        if ((int)(architecture / 10) != d->cc_major || (int)(architecture % 10) > d->cc_minor)
            return architecture;
    }
    return 0;
}

/* A condition without a value is told by bundle_prepare(). */
bool bundle_serves(const struct kg_kernel *kernel, const struct kg_problem *p,
                   const struct kg_device *device)
{
    const struct kernel *k = KERNEL_OF(kernel);
    const struct manifest_kernel *f = k->file;
    int64_t facts[FACTS_MAX];
    if (!k->op || strcmp(k->op->name, p->op) != 0 || other_architecture(k, device))
        return false;
    for (size_t i = 0; i < f->n_dtypes; i++)
        if (storage_by_name(f->dtypes[i])->code != (f->n_dtypes == 1 ? op_dtype(p) : p->dtype[i]))
            return false;
    k->bundle->sm_count = device->sm_count;
    fill_facts(k, p, NULL, facts);
    return conditions_hold(k, facts) != 0;
}

static bool prepare(struct kernel *k, const struct kg_problem *p, struct gate_error *err)
{
    int64_t facts[FACTS_MAX], bytes;
    struct call call;
    fill_facts(k, p, NULL, facts);
    if (conditions_hold(k, facts) < 0 || !value_of((struct place){k, NONE, "workspace", NONE, NULL},
                                                   &k->workspace, facts, 0, INT64_MAX, &bytes))
        return false;
    for (size_t i = 0; i < k->file->n_launches; i++) {
        struct launch *l = &k->launches[i];
        if (!make_call(k, i, p, facts, &call))
            return false;
        call.launch.shared = call.launch.shared > l->allowed ? call.launch.shared : l->allowed;
        const char *what;
        if (l->function && driver_allow(&call.launch, &what, err))
            return refuse((struct place){k, i, what, NONE, NULL}, "%.200s", err->message);
        l->allowed = call.launch.shared;
    }
    return true;
}

enum kg_status bundle_prepare(const struct kg_kernel *kernel, const struct kg_problem *p,
                              const struct kg_device *device, void **plan)
{
    struct bundle *b = KERNEL_OF(kernel)->bundle;
    struct kernel *k = &b->kernels[KERNEL_OF(kernel) - b->kernels];
    struct gate_error err = {0};
    b->sm_count = device->sm_count;
    *plan = k;
    if (prepare(k, p, &err))
        return KG_OK;
    manifest_fault(b->text, &b->fault, &err);
    snprintf(b->why, sizeof b->why, "%s", err.message);
    return KG_UNSUPPORTED;
}

const char *bundle_fault(const struct kg_kernel *k)
{
    return KERNEL_OF(k)->bundle->why;
}

/* ---- opening ---- */

enum gate_status bundle_open(const struct piece *piece, struct bundle **out,
                             const struct kg_library **table, struct gate_error *err)
{
    struct bundle *b = xcalloc(1, sizeof *b);
    const struct manifest *m = piece->manifest;
    b->text = (struct bytes){(const unsigned char *)piece->bytes.data, piece->object_bytes};
    b->manifest = m;
    b->kernels = xcalloc(m->n_kernels, sizeof *b->kernels);
    b->list = xcalloc(m->n_kernels, sizeof *b->list);
    b->n_files = piece->n_files;
    memcpy(b->files, piece->files, piece->n_files * sizeof *piece->files);
    for (size_t i = 0; i < m->n_kernels; i++) {
        const struct manifest_kernel *f = &m->kernels[i];
        struct kernel *k = &b->kernels[i];
        *k = (struct kernel){
            .kernel = {.struct_bytes = sizeof k->kernel,
                       .flags = f->nondeterministic == YES ? KG_KERNEL_NONDETERMINISTIC : 0,
                       .op = f->op,
                       .name = f->name,
                       .supports = supports,
                       .workspace_bytes = workspace_bytes,
                       .launch = launch},
            .bundle = b,
            .file = f,
            .op = op_by_name(f->op),
            .when = xcalloc(f->n_when + 1, sizeof *k->when),
            .launches = xcalloc(f->n_launches, sizeof *k->launches)};
        b->list[i] = &k->kernel;
    }
    b->table = (struct kg_library){sizeof b->table, KG_ABI_VERSION, m->provider,
                                   m->version,      KG_DEVICE_CUDA, (uint32_t)m->n_kernels,
                                   b->list,         NULL,           NULL};
    for (size_t i = 0; i < m->n_kernels; i++)
        if (!read_kernel(&b->kernels[i])) {
            manifest_fault(b->text, &b->fault, err);
            bundle_close(b);
            return GATE_WRONG;
        }
    *out = b;
    *table = &b->table;
    return GATE_OK;
}

void bundle_close(struct bundle *b)
{
    if (!b)
        return;
    for (unsigned i = 0; i < b->n_files; i++)
        driver_unload(b->modules[i]);
    for (size_t i = 0; i < b->manifest->n_kernels; i++) {
        struct kernel *k = &b->kernels[i];
        for (size_t j = 0; j < k->file->n_launches; j++)
            free(k->launches[j].arguments);
        free(k->launches);
        free(k->when);
    }
    free(b->kernels);
    free(b->list);
    free(b);
}

enum gate_status bundle_start(struct bundle *b, const struct kg_device *device,
                              struct gate_error *err)
{
    unsigned other = 0;
    bool any = false;
    TRY(driver_start(err));
    for (size_t i = 0; i < b->manifest->n_kernels; i++) {
        struct kernel *k = &b->kernels[i];
        if (!k->op)
            continue;
        const unsigned cannot = other_architecture(k, device);
        other = cannot ? cannot : other;
        if (cannot)
            continue;
        any = true;
        for (size_t j = 0; j < k->file->n_launches; j++) {
            struct launch *l = &k->launches[j];
            if (driver_function(b->files[l->code].data, &b->modules[l->code], l->file->entry,
                                &l->function, err))
                return gate_fail_context(err, "'%s'", l->file->code);
        }
    }
    return any || !other ? GATE_OK
                         : gate_fail(err, GATE_WRONG,
                                     "its machine code is for sm_%u, and this GPU is sm_%d%d",
                                     other, device->cc_major, device->cc_minor);
}
