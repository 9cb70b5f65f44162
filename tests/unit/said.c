/* SPDX-License-Identifier: Apache-2.0 */
/* said.c: see said.h. */
#include "tests/unit/said.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/unit.h"

int count_said(void (*call)(void *context), void *context, const char *word)
{
    char line[8192];
    int n = 0, kept = dup(STDERR_FILENO);
    FILE *file = tmpfile();
    assert_true(kept >= 0 && file && dup2(fileno(file), STDERR_FILENO) >= 0);
    call(context);
    assert_true(dup2(kept, STDERR_FILENO) >= 0);
    close(kept);
    rewind(file);
    while (fgets(line, sizeof line, file))
        n += strstr(line, word) != NULL;
    fclose(file);
    return n;
}
