/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target.h: the pull or merge request that a comment goes to.
 *
 * Whose it is says the job that holds the token, by its own variables, its event and its options.
 * A report may come from a job that ran code of a stranger: what it says leads nowhere.
 */
#ifndef GATE_COMMENT_TARGET_H
#define GATE_COMMENT_TARGET_H

#include "gate/base/error.h"
#include "gate/tracker/http_client.h"
#include "gate/tracker/remote.h"

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

/* The number, where only the fork's branch and its commit are known: the open pull request that has
 * that commit as its head. GATE_NO_VERDICT: there is none, it has moved on. */
enum gate_status comment_target_find(struct comment_target *t, struct http_client *client,
                                     struct http_answer *answer, struct gate_error *err);

/* Asks the service whether `head`, where it is known, is still the change's newest commit: the job
 * may be older than another that has written. GATE_NO_VERDICT: it is not. */
enum gate_status comment_target_check(const struct comment_target *t, struct http_client *client,
                                      struct http_answer *answer, struct gate_error *err);

#endif
