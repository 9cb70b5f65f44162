/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_baseline.c: a file of stored baselines, baselines/DEVICE.json. What is let in can be
 * written, and is let in again.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gate/base/file.h"
#include "tests/fuzz/edits.h"
#include "gate/baseline/baseline.h"

#define SHA "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define COMMIT "0123456789abcdef0123456789abcdef01234567"
#define UUID "5a3b1e00-0000-4000-8000-000000000001"

static const char case_id[] = "gemm/fp16/m4096-n4096-k4096";

/* The gate's own writing of a baseline, with a log and a trend. */
static cJSON *good_document(const char *path)
{
    const struct baseline_entry entry = {
        .p50_ns = 1000,
        .p50_lo_ns = 990,
        .p50_hi_ns = 1010,
        .p90_ns = 1100,
        .control_ns = 5000,
        .spread = 0.01,
        .time_ms = 1735732800000,
        .kernel = "k",
        .commit = COMMIT,
        .run_uuid = UUID,
        .library_sha256 = SHA,
        .epoch = "580.1/13.0/700 W",
        .rel_fro = 2.8e-4,
        .vendor = "cublas",
        .vendor_ratio = 1.1,
    };
    const struct baseline_note note = {BASELINE_ACCEPT_NEW, "first", "a@example", 1735732800000};
    const struct baseline_evidence evidence = {.time_ms = 1735732800001,
                                               .run_uuid = UUID,
                                               .commit = COMMIT,
                                               .ratio = {0.99, 0.98, 1.0},
                                               .again = NAN};
    struct gate_error err = {0};
    struct baseline *baseline = NULL;
    struct buf text;
    buf_init(&text, (size_t)1 << 20);
    bool made =
        baseline_load(path, "nvidia-h200", &baseline, &err) == GATE_OK &&
        baseline_set(baseline, case_id, "paired-graph-v3", &entry, &note, &err) == GATE_OK &&
        baseline_trend_add(baseline, case_id, &evidence, &err) == GATE_OK &&
        baseline_save(baseline, path, &err) == GATE_OK && file_read(path, &text, &err) == GATE_OK;
    fuzz_expect(made, "a good file", err.message);
    cJSON *document = cJSON_Parse(text.data);
    fuzz_expect(document != NULL, "a good file", text.data);
    baseline_free(baseline);
    buf_release(&text);
    return document;
}

static void use(const struct baseline *baseline, const char *path)
{
    struct gate_error err = {0};
    struct baseline *again = NULL;
    const struct baseline_file *f = baseline_stored(baseline);
    for (size_t i = 0; i < f->n_cases; i++) {
        struct baseline_entry found;
        const struct baseline_trend *trend = baseline_trend(baseline, f->cases[i].id);
        fuzz_expect(baseline_find(baseline, f->cases[i].id, f->contract, &found) &&
                        found.p50_ns == f->cases[i].entry.p50_ns,
                    "the case that was listed", f->cases[i].id);
        fuzz_expect(!trend || trend->n_runs <= BASELINE_TREND_MAX, "a short trend", f->cases[i].id);
    }
    if (f->contract[0] == '\0')
        return;
    fuzz_expect(baseline_save(baseline, path, &err) == GATE_OK, "a file that can be written",
                err.message);
    fuzz_expect(baseline_load(path, "nvidia-h200", &again, &err) == GATE_OK,
                "the file that was written", err.message);
    baseline_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *path;
    static cJSON *good;
    struct gate_error err = {0};
    struct baseline *baseline = NULL;
    struct buf text;
    if (!path) {
        path = fuzz_file("baseline.json");
        good = good_document(path);
    }
    buf_init(&text, (size_t)1 << 20);
    edits_text(good, data, size, &text);
    FILE *file = fopen(path, "w");
    fuzz_expect(file && fwrite(text.data ? text.data : "", 1, text.len, file) == text.len &&
                    fclose(file) == 0,
                "a temporary file", path);
    if (baseline_load(path, "nvidia-h200", &baseline, &err) == GATE_OK)
        use(baseline, path);
    else
        fuzz_expect(err.message[0] != '\0', "a reason", "none");
    baseline_free(baseline);
    buf_release(&text);
    return 0;
}
