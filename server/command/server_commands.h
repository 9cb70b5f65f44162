/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server_commands.h: what gate-server can be asked to do, and the settings of a server: what it is
 * started with, and what `check` looks at.
 */
#ifndef SERVER_COMMAND_SERVER_COMMANDS_H
#define SERVER_COMMAND_SERVER_COMMANDS_H

#include "gate/cli/options.h"
#include "server/http/http.h"
#include "server/ops/log.h"

extern const struct command command_serve, command_token, command_check, command_backup,
    command_restore, command_thin, command_routes;

struct serve_options {
    const char *listen;
    enum log_level log;
    bool log_json;
    struct http_options http; /* but for its socket */
    char artifacts[4096];     /* the default folder */
};

extern const struct option_def serve_options[];

#define SERVE_DEFAULTS                                                                             \
    .listen = "127.0.0.1:8731", .log = LOG_LEVEL_INFO,                                             \
    .http = {.listen_fd = -1,                                                                      \
             .main_branch = "main",                                                                \
             .max_connections = HTTP_MAX_CONNECTIONS,                                              \
             .max_per_address = 64,                                                                \
             .timeout_s = 15}

/* Fills in what follows from other options. GATE_USAGE: they do not go together. */
enum gate_status serve_options_check(struct serve_options *a, struct gate_error *err);

/* Reads "90s", "15m", "12h" or "30d" as int64_t, in ms. */
bool read_duration(void *ms, const char *text);
#define DURATION_FORM "a time such as 90s, 15m, 12h or 30d"

#define SERVER_DB_OPTION OPTION(TEXT, "db", "FILE", db, "the database of the server")

#endif
