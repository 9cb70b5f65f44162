/* SPDX-License-Identifier: Apache-2.0 */
/* The stored baselines: what is kept, what is refused, and what the file looks like. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gate/base/file.h"
#include "gate/baseline/baseline.h"
#include "gate/document/fields_table.h"
#include "tests/unit/unit.h"

#define CONTRACT "graph-replay-v1"
#define SHA "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define COMMIT "0123456789abcdef0123456789abcdef01234567"
#define UUID "5a3b1e00-0000-4000-8000-000000000001"

static struct baseline_entry entry(double p50_ns)
{
    static struct document_output outputs[] = {{"dx", 2.9e-4}, {"dw", NAN}, {"db", 1e-5}};
    return (struct baseline_entry){
        .p50_ns = p50_ns,
        .p50_lo_ns = p50_ns * 0.999,
        .p50_hi_ns = p50_ns * 1.001,
        .p90_ns = p50_ns * 1.01,
        .control_ns = 1000000,
        .spread = 0.0012,
        .time_ms = 1735732800000,
        .kernel = "flash_mma",
        .commit = COMMIT,
        .run_uuid = UUID,
        .library_sha256 = SHA,
        .epoch = "580.159/13.0/700 W",
        .rel_fro = 2.9e-4,
        .outputs = outputs,
        .n_outputs = 3,
        .vendor_ratio = 1.04,
        .vendor = "cublas",
    };
}

static const struct baseline_note note = {BASELINE_ACCEPT, "new driver", "A. Uthor <a@example>",
                                          1735819200000};
static const struct baseline_note first = {BASELINE_ACCEPT_NEW, "first measurement", "a@example",
                                           1735732800000};
static const struct baseline_note lowered = {BASELINE_RATCHET, "confirmed", "a@example",
                                             1735905600000};

static struct baseline *load(void)
{
    struct gate_error err = {0};
    struct baseline *b = NULL;
    if (baseline_load("b.json", "nvidia-h200", &b, &err) != GATE_OK)
        fail_msg("%s", err.message);
    return b;
}

static void set(struct baseline *b, const char *case_id, double p50_ns,
                const struct baseline_note *n)
{
    struct gate_error err = {0};
    const struct baseline_entry e = entry(p50_ns);
    if (baseline_set(b, case_id, CONTRACT, &e, n, &err) != GATE_OK)
        fail_msg("%s", err.message);
}

static void save(const struct baseline *b)
{
    struct gate_error err = {0};
    if (baseline_save(b, "b.json", &err) != GATE_OK)
        fail_msg("%s", err.message);
}

TEST(round_trip)
{
    struct baseline_entry e;
    struct baseline *b = load();
    assert_string_equal(baseline_stored(b)->contract, "");
    assert_false(baseline_find(b, "gemm/a", CONTRACT, &e));
    set(b, "gemm/b", 2000, &first);
    set(b, "gemm/a", 1000.5, &first);
    set(b, "gemm/c", 3000, &first);
    set(b, "gemm/a", 1100, &note);
    save(b);
    baseline_free(b);

    b = load();
    assert_true(baseline_find(b, "gemm/a", CONTRACT, &e));
    assert_true(e.p50_ns == 1100);
    assert_true(e.p50_lo_ns == 1100 * 0.999);
    assert_string_equal(e.kernel, "flash_mma");
    assert_string_equal(e.library_sha256, SHA);
    assert_true(e.control_ns == 1000000);
    assert_true(e.spread == 0.0012);
    assert_string_equal(e.epoch, "580.159/13.0/700 W");
    assert_true(e.rel_fro == 2.9e-4 && e.vendor_ratio == 1.04 && e.n_outputs == 3);
    assert_true(e.outputs[2].rel_fro == 1e-5 && isnan(e.outputs[1].rel_fro));
    assert_string_equal(e.outputs[2].name, "db");
    assert_string_equal(e.vendor, "cublas");
    assert_false(baseline_find(b, "gemm/a", "other-v1", &e));
    assert_false(baseline_find(b, "gemm/d", CONTRACT, &e));
    baseline_free(b);
}

TEST(file_is_reviewable)
{
    struct buf text;
    struct gate_error err = {0};
    buf_init(&text, 1 << 20);
    assert_int_equal(file_read("b.json", &text, &err), GATE_OK);
    const char *expected =
        "{\n"
        "  \"schema\": \"gate-baseline/1\",\n"
        "  \"device_model\": \"nvidia-h200\",\n"
        "  \"contract\": \"graph-replay-v1\",\n"
        "  \"cases\": {\n"
        "    \"gemm/a\": {\"p50_ns\": 1100, \"p50_lo_ns\": 1098.9, \"p50_hi_ns\": ";
    assert_memory_equal(text.data, expected, strlen(expected));
    assert_non_null(strstr(text.data, "\"control_ns\": 1000000, \"spread\": 0.0012, "));
    assert_non_null(strstr(text.data,
                           "\"epoch\": \"580.159/13.0/700 W\", \"library_sha256\": \"" SHA "\", "
                           "\"rel_fro\": 0.00029, \"outputs\": {\"dx\": 0.00029, \"dw\": null, "
                           "\"db\": 1e-05}, \"vendor\": \"cublas\", \"vendor_ratio\": 1.04},"
                           "\n    \"gemm/b\": {"));
    assert_non_null(strstr(
        text.data, "{\"time_ms\": 1735819200000, \"case\": \"gemm/a\", \"action\": \"accept\", "
                   "\"from_ns\": 1000.5, \"to_ns\": 1100, \"reason\": \"new driver\", "
                   "\"author\": \"A. Uthor <a@example>\", \"commit\": \"" COMMIT
                   "\", \"run_uuid\": \"" UUID "\"}\n  ]\n}\n"));

    /* Reading and writing changes nothing. */
    struct buf again;
    struct baseline *b = load();
    save(b);
    baseline_free(b);
    buf_init(&again, 1 << 20);
    assert_int_equal(file_read("b.json", &again, &err), GATE_OK);
    assert_string_equal(text.data, again.data);
    buf_release(&again);
    buf_release(&text);
}

