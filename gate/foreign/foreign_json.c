/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foreign_json.c: the JSON files of nvbench (--json), pytest-benchmark (--benchmark-json) and
 * Google Benchmark (--benchmark_format=json). They may have more members than are read here.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/alloc.h"
#include "gate/base/hex.h"
#include "gate/base/json.h"
#include "gate/decide/stats.h"
#include "gate/device/device.h"
#include "gate/document/fields.h"
#include "gate/foreign/reading.h"

#define TEXT_MAX 400 /* of a document */
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

static enum gate_status refuse_key(struct reading *r, const char *pointer, const char *key,
                                   const char *message)
{
    char place[2 * POINTER_SIZE];
    snprintf(place, sizeof place, "%s/%s", pointer, key);
    return refuse_at(r, place, "%s", message);
}

/* A text that must be there. */
static enum gate_status text_of(struct reading *r, const cJSON *object, const char *key,
                                const char *pointer, const char **out)
{
    const cJSON *member = json_member(object, key);
    if (!cJSON_IsObject(object))
        return refuse_at(r, pointer, "must be an object");
    if (!member)
        return refuse_at(r, pointer, "missing key '%s'", key);
    *out = cJSON_IsString(member) ? member->valuestring : "";
    return **out ? GATE_OK : refuse_key(r, pointer, key, "must be a text that is not empty");
}

/* The same of a number. */
static enum gate_status number_of(struct reading *r, const cJSON *object, const char *key,
                                  const char *pointer, double *out)
{
    const cJSON *member = json_member(object, key);
    if (!cJSON_IsObject(object))
        return refuse_at(r, pointer, "must be an object");
    if (!member)
        return refuse_at(r, pointer, "missing key '%s'", key);
    *out = member->valuedouble;
    return cJSON_IsNumber(member) ? GATE_OK : refuse_key(r, pointer, key, "must be a number");
}

/* A list that must be there. */
static enum gate_status list_of(struct reading *r, const cJSON *object, const char *key,
                                const char *pointer, const cJSON **out)
{
    const cJSON *list = json_member(object, key);
    *out = list ? list->child : NULL;
    if (!list)
        return refuse_at(r, pointer, "missing key '%s'", key);
    return cJSON_IsArray(list) ? GATE_OK : refuse_key(r, pointer, key, "must be an array");
}

/* Parses the file and reads its head, then each element of its benchmarks. */
static enum gate_status
each_benchmark(struct reading *r, enum gate_status (*head)(struct reading *, const cJSON *),
               enum gate_status (*one)(struct reading *, const cJSON *, const char *))
{
    char pointer[POINTER_SIZE];
    cJSON *tree = NULL;
    const cJSON *item = NULL;
    enum gate_status status = json_parse(r->name, r->text, r->len, GATE_IO, &tree, r->err);
    if (status)
        return status;
    if (!cJSON_IsObject(tree))
        status = refuse_at(r, "", "must be an object");
    if (!status)
        status = list_of(r, tree, "benchmarks", "", &item);
    if (!status)
        status = head(r, tree);
    for (size_t i = 0; item && !status; item = item->next, i++) {
        snprintf(pointer, sizeof pointer, "/benchmarks/%zu", i);
        status = one(r, item, pointer);
    }
    cJSON_Delete(tree);
    return status;
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

static enum gate_status nvbench_head(struct reading *r, const cJSON *tree)
{
    char pointer[POINTER_SIZE];
    const cJSON *item;
    const cJSON *version = json_member(json_member(tree, "meta"), "version");
    const char *text = json_string(json_member(version, "nvbench"), "string", NULL);
    if (text && strlen(text) <= TEXT_MAX / 4)
        r->out->version = xstrdup(text);
    enum gate_status status = list_of(r, tree, "devices", "", &item);
    for (size_t i = 0; item && !status; item = item->next, i++) {
        double id = 0;
        const char *name = "";
        snprintf(pointer, sizeof pointer, "/devices/%zu", i);
        status = number_of(r, item, "id", pointer, &id);
        if (!status && (id < 0 || id > 1e6))
            status = refuse_key(r, pointer, "id", "must be from 0 to 1000000");
        if (!status)
            status = text_of(r, item, "name", pointer, &name);
        if (!status && strlen(name) > TEXT_MAX / 4)
            status = refuse_key(r, pointer, "name", "is too long");
        if (status)
            break;
        struct foreign_device *d = add_device(r->out, (int64_t)id, name);
        device_model_key("", name, d->model, sizeof d->model);
        if (!d->model[0])
            status = refuse_at(r, pointer, "has no letter or digit in its name");
    }
    return status;
}

/* The value of a list of {"name", "value"}, which is a number, or one as text. */
static const cJSON *named_value(const cJSON *list, const char *name)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, list)
        if (!strcmp(json_string(item, "name", ""), name))
            return json_member(item, "value");
    return NULL;
}

