/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generate.h: the manual page and the shells' completions, made of the commands' table of options.
 */
#ifndef GATE_CLI_GENERATE_H
#define GATE_CLI_GENERATE_H

/* gate generate man|bash|zsh|fish; returns the exit code. */
int generate(int argc, char **argv);

#endif
