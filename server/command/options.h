/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h: the command line of gate-server's commands.
 */
#ifndef SERVER_COMMAND_OPTIONS_H
#define SERVER_COMMAND_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

#include "gate/base/error.h"

/* Takes one option; `value` is NULL for one without. */
typedef enum gate_status (*options_fn)(void *context, int letter, const char *value,
                                       struct gate_error *err);

/*
 * Reads long options; 'h' prints `usage` and sets *done. Up to `max_operands` operands follow in
 * `operands`, the others are NULL. GATE_USAGE with a message for anything else.
 */
enum gate_status options_parse(int argc, char **argv, const struct option *options,
                               const char *usage, options_fn fn, void *context,
                               const char **operands, int max_operands, bool *done,
                               struct gate_error *err);

/* A decimal number from `least` to `most`; `name` is the option, for the message. */
enum gate_status options_number(const char *name, const char *text, int64_t least, int64_t most,
                                int64_t *out, struct gate_error *err);

/* "90s", "15m", "12h", "30d" as ms. */
enum gate_status options_duration(const char *name, const char *text, int64_t *ms,
                                  struct gate_error *err);

#endif
