/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/worker/record.h"

#include <math.h>
#include <stdlib.h>

#include "gate/worker/measure.h"

cJSON *record_device(const struct device_info *info)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "kind", info->kg.kind == KG_DEVICE_CUDA ? "cuda" : "host");
    cJSON_AddStringToObject(o, "model", info->model);
    cJSON_AddStringToObject(o, "name", info->name);
    cJSON_AddStringToObject(o, "uuid", info->uuid);
    cJSON_AddNumberToObject(o, "sm_count", info->kg.sm_count);
    cJSON_AddNumberToObject(o, "l2_bytes", (double)info->kg.l2_bytes);
    cJSON_AddNumberToObject(o, "memory_bytes", (double)info->memory_bytes);
    cJSON_AddStringToObject(o, "capability", info->capability);
    cJSON_AddStringToObject(o, "driver", info->driver);
    cJSON_AddStringToObject(o, "runtime", info->runtime);
    cJSON_AddNumberToObject(o, "power_limit_mw", (double)info->power_limit_mw);
    cJSON_AddNumberToObject(o, "sm_clock_max_mhz", (double)info->sm_clock_max_mhz);
    return o;
}

static const char *role_name(enum arm_role role)
{
    return role == ARM_CANDIDATE ? "candidate" : role == ARM_BASELINE ? "baseline" : "provider";
}

cJSON *record_library(const struct library *lib, enum arm_role role)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "role", role_name(role));
    cJSON_AddStringToObject(o, "provider", lib->table->provider);
    cJSON_AddStringToObject(o, "version", lib->table->version);
    cJSON_AddStringToObject(o, "file", lib->file);
    cJSON_AddStringToObject(o, "sha256", lib->sha256);
    return o;
}

static void add_number_or_null(cJSON *o, const char *key, double value, bool known)
{
    if (known && isfinite(value))
        cJSON_AddNumberToObject(o, key, value);
    else
        cJSON_AddNullToObject(o, key);
}

static cJSON *record_estimate(struct estimate e)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "value", e.value);
    cJSON_AddNumberToObject(o, "lo", e.lo);
    cJSON_AddNumberToObject(o, "hi", e.hi);
    return o;
}

static void add_count(cJSON *o, const char *key, unsigned n)
{
    if (n > 0)
        cJSON_AddNumberToObject(o, key, n);
}

static void add_left_out(cJSON *o, const struct left_out *l)
{
    cJSON_AddNumberToObject(o, "skipped",
                            l->refused + l->not_served + l->not_guarded + l->too_large);
    add_count(o, "refused", l->refused);
    add_count(o, "not_served", l->not_served);
    add_count(o, "not_guarded", l->not_guarded);
    add_count(o, "too_large", l->too_large);
    if (l->why_not_guarded[0])
        cJSON_AddStringToObject(o, "why_not_guarded", l->why_not_guarded);
}

static void add_coverage(cJSON *o, const struct coverage *c)
{
    add_count(o, "values", (unsigned)__builtin_popcount(c->values));
    add_count(o, "shapes", c->shapes);
    add_count(o, "layouts", c->layouts);
    add_count(o, "launches", c->launches);
    add_count(o, "pairs", c->pairs);
    add_count(o, "pairs_of", c->pairs_of);
}

/* Where there are several: the errors of a small one do not show in the worst of all. */
static void add_outputs(cJSON *o, const struct verification *v, const struct kg_problem *p)
{
    struct problem_tensor tensors[PROBLEM_MAX_TENSORS];
    unsigned n = problem_tensors(p, tensors), first = 0;
    while (!tensors[first].is_output)
        first++;
    if (n - first < 2 || !v->seeds)
        return;
    cJSON *outputs = cJSON_AddObjectToObject(o, "outputs");
    for (unsigned i = first; i < n; i++)
        add_number_or_null(outputs, tensors[i].name, v->output_rel_fro[i - first], true);
}

static cJSON *record_verification(const struct verification *v, const struct kg_problem *p)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddBoolToObject(o, "ok", v->ok);
    cJSON_AddNumberToObject(o, "seeds", v->seeds);
    add_number_or_null(o, "rel_fro", v->rel_fro, v->seeds > 0);
    add_outputs(o, v, p);
    cJSON_AddNumberToObject(o, "limit", v->limit);
    add_number_or_null(o, "max_abs", v->max_abs, v->seeds > 0);
    cJSON_AddNumberToObject(o, "allclose_1e2", v->seeds ? v->allclose_1e2 : 0);
    cJSON_AddNumberToObject(o, "allclose_1e3", v->seeds ? v->allclose_1e3 : 0);
    cJSON_AddNumberToObject(o, "nonfinite", (double)v->nonfinite);
    cJSON_AddStringToObject(o, "message", v->message);
    cJSON_AddNumberToObject(o, "checks", v->checks);
    add_left_out(o, &v->left_out);
    add_coverage(o, &v->coverage);
    if (v->own_shape_only)
        cJSON_AddBoolToObject(o, "own_shape_only", true);
    if (v->vendor[0] && isfinite(v->rel_fro) && v->vendor_rel_fro > 0) {
        cJSON_AddStringToObject(o, "vendor", v->vendor);
        cJSON_AddNumberToObject(o, "vendor_ratio", v->rel_fro / v->vendor_rel_fro);
    }
    return o;
}