static void collect_cases(const struct baseline *b, struct buf *out)
{
    const struct baseline_file *f = baseline_stored(b);
    for (size_t i = 0; i < f->n_cases; i++)
        buf_printf(out, "%s=%.6g ", f->cases[i].id, f->cases[i].entry.p50_ns);
}

static void collect_log(const struct baseline *b, struct buf *out)
{
    const struct baseline_file *f = baseline_stored(b);
    for (size_t i = 0; i < f->n_log; i++)
        buf_printf(out, "%s:%s:%.6g>%.6g ", f->log[i].case_id, field_actions[f->log[i].action],
                   f->log[i].from_ns, f->log[i].to_ns);
}

TEST(what_is_stored)
{
    struct buf seen;
    struct baseline *b = load();
    buf_init(&seen, 1000);
    collect_cases(b, &seen);
    assert_string_equal(seen.data, "gemm/a=1100 gemm/b=2000 gemm/c=3000 ");
    buf_clear(&seen);
    collect_log(b, &seen);
    assert_string_equal(seen.data, "gemm/b:accept-new:nan>2000 gemm/a:accept-new:nan>1000.5 "
                                   "gemm/c:accept-new:nan>3000 gemm/a:accept:1000.5>1100 ");
    buf_release(&seen);
    baseline_free(b);
}

/* Neither the baselines nor their log change when a change is refused. */
static void assert_set_refused(const char *case_id, const char *contract,
                               const struct baseline_entry *e, const struct baseline_note *n,
                               enum gate_status status, const char *part)
{
    struct gate_error err = {0};
    struct buf before, after;
    struct baseline *b = load();
    buf_init(&before, 10000);
    buf_init(&after, 10000);
    collect_cases(b, &before);
    collect_log(b, &before);
    assert_int_equal(baseline_set(b, case_id, contract, e, n, &err), status);
    if (!strstr(err.message, part))
        fail_msg("'%s' has no '%s'", err.message, part);
    collect_cases(b, &after);
    collect_log(b, &after);
    assert_string_equal(before.data, after.data);
    assert_string_equal(baseline_stored(b)->contract, CONTRACT);
    buf_release(&before);
    buf_release(&after);
    baseline_free(b);
}

TEST(set_refused)
{
    const struct baseline_entry good = entry(1000);
    struct baseline_entry bad = good;
    struct baseline_note no_reason = note, no_author = note;
    no_reason.reason = "";
    no_author.author = "";
    assert_set_refused("gemm/a", "other-v1", &good, &note, GATE_USAGE,
                       "of contract 'graph-replay-v1'");
    assert_set_refused("gemm/a", CONTRACT, &good, &no_reason, GATE_USAGE,
                       "/log/0/reason: must have at least 1");
    assert_set_refused("gemm/a", CONTRACT, &good, &no_author, GATE_USAGE,
                       "/log/0/author: must have at least 1");
    bad.p50_ns = 0;
    assert_set_refused("gemm/a", CONTRACT, &bad, &note, GATE_USAGE,
                       "/p50_ns: must be more than 0, is 0");
    bad = good;
    bad.control_ns = 0;
    assert_set_refused("gemm/a", CONTRACT, &bad, &note, GATE_USAGE,
                       "/control_ns: must be more than 0, is 0");
    bad = good;
    bad.spread = -0.001;
    assert_set_refused("gemm/a", CONTRACT, &bad, &note, GATE_USAGE, "/spread: must be at least 0");
    bad = good;
    bad.library_sha256 = "";
    assert_set_refused("gemm/a", CONTRACT, &bad, &note, GATE_USAGE, "/library_sha256: must be 64");
    bad = good;
    bad.commit = "HEAD";
    assert_set_refused("gemm/a", CONTRACT, &bad, &note, GATE_USAGE, "/commit: must be a commit");
}