static enum gate_status read_summary(struct reading *r, const cJSON *list, const char *tag,
                                     const char *pointer, bool *found, double *out)
{
    const cJSON *item;
    *found = false;
    cJSON_ArrayForEach (item, list) {
        if (strcmp(json_string(item, "tag", ""), tag) != 0)
            continue;
        const cJSON *value = named_value(json_member(item, "data"), "value");
        *found = true;
        *out = cJSON_IsNumber(value) ? value->valuedouble : 0;
        if (!cJSON_IsNumber(value) &&
            !(cJSON_IsString(value) && reading_number(value->valuestring, out)))
            return refuse_at(r, pointer, "the summary '%s' has no finite number as 'value'", tag);
        return GATE_OK;
    }
    return GATE_OK;
}

/* "copy/T=F32/Elements=1024" */
static void name_state(const char *benchmark, const cJSON *state, struct buf *out)
{
    const cJSON *axis;
    buf_puts(out, benchmark);
    cJSON_ArrayForEach (axis, json_member(state, "axis_values")) {
        const cJSON *value = json_member(axis, "value");
        buf_printf(out, "/%s=", json_string(axis, "name", ""));
        if (cJSON_IsNumber(value))
            json_write_number(value->valuedouble, out);
        else
            buf_puts(out, cJSON_IsString(value) ? value->valuestring : "");
    }
}

static enum gate_status read_state(struct reading *r, const char *benchmark, const cJSON *item,
                                   const char *pointer)
{
    struct buf name;
    const cJSON *list = json_member(item, "summaries");
    double mean = 0, samples = 0;
    bool has_mean, has_samples;
    size_t device = 0;
    const int64_t id = json_integer(item, "device", -1);
    enum gate_status status =
        read_summary(r, list, "nv/cold/time/gpu/mean", pointer, &has_mean, &mean);
    if (!status)
        status = read_summary(r, list, "nv/cold/sample_size", pointer, &has_samples, &samples);
    if (status)
        return status;
    if (json_bool(item, "is_skipped", false) || !has_mean) {
        r->out->n_left_out++;
        return GATE_OK;
    }
    while (device < r->out->n_devices && r->out->devices[device].id != id)
        device++;
    if (device == r->out->n_devices)
        return refuse_at(r, pointer, "its device %lld is not among the devices", (long long)id);
    buf_init(&name, FOREIGN_NAME_MAX + 1);
    name_state(benchmark, item, &name);
    struct foreign_time *t = NULL;
    if (name.failed)
        status = refuse_at(r, pointer, "its axes have more than %d bytes", FOREIGN_NAME_MAX);
    else
        t = reading_add(r, name.data, mean * 1e9, xstrdup(pointer));
    if (t) {
        t->device = device;
        t->samples = count_of(samples);
    }
    buf_release(&name);
    return status || t ? status : GATE_IO;
}

