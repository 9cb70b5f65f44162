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
    "  --listen ADDR:PORT    where to listen (127.0.0.1:8731); port 0 is any free one\n"           \
    "  --artifacts DIR       folder of the artifacts (FILE-artifacts)\n"                           \
    "  --private             reading takes a token too, as writing always does\n"                  \
    "  --allow-host NAME,... names by which it may be asked for; without it any, but on a "        \
    "loopback\n"                                                                                   \
    "                        address only localhost and numeric ones\n"                            \
    "  --tls-cert FILE       serve HTTPS with this certificate (PEM, with its chain)\n"            \
    "  --tls-key FILE        and its key\n"                                                        \
    "  --read-rate N         requests a second of one address (2000)\n"                            \
    "  --write-rate N        writes a second of one token (20)\n"                                  \
    "  --max-connections N   connections at a time (256), and of\n"                                \
    "  --max-per-address N   them from one address (64)\n"                                         \
    "  --timeout SECONDS     a silent client is dropped after it (15), and one that takes more\n"  \
    "                        than twice as long for its headers, four times for its body\n"        \
    "  --keep-samples TIME   drop the raw samples of runs that are older, such as 90d; without\n"  \
    "                        it they are kept for ever\n"                                          \
    "  --main-branch NAME    whose runs raise alerts and are shown on badges and, unless "         \
    "another\n"                                                                                    \
    "                        is chosen, on the page (main)\n"                                      \
    "  --commit-url URL      of a commit on the forge, with %s in its place, such as\n"            \
    "                        https://github.com/OWNER/NAME/commit/%s: the page links to it\n"      \
    "  --public-url URL      of this server as its readers know it: links of the feed begin with " \
    "it\n"                                                                                         \
    "  --webhook URL         tell it of alerts, by signed POSTs (server/watch/webhook.h)\n"        \
    "  --webhook-secret-file FILE  what they are signed with\n"                                    \
    "  --log LEVEL           error, warning, info (the default) or request: one line for each\n"   \
    "  --log-json            log lines are JSON\n"                                                 \
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