static void put_base64(const unsigned char *bytes, size_t n, char *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        unsigned left = n - i > 2 ? 3 : (unsigned)(n - i);
        unsigned word = (unsigned)bytes[i] << 16;
        if (left > 1)
            word |= (unsigned)bytes[i + 1] << 8;
        if (left > 2)
            word |= bytes[i + 2];
        *out++ = digits[word >> 18];
        *out++ = digits[word >> 12 & 63];
        *out++ = left > 1 ? digits[word >> 6 & 63] : '=';
        *out++ = left > 2 ? digits[word & 63] : '=';
    }
    *out = '\0';
}

/* Little-endian float32, as the schema says: every platform of the gate is little-endian. */
static void add_samples(cJSON *o, const struct measurement *m)
{
    size_t bytes = m->n_samples * sizeof(float);
    float *values = malloc(bytes + 1);
    char *text = malloc(bytes / 3 * 4 + 8);
    if (values && text) {
        for (size_t i = 0; i < m->n_samples; i++)
            values[i] = (float)m->samples_ns[i];
        put_base64((const unsigned char *)values, bytes, text);
        cJSON_AddStringToObject(o, "samples_ns", text);
    }
    free(values);
    free(text);
}

static void add_sensor(cJSON *o, const char *key, double before, double after)
{
    if (isnan(before) && isnan(after)) {
        cJSON_AddNullToObject(o, key);
        return;
    }
    cJSON *span = cJSON_AddObjectToObject(o, key);
    add_number_or_null(span, "before", before, !isnan(before));
    add_number_or_null(span, "after", after, !isnan(after));
}

static void add_sensors(cJSON *o, const struct measurement *m)
{
    if (!m->has_sensors)
        return;
    add_sensor(o, "power_w", m->before.power_w, m->after.power_w);
    add_sensor(o, "temperature_c", m->before.temperature_c, m->after.temperature_c);
}

static void add_code(cJSON *o, const struct measurement *m, bool is_candidate)
{
    if (m->code.has_resources) {
        cJSON_AddNumberToObject(o, "registers", m->code.registers);
        cJSON_AddNumberToObject(o, "shared_bytes", m->code.shared_bytes);
        cJSON_AddNumberToObject(o, "spill_bytes", m->code.spill_bytes);
    }
    if (m->code.sha256[0])
        cJSON_AddStringToObject(o, "code_sha256", m->code.sha256);
    if (m->code.sha256[0] && !is_candidate)
        cJSON_AddBoolToObject(o, "same_code", m->same_code);
}

static cJSON *record_measurement(const struct measurement *m, bool is_candidate,
                                 const struct kg_problem *p, const struct device_info *info)
{
    cJSON *o = cJSON_CreateObject();
    double p50 = m->p50_ns.value, floor_ns = measure_floor_ns(p, &info->peaks);
    cJSON_AddNumberToObject(o, "p50_ns", p50);
    cJSON_AddNumberToObject(o, "p50_lo_ns", m->p50_ns.lo);
    cJSON_AddNumberToObject(o, "p50_hi_ns", m->p50_ns.hi);
    cJSON_AddNumberToObject(o, "p10_ns", m->p10_ns);
    cJSON_AddNumberToObject(o, "p90_ns", m->p90_ns);
    cJSON_AddNumberToObject(o, "samples", (double)m->n_samples);
    cJSON_AddNumberToObject(o, "launches_per_sample", m->launches_per_sample);
    cJSON_AddNumberToObject(o, "input_sets", m->input_sets);
    cJSON_AddBoolToObject(o, "cold", m->cold);
    cJSON_AddNumberToObject(o, "tflops", problem_flops(p) / p50 * 1e-3);
    cJSON_AddNumberToObject(o, "gbps", problem_bytes(p) / p50);
    add_number_or_null(o, "ceiling", floor_ns / p50, floor_ns > 0);
    cJSON_AddNumberToObject(o, "sm_clock_mhz", m->sm_clock_mhz);
    cJSON_AddNumberToObject(o, "throttled_power_ns", fmax(0, (double)m->throttle.power_ns));
    cJSON_AddNumberToObject(o, "throttled_thermal_ns", fmax(0, (double)m->throttle.thermal_ns));
    add_sensors(o, m);
    add_number_or_null(o, "single_p50_ns", m->single_p50_ns, m->n_single > 0);
    add_number_or_null(o, "single_p90_ns", m->single_p90_ns, m->n_single > 0);
    cJSON_AddNumberToObject(o, "single_samples", (double)m->n_single);
    cJSON_AddItemToObject(o, "ratio_to_candidate",
                          is_candidate ? cJSON_CreateNull() : record_estimate(m->ratio));
    add_number_or_null(o, "ratio_cycles", m->ratio_cycles, m->ratio_cycles > 0);
    add_number_or_null(o, "ratio_p90", m->ratio_p90, m->ratio_p90 > 0);
    add_code(o, m, is_candidate);
    add_samples(o, m);
    return o;
}

cJSON *record_arm(const struct arm *arm, const struct kg_problem *p, const struct device_info *info)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "provider", arm->library->table->provider);
    cJSON_AddStringToObject(o, "role", role_name(arm->role));
    cJSON_AddStringToObject(o, "kernel", arm->kernel->name);
    cJSON_AddItemToObject(o, "verify", record_verification(&arm->verification, p));
    cJSON_AddItemToObject(
        o, "timing",
        arm->timed ? record_measurement(&arm->measurement, arm->role == ARM_CANDIDATE, p, info)
                   : cJSON_CreateNull());
    return o;
}
