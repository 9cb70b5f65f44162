/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foreign_json.c: the JSON files of nvbench (--json), pytest-benchmark (--benchmark-json) and
 * Google Benchmark (--benchmark_format=json). They may have more members than are read here.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/utf8.h"
#include "gate/base/json.h"
#include "gate/decide/stats.h"
#include "gate/device/device.h"
#include "gate/document/fields.h"
#include "gate/foreign/foreign.h"

#define SHORT_MAX 100 /* bytes of a name, of which each may be 4 characters of a document */
#define POINTER_SIZE 100

/* ---- members ---- */

__attribute__((format(printf, 3, 4))) static enum gate_status
refuse_at(struct reading *r, const char *pointer, const char *format, ...)
{
    struct field_fault fault = {.of_key = false};
    va_list args;
    snprintf(fault.pointer, sizeof fault.pointer, "%s", pointer);
    va_start(args, format);
    vsnprintf(fault.message, sizeof fault.message, format, args);
    va_end(args);
    return fields_fault(r->name, 1, r->text, r->len, &fault, GATE_IO, r->err);
}

static cJSON_bool is_text(const cJSON *value)
{
    return cJSON_IsString(value) && *value->valuestring;
}

/* A member that must be there. */
static enum gate_status member_of(struct reading *r, const cJSON *object, const char *key,
                                  const char *pointer, cJSON_bool (*is)(const cJSON *),
                                  const char *what, const cJSON **out)
{
    char place[2 * POINTER_SIZE];
    *out = json_member(object, key);
    if (!cJSON_IsObject(object))
        return refuse_at(r, pointer, "must be an object");
    if (!*out)
        return refuse_at(r, pointer, "missing key '%s'", key);
    snprintf(place, sizeof place, "%s/%s", pointer, key);
    return is(*out) ? GATE_OK : refuse_at(r, place, "must be %s", what);
}

#define TEXT is_text, "a text that is not empty"
#define NUMBER cJSON_IsNumber, "a number"
#define LIST cJSON_IsArray, "an array"

/* Parses the file and reads its head, then each element of its benchmarks. */
static enum gate_status
each_benchmark(struct reading *r, enum gate_status (*head)(struct reading *, const cJSON *),
               enum gate_status (*one)(struct reading *, const cJSON *, const char *))
{
    char pointer[POINTER_SIZE];
    RELEASED_BY(json_delete_at) cJSON *tree = NULL;
    const cJSON *list, *item;
    size_t i = 0;
    TRY(json_parse(r->name, r->text, r->len, GATE_IO, &tree, r->err));
    TRY(member_of(r, tree, "benchmarks", "", LIST, &list));
    TRY(head(r, tree));
    cJSON_ArrayForEach (item, list) {
        snprintf(pointer, sizeof pointer, "/benchmarks/%zu", i++);
        TRY(one(r, item, pointer));
    }
    return GATE_OK;
}

static struct foreign_device *add_device(struct foreign_file *out, int64_t id, const char *name)
{
    out->devices = xrealloc(out->devices, out->n_devices + 1, sizeof *out->devices);
    struct foreign_device *d = &out->devices[out->n_devices++];
    *d = (struct foreign_device){.id = id, .name = xstrdup(name)};
    return d;
}

static int64_t count_of(double number)
{
    return number >= 1 && number <= 1e9 ? (int64_t)number : 1;
}

/* ---- nvbench ---- */

static cJSON_bool is_id(const cJSON *value)
{
    return cJSON_IsNumber(value) && value->valuedouble >= 0 && value->valuedouble <= 1e6;
}

static cJSON_bool is_name(const cJSON *value)
{
    return is_text(value) && strlen(value->valuestring) <= SHORT_MAX;
}

static enum gate_status nvbench_head(struct reading *r, const cJSON *tree)
{
    char pointer[POINTER_SIZE];
    const cJSON *list, *item, *id, *name;
    const cJSON *version = json_member(json_member(tree, "meta"), "version");
    const char *text = json_string(json_member(version, "nvbench"), "string", NULL);
    size_t i = 0;
    if (text && strlen(text) <= SHORT_MAX)
        r->out->version = xstrdup(text);
    TRY(member_of(r, tree, "devices", "", LIST, &list));
    cJSON_ArrayForEach (item, list) {
        snprintf(pointer, sizeof pointer, "/devices/%zu", i++);
        TRY(member_of(r, item, "id", pointer, is_id, "a number from 0 to 1000000", &id));
        TRY(member_of(r, item, "name", pointer, is_name, "a text of 1 to 100 bytes", &name));
        struct foreign_device *d = add_device(r->out, (int64_t)id->valuedouble, name->valuestring);
        device_model_key("", name->valuestring, d->model, sizeof d->model);
        if (!d->model[0])
            return refuse_at(r, pointer, "has no letter or digit in its name");
    }
    return GATE_OK;
}

