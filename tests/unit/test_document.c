/* SPDX-License-Identifier: Apache-2.0 */
/* test_document.c: the reader of run documents, and the writer; that the reader agrees with the
 * published schema is in tests/e2e/test_document.py. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/alloc.h"
#include "gate/base/file.h"
#include "gate/base/json.h"
#include "gate/document/document.h"
#include "tests/tools/sample_devices.h"
#include "tests/tools/sample_put.h"
#include "tests/tools/sample_runs.h"
#include "tests/unit/quotes.h"
#include "tests/unit/unit.h"

static cJSON *parse(const char *text, size_t len)
{
    struct gate_error err = {0};
    cJSON *tree = NULL;
    if (json_parse("t", text, len, GATE_IO, &tree, &err))
        fail_msg("%s", err.message);
    return tree;
}

/* Adds those members that are not there. */
static void add(cJSON *object, const char *text)
{
    cJSON *all = json_of("%s", text), *item;
    while ((item = cJSON_DetachItemFromArray(all, 0)))
        if (cJSON_HasObjectItem(object, item->string))
            cJSON_Delete(item);
        else
            cJSON_AddItemToObject(object, item->string, item);
    cJSON_Delete(all);
}

#define SHA256 "'0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef'"

/* A run of one case that has every member that there is. */
static cJSON *full_run(void)
{
    static const struct sample_plan plan = {.seed = 3, .n_runs = 8, .n_cases = 1, .n_devices = 1};
    cJSON *run = sample_run(&plan, 4);
    cJSON *one = cJSON_GetArrayItem(cJSON_GetObjectItem(run, "cases"), 0);
    cJSON *arm = cJSON_GetArrayItem(cJSON_GetObjectItem(one, "arms"), 0);
    add(cJSON_GetArrayItem(cJSON_GetObjectItem(run, "libraries"), 0),
        "{'code_sha256': " SHA256 "}");
    add(run, "{'thinned_ms': 5, 'users_checked': true, 'launch_order_checked': false,"
             " 'absent': [{'provider': 'cudnn', 'reason': 'not here'}]}");
    add(one, "{'threshold': 0.05}");
    add(cJSON_GetObjectItem(one, "baseline"),
        "{'made_by': 'trend', 'again_ns': 1000.5, 'off': false, 'library_sha256': " SHA256 "}");
    add(cJSON_GetObjectItem(arm, "verify"),
        "{'outputs': {'dx': 1e-4, 'dw': null, 'db': 0}, 'skipped': 10, 'refused': 1,"
        " 'not_served': 2, 'not_guarded': 3, 'too_large': 4, 'why_not_guarded': 'no memory',"
        " 'own_shape_only': true, 'vendor': 'cublas', 'vendor_ratio': 1.5}");
    add(cJSON_GetObjectItem(arm, "timing"),
        "{'power_w': {'before': 1, 'after': null}, 'same_code': true, 'samples_ns': 'AAAA',"
        " 'spread': 0.001, 'processes': 5}");
    return run;
}

/* ---- the reader ---- */

TEST(a_fault_in_a_text_has_its_line)
{
    static const char text[] = "{\"schema\": \"gate-run/1\",\n \"uuid\": \"x\"}";
    struct document d;
    struct gate_error err = {0};
    assert_int_equal(document_parse("run.json", 7, text, strlen(text), GATE_IO, &d, &err), GATE_IO);
    assert_string_equal(err.message, "run.json:8:10: /uuid: must be a uuid, is 'x'");
    assert_int_equal(document_parse("run.json", 1, "{", 1, GATE_IO, &d, &err), GATE_IO);
    assert_string_equal(err.message, "run.json:1:2: the text ends too early");
}

/* All of `whole` is in `other`, whose further members are null. */
static void assert_same(const cJSON *whole, const cJSON *other)
{
    const cJSON *item;
    int n = 0;
    if (!cJSON_IsObject(whole) && !cJSON_IsArray(whole)) {
        assert_true(cJSON_Compare(whole, other, true));
        return;
    }
    if (cJSON_IsArray(whole))
        assert_int_equal(cJSON_GetArraySize(whole), cJSON_GetArraySize(other));
    cJSON_ArrayForEach (item, whole) {
        const cJSON *same =
            item->string ? json_member(other, item->string) : cJSON_GetArrayItem(other, n++);
        if (!same)
            fail_msg("'%s' is lost", item->string);
        assert_same(item, same);
    }
    cJSON_ArrayForEach (item, other)
        if (item->string && !json_member(whole, item->string) && !cJSON_IsNull(item))
            fail_msg("'%s' was not there", item->string);
}

/* Reads a text, and checks what comes of it by cJSON's tree: the document holds all that is in the
 * tree, or the text is no JSON for the same reason, or the place of its fault exists. */
static bool check_text(const char *text, size_t len)
{
    struct document d;
    struct field_fault fault;
    struct gate_error err = {0};
    char said[400];
    unsigned line, column;
    RELEASED_BY(json_delete_at) cJSON *tree = NULL;
    char *exact = malloc(len ? len : 1); /* without a NUL behind it */
    RELEASED_BY(buf_release) struct buf out = buf_of(1 << 24);
    assert_non_null(memcpy(exact, text, len));
    bool good = document_take(exact, len, &d, &fault);
    bool json = json_parse("t", text, len, GATE_IO, &tree, &err) == GATE_OK;
    assert_true(d.taken.bytes > len && d.taken.bytes < (size_t)1 << 20);
    int n = 0;
    bool syntax = !good && sscanf(fault.message, "line %u, column %u: %n", &line, &column, &n) == 2;
    if (good) {
        assert_true(json);
        document_write(&d, &out);
        document_release(&d);
        cJSON *written = parse(out.data, out.len);
        assert_same(tree, written);
        cJSON_Delete(written);
    } else if (syntax) {
        snprintf(said, sizeof said, "t:%u:%u: %s", line, column, fault.message + n);
        assert_string_equal(said, err.message);
    } else if (!json_locate(exact, len, fault.pointer, fault.of_key, &line, &column) ||
               (!json && !strstr(err.message, "key that this object has already"))) {
        fail_msg("%.*s\n%s: %s\n%s", (int)len, text, fault.pointer, fault.message, err.message);
    }
    free(exact);
    return good;
}

