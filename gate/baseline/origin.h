/* SPDX-License-Identifier: Apache-2.0 */
/*
 * origin.h: whose code is measured, and who asked.
 */
#ifndef GATE_BASELINE_ORIGIN_H
#define GATE_BASELINE_ORIGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/document/document.h"

#define ORIGIN_FIRST_PARENTS_MAX 256

struct origin_commit {
    char commit[41];
    int64_t time_ms; /* of its committer */
};

struct origin {
    char commit[41], parent[41]; /* 40 hex digits, or empty */
    char branch[200], subject[200];
    char author[200]; /* of the commit, by name */
    char base[200];   /* the branch that a change is to be merged into */
    char change[20];  /* number of the pull or merge request */
    char job[400];    /* address of the CI job */
    bool dirty;       /* tracked files other than the baselines differ from the commit */
    char who[200];    /* user@host */
    char uuid[37];    /* fresh, random (RFC 4122, version 4) */
    /* What git knows of the commit's history: the commit that it shares with `base`, or empty; the
     * commit itself, its first parent and so on. */
    char merge_base[41];
    struct origin_commit first_parents[ORIGIN_FIRST_PARENTS_MAX];
    size_t n_first_parents;
};

/* What the command line says; NULL: not said. The commit has 40 digits. */
struct origin_choice {
    const char *commit, *branch, *base, *change, *job;
    const char *baselines; /* the folder of the stored ones */
    bool elsewhere; /* it is not the code that is checked out: only what is chosen is known of it */
};

/* The choice, else the CI job's variables where they are about the commit that is checked out
 * (ci.h), else what git says of the current folder. What is not known stays empty. */
void origin_read(const struct origin_choice *choice, struct origin *out);

/* As a document has it. Its texts are the origin's, its list of first parents is the caller's. */
struct document_git origin_document(const struct origin *o);

/* Who decides something: "NAME <MAIL>" as git is set up here, else user@host. */
void origin_author(char *out, size_t size);

bool origin_ignores(const char *path); /* does git, by .gitignore? */

#endif
