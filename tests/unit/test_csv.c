/* SPDX-License-Identifier: Apache-2.0 */
/* test_csv.c: fields of CSV. */
#include "gate/base/csv.h"
#include "tests/unit/unit.h"

TEST(fields)
{
    static const char *const cases[][2] = {
        {"a b", "a b"},          {"", ""},
        {"a,b", "\"a,b\""},      {"say \"a\"", "\"say \"\"a\"\"\""},
        {"=1+1", "'=1+1"},       {"\n=1", "\"'\n=1\""},
        {"-1", "'-1"},           {"a-1", "a-1"},
        {"\uff1d1", "'\uff1d1"}, {";=1", ";'=1"},
        {"a;b", "a;b"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct buf out;
        buf_init(&out, 100);
        csv_put(&out, cases[i][0]);
        assert_string_equal(out.data ? out.data : "", cases[i][1]);
        buf_release(&out);
    }
}
