/* SPDX-License-Identifier: Apache-2.0 */
/* test_tag.c: the ETags of what is read from a database that another process writes too. */
#include <sqlite3.h>
#include <string.h>

#include "server/request/tag.h"
#include "tests/unit/store_fixture.h"
#include "tests/unit/unit.h"

static struct etag tag_of(struct store_fixture *f, struct tagger *t, const char *target)
{
    struct etag tag;
    assert_int_equal(tagger_get(t, target, &tag, &f->err), GATE_OK);
    return tag;
}

static struct tagger *open_tagger(struct store_fixture *f)
{
    struct tagger *t;
    store_close(open_store(f, STORE_READ_WRITE));
    assert_int_equal(tagger_open(f->path, "test", &t, &f->err), GATE_OK);
    return t;
}

/* The write is not the store's own, so the tagger cannot have counted it; and it is quick, so that
 * the tag before it is still believed. */
TEST_WITHIN(the_tag_after_a_renewal_is_of_the_newest_state, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct tagger *t = open_tagger(f);
    sqlite3 *other;
    assert_int_equal(sqlite3_open(f->path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "PRAGMA synchronous = OFF", NULL, NULL, NULL), SQLITE_OK);
    for (int i = 0; i < 20; i++) {
        struct etag before = tag_of(f, t, "/runs");
        const char *write = "UPDATE identity SET n_writes = n_writes + 1";
        assert_int_equal(sqlite3_exec(other, write, NULL, NULL, NULL), SQLITE_OK);
        tagger_renew(t);
        assert_string_not_equal(before.text, tag_of(f, t, "/runs").text);
    }
    sqlite3_close(other);
    tagger_close(t);
}

/* A connection notices what another one wrote with its next read, and once. */
TEST_WITHIN(news_are_seen_once, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct store_state seen;
    struct store *s;
    store_close(open_store(f, STORE_READ_WRITE));
    s = open_store(f, STORE_READ_ONLY);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(store_state(s, &seen, &f->err), GATE_OK);
        assert_true(store_saw_news(s));
        assert_int_equal(store_state(s, &seen, &f->err), GATE_OK);
        assert_false(store_saw_news(s));
        execute(f->path, "UPDATE identity SET n_writes = n_writes + 1");
    }
    store_close(s);
}

TEST_WITHIN(addresses_have_tags_of_their_own, store_set_up, store_tear_down)
{
    struct store_fixture *f = *state;
    struct tagger *t = open_tagger(f);
    assert_string_not_equal(tag_of(f, t, "/runs").text, tag_of(f, t, "/runs?limit=1").text);
    tagger_close(t);
}
