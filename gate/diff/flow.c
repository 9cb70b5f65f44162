/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/diff/flow.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gate/diff/mix.h"

#define BARRIERS 16 /* B0 to B15, at which threads that went different ways meet again */

struct label {
    const char *name;
    size_t at;
};

/* A label lies in a buffer as its place and its name. */
void flow_add_label(struct listing *l, const char *line)
{
    size_t n = strcspn(line, ": \t");
    if (strncmp(line, ".L", 2) != 0 || line[n] != ':')
        return;
    buf_append(&l->labels, &l->n, sizeof l->n);
    buf_append(&l->labels, line, n);
    buf_putc(&l->labels, '\0');
    l->n_labels += !l->labels.failed;
}

static int compare_labels(const void *a, const void *b)
{
    return strcmp(((const struct label *)a)->name, ((const struct label *)b)->name);
}

static struct label *sort_labels(const struct listing *l)
{
    struct label *labels = calloc(l->n_labels + 1, sizeof *labels);
    const char *at = l->labels.data;
    for (size_t i = 0; labels && i < l->n_labels; i++) {
        memcpy(&labels[i].at, at, sizeof labels[i].at);
        labels[i].name = at + sizeof labels[i].at;
        at = labels[i].name + strlen(labels[i].name) + 1;
    }
    if (labels)
        qsort(labels, l->n_labels, sizeof *labels, compare_labels);
    return labels;
}

/* Where "BRA `(.L_x_3)" leads to. */
static size_t find_target(const struct label *labels, size_t n, const char *line)
{
    char name[64];
    const char *from = strstr(line, "(.L");
    size_t length = from ? strcspn(++from, ")") : 0;
    if (!length || length >= sizeof name)
        return LOOPS_NOWHERE;
    memcpy(name, from, length);
    name[length] = '\0';
    const struct label key = {.name = name};
    const struct label *found = bsearch(&key, labels, n, sizeof *labels, compare_labels);
    return found ? found->at : LOOPS_NOWHERE;
}

/* The number of "B3"; BARRIERS: there is none. */
static size_t barrier_of(const char *operands)
{
    if (*operands != 'B')
        return BARRIERS;
    char *end;
    unsigned long k = strtoul(operands + 1, &end, 10);
    return end > operands + 1 && k < BARRIERS ? (size_t)k : BARRIERS;
}

static bool is_any(const char *opcode, const char *const *names)
{
    while (*names && strcmp(opcode, *names) != 0)
        names++;
    return *names != NULL;
}

/* met[]: where the threads of each barrier meet again, by the BSSY before. */
static void follow_one(const char *line, const struct label *labels, size_t n_labels,
                       size_t met[BARRIERS + 1], struct loops_step *out)
{
    static const char *const ends[] = {"EXIT", "RET", "BRX", "BRXU", "JMX", "JMXU", "KILL", NULL};
    char opcode[MIX_OPCODE_SIZE];
    bool always = *line != '@';
    const char *rest = always ? line : line + strcspn(line, " ");
    rest += strspn(rest, " ");
    rest += strcspn(rest, " ");
    rest += strspn(rest, " ");
    listing_opcode(line, opcode, sizeof opcode);
    *out =
        (struct loops_step){.target = LOOPS_NOWHERE, .falls = true, .works = mix_is_work(opcode)};
    if (!strcmp(opcode, "BRA")) {
        out->target = find_target(labels, n_labels, line);
        out->falls = !always || *rest != '`';
    } else if (!strcmp(opcode, "BSSY")) {
        met[barrier_of(rest)] = find_target(labels, n_labels, line);
    } else if (!strcmp(opcode, "BSYNC")) {
        out->target = barrier_of(rest) < BARRIERS ? met[barrier_of(rest)] : LOOPS_NOWHERE;
        out->falls = !always || out->target == LOOPS_NOWHERE;
    } else if (is_any(opcode, ends)) {
        out->falls = !always;
    }
}

bool flow_follow(struct listing *l)
{
    struct label *labels = l->labels.failed ? NULL : sort_labels(l);
    size_t met[BARRIERS + 1];
    l->steps = labels ? calloc(l->n + 1, sizeof *l->steps) : NULL;
    for (size_t k = 0; k <= BARRIERS; k++)
        met[k] = LOOPS_NOWHERE;
    for (size_t i = 0; l->steps && i < l->n; i++)
        follow_one(l->line[i], labels, l->n_labels, met, &l->steps[i]);
    free(labels);
    l->n_loops = l->steps ? loops_find(l->steps, l->n) : 0;
    return l->steps && l->n_loops != LOOPS_NOWHERE;
}
