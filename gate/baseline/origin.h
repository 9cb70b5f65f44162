/*
 * origin.h: whose code is measured, and who asked.
 */
#ifndef GATE_BASELINE_ORIGIN_H
#define GATE_BASELINE_ORIGIN_H

#include <stdbool.h>
#include <stddef.h>

struct origin {
    char commit[41], parent[41]; /* 40 hex digits, or empty */
    char branch[200], subject[200];
    bool dirty;    /* tracked files differ from the commit */
    char who[200]; /* user@host */
    char uuid[37]; /* fresh, random (RFC 4122, version 4) */
};

/* Asks git about the current folder; without git or outside of a repository, the variables that
 * GitHub and GitLab set in their jobs; else the fields stay empty. */
void origin_read(struct origin *out);

/* Who decides something: "NAME <MAIL>" as git is set up here, else user@host. */
void origin_author(char *out, size_t size);

#endif
