/* SPDX-License-Identifier: Apache-2.0 */
/* test_store_rows.c: what queries make of runs: baselines, packed documents and trends. */
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "gate/store/store_pack.h"
#include "tests/unit/store_fixture.h"
#include "tests/unit/unit.h"

#define GPU "nvidia-h200"
#define CASE "attention_fwd/fp16/b8-h16-s512-d64/causal"

/* ---- baselines ---- */

static void put_with_baseline(struct store_fixture *f, struct store *s, int64_t time_ms,
                              double p50_ns, int64_t stored_ms, const char *epoch,
                              const char *made_by)
{
    cJSON *run = run_at((int)time_ms, time_ms);
    cJSON *baseline = cJSON_GetObjectItem(item_of(run, 0), "baseline");
    set_number(baseline, "p50_ns", p50_ns);
    set_number(baseline, "time_ms", (double)stored_ms);
    cJSON_DeleteItemFromObjectCaseSensitive(baseline, "made_by");
    if (made_by)
        cJSON_AddStringToObject(baseline, "made_by", made_by);
    set_string(run, "epoch", epoch);
    must_put(f, s, run);
}

/* The changes, newest first, then the baseline of the newest run that has one. */
static void assert_baselines(struct store_fixture *f, const char *expected)
{
    char text[400];
    text_of(f->path,
            "SELECT coalesce((SELECT group_concat(kind || ' ' || CAST(coalesce(from_ns, 0) AS INT)"
            " || '>' || CAST(to_ns AS INT), ' ') FROM (SELECT * FROM baseline_change"
            "  ORDER BY run_id DESC)) || ' = ' || (SELECT CAST(baseline_stored_ns AS INT)"
            " FROM result WHERE arm = 0 AND baseline_ms IS NOT NULL ORDER BY time_ms DESC LIMIT 1),"
            " '')",
            NULL, text, sizeof text);
    assert_string_equal(text, expected);
}

TEST_WITHIN(baseline_log, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    assert_baselines(f, "");
    put_with_baseline(f, s, 10, 100, 1, "e", NULL);
    put_with_baseline(f, s, 20, 100, 1, "e", NULL);
    assert_baselines(f, "first 0>100 = 100");
    put_with_baseline(f, s, 30, 90, 25, "e", NULL);
    assert_baselines(f, "lowered 100>90 first 0>100 = 90");
    /* A branch that is behind is compared with an older baseline, which is no change. */
    put_with_baseline(f, s, 40, 100, 1, "e", NULL);
    assert_baselines(f, "lowered 100>90 first 0>100 = 100");
    put_with_baseline(f, s, 50, 90, 25, "e", NULL);
    /* A run that comes late tells nothing new, even with a baseline newer than those logged. */
    put_with_baseline(f, s, 28, 120, 27, "e", NULL);
    assert_baselines(f, "lowered 100>90 first 0>100 = 90");
    put_with_baseline(f, s, 60, 95, 55, "e", "accept");
    put_with_baseline(f, s, 70, 80, 65, "e2", NULL);
    assert_baselines(f, "epoch 95>80 raised 90>95 lowered 100>90 first 0>100 = 80");
    store_close(s);
}

TEST_WITHIN(a_baseline_of_no_known_time_is_older_than_others, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    put_with_baseline(f, s, 10, 100, 0, "e", NULL);
    put_with_baseline(f, s, 20, 90, 15, "e", NULL);
    put_with_baseline(f, s, 30, 80, 0, "e", NULL);
    assert_baselines(f, "lowered 100>90 first 0>100 = 90");
    store_close(s);
}

/* A runner that lost its stored baselines takes what it measures as new ones: nobody accepted
 * those. */
TEST_WITHIN(a_baseline_that_nobody_accepted_is_not_raised, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    put_with_baseline(f, s, 10, 90, 1, "e", "accept-new");
    put_with_baseline(f, s, 20, 95, 15, "e", "accept-new");
    put_with_baseline(f, s, 30, 99, 25, "e", NULL);
    put_with_baseline(f, s, 40, 80, 35, "e", "accept-new");
    put_with_baseline(f, s, 50, 79, 45, "e", "ratchet");
    assert_baselines(f, "lowered 80>79 first 0>80 first 0>99 first 0>95 first 0>90 = 79");
    store_close(s);
}

