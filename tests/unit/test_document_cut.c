/* SPDX-License-Identifier: Apache-2.0 */
/* test_document_cut.c: a case out of a document, whatever its text looks like. */
#include <string.h>

#include "server/api/document_cut.h"
#include "tests/unit/unit.h"

#define MAX_BYTES 10000

static void assert_cut(const char *text, const char *expected)
{
    struct buf out;
    buf_init(&out, MAX_BYTES);
    assert_int_equal(document_cut(text, strlen(text), "a/b", &out), expected != NULL);
    buf_append(&out, "", 1);
    if (expected)
        assert_string_equal(out.data, expected);
    buf_release(&out);
}

TEST(other_cases_are_left_out)
{
    assert_cut(
        "{\"x\":1,\"cases\":[{\"id\":\"a\"},{\"id\":\"a/b\",\"n\":[1,{}]},{\"id\":\"a/bc\"}],"
        "\"y\":{\"z\":\"]}\"}}",
        "{\"x\":1,\"cases\":[{\"id\":\"a/b\",\"n\":[1,{}]}],\"y\":{\"z\":\"]}\"}}");
    assert_cut("{\"cases\":[{\"id\":\"a\"}]}", "{\"cases\":[]}");
    assert_cut("{\"cases\":[]}", "{\"cases\":[]}");
    assert_cut(
        " {\n \"cases\" : [ {\"v\" : true , \"id\" : \"a/b\"} , {\"id\":\"c\"} ] , \"n\":1 }\n",
        " {\n \"cases\" : [{\"v\" : true , \"id\" : \"a/b\"}] , \"n\":1 }\n");
}

TEST(only_the_members_of_the_right_object_count)
{
    assert_cut("{\"k\":{\"cases\":[{\"id\":\"c\"}]},\"t\":\"\\\"cases\\\":[1]\",\"cases\":["
               "{\"arms\":[{\"id\":\"c\"}],\"t\":\"}]\\\\\",\"id\":\"a/b\"},"
               "{\"arms\":[{\"id\":\"a/b\"}],\"id\":\"c\"}]}",
               "{\"k\":{\"cases\":[{\"id\":\"c\"}]},\"t\":\"\\\"cases\\\":[1]\",\"cases\":["
               "{\"arms\":[{\"id\":\"c\"}],\"t\":\"}]\\\\\",\"id\":\"a/b\"}]}");
}

/* The reader of the document finds out. */
TEST(what_cannot_be_told_stays)
{
    assert_cut("{\"cases\":[{\"id\":\"a\\/b\"},{\"i\\u0064\":\"c\"},{\"id\":1},{},7]}",
               "{\"cases\":[{\"id\":\"a\\/b\"},{\"i\\u0064\":\"c\"},{\"id\":1},{},7]}");
    assert_cut("{\"c\\u0061ses\":[]}", NULL);
    assert_cut("{\"cases\":{}}", NULL);
    assert_cut("[]", NULL);
}

/* No cut of it is read beyond its end; the sanitizers would tell. */
TEST(no_beginning_of_a_document_breaks_it)
{
    static const char text[] = "{\"x\":[1,\"\\\"\"],\"cases\":[{\"id\":\"a\"},{\"id\":\"a/b\"}]}";
    for (size_t n = 0; n < sizeof text; n++) {
        struct buf out, copy;
        buf_init(&copy, MAX_BYTES);
        buf_init(&out, MAX_BYTES);
        buf_append(&copy, text, n);
        document_cut(copy.data ? copy.data : "", n, "a/b", &out);
        buf_release(&out);
        buf_release(&copy);
    }
}
