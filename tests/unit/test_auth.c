/* SPDX-License-Identifier: Apache-2.0 */
/* test_auth.c: tokens: what is let in, and what is not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/request/auth.h"
#include "tests/unit/unit.h"

struct fixture {
    char folder[64];
    char path[96];
    struct store *store;
    struct store_token token;
    char text[AUTH_TOKEN_LENGTH + 1];
    char header[AUTH_TOKEN_LENGTH + 16];
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    const char *tmp = getenv("TMPDIR");
    snprintf(f->folder, sizeof(f->folder), "%s/auth-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(f->folder));
    snprintf(f->path, sizeof(f->path), "%s/gate.db", f->folder);
    assert_int_equal(store_open(f->path, STORE_READ_WRITE, &f->store, NULL), GATE_OK);
    f->token = (struct store_token){.name = "ci", .scopes = TOKEN_INGEST, .created_ms = 1000};
    assert_int_equal(auth_new_token(&f->token, f->text, NULL), GATE_OK);
    snprintf(f->header, sizeof(f->header), "Bearer %s", f->text);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    static const char *const endings[] = {"", "-wal", "-shm", "-lock"};
    struct fixture *f = *state;
    store_close(f->store);
    for (size_t i = 0; i < 4; i++) {
        char path[128];
        snprintf(path, sizeof(path), "%s%s", f->path, endings[i]);
        unlink(path);
    }
    rmdir(f->folder);
    free(f);
    return 0;
}

static void put(struct fixture *f)
{
    assert_int_equal(store_put_token(f->store, &f->token, NULL), GATE_OK);
}

static enum auth_result ask(struct fixture *f, const char *header, int64_t now_ms)
{
    struct identity who = {0};
    return auth_check(f->store, header, now_ms, &who, NULL);
}

TEST_WITHIN(what_is_refused, set_up, tear_down)
{
    struct fixture *f = *state;
    char header[sizeof(f->header) + 8];
    assert_int_equal(ask(f, f->header, 5000), AUTH_REFUSED); /* not there yet */
    put(f);
    assert_int_equal(ask(f, NULL, 5000), AUTH_NONE);
    size_t len = strlen(f->header);
    for (size_t i = 0; i < len; i++) {
        snprintf(header, sizeof(header), "%s", f->header);
        header[i] = header[i] == '0' ? '1' : '0';
        assert_int_equal(ask(f, header, 5000), AUTH_REFUSED);
        header[i] = '\0';
        assert_int_equal(ask(f, header, 5000), AUTH_REFUSED);
    }
    snprintf(header, sizeof(header), "%s0", f->header);
    assert_int_equal(ask(f, header, 5000), AUTH_REFUSED);
    assert_int_equal(ask(f, f->text, 5000), AUTH_REFUSED);
    assert_int_equal(ask(f, "", 5000), AUTH_REFUSED);
    assert_int_equal(ask(f, "Basic a2c6eA==", 5000), AUTH_REFUSED);
    assert_int_equal(ask(f, f->header, 5000), AUTH_GOOD);
}

TEST_WITHIN(last_use, set_up, tear_down)
{
    struct fixture *f = *state;
    struct identity who;
    struct store_token row;
    bool found;
    int64_t now_ms = 10 * AUTH_TOUCH_MS;
    put(f);
    assert_int_equal(auth_check(f->store, f->header, now_ms, &who, NULL), AUTH_GOOD);
    assert_true(who.touch);
    assert_int_equal(store_touch_token(f->store, who.id, now_ms, NULL), GATE_OK);
    assert_int_equal(auth_check(f->store, f->header, now_ms + 1, &who, NULL), AUTH_GOOD);
    assert_false(who.touch);
    assert_int_equal(store_touch_token(f->store, who.id, now_ms - 5, NULL), GATE_OK);
    assert_int_equal(store_find_token(f->store, who.id, &row, &found, NULL), GATE_OK);
    assert_true(found);
    assert_int_equal(row.last_used_ms, now_ms); /* never goes back */
}

TEST_WITHIN(tokens_differ, set_up, tear_down)
{
    struct fixture *f = *state;
    struct store_token other = {0};
    char text[AUTH_TOKEN_LENGTH + 1];
    assert_int_equal(auth_new_token(&other, text, NULL), GATE_OK);
    assert_int_equal(strlen(text), AUTH_TOKEN_LENGTH);
    assert_string_not_equal(other.id, f->token.id);
    assert_memory_not_equal(other.digest, f->token.digest, TOKEN_DIGEST_BYTES);
    assert_string_not_equal(text + 16, f->text + 16);
}

TEST(scopes)
{
    char text[AUTH_MAX_SCOPES];
    assert_int_equal(auth_parse_scopes("ingest"), TOKEN_INGEST);
    assert_int_equal(auth_parse_scopes("artifact,ingest"), TOKEN_INGEST | TOKEN_ARTIFACT);
    static const char *const bad[] = {"",        ",",     "ingest,", ",ingest", "Ingest",
                                      "ingest ", "write", "ing",     "ingestx", "a,b"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(auth_parse_scopes(bad[i]), 0);
    auth_scope_text(15, text);
    assert_string_equal(text, "read,ingest,artifact,admin");
    assert_int_equal(auth_parse_scopes(text), 15);
}