/* gemm/a stands at 1100 here. */
TEST(actions_keep_their_word)
{
    const struct baseline_entry same = entry(1100), slower = entry(1100.5), faster = entry(1000);
    assert_set_refused("gemm/a", CONTRACT, &faster, &first, GATE_INTERNAL,
                       "1100 ns, cannot become 1000 ns by accept-new: it is there already");
    assert_set_refused("gemm/a", CONTRACT, &slower, &lowered, GATE_INTERNAL, "only ever lowered");
    assert_set_refused("gemm/a", CONTRACT, &same, &lowered, GATE_INTERNAL, "only ever lowered");
    assert_set_refused("gemm/none", CONTRACT, &faster, &lowered, GATE_INTERNAL, "it is not there");
}

TEST(ratchet)
{
    struct buf seen;
    struct baseline_entry e;
    struct baseline *b = load();
    set(b, "gemm/a", 1050, &lowered);
    save(b);
    baseline_free(b);
    b = load();
    assert_true(baseline_find(b, "gemm/a", CONTRACT, &e));
    assert_true(e.p50_ns == 1050);
    buf_init(&seen, 1000);
    collect_log(b, &seen);
    assert_non_null(strstr(seen.data, " gemm/a:ratchet:1100>1050 "));
    buf_release(&seen);
    baseline_free(b);
}

/* What processes of a candidate and a baseline of 100 ns measured. */
static bool of_arm(struct baseline_entry *e, enum document_role role, const double *p50_ns,
                   const double *control_ns, size_t n)
{
    struct document_process p[4];
    struct document_arm arm = {.role = (int)role, .kernel = "k", .has_timing = true};
    arm.timing.p50_ns = 100;
    arm.timing.p90_ns = 110;
    for (size_t i = 0; i < n; i++)
        p[i] = (struct document_process){.stage = STAGE_FIRST,
                                         .p50_ns = p50_ns[i],
                                         .baseline_p50_ns = 100,
                                         .half_width = i ? 0.01 : NAN,
                                         .control_ns = control_ns[i]};
    p[n] = (struct document_process){.stage = STAGE_CONFIRMATION}; /* is not looked at */
    baseline_clear(e);
    return baseline_of_arm(e, p, n + 1, STAGE_FIRST, &arm);
}

TEST(medians_of_the_processes)
{
    struct baseline_entry e;
    /* ln(p50 / control) is ln 2, 0 and -ln 2: a standard deviation of ln 2. */
    const double p50_ns[] = {200, 300, 200}, control_ns[] = {100, 300, 400};
    const double drifting[] = {100, 150, 200}; /* p50 and control together: no spread */
    const double missing[] = {100, 0, 100}, flat[] = {100, 100, 100};
    assert_true(of_arm(&e, ROLE_CANDIDATE, p50_ns, control_ns, 3));
    assert_true(e.p50_ns == 200 && e.p50_lo_ns == 200 && e.p50_hi_ns == 300);
    assert_true(e.control_ns == 300 && e.p90_ns > 219.9 && e.p90_ns < 220.1);
    assert_true(e.spread > 0.693147 && e.spread < 0.693148);
    assert_string_equal(e.kernel, "k");
    /* What a process knows its p50 within is the least of a candidate's spread. */
    assert_true(of_arm(&e, ROLE_CANDIDATE, drifting, drifting, 3));
    assert_true(e.spread == 0.01);
    assert_true(of_arm(&e, ROLE_BASELINE, p50_ns, flat, 3));
    assert_true(e.p50_ns == 100 && e.spread == 0);
    assert_true(of_arm(&e, ROLE_CANDIDATE, p50_ns, control_ns, 1));
    assert_true(e.control_ns == 100 && e.spread == 0);
    assert_false(of_arm(&e, ROLE_CANDIDATE, p50_ns, missing, 3));
    assert_false(of_arm(&e, ROLE_CANDIDATE, missing, control_ns, 3));
    assert_false(of_arm(&e, ROLE_CANDIDATE, p50_ns, control_ns, 0));
    assert_true(isnan(e.control_ns));
}

