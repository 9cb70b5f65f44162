/* SPDX-License-Identifier: Apache-2.0 */
/* foreign.c: see foreign.h. */
#include "gate/foreign/foreign.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sha2.h>

#include "gate/base/clock.h"
#include "gate/base/utf8.h"
#include "version.h"

#define ID_MAX 160
#define CASES_MAX 10000 /* of a run document */
#define DOCUMENT_MAX ((size_t)64 << 20)
#define THRESHOLD 0.02 /* a document must have one; these times are judged by none */

static const struct {
    const char *name, *figure; /* what the time of a result is; in the place of the kernel's name */
    enum gate_status (*read)(struct reading *);
} tools[] = {
    [FOREIGN_NVBENCH] = {"nvbench", "mean", reading_nvbench},
    [FOREIGN_PYTEST] = {"pytest-benchmark", "median", reading_pytest},
    [FOREIGN_GOOGLE] = {"google-benchmark", "median", reading_google},
    [FOREIGN_JUNIT] = {"junit", "one-time", reading_junit},
    [FOREIGN_CSV] = {"csv", "p50", reading_csv},
};

bool foreign_tool(const char *name, enum foreign_tool *out)
{
    for (size_t i = 0; i < sizeof tools / sizeof tools[0]; i++)
        if (!strcmp(tools[i].name, name)) {
            *out = (enum foreign_tool)i;
            return true;
        }
    return false;
}

/* ---- reading ---- */

struct foreign_time *reading_add(struct reading *r, const char *name, double ns, char *place)
{
    struct foreign_file *out = r->out;
    const size_t n = strlen(name);
    enum gate_status status = GATE_OK;
    if (n == 0 || n > FOREIGN_NAME_MAX)
        status = gate_fail(r->err, GATE_IO, "%s: %s: a name must have 1 to %d bytes, this has %zu",
                           r->name, place, FOREIGN_NAME_MAX, n);
    else if (!clock_can_be(ns))
        status = gate_fail(r->err, GATE_IO, "%s: %s: '%.100s' cannot take %.6g ns", r->name, place,
                           name, ns);
    if (status) {
        free(place);
        return NULL;
    }
    if (!(out->n_times & (out->n_times - 1))) /* room for twice as many */
        out->times = xrealloc(out->times, out->n_times ? 2 * out->n_times : 1, sizeof *out->times);
    struct foreign_time *t = &out->times[out->n_times++];
    *t = (struct foreign_time){.name = xstrdup(name),
                               .place = place,
                               .p50_ns = ns,
                               .p50_lo_ns = NAN,
                               .p50_hi_ns = NAN,
                               .p10_ns = NAN,
                               .p90_ns = NAN,
                               .samples = 1,
                               .launches_per_sample = 1};
    return t;
}

int64_t reading_time_ms(const char *text, bool is_utc)
{
    struct tm tm = {0};
    int hours = 0, minutes = 0;
    const char *at = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
    if (!at)
        return 0;
    if (*at == '.')
        at += 1 + strspn(at + 1, "0123456789");
    bool has_zone = *at == '+' || *at == '-';
    const int way = *at == '-' ? -1 : 1;
    if (has_zone && sscanf(at + 1, "%2d:%2d", &hours, &minutes) != 2)
        return 0;
    if (!has_zone && strcmp(at, "Z") != 0 && (*at || !is_utc))
        return 0;
    return 1000 * ((int64_t)timegm(&tm) - (int64_t)way * (hours * 3600 + minutes * 60));
}

bool reading_number(const char *text, double *out)
{
    char *end;
    if (!*text || strspn(text, "+-.0123456789eE") != strlen(text)) /* no hexadecimal, no spaces */
        return false;
    *out = strtod(text, &end);
    return !*end && isfinite(*out);
}

enum gate_status foreign_read(enum foreign_tool tool, const char *name, const char *text,
                              size_t len, struct foreign_file *out, struct gate_error *err)
{
    struct reading r = {.name = name, .text = text, .len = len, .out = out, .err = err};
    *out = (struct foreign_file){.times = NULL};
    enum gate_status status = tools[tool].read(&r);
    if (!status && out->n_times == 0)
        status = gate_fail(err, GATE_IO, "%s: has no result with a time (%zu without)", name,
                           out->n_left_out);
    return status;
}

void foreign_release(struct foreign_file *file)
{
    for (size_t i = 0; i < file->n_times; i++) {
        free(file->times[i].name);
        free(file->times[i].place);
    }
    for (size_t i = 0; i < file->n_devices; i++)
        free(file->devices[i].name);
    free(file->times);
    free(file->devices);
    free(file->version);
    free(file->host);
    free(file->commit);
    free(file->branch);
    *file = (struct foreign_file){.times = NULL};
}