static enum gate_status read_summary(struct reading *r, const cJSON *list, const char *tag,
                                     const char *pointer, bool *found, double *out)
{
    const cJSON *item, *data, *value = NULL;
    *found = false;
    cJSON_ArrayForEach (item, list) {
        if (strcmp(json_string(item, "tag", ""), tag) != 0)
            continue;
        *found = true;
        cJSON_ArrayForEach (data, json_member(item, "data"))
            if (!value && !strcmp(json_string(data, "name", ""), "value"))
                value = json_member(data, "value");
        *out = cJSON_IsNumber(value) ? value->valuedouble : 0;
        if (!cJSON_IsNumber(value) &&
            !(cJSON_IsString(value) && reading_number(value->valuestring, out)))
            return refuse_at(r, pointer, "the summary '%s' has no finite number as 'value'", tag);
        break;
    }
    return GATE_OK;
}

static enum gate_status read_state(struct reading *r, const char *benchmark, const cJSON *item,
                                   const char *pointer)
{
    RELEASED_BY(buf_release) struct buf name = buf_of(FOREIGN_NAME_MAX + 1);
    const cJSON *axis, *list = json_member(item, "summaries");
    double mean = 0, samples = 0;
    bool has_mean, has_samples;
    size_t device = 0;
    const int64_t id = json_integer(item, "device", -1);
    TRY(read_summary(r, list, "nv/cold/time/gpu/mean", pointer, &has_mean, &mean));
    TRY(read_summary(r, list, "nv/cold/sample_size", pointer, &has_samples, &samples));
    if (json_bool(item, "is_skipped", false) || !has_mean) {
        r->out->n_left_out++;
        return GATE_OK;
    }
    while (device < r->out->n_devices && r->out->devices[device].id != id)
        device++;
    if (device == r->out->n_devices)
        return refuse_at(r, pointer, "its device %lld is not among the devices", (long long)id);
    buf_puts(&name, benchmark); /* "copy/T=F32/Elements=1024" */
    cJSON_ArrayForEach (axis, json_member(item, "axis_values")) {
        const cJSON *value = json_member(axis, "value");
        buf_printf(&name, "/%s=", json_string(axis, "name", ""));
        if (cJSON_IsNumber(value))
            json_write_number(value->valuedouble, &name);
        else
            buf_puts(&name, cJSON_IsString(value) ? value->valuestring : "");
    }
    if (name.failed)
        return refuse_at(r, pointer, "its axes have more than %d bytes", FOREIGN_NAME_MAX);
    struct foreign_time *t = reading_add(r, name.data, mean * 1e9, xstrdup(pointer));
    if (!t)
        return GATE_IO;
    t->device = device;
    t->arm.timing.samples = count_of(samples);
    return GATE_OK;
}

static enum gate_status nvbench_benchmark_of(struct reading *r, const cJSON *item,
                                             const char *pointer)
{
    char place[POINTER_SIZE];
    const cJSON *name, *states, *state;
    size_t i = 0;
    TRY(member_of(r, item, "name", pointer, TEXT, &name));
    TRY(member_of(r, item, "states", pointer, LIST, &states));
    cJSON_ArrayForEach (state, states) {
        snprintf(place, sizeof place, "%s/states/%zu", pointer, i++);
        TRY(read_state(r, name->valuestring, state, place));
    }
    return GATE_OK;
}

enum gate_status reading_nvbench(struct reading *r)
{
    return each_benchmark(r, nvbench_head, nvbench_benchmark_of);
}

/* ---- pytest-benchmark ---- */

/* A copy of a text, where it is one and a document may have it. */
static char *copy_of(const char *text)
{
    return text && *text && strlen(text) < 100 ? xstrdup(text) : NULL;
}

static enum gate_status pytest_head(struct reading *r, const cJSON *tree)
{
    const cJSON *machine = json_member(tree, "machine_info");
    const cJSON *commit = json_member(tree, "commit_info");
    const char *brand = json_string(json_member(machine, "cpu"), "brand_raw", "");
    const char *id = json_string(commit, "id", "");
    r->out->version = copy_of(json_string(tree, "version", NULL));
    r->out->host = copy_of(json_string(machine, "node", NULL));
    r->out->time_ms = reading_time_ms(json_string(tree, "datetime", ""), true);
    if (hex_is(id, 40)) {
        r->out->commit = xstrdup(id);
        r->out->branch = copy_of(json_string(commit, "branch", NULL));
        r->out->dirty = json_bool(commit, "dirty", false);
    }
    if (*brand && strlen(brand) <= SHORT_MAX) {
        struct foreign_device *d = add_device(r->out, 0, brand);
        device_model_key("host-", brand, d->model, sizeof d->model);
    }
    return GATE_OK;
}

