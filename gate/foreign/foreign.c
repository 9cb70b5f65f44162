/* SPDX-License-Identifier: Apache-2.0 */
/* foreign.c: see foreign.h. */
#include "gate/foreign/foreign.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sha2.h>

#include "gate/base/clock.h"
#include "gate/base/utf8.h"
#include "version.h"

#define CASES_MAX 10000 /* of a run document */
#define NAME_MAX_BYTES 1000
#define DOCUMENT_MAX ((size_t)64 << 20)
#define THRESHOLD 0.02 /* a document must have one; these times are judged by none */

static const struct {
    const char *name, *figure; /* what the time of a result is; in the place of the kernel's name */
    enum gate_status (*read)(struct foreign_file *, struct gate_error *);
} tools[] = {
    [FOREIGN_NVBENCH] = {"nvbench", "mean", reading_json},
    [FOREIGN_PYTEST] = {"pytest-benchmark", "median", reading_json},
    [FOREIGN_GOOGLE] = {"google-benchmark", "median", reading_json},
    [FOREIGN_JUNIT] = {"junit", "one-time", reading_junit},
    [FOREIGN_CSV] = {"csv", "p50", reading_csv},
};

bool foreign_tool(void *field, const char *name)
{
    enum foreign_tool tool = FOREIGN_CSV;
    while (tool && strcmp(tools[tool].name, name) != 0)
        tool--;
    *(enum foreign_tool *)field = tool;
    return tool;
}

/* ---- reading ---- */

/*
 * The id of a case by the name of a result: in lower case, with a dash for each other character
 * that an id cannot have. A name that is too long, or not of ASCII, ends in a hash of it, so that
 * its id is its own.
 */
static void make_id(const char *tool, const char *name, char out[FOREIGN_ID_MAX + 1])
{
    char hash[SHA256_DIGEST_STRING_LENGTH];
    size_t n = (size_t)snprintf(out, FOREIGN_ID_MAX + 1, DOCUMENT_FOREIGN "/%s/", tool);
    bool whole = strlen(name) <= FOREIGN_ID_MAX - n;
    for (const char *at = name; *at; at++) {
        const char c = (char)tolower((unsigned char)*at);
        whole &= (unsigned char)c < 0x80;
        if (n < FOREIGN_ID_MAX)
            out[n++] = strchr("abcdefghijklmnopqrstuvwxyz0123456789_./+", c) ? c : '-';
    }
    while (out[n - 1] == '-')
        n--;
    out[n] = '\0';
    if (whole)
        return;
    n = n < FOREIGN_ID_MAX - 9 ? n : FOREIGN_ID_MAX - 9;
    SHA256Data((const unsigned char *)name, strlen(name), hash);
    snprintf(out + n, 10, "-%.8s", hash);
}

struct foreign_time *reading_add(struct foreign_file *f, const char *name, double ns,
                                 const char *place, struct gate_error *err)
{
    const size_t n = strlen(name);
    if (n == 0 || n > NAME_MAX_BYTES || !clock_can_be(ns)) {
        if (n == 0 || n > NAME_MAX_BYTES)
            gate_fail(err, GATE_IO, "%s: %s: a name must have 1 to %d bytes, this has %zu", f->name,
                      place, NAME_MAX_BYTES, n);
        else
            gate_fail(err, GATE_IO, "%s: %s: '%.100s' cannot take %.6g ns", f->name, place, name,
                      ns);
        return NULL;
    }
    if (!(f->n_times & (f->n_times - 1))) /* room for twice as many */
        f->times = xrealloc(f->times, f->n_times ? 2 * f->n_times : 1, sizeof *f->times);
    struct foreign_time *t = &f->times[f->n_times++];
    const char *tool = tools[f->tool].name, *figure = tools[f->tool].figure;
    *t = (struct foreign_time){
        .name = xstrdup(name),
        .place = xstrdup(place),
        .reason = xasprintf("not judged: %s of %s, by %s", figure, name, tool),
        .arm = {.provider = tool, .role = ROLE_CANDIDATE, .kernel = figure, .has_timing = true}};
    make_id(tool, name, t->id);
    struct document_timing *timing = &t->arm.timing;
    fields_clear(&document_timing_shape, timing);
    timing->p50_ns = ns;
    timing->samples = timing->launches_per_sample = 1;
    timing->cold = f->tool == FOREIGN_NVBENCH; /* it clears the L2 */
    timing->input_sets = timing->single_samples = 0;
    timing->tflops = timing->gbps = timing->sm_clock_mhz = 0;
    return t;
}

int64_t reading_time_ms(const char *text, bool is_utc)
{
    struct tm tm = {0};
    const char *at = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
    if (at && *at == '.')
        at += 1 + strspn(at + 1, "0123456789");
    if (at && (*at || !is_utc))
        at = strptime(at, "%z", &tm);
    const long offset = tm.tm_gmtoff; /* which timegm() forgets */
    return at && !*at ? 1000 * ((int64_t)timegm(&tm) - offset) : 0;
}

bool reading_number(const char *text, double *out)
{
    char *end;
    if (!*text || strspn(text, "+-.0123456789eE") != strlen(text)) /* no hexadecimal, no spaces */
        return false;
    *out = strtod(text, &end);
    return !*end && isfinite(*out);
}

enum gate_status foreign_read(struct foreign_file *f, struct gate_error *err)
{
    TRY(tools[f->tool].read(f, err));
    return f->n_times ? GATE_OK
                      : gate_fail(err, GATE_IO, "%s: has no result with a time (%zu without)",
                                  f->name, f->n_left_out);
}

