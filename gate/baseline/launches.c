/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/baseline/launches.h"

#include <stdio.h>
#include <string.h>

#define END ";"

static size_t parts_of(const char *text)
{
    size_t n = 1;
    for (; (text = strstr(text, END)); text++)
        n++;
    return n;
}

static size_t word_of(const char *text)
{
    return strcspn(text, " ;");
}

static bool is_same(const char *a, const char *b)
{
    return word_of(a) == word_of(b) && !strncmp(a, b, word_of(a));
}

static void describe(const char *name, size_t part, size_t n, const char *stored, const char *now,
                     char *why, size_t size)
{
    if (is_same(name, "order"))
        snprintf(why, size,
                 "the order of its launches, their clusters, attributes or dependencies "
                 "differ");
    else if (is_same(name, "code"))
        snprintf(why, size, "kernel %zu of %zu has other device code", part, n);
    else
        snprintf(why, size, "kernel %zu of %zu has %.*s %.*s, and the stored one %.*s", part, n,
                 (int)word_of(name), name, (int)word_of(now), now, (int)word_of(stored), stored);
}

bool launches_are_equal(const char *stored, const char *now, char *why, size_t size)
{
    size_t n = parts_of(now) - 1, part = 1;
    if (!strcmp(stored, now))
        return true;
    if (parts_of(stored) - 1 != n) {
        snprintf(why, size, "a launch runs %zu different kernels, and the stored one %zu", n,
                 parts_of(stored) - 1);
        return false;
    }
    /* Word by word: the names are the same, so a name stands before the value that differs. */
    const char *name = now;
    while (*stored && *now && is_same(stored, now)) {
        name = now;
        part += now[word_of(now)] == ';';
        stored += word_of(stored) + strspn(stored + word_of(stored), " ;");
        now += word_of(now) + strspn(now + word_of(now), " ;");
    }
    describe(name, part, n, stored, now, why, size);
    return false;
}