TEST(empty_set_is_not_saved)
{
    struct gate_error err = {0};
    struct baseline *b = NULL;
    assert_int_equal(baseline_load("none.json", "nvidia-h200", &b, &err), GATE_OK);
    assert_int_equal(baseline_save(b, "none.json", &err), GATE_INTERNAL);
    assert_int_not_equal(access("none.json", F_OK), 0);
    baseline_free(b);
}

static void assert_load_fails(const char *text, enum gate_status status, const char *message)
{
    struct gate_error err = {0};
    struct baseline *b = NULL;
    assert_int_equal(file_write_atomic("b.json", text, strlen(text), &err), GATE_OK);
    assert_int_equal(baseline_load("b.json", "nvidia-h200", &b, &err), status);
    assert_string_equal(err.message, message);
}

static void assert_load_refused(const char *text, const char *message)
{
    assert_load_fails(text, GATE_IO, message);
}

TEST(load_refused)
{
    assert_load_refused("", "b.json:1:1: the text is empty");
    assert_load_refused("{\"schema\": \"gate-baseline/1\",\n",
                        "b.json:2:1: the text ends too early");
    assert_load_refused("{\"schema\": \"gate-baseline/2\"}",
                        "b.json:1:12: /schema: must be 'gate-baseline/1', is 'gate-baseline/2'");
    assert_load_refused("{\"schema\": \"gate-baseline/1\"}",
                        "b.json:1:1: missing key 'device_model'");
    assert_load_fails("{\"schema\": \"gate-baseline/1\",\n \"device_model\": \"nvidia-a100\",\n"
                      " \"contract\": \"c\", \"cases\": {}, \"log\": []}",
                      GATE_ENVIRONMENT,
                      "b.json:2:18: these baselines are of 'nvidia-a100', not of 'nvidia-h200'");
    assert_load_refused(
        "{\"schema\": \"gate-baseline/1\",\n \"device_model\": \"nvidia-h200\",\n"
        " \"contract\": \"c\", \"log\": [],\n \"cases\": {\"a~/b\":\n {\"p50\": 1}}}",
        "b.json:5:3: /cases/a~0~1b/p50: unknown key 'p50'");
    struct gate_error err = {0};
    struct baseline *b = NULL;
    assert_int_equal(baseline_load(".", "nvidia-h200", &b, &err), GATE_IO);
    assert_string_equal(err.message, "cannot read '.': Is a directory");
    assert_int_equal(symlink("nowhere", "link.json"), 0);
    assert_int_equal(baseline_load("link.json", "nvidia-h200", &b, &err), GATE_IO);
    assert_string_equal(err.message, "cannot open 'link.json': No such file or directory");
    assert_int_equal(unlink("link.json"), 0);
}

TEST(order_of_a_file_edited_by_hand)
{
    static const char text[] =
        "{\"log\": [], \"cases\": {"
        "\"z\": {\"library_sha256\": \"" SHA
        "\", \"p50_ns\": 1, \"p50_lo_ns\": 1, \"p50_hi_ns\": 1,"
        " \"p90_ns\": 1, \"control_ns\": 1, \"spread\": 0, \"epoch\": \"\", \"kernel\": \"k\", "
        "\"commit\": \"\", \"run_uuid\": \"" UUID "\", \"time_ms\": 0},"
        "\"a\": {\"library_sha256\": \"" SHA
        "\", \"p50_ns\": 2, \"p50_lo_ns\": 1, \"p50_hi_ns\": 1,"
        " \"p90_ns\": 1, \"control_ns\": 1, \"spread\": 0, \"epoch\": \"\", \"kernel\": \"k\", "
        "\"commit\": \"\", \"run_uuid\": \"" UUID "\", \"time_ms\": 0}},"
        "\"contract\": \"" CONTRACT
        "\", \"device_model\": \"nvidia-h200\", \"schema\": \"gate-baseline/1\"}";
    struct gate_error err = {0};
    struct buf seen;
    assert_int_equal(file_write_atomic("b.json", text, strlen(text), &err), GATE_OK);
    struct baseline *b = load();
    set(b, "m", 3, &note);
    set(b, "zz", 4, &note);
    set(b, "a", 5, &note);
    buf_init(&seen, 1000);
    collect_cases(b, &seen);
    assert_string_equal(seen.data, "a=5 m=3 z=1 zz=4 ");
    buf_release(&seen);
    baseline_free(b);
}

TESTS_WITHIN(unit_enter_folder, unit_leave_folder)
