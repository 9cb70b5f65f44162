/* SPDX-License-Identifier: Apache-2.0 */
/* test_store_care.c: thinning, checks, backups and the way back. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gate/base/json.h"
#include "gate/document/document.h"
#include "gate/store/store_private.h"
#include "tests/unit/store_fixture.h"
#include "tests/unit/unit.h"

struct faults {
    int n;
    char last[700];
};

static void note_fault(void *context, const char *fault)
{
    struct faults *f = context;
    f->n++;
    snprintf(f->last, sizeof(f->last), "%s", fault);
}

static int check(struct store_fixture *f, struct faults *faults)
{
    int n = -1;
    *faults = (struct faults){0};
    struct store *s = open_store(f, STORE_READ_ONLY);
    if (store_check(s, note_fault, faults, &n, &f->err) != GATE_OK)
        fail_msg("%s", f->err.message);
    assert_int_equal(n, faults->n);
    store_close(s);
    return n;
}

/* ---- thinning ---- */

struct documents {
    int64_t before_ms, now_ms;
    int n, n_thinned;
};

static bool see_document(void *context, const char *text, size_t len)
{
    struct documents *d = context;
    struct field_fault fault;
    cJSON *document = NULL;
    assert_int_equal(json_parse("it", text, len, GATE_IO, &document, NULL), GATE_OK);
    struct document read;
    if (!document_take(text, len, &read, &fault))
        fail_msg("%s: %s", fault.pointer, fault.message);
    document_release(&read);
    bool old = json_integer(document, "time_ms", 0) < d->before_ms;
    d->n++;
    d->n_thinned += old;
    assert_int_equal(json_integer(document, "thinned_ms", -1), old ? d->now_ms : -1);
    assert_int_equal(strstr(text, "samples_ns") == NULL, old);
    cJSON_Delete(document);
    return true;
}

TEST_WITHIN(thinning, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct store *s = open_store(f, STORE_READ_WRITE);
    struct store_state before, after;
    struct faults faults;
    fill(f, s, &plan);
    cJSON *middle = sample_run(&plan, 7);
    struct documents d = {
        .before_ms = json_integer(middle, "time_ms", 0),
        .now_ms = 1900000000000,
    };
    cJSON_Delete(middle);
    int64_t n = -1;
    assert_int_equal(store_state(s, &before, &f->err), GATE_OK);
    assert_int_equal(store_thin(s, d.before_ms, d.now_ms, 5, &n, &f->err), GATE_OK);
    assert_int_equal(n, 5);
    assert_int_equal(store_state(s, &after, &f->err), GATE_OK);
    assert_string_not_equal(before.text, after.text);
    assert_int_equal(store_thin(s, d.before_ms, d.now_ms, 5, &n, &f->err), GATE_OK);
    assert_int_equal(n, 2);
    assert_int_equal(store_thin(s, d.before_ms, d.now_ms + 1, 5, &n, &f->err), GATE_OK);
    assert_int_equal(n, 0);
    assert_int_equal(store_documents(s, see_document, &d, &f->err), GATE_OK);
    assert_int_equal(d.n, plan.n_runs);
    assert_int_equal(d.n_thinned, 7);

    /* The same run again is still the same run, by the bytes that it came with. */
    bool existed = false;
    assert_int_equal(put(f, s, sample_run(&plan, 0), &existed), GATE_OK);
    assert_true(existed);
    store_close(s);
    assert_sound(f->path);
    assert_int_equal(check(f, &faults), 0);
}

/* ---- checks ---- */

TEST_WITHIN(faults_are_found, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    static const struct {
        const char *damage, *repair, *words;
    } cases[] = {
        {"UPDATE track SET n_runs = n_runs + 1 WHERE id = 3",
         "UPDATE track SET n_runs = n_runs - 1 WHERE id = 3", "a case does not have"},
        {"UPDATE result SET branch = branch || 'x' WHERE run_id = 2 AND track_id ="
         " (SELECT min(track_id) FROM result WHERE run_id = 2) AND arm = 0",
         "UPDATE result SET branch = rtrim(branch, 'x')", "a result is not of the time, branch"},
        {"UPDATE run SET n_cases = n_cases + 1 WHERE id = 2",
         "UPDATE run SET n_cases = n_cases - 1 WHERE id = 2", "as many results"},
        {"UPDATE document SET n_bytes = n_bytes + 1 WHERE run_id = 4",
         "UPDATE document SET n_bytes = n_bytes - 1 WHERE run_id = 4", "cannot be unpacked"},
        {"UPDATE document SET sha256 = zeroblob(32) WHERE run_id = 4", "", "other bytes"},
    };
    struct faults faults;
    struct store *s = open_store(f, STORE_READ_WRITE);
    fill(f, s, &plan);
    store_close(s);
    assert_int_equal(check(f, &faults), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        execute(f->path, cases[i].damage);
        assert_int_equal(check(f, &faults), 1);
        if (!strstr(faults.last, cases[i].words))
            fail_msg("no '%s' in: %s", cases[i].words, faults.last);
        execute(f->path, cases[i].repair);
    }
    execute(f->path, "DELETE FROM document WHERE run_id = 4");
    assert_int_equal(check(f, &faults), 1);
    assert_non_null(strstr(faults.last, "a run has no document"));
    execute(f->path, "DELETE FROM track WHERE id = 1");
    assert_true(check(f, &faults) > 1);
}

TEST_WITHIN(damaged_pages_are_found, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct faults faults;
    struct store *s = open_store(f, STORE_READ_WRITE);
    fill(f, s, &plan);
    store_close(s);
    int64_t page = scalar(f->path, "SELECT rootpage FROM sqlite_schema WHERE name = 'result'");
    char noise[64];
    memset(noise, 0x5a, sizeof(noise));
    int fd = open(f->path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(fd, noise, sizeof(noise), (page - 1) * 4096), sizeof(noise));
    close(fd);
    assert_true(check(f, &faults) > 0);
}

/* ---- backups ---- */

static void state_of(struct store_fixture *f, const char *path, struct store_state *out)
{
    struct store *s = NULL;
    assert_int_equal(store_open(path, STORE_READ_WRITE, &s, &f->err), GATE_OK);
    assert_int_equal(store_state(s, out, &f->err), GATE_OK);
    store_close(s);
}

#define IDENTITY "SELECT value FROM meta WHERE key = 'identity'"

/* After a restore other writes may be counted to the same number: a tag must not name both. */
TEST_WITHIN(no_two_copies_have_a_state_in_common, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct faults faults = {0};
    struct store_state original, copies[2];
    char path[300], identity[2][64];
    struct store *s = open_store(f, STORE_READ_WRITE);
    fill(f, s, &plan);
    store_close(s);
    text_of(f->path, IDENTITY, NULL, identity[0], sizeof identity[0]);
    state_of(f, f->path, &original);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s/copy%d.db", f->folder, i);
        assert_int_equal(store_restore(f->path, path, note_fault, &faults, &f->err), GATE_OK);
        state_of(f, path, &copies[i]);
        assert_string_not_equal(copies[i].text, original.text);
    }
    assert_string_not_equal(copies[0].text, copies[1].text);
    /* Feeds name their entries by this. */
    text_of(path, IDENTITY, NULL, identity[1], sizeof identity[1]);
    assert_string_equal(identity[0], identity[1]);
}