TEST(a_text_is_read_as_it_is)
{
    static const char bytes[] = "\"\\{}[],:0-.eu \x80";
    RELEASED_BY(json_delete_at) cJSON *run = full_run();
    size_t n_good = 0, n_bad = 0;
    RELEASED_BY(buf_release) struct buf text = buf_of(1 << 24);
    json_write(run, false, &text);
    assert_true(check_text(text.data, text.len));
    for (size_t i = 0; i < text.len; i++) {
        char was = text.data[i];
        assert_true(!check_text(text.data, i) || i == text.len - 1); /* without the last new line */
        for (size_t k = i % 5; k < sizeof bytes; k += 5) {
            text.data[i] = bytes[k]; /* the NUL too */
            bool good = check_text(text.data, text.len);
            n_good += good;
            n_bad += !good;
        }
        text.data[i] = was;
    }
    assert_true(n_good > 1000 && n_bad > 1000);
}

static void replace(struct buf *text, const char *from, const char *to)
{
    struct buf out;
    const char *at = strstr(text->data, from);
    buf_init(&out, text->max);
    assert_non_null(at);
    buf_append(&out, text->data, (size_t)(at - text->data));
    buf_puts(&out, to);
    buf_puts(&out, at + strlen(from));
    buf_release(text);
    *text = out;
}

TEST(a_text_may_be_odd)
{
    static const struct {
        const char *from, *to;
        bool good;
    } edits[] = {
        {"\"uuid\":", "\"\\u0075uid\" : ", true},
        {"\"subject\":\"", "\"subject\":\"\\\"\\n\\u00e9\\ud83d\\ude00\xc3\xa9\\/", true},
        {"\"subject\":\"", "\"subject\":\"\\u0000", false},
        {"\"subject\":\"", "\"subject\":\"\\ud83d", false},
        {"\"dirty\":", "\"dirty\":true,\"dirty\":", false},
        {"\"processes\":[", "\"processes\":[],\"processes\":[", false},
        {"\"absent\":[{", "\"absent\":[[[],{\"a\":[1]}],{", false},
        {"\"absent\":[",
         "\"absent\":[{\"provider\":\"a\",\"reason\":\"\"},"
         "{\"provider\":\"b\",\"reason\":\"\"},{\"provider\":\"c\",\"reason\":\"\"},",
         true},
        {"\"who\":", "\"new\":{\"a\":[1,{}]},\"who\":", false},
        {"\"time_ms\":", "\"time_ms\":1e1,\"control_drift\":1.5E-3,\"thinned_ms\":-0,\"nothing\":",
         false},
        {"{\"schema\"", "[{\"schema\"", false},
        {"\"log_ratio\":[", "\"log_ratio\":[1e999,5,", false},
        {"\"log_ratio\":[", "\"log_ratio\":[01,{\"a\":1},", false},
    };
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        cJSON *run = full_run();
        RELEASED_BY(buf_release) struct buf text = buf_of(1 << 24);
        json_write(run, false, &text);
        replace(&text, edits[i].from, edits[i].to);
        if (check_text(text.data, text.len) != edits[i].good)
            fail_msg("%s", edits[i].to);
        cJSON_Delete(run);
    }
}

/* A list that is too long is passed over to its end, whatever is in it. */
TEST(a_list_has_a_longest_length)
{
    RELEASED_BY(json_delete_at) cJSON *run = full_run();
    RELEASED_BY(buf_release) struct buf text = buf_of(1 << 24);
    json_write(run, false, &text);
    for (int i = 0; i < 17; i++)
        replace(&text, "\"absent\":[", "\"absent\":[{\"provider\":\"a\",\"reason\":\"\"},");
    assert_false(check_text(text.data, text.len));
}

/* ---- the writer ---- */

static void assert_round_trip(const cJSON *run)
{
    struct document d;
    struct field_fault fault;
    RELEASED_BY(buf_release) struct buf text = buf_of(1 << 24);
    RELEASED_BY(buf_release) struct buf again = buf_of(1 << 24);
    if (!sample_read(run, &d, &fault))
        fail_msg("%s: %s", fault.pointer, fault.message);
    document_write(&d, &text);
    document_release(&d);
    RELEASED_BY(json_delete_at) cJSON *back = parse(text.data, text.len);
    assert_same(run, back);
    assert_true(sample_read(back, &d, &fault));
    document_write(&d, &again);
    assert_string_equal(text.data, again.data);
    document_release(&d);
}

TEST(what_is_read_is_written_again)
{
    cJSON *run = full_run();
    assert_round_trip(run);
    cJSON_Delete(run);
    for (int i = 0; i < 8; i++) {
        const struct sample_plan plan = {.seed = 5, .n_runs = 8, .n_cases = 12, .n_devices = 2};
        run = sample_run(&plan, i);
        assert_round_trip(run);
        cJSON_Delete(run);
    }
}

TEST(a_recorded_run_is_written_again)
{
    struct gate_error err = {0};
    RELEASED_BY(buf_release) struct buf text = buf_of(1 << 24);
    if (file_read("tests/data/run-h200.json", &text, &err))
        fail_msg("%s", err.message);
    RELEASED_BY(json_delete_at) cJSON *run = parse(text.data, text.len);
    assert_round_trip(run);
}
