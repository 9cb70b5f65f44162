/* SPDX-License-Identifier: Apache-2.0 */
/*
 * annotations.h: the bad cases of a run as a CI service shows them beside a job.
 */
#ifndef GATE_COMMENT_ANNOTATIONS_H
#define GATE_COMMENT_ANNOTATIONS_H

#include "gate/base/buf.h"
#include "gate/document/document.h"

/* Workflow commands for GitHub, one a line; ten errors and ten warnings are what a step may
 * have. */
void annotations_github(const struct document *d, struct buf *out);

/* Of a run that ended early: one error. */
void annotations_github_early(int exit_code, const char *message, struct buf *out);

/* A file for GitLab's artifacts:reports:annotations, which holds links: to the run and to its bad
 * cases. */
void annotations_gitlab(const struct document *const *documents, size_t n, const char *link,
                        struct buf *out);

#endif
