/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scrub.h: an environment for untrusted code. A kernel library could use or pass on every secret
 * that it finds there.
 */
#ifndef GATE_BASE_SCRUB_H
#define GATE_BASE_SCRUB_H

/* Removes from the environment of this process all variables that, by their names, are a token, a
 * password or a key, or that control a CI job, such as $GITHUB_ENV and $CI_JOB_TOKEN. */
void scrub_environment(void);

#endif
