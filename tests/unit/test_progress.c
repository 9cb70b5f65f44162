/* SPDX-License-Identifier: Apache-2.0 */
/* What a long run says in a log. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gate/base/term.h"
#include "tests/unit/unit.h"

/* The next line of what is written to standard error, waited for as long as it takes. */
static void assert_line(FILE *said, const char *beginning)
{
    char line[500];
    assert_non_null(fgets(line, sizeof line, said));
    line[strlen(beginning)] = '\0';
    assert_string_equal(line, beginning);
}

TEST(a_line_again_and_again_while_one_thing_goes_on)
{
    int ends[2], before = dup(STDERR_FILENO);
    assert_int_equal(pipe(ends), 0);
    assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
    FILE *said = fdopen(ends[0], "r");
    progress_every(0.01);
    progress_show("measuring [1/2] a");
    for (int i = 0; i < 3; i++)
        assert_line(said, "gate: measuring [1/2] a (for ");
    progress_show("measuring [2/2] b");
    char line[500];
    do
        assert_non_null(fgets(line, sizeof line, said));
    while (strstr(line, "[1/2] a")); /* one that was on its way */
    assert_non_null(strstr(line, "gate: measuring [2/2] b (for "));
    progress_show("");
    dup2(before, STDERR_FILENO);
    close(ends[1]);
    while (fgets(line, sizeof line, said))
        assert_non_null(strstr(line, "[2/2] b")); /* and nothing after that */
    fclose(said);
    close(before);
}
