/* store_intern.c: texts of which there are few, each once; see store_private.h. */
#include <stdlib.h>
#include <string.h>

#include "store_private.h"

/* The place of the first text that is not before this one. */
static size_t place_of(const struct store *s, const char *text)
{
    size_t lo = 0, hi = s->n_interned;
    while (lo < hi) {
        size_t middle = lo + (hi - lo) / 2;
        if (strcmp(s->interned[middle], text) < 0)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

const char *store_intern(struct store *s, const char *text)
{
    size_t at = place_of(s, text);
    if (at < s->n_interned && strcmp(s->interned[at], text) == 0)
        return s->interned[at];
    char *copy = strdup(text);
    char **more = realloc(s->interned, (s->n_interned + 1) * sizeof(*more));
    if (more)
        s->interned = more;
    if (!copy || !more) {
        free(copy);
        return NULL;
    }
    memmove(more + at + 1, more + at, (s->n_interned - at) * sizeof(*more));
    more[at] = copy;
    s->n_interned++;
    return copy;
}

void store_intern_release(struct store *s)
{
    for (size_t i = 0; i < s->n_interned; i++)
        free(s->interned[i]);
    free(s->interned);
}
