/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote.h: the tracking server that a command talks to, and what it shows there.
 *
 * The token is read from a file or from the environment, never from the command line, where every
 * user of the machine could read it. It goes over https, or over http to this machine alone: there
 * is no switch against that, a tunnel (ssh -L) to a loopback port does what one would be for.
 */
#ifndef GATE_TRACKER_REMOTE_H
#define GATE_TRACKER_REMOTE_H

#include <stdbool.h>

#include "gate/base/error.h"
#include "gate/base/paths.h"

#define REMOTE_URL_MAX 200
#define REMOTE_TOKEN_MAX 1000

/* What the command line says; NULL: not said. */
struct remote_choice {
    const char *server, *token_file, *ca_file;
};

struct remote {
    char url[REMOTE_URL_MAX + 1];     /* "https://gate.example.org", without a '/' at its end */
    char token[REMOTE_TOKEN_MAX + 1]; /* "": none */
    char ca_file[PATHS_MAX];          /* "": the system's certificates */
    bool loopback;                    /* plain http to this machine: never by a proxy */
};

/* Is a server named at all, by the choice or by $GATE_SERVER? */
bool remote_is_named(const struct remote_choice *choice);

/*
 * Server: the choice, else $GATE_SERVER. Token: the choice's file, else $GATE_TOKEN, else the file
 * $GATE_TOKEN_FILE, else none. Certificates: the choice, else $GATE_CA_FILE, else the system's.
 * GATE_USAGE: no server, an address that is none, a token that is none or that would go over the
 * network in the clear. GATE_IO: a file cannot be read.
 */
enum gate_status remote_resolve(const struct remote_choice *choice, struct remote *out,
                                struct gate_error *err);

/* Of another service: its address, and the choice's file or the first of the variables (ended by
 * NULL) that holds a token. Errors as above. */
enum gate_status remote_take(const char *url, const struct remote_choice *choice,
                             const char *const *variables, struct remote *out,
                             struct gate_error *err);

/* The address alone: no token, and the system's certificates. */
enum gate_status remote_take_url(const char *text, struct remote *out, struct gate_error *err);

#endif
