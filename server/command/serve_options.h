/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve_options.h: the settings of a server: what it is started with, and what `check` looks at.
 */
#ifndef SERVER_COMMAND_SERVE_OPTIONS_H
#define SERVER_COMMAND_SERVE_OPTIONS_H

#include "server/http/http.h"
#include "server/ops/log.h"

/* The help of the options, for the usage of a command that takes them. */
#define SERVE_OPTIONS_HELP                                                                         \
    "  --db FILE             the database\n"                                                       \
    "  --listen ADDR:PORT    address to listen on (127.0.0.1:8731); port 0 picks a free one\n"     \
    "  --artifacts DIR       folder of the artifacts (FILE-artifacts)\n"                           \
    "  --private             require a token for reading too; writing always needs one\n"          \
    "  --allow-host NAME,... accept requests for these host names only. Default: all, but on a\n"  \
    "                        loopback address only localhost and numeric hosts\n"                  \
    "  --tls-cert FILE       serve HTTPS with this certificate (PEM, with its chain)\n"            \
    "  --tls-key FILE        and its key\n"                                                        \
    "  --max-connections N   connections at a time (1024, and no more)\n"                          \
    "  --max-per-address N   connections at a time from one address (64)\n"                        \
    "  --timeout SECONDS     drop a client that is silent for this time (15), or that takes "      \
    "more\n"                                                                                       \
    "                        than twice as long for its headers, four times for its body\n"        \
    "  --keep-samples TIME   drop the raw samples of runs that are older, such as 90d (default:\n" \
    "                        keep them)\n"                                                         \
    "  --main-branch NAME    the branch that raises alerts, has badges, and is shown first on "    \
    "the\n"                                                                                        \
    "                        page (main)\n"                                                        \
    "  --commit-url URL      address of a commit on the forge, with %s for the commit, such as\n"  \
    "                        https://github.com/OWNER/NAME/commit/%s: the page links to it\n"      \
    "  --public-url URL      address of this server for its readers: links of the feed begin "     \
    "with it\n"                                                                                    \
    "  --webhook URL         send alerts there, as signed POSTs (server/watch/webhook.h)\n"        \
    "  --webhook-secret-file FILE  the secret for the signature\n"                                 \
    "  --log LEVEL           error, warning, info (the default) or request: one line for each\n"   \
    "  --log-json            write the log as JSON\n"                                              \
    "  --web-root DIR        take the page's files from DIR instead of the built-in ones\n"

struct serve_options {
    const char *listen;
    enum log_level log;
    bool log_json;
    struct http_options http; /* but for its socket */
    char artifacts[4096];     /* the default folder */
};

/* GATE_USAGE for a bad line; *done when --help was asked for, and printed. */
enum gate_status serve_options_parse(int argc, char **argv, const char *usage,
                                     struct serve_options *out, bool *done, struct gate_error *err);

#endif