static enum gate_status nvbench_benchmark_of(struct reading *r, const cJSON *item,
                                             const char *pointer)
{
    char place[POINTER_SIZE];
    const char *name = "";
    const cJSON *state = NULL;
    enum gate_status status = text_of(r, item, "name", pointer, &name);
    if (!status)
        status = list_of(r, item, "states", pointer, &state);
    for (size_t i = 0; state && !status; state = state->next, i++) {
        snprintf(place, sizeof place, "%s/states/%zu", pointer, i);
        status = read_state(r, name, state, place);
    }
    return status;
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
    if (*brand && strlen(brand) <= TEXT_MAX / 4) {
        struct foreign_device *d = add_device(r->out, 0, brand);
        device_model_key("host-", brand, d->model, sizeof d->model);
    }
    return GATE_OK;
}

static enum gate_status pytest_benchmark_of(struct reading *r, const cJSON *item,
                                            const char *pointer)
{
    const cJSON *stats = json_member(item, "stats");
    char place[POINTER_SIZE];
    const char *name = "";
    double median = 0, rounds = 0;
    enum gate_status status = text_of(r, item, "fullname", pointer, &name);
    if (!status && !stats)
        return refuse_at(r, pointer, "missing key 'stats'");
    snprintf(place, sizeof place, "%s/stats", pointer);
    if (!status)
        status = number_of(r, stats, "median", place, &median);
    if (!status)
        status = number_of(r, stats, "rounds", place, &rounds);
    if (status)
        return status;
    struct foreign_time *t = reading_add(r, name, median * 1e9, xstrdup(place));
    if (!t)
        return GATE_IO;
    const double iterations = json_number(stats, "iterations", 1);
    t->samples = count_of(rounds);
    t->launches_per_sample = count_of(iterations);
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

/* A repetition, or the median of those that the file does not have. Other aggregates are none. */
static enum gate_status google_benchmark_of(struct reading *r, const cJSON *item,
                                            const char *pointer)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    const char *name = "", *unit = "";
    double time = 0, ns = 0;
    bool is_aggregate = !strcmp(json_string(item, "run_type", ""), "aggregate");
    if (is_aggregate && strcmp(json_string(item, "aggregate_name", ""), "median") != 0)
        return GATE_OK;
    if (json_bool(item, "error_occurred", false) || json_bool(item, "skipped", false)) {
        r->out->n_left_out++;
        return GATE_OK;
    }
    enum gate_status status = text_of(r, item, "name", pointer, &name);
    if (!status)
        status = text_of(r, item, "time_unit", pointer, &unit);
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        ns = strcmp(units[i].name, unit) ? ns : units[i].ns;
    if (!status && ns <= 0)
        status = refuse_key(r, pointer, "time_unit", "must be one of 'ns' 'us' 'ms' 's'");
    if (!status)
        status = number_of(r, item, "real_time", pointer, &time);
    if (status)
        return status;
    struct foreign_time *t =
        reading_add(r, json_string(item, "run_name", name), time * ns, xstrdup(pointer));
    if (!t)
        return GATE_IO;
    t->samples = !is_aggregate;
    return GATE_OK;
}

/* By name, and a median behind the repetitions that it is of. */
static int compare_times(const void *a, const void *b)
{
    const struct foreign_time *one = a, *other = b;
    int by_name = strcmp(one->name, other->name);
    return by_name ? by_name : (int)(other->samples - one->samples);
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
        size_t n_repeated = 0;
        for (n = 0; i + n < out->n_times && !strcmp(first[n].name, first->name); n++)
            if (first[n].samples > 0)
                ns[n_repeated++] = first[n].p50_ns;
        if (n_repeated > 0)
            first->p50_ns = stats_middle(ns, n_repeated);
        first->samples = n_repeated > 0 ? (int64_t)n_repeated : 1;
        for (size_t k = n; k-- > 1;) {
            free(first[k].name);
            free(first[k].place);
        }
        out->times[n_kept++] = *first;
    }
    out->n_times = n_kept;
    free(ns);
    return GATE_OK;
}
