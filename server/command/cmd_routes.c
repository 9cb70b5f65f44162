/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_routes.c: gate-server routes. */
#include "server/command/server_commands.h"

#include <getopt.h>
#include <stdio.h>

#include "server/http/routes.h"
#include "server/command/options.h"

static const char usage[] = "Usage: gate-server routes\n"
                            "\n"
                            "Prints the addresses that the server serves, as a Markdown table.\n"
                            "Exit status: 0 done, 64 usage, 70 internal.\n";

static enum gate_status read_option(void *context, int letter, const char *value,
                                    struct gate_error *err)
{
    (void)context;
    (void)letter;
    (void)value;
    return gate_fail(err, GATE_INTERNAL, "no such option");
}

enum gate_status server_routes(int argc, char **argv, struct gate_error *err)
{
    static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {0}};
    bool done;
    enum gate_status status =
        options_parse(argc, argv, options, usage, read_option, NULL, NULL, 0, &done, err);
    if (status || done)
        return status;
    struct buf text;
    buf_init(&text, 1 << 16);
    routes_write(&text);
    fwrite(text.data, 1, text.len, stdout);
    buf_release(&text);
    return GATE_OK;
}
