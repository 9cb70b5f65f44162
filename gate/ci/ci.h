/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ci.h: what the variables of a CI job say about the commit that it is about.
 *
 * Known are GitHub Actions, GitLab CI, Jenkins, Buildkite, Azure Pipelines, CircleCI and Slurm (of
 * which only the job is known). What a system does not say stays empty: nothing is guessed.
 */
#ifndef GATE_CI_CI_H
#define GATE_CI_CI_H

#include <cjson/cJSON.h>

#include "gate/base/error.h"

enum ci_system {
    CI_NONE,
    CI_GITHUB,
    CI_GITLAB,
    CI_JENKINS,
    CI_BUILDKITE,
    CI_AZURE,
    CI_CIRCLE,
    CI_SLURM
};

struct ci_job {
    enum ci_system system;
    char
        checkout[41]; /* the commit in the job's folder: on a change, it may be a temporary merge */
    char head[41];    /* the change's newest commit; else the same as `checkout` */
    char author[200]; /* of `checkout`, by name */
    char branch[200]; /* of the head; "OWNER:BRANCH" where it is a fork's */
    char base[200];   /* the branch that the change is to be merged into */
    char change[20];  /* number of the pull or merge request */
    char job[400];    /* address of the job, or "slurm:CLUSTER/ID" */
};

/* All are empty outside of a CI job. */
void ci_read(struct ci_job *out);

/* The event that GitHub started the job for, the file $GITHUB_EVENT_PATH; the caller's. GATE_USAGE:
 * there is no such variable. GATE_IO: the file cannot be read, or is no JSON. */
enum gate_status ci_github_event(cJSON **out, struct gate_error *err);

#endif
