/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comment.h: one comment on a pull or merge request, written once and then kept up to date, and
 * the bad cases of a run as a CI service shows them beside a job.
 *
 * The comment is known by a marker in its first line and by its author: one that somebody else
 * began with the marker is left alone. The job that holds the token decides where it goes, by its
 * own variables, its event and its options. A report may come from a job that ran code of a
 * stranger: what it says leads nowhere.
 */
#ifndef GATE_COMMENT_COMMENT_H
#define GATE_COMMENT_COMMENT_H

#include "gate/base/buf.h"
#include "gate/base/error.h"
#include "gate/document/document.h"
#include "gate/tracker/tracker.h"

enum comment_service { COMMENT_GITHUB, COMMENT_GITLAB };

/* What the command line says; NULL: not said. */
struct target_options {
    const char *service, *api, *project, *change;
    struct remote_choice remote;
};

struct comment_target {
    enum comment_service service;
    char project[256]; /* "OWNER/NAME"; GitLab: a number, or a path with '/' written as %2F */
    char change[20];   /* its number; "": to be looked for, by the two below */
    char head[41];     /* its newest commit as the event or the reports know it; "": not known */
    char fork[200], branch[300]; /* of a fork's run: "OWNER/NAME", and the branch of its head */
    struct remote remote;
};

/* GATE_USAGE: something is missing, or is not what it should be; the message names the option. */
enum gate_status comment_target_read(const struct target_options *options,
                                     struct comment_target *out, struct gate_error *err);

#define COMMENT_NAME_MAX 60
#define COMMENT_LETTERS /* of names */                                                             \
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

/* Bytes that a comment may have: GitHub takes 65,536 characters, GitLab 1,000,000. */
#define COMMENT_MAX(service) ((size_t)((service) == COMMENT_GITHUB ? 65000 : 999000))

/*
 * Writes or updates; `body` begins with the marker, the line by which the comment is known. What
 * may pass is tried again for `patience_s`. *created: it was not there; `url` of GitHub's, else "".
 * GATE_IO: it could not be written. GATE_NO_VERDICT: the change has a newer commit. The target's
 * number is found on the way where need be.
 */
enum gate_status comment_post(struct comment_target *t, const char *marker, const char *body,
                              double patience_s, bool *created, char url[300],
                              struct gate_error *err);

/* Workflow commands for GitHub, one a line; ten errors and ten warnings are what a step may
 * have. */
void annotations_github(const struct document *d, struct buf *out);

/* Of a run that ended early: one error. */
void annotations_github_early(int exit_code, const char *message, struct buf *out);

/* A file for GitLab's artifacts:reports:annotations, which holds links: to the runs and to their
 * bad cases. */
void annotations_gitlab(const struct document *documents, size_t n, const char *link,
                        struct buf *out);

#endif
