/* SPDX-License-Identifier: Apache-2.0 */
/* git.h: what git says of the repository that this program is called in. */
#ifndef GATE_BASE_GIT_H
#define GATE_BASE_GIT_H

#include <stdbool.h>
#include <stddef.h>

/* Runs git with these words, the last of which is NULL, and copies the first line of its output.
 * False: there is none, or no git. */
bool git_line(char *out, size_t size, ...) __attribute__((sentinel));

/* Receives one line; false ends the reading. */
typedef bool (*git_line_fn)(void *context, const char *line);
/* The same for each line of the output. Nothing comes where there is no git. */
void git_lines(git_line_fn fn, void *context, ...) __attribute__((sentinel));

#endif