/* ---- newest results and leaders, in any order ---- */

struct leaders {
    int n;
    double ours_ns;
};

static bool see_leader(void *context, const struct store_point *row)
{
    struct leaders *l = context;
    l->n++;
    assert_string_not_equal(row->contract, "older-v0");
    if (strcmp(row->provider, "ours") == 0)
        l->ours_ns = row->p50_ns;
    return true;
}

TEST_WITHIN(late_runs_change_nothing_newer, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    cJSON *newer = run_at(1, 200);
    set_string(item_of(newer, 0), "reason", "newer");
    set_number(timing_of(newer, 0, CANDIDATE), "p50_ns", 500);
    must_put(f, s, newer);
    cJSON *late = run_at(2, 100);
    set_string(item_of(late, 0), "reason", "late");
    set_string(late, "contract", "older-v0");
    set_number(timing_of(late, 0, CANDIDATE), "p50_ns", 400);
    must_put(f, s, late);
    assert_int_equal(scalar(f->path, "SELECT count(*) FROM newest n JOIN track t USING (case_id)"
                                     " WHERE n.reason = 'newer' AND t.n_runs = 2"
                                     " AND n.time_ms = 200 AND n.p50_ns = 500"),
                     1);
    /* Nor does it change by which contract the leaders are measured. */
    struct leaders leaders = {0};
    assert_int_equal(store_leaderboard(s, GPU, see_leader, &leaders, &f->err), GATE_OK);
    assert_int_equal(leaders.n, 3);
    assert_true(leaders.ours_ns == 500);

    /* In its own contract, a late run may lead. */
    late = run_at(3, 150);
    set_number(timing_of(late, 0, CANDIDATE), "p50_ns", 450);
    must_put(f, s, late);
    assert_int_equal(store_leaderboard(s, GPU, see_leader, &leaders, &f->err), GATE_OK);
    assert_true(leaders.ours_ns == 450);
    store_close(s);
}

/* ---- documents that came packed ---- */

/* Packs LENGTH bytes of text as a client does, and says how long what is kept of it is. */
static size_t kept_of(int level, const char *name, bool random)
{
    enum { LENGTH = 100000 };
    static char text[LENGTH];
    static unsigned char gzip[2 * LENGTH];
    struct gate_error err = {0};
    struct store_packed packed, other;
    struct buf out;
    uint32_t x = 1;
    for (size_t i = 0; i < LENGTH; i++) {
        x = x * 1664525u + 1013904223u;
        text[i] = (char)(random ? x >> 24 : 'a' + i % 13);
    }
    z_stream z = {0};
    gz_header header = {.name = (Bytef *)(size_t)name, .os = 3};
    assert_int_equal(deflateInit2(&z, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    if (name)
        assert_int_equal(deflateSetHeader(&z, &header), Z_OK);
    z.next_in = (Bytef *)text;
    z.avail_in = LENGTH;
    z.next_out = gzip;
    z.avail_out = sizeof(gzip);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    size_t gzip_len = sizeof(gzip) - z.avail_out;
    deflateEnd(&z);
    assert_int_equal(store_pack_again(gzip, gzip_len, text, LENGTH, &packed, &err), GATE_OK);
    assert_int_equal(store_pack(text, LENGTH, &other, &err), GATE_OK);
    assert_memory_equal(packed.sha256, other.sha256, sizeof(packed.sha256));
    assert_int_equal(packed.n_bytes, LENGTH);
    buf_init(&out, LENGTH);
    assert_int_equal(store_unpack(packed.bytes, packed.len, LENGTH, &out, &err), GATE_OK);
    assert_memory_equal(out.data, text, LENGTH);
    buf_release(&out);
    size_t len = packed.len == other.len ? 0 : packed.len;
    if (len != 0)
        assert_int_equal(len, gzip_len - 18 + 6);
    store_packed_release(&packed);
    store_packed_release(&other);
    return len;
}

TEST_WITHIN(packed_documents, store_set_up, store_tear_down)
{
    assert_int_not_equal(kept_of(9, NULL, false), 0);
    /* These are packed anew: with a name in the head, and not worth keeping. */
    assert_int_equal(kept_of(9, "run.json", false), 0);
    assert_int_equal(kept_of(0, NULL, false), 0);
    assert_int_equal(kept_of(9, NULL, true), 0);
}