/* ---- documents ---- */

/*
 * The id of a case by the name of a result: in lower case, with a dash for each other character
 * that an id cannot have. A name that is too long, or not of ASCII, ends in a hash of it, so that
 * its id is its own.
 */
static void make_id(const char *tool, const char *name, char out[ID_MAX + 1])
{
    char hash[SHA256_DIGEST_STRING_LENGTH];
    size_t n = (size_t)snprintf(out, ID_MAX + 1, DOCUMENT_FOREIGN "/%s/", tool);
    bool whole = strlen(name) <= ID_MAX - n;
    for (const char *at = name; *at; at++) {
        const char c = (char)tolower((unsigned char)*at);
        whole &= (unsigned char)c < 0x80;
        if (n < ID_MAX)
            out[n++] = strchr("abcdefghijklmnopqrstuvwxyz0123456789_./+", c) ? c : '-';
    }
    while (out[n - 1] == '-')
        n--;
    out[n] = '\0';
    if (whole)
        return;
    n = n < ID_MAX - 9 ? n : ID_MAX - 9;
    SHA256Data((const unsigned char *)name, strlen(name), hash);
    snprintf(out + n, 10, "-%.8s", hash);
}

/* A result on its way into a document. */
struct made {
    const struct foreign_time *time;
    char id[ID_MAX + 1];
    char *reason;
    struct document_arm arm;
};

struct making {
    const struct foreign_file *file;
    const struct foreign_about *about;
    const struct foreign_device *device; /* NULL: the file names none */
    const char *tool, *model;
    struct made *made; /* by id */
    size_t n_made;
};

static int compare_ids(const void *a, const void *b)
{
    const struct made *one = a, *other = b;
    return strcmp(one->id, other->id);
}

static enum gate_status make_ids(struct making *m, struct gate_error *err)
{
    const struct foreign_file *f = m->file;
    for (size_t i = 0; i < f->n_times; i++) {
        struct made *made = &m->made[m->n_made];
        if (m->device && &f->devices[f->times[i].device] != m->device)
            continue;
        made->time = &f->times[i];
        make_id(m->tool, f->times[i].name, made->id);
        m->n_made++;
    }
    if (m->n_made > CASES_MAX)
        return gate_fail(err, GATE_IO, "%s: has %zu results, of which a run may have %d",
                         m->about->name, m->n_made, CASES_MAX);
    qsort(m->made, m->n_made, sizeof *m->made, compare_ids);
    for (size_t i = 1; i < m->n_made; i++) {
        const struct made *one = &m->made[i - 1], *other = &m->made[i];
        if (!strcmp(one->id, other->id))
            return gate_fail(err, GATE_IO, "%s: '%.100s' (%s) and '%.100s' (%s) are one case, '%s'",
                             m->about->name, one->time->name, one->time->place, other->time->name,
                             other->time->place, one->id);
    }
    return GATE_OK;
}

static void make_case(const struct making *m, struct made *made, struct document_case *c)
{
    struct document_timing *t = &made->arm.timing;
    fields_clear(&document_case_shape, c);
    fields_clear(&document_timing_shape, t);
    made->reason = xasprintf("not judged: %s of %s, by %s", tools[m->about->tool].figure,
                             made->time->name, m->tool);
    c->id = made->id;
    c->op = m->tool;
    c->dtype = "none";
    c->verdict = VERDICT_NO_VERDICT;
    c->reason = made->reason;
    c->mode = MODE_NONE;
    c->arms = &made->arm;
    c->n_arms = 1;
    made->arm.provider = m->tool;
    made->arm.role = ROLE_CANDIDATE;
    made->arm.kernel = tools[m->about->tool].figure;
    made->arm.has_timing = true;
    t->p50_ns = made->time->p50_ns;
    t->p50_lo_ns = made->time->p50_lo_ns;
    t->p50_hi_ns = made->time->p50_hi_ns;
    t->p10_ns = made->time->p10_ns;
    t->p90_ns = made->time->p90_ns;
    t->samples = made->time->samples;
    t->launches_per_sample = made->time->launches_per_sample;
    t->cold = m->about->tool == FOREIGN_NVBENCH; /* it clears the L2 */
    t->input_sets = t->single_samples = 0;
    t->tflops = t->gbps = t->sm_clock_mhz = 0;
}