void foreign_release(struct foreign_file *f)
{
    for (size_t i = 0; i < f->n_times; i++) {
        free(f->times[i].name);
        free(f->times[i].place);
        free(f->times[i].reason);
    }
    for (size_t i = 0; i < f->n_devices; i++)
        free(f->devices[i].name);
    free(f->times);
    free(f->devices);
    free(f->version);
    free(f->host);
    free(f->commit);
    free(f->branch);
}

/* ---- documents ---- */

/* Of one device after the other, by id. */
static int compare_by_device(const void *a, const void *b)
{
    const struct foreign_time *one = a, *other = b;
    return one->device != other->device ? (one->device > other->device ? 1 : -1)
                                        : strcmp(one->id, other->id);
}

/* RFC 9562's version 8, of all that tells the run from others. */
static void derive_uuid(const struct foreign_file *f, const struct foreign_device *device,
                        const char *model, const char *sha256, char uuid[37])
{
    const struct origin *o = f->origin;
    char hex[SHA256_DIGEST_STRING_LENGTH];
    char *all = xasprintf("%s %s %s %s %s %lld", sha256, tools[f->tool].name, o->commit, o->branch,
                          model, device ? (long long)device->id : -1);
    SHA256Data((const unsigned char *)all, strlen(all), hex);
    free(all);
    snprintf(uuid, 37, "%.8s-%.4s-8%.3s-%c%.3s-%.12s", hex, hex + 8, hex + 12, "89ab"[hex[15] % 4],
             hex + 16, hex + 19);
}

static void make_case(const char *tool, struct foreign_time *t, struct document_case *c)
{
    fields_clear(&document_case_shape, c);
    c->id = t->id;
    c->op = tool;
    c->dtype = "none";
    c->verdict = VERDICT_NO_VERDICT;
    c->reason = t->reason;
    c->mode = MODE_NONE;
    c->arms = &t->arm;
    c->n_arms = 1;
}

/* Of n times, which are all of a device; NULL: the file names none. */
static enum gate_status make_document(const struct foreign_file *f,
                                      const struct foreign_device *device,
                                      struct foreign_time *times, size_t n, foreign_document_fn fn,
                                      void *context, struct gate_error *err)
{
    const struct origin *o = f->origin;
    const char *tool = tools[f->tool].name, *slash = strrchr(f->name, '/');
    const char *model = f->model ? f->model : device->model;
    char sha256[SHA256_DIGEST_STRING_LENGTH], uuid[37], contract[64], who[200], file_name[200];
    RELEASED_BY(buf_release) struct buf text = buf_of(DOCUMENT_MAX);
    if (n > CASES_MAX)
        return gate_fail(err, GATE_IO, "%s: has %zu results, of which a run may have %d", f->name,
                         n, CASES_MAX);
    SHA256Data((const unsigned char *)f->text, f->len, sha256);
    derive_uuid(f, device, model, sha256, uuid);
    snprintf(contract, sizeof contract, DOCUMENT_FOREIGN "-%s", tool);
    utf8_print(file_name, sizeof file_name, "%s", slash ? slash + 1 : f->name);
    utf8_print(who, sizeof who, "%.*s@%s", (int)strcspn(o->who, "@"), o->who,
               f->host ? f->host : o->who + strcspn(o->who, "@") + 1);
    struct document_library library = {.role = ROLE_CANDIDATE,
                                       .provider = tool,
                                       .version = f->version ? f->version : "",
                                       .file = file_name,
                                       .sha256 = sha256};
    struct document d;
    fields_clear(&document_shape, &d);
    d.schema = "gate-run/1";
    d.uuid = uuid;
    d.time_ms = f->time_ms;
    d.duration_ms = 0;
    d.gate_version = GATE_VERSION;
    d.git = origin_document(o);
    d.who = who;
    d.suite = tool;
    d.device =
        (struct document_device){.kind = strncmp(model, "host-", 5) ? DEVICE_CUDA : DEVICE_HOST,
                                 .model = model,
                                 .name = f->model ? model : device->name,
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
    d.cases = xcalloc(n, sizeof *d.cases);
    for (; d.n_cases < n; d.n_cases++)
        make_case(tool, &times[d.n_cases], &d.cases[d.n_cases]);
    document_write(&d, &text);
    free(d.cases);
    free(d.git.first_parents);
    return text.failed ? gate_fail(err, GATE_IO, "%s: is too large", f->name)
                       : fn(context, &text, err);
}

enum gate_status foreign_documents(struct foreign_file *f, foreign_document_fn fn, void *context,
                                   struct gate_error *err)
{
    struct foreign_time *t = f->times;
    if (f->n_devices == 0 && !f->model)
        return gate_fail(err, GATE_USAGE,
                         "%s: does not say which device was measured: add --device MODEL, such as "
                         "nvidia-h200",
                         f->name);
    qsort(t, f->n_times, sizeof *t, compare_by_device);
    for (size_t i = 1; i < f->n_times; i++)
        if (!compare_by_device(&t[i - 1], &t[i]))
            return gate_fail(err, GATE_IO, "%s: '%.100s' (%s) and '%.100s' (%s) are one case, '%s'",
                             f->name, t[i - 1].name, t[i - 1].place, t[i].name, t[i].place,
                             t[i].id);
    for (size_t i = 0, n; i < f->n_times; i += n) {
        for (n = 1; i + n < f->n_times && t[i + n].device == t[i].device;)
            n++;
        TRY(make_document(f, f->n_devices ? &f->devices[t[i].device] : NULL, &t[i], n, fn, context,
                          err));
    }
    return GATE_OK;
}