static enum gate_status pytest_benchmark_of(struct reading *r, const cJSON *item,
                                            const char *pointer)
{
    char place[POINTER_SIZE];
    const cJSON *name, *stats, *median, *rounds;
    TRY(member_of(r, item, "fullname", pointer, TEXT, &name));
    TRY(member_of(r, item, "stats", pointer, cJSON_IsObject, "an object", &stats));
    snprintf(place, sizeof place, "%s/stats", pointer);
    TRY(member_of(r, stats, "median", place, NUMBER, &median));
    TRY(member_of(r, stats, "rounds", place, NUMBER, &rounds));
    struct foreign_time *t =
        reading_add(r, name->valuestring, median->valuedouble * 1e9, xstrdup(place));
    if (!t)
        return GATE_IO;
    t->arm.timing.samples = count_of(rounds->valuedouble);
    t->arm.timing.launches_per_sample = count_of(json_number(stats, "iterations", 1));
    return GATE_OK;
}

enum gate_status reading_pytest(struct reading *r)
{
    return each_benchmark(r, pytest_head, pytest_benchmark_of);
}

/* ---- Google Benchmark ---- */

static enum gate_status google_head(struct reading *r, const cJSON *tree)
{
    const cJSON *context = json_member(tree, "context");
    r->out->version = copy_of(json_string(context, "library_version", NULL));
    r->out->host = copy_of(json_string(context, "host_name", NULL));
    r->out->time_ms = reading_time_ms(json_string(context, "date", ""), false);
    return GATE_OK;
}

/* 0: it is none. */
static double unit_ns(const cJSON *unit)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    const char *name = cJSON_IsString(unit) ? unit->valuestring : "";
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (!strcmp(units[i].name, name))
            return units[i].ns;
    return 0;
}

static cJSON_bool is_unit(const cJSON *value)
{
    return unit_ns(value) > 0;
}

/* A repetition, or the median of those that the file does not have. Other aggregates are none. */
static enum gate_status google_benchmark_of(struct reading *r, const cJSON *item,
                                            const char *pointer)
{
    const cJSON *name, *unit, *time;
    bool is_aggregate = !strcmp(json_string(item, "run_type", ""), "aggregate");
    if (is_aggregate && strcmp(json_string(item, "aggregate_name", ""), "median") != 0)
        return GATE_OK;
    if (json_bool(item, "error_occurred", false) || json_bool(item, "skipped", false)) {
        r->out->n_left_out++;
        return GATE_OK;
    }
    TRY(member_of(r, item, "name", pointer, TEXT, &name));
    TRY(member_of(r, item, "time_unit", pointer, is_unit, "one of 'ns' 'us' 'ms' 's'", &unit));
    TRY(member_of(r, item, "real_time", pointer, NUMBER, &time));
    struct foreign_time *t = reading_add(r, json_string(item, "run_name", name->valuestring),
                                         time->valuedouble * unit_ns(unit), xstrdup(pointer));
    if (!t)
        return GATE_IO;
    t->arm.timing.samples = !is_aggregate;
    return GATE_OK;
}

/* By name, and a median behind the repetitions that it is of. */
static int compare_times(const void *a, const void *b)
{
    const struct foreign_time *one = a, *other = b;
    int by_name = strcmp(one->name, other->name);
    return by_name ? by_name : (int)(other->arm.timing.samples - one->arm.timing.samples);
}

enum gate_status reading_google(struct reading *r)
{
    struct foreign_file *out = r->out;
    enum gate_status status = each_benchmark(r, google_head, google_benchmark_of);
    if (status || out->n_times == 0)
        return status;
    qsort(out->times, out->n_times, sizeof *out->times, compare_times);
    double *ns = xcalloc(out->n_times, sizeof *ns);
    size_t n_kept = 0;
    for (size_t i = 0, n = 0; i < out->n_times; i += n) {
        struct foreign_time *first = &out->times[i];
        struct document_timing *timing = &first->arm.timing;
        size_t n_repeated = 0;
        for (n = 0; i + n < out->n_times && !strcmp(first[n].name, first->name); n++)
            if (first[n].arm.timing.samples > 0)
                ns[n_repeated++] = first[n].arm.timing.p50_ns;
        if (n_repeated > 0)
            timing->p50_ns = stats_middle(ns, n_repeated);
        timing->samples = n_repeated > 0 ? (int64_t)n_repeated : 1;
        for (size_t k = n; k-- > 1;)
            foreign_release_time(&first[k]);
        out->times[n_kept++] = *first;
    }
    out->n_times = n_kept;
    free(ns);
    return GATE_OK;
}