/* RFC 9562's version 8, of all that tells the run from others. */
static void derive_uuid(const struct making *m, const char *sha256, char uuid[37])
{
    char hex[SHA256_DIGEST_STRING_LENGTH];
    const struct origin *o = m->about->origin;
    char *all = xasprintf("%s %s %s %s %s %lld", sha256, m->tool, o->commit, o->branch, m->model,
                          m->device ? (long long)m->device->id : -1);
    SHA256Data((const unsigned char *)all, strlen(all), hex);
    free(all);
    snprintf(uuid, 37, "%.8s-%.4s-8%.3s-%c%.3s-%.12s", hex, hex + 8, hex + 12, "89ab"[hex[15] % 4],
             hex + 16, hex + 19);
}

/* The document, but for its cases. */
static enum gate_status make_document(struct making *m, foreign_document_fn fn, void *context,
                                      struct gate_error *err)
{
    const struct foreign_about *about = m->about;
    const struct origin *o = about->origin;
    const char *slash = strrchr(about->name, '/'), *file = slash ? slash + 1 : about->name;
    const char *host = m->file->host, *name = about->device ? m->model : m->device->name;
    char sha256[SHA256_DIGEST_STRING_LENGTH], uuid[37], contract[64], who[200], file_name[200];
    SHA256Data((const unsigned char *)about->text, about->len, sha256);
    derive_uuid(m, sha256, uuid);
    snprintf(contract, sizeof contract, DOCUMENT_FOREIGN "-%s", m->tool);
    utf8_print(file_name, sizeof file_name, "%s", file);
    utf8_print(who, sizeof who, "%.*s@%s", (int)strcspn(o->who, "@"), o->who,
               host ? host : o->who + strcspn(o->who, "@") + 1);
    struct document_library library = {.role = ROLE_CANDIDATE,
                                       .provider = m->tool,
                                       .version = m->file->version ? m->file->version : "",
                                       .file = file_name,
                                       .sha256 = sha256};
    struct document d;
    fields_clear(&document_shape, &d);
    d.schema = "gate-run/1";
    d.uuid = uuid;
    d.time_ms = m->file->time_ms ? m->file->time_ms : about->time_ms;
    d.duration_ms = 0;
    d.gate_version = GATE_VERSION;
    d.git = origin_document(o);
    d.who = who;
    d.suite = m->tool;
    d.device =
        (struct document_device){.kind = strncmp(m->model, "host-", 5) ? DEVICE_CUDA : DEVICE_HOST,
                                 .model = m->model,
                                 .name = name,
                                 .uuid = "",
                                 .capability = "",
                                 .driver = "",
                                 .runtime = ""};
    d.libraries = &library;
    d.n_libraries = 1;
    d.contract = contract;
    d.policy.threshold = THRESHOLD;
    d.seed = "0000000000000000";
    d.verdict = VERDICT_NO_VERDICT;
    d.exit_code = GATE_NO_VERDICT;
    d.cases = xcalloc(m->n_made, sizeof *d.cases);
    for (; d.n_cases < m->n_made; d.n_cases++)
        make_case(m, &m->made[d.n_cases], &d.cases[d.n_cases]);

    RELEASED_BY(buf_release) struct buf text = buf_of(DOCUMENT_MAX);
    document_write(&d, &text);
    free(d.cases);
    free(d.git.first_parents);
    enum gate_status status = text.failed ? gate_fail(err, GATE_IO, "%s: is too large", about->name)
                                          : fn(context, &text, err);
    return status;
}

enum gate_status foreign_documents(const struct foreign_file *file,
                                   const struct foreign_about *about, foreign_document_fn fn,
                                   void *context, struct gate_error *err)
{
    enum gate_status status = GATE_OK;
    if (file->n_devices == 0 && !about->device)
        return gate_fail(err, GATE_USAGE,
                         "%s: does not say which device was measured: add --device MODEL, such as "
                         "nvidia-h200",
                         about->name);
    for (size_t i = 0; !status && (i < file->n_devices || i == 0); i++) {
        struct making m = {.file = file, .about = about, .tool = tools[about->tool].name};
        m.device = file->n_devices > 0 ? &file->devices[i] : NULL;
        m.model = about->device ? about->device : m.device->model;
        m.made = xcalloc(file->n_times, sizeof *m.made);
        status = make_ids(&m, err);
        if (!status && m.n_made > 0)
            status = make_document(&m, fn, context, err);
        for (size_t k = 0; k < m.n_made; k++)
            free(m.made[k].reason);
        free(m.made);
    }
    return status;
}
