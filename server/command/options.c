/* SPDX-License-Identifier: Apache-2.0 */
/* options.c: see options.h. */
#include "server/command/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum gate_status options_parse(int argc, char **argv, const struct option *options,
                               const char *usage, options_fn fn, void *context,
                               const char **operands, int max_operands, bool *done,
                               struct gate_error *err)
{
    int letter;
    optind = 0; /* start over: main may have looked at this line already */
    opterr = 0;
    *done = false;
    while ((letter = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
        if (letter == 'h') {
            fputs(usage, stdout);
            *done = true;
            return GATE_OK;
        }
        if (letter == ':')
            return gate_fail(err, GATE_USAGE, "'%s' needs a value; see --help", argv[optind - 1]);
        if (letter == '?')
            return gate_fail(err, GATE_USAGE, "unknown option '%s'; see --help", argv[optind - 1]);
        enum gate_status status = fn(context, letter, optarg, err);
        if (status)
            return status;
    }
    for (int i = 0; i < max_operands; i++)
        operands[i] = optind < argc ? argv[optind++] : NULL;
    if (optind < argc)
        return gate_fail(err, GATE_USAGE, "'%s' is not expected; see --help", argv[optind]);
    return GATE_OK;
}

enum gate_status options_number(const char *name, const char *text, int64_t least, int64_t most,
                                int64_t *out, struct gate_error *err)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 || value < least || value > most)
        return gate_fail(err, GATE_USAGE, "%s is '%s', and must be a number from %lld to %lld",
                         name, text, (long long)least, (long long)most);
    *out = value;
    return GATE_OK;
}

enum gate_status options_duration(const char *name, const char *text, int64_t *ms,
                                  struct gate_error *err)
{
    static const struct {
        char unit;
        int64_t ms;
    } units[] = {{'s', 1000}, {'m', 60000}, {'h', 3600000}, {'d', 86400000}};
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (*text >= '0' && *text <= '9' && errno == 0 && value >= 1 && value <= 1000000 &&
            end[0] == units[i].unit && end[1] == '\0') {
            *ms = value * units[i].ms;
            return GATE_OK;
        }
    }
    return gate_fail(err, GATE_USAGE, "%s is '%s', expected a time such as 90s, 15m, 12h or 30d",
                     name, text);
}
