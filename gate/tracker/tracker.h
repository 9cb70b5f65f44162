/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracker.h: one request after the other to one server, by the program curl, and what comes from
 * the tracking server.
 *
 * A runner may not have curl: its absence is an error of http_client_version(), and of nothing
 * else. The token goes to it by standard input. Certificates are always verified, redirects are
 * never followed (they would carry the token elsewhere), and an answer has a maximum.
 */
#ifndef GATE_TRACKER_TRACKER_H
#define GATE_TRACKER_TRACKER_H

#include <stdbool.h>
#include <stddef.h>

#include "gate/base/buf.h"
#include "gate/base/error.h"
#include "gate/base/paths.h"

/*
 * The tracking server that a command talks to, and what it shows there.
 *
 * The token is read from a file or from the environment, never from the command line, where every
 * user of the machine could read it. It goes over https, or over http to this machine alone: there
 * is no switch against that, a tunnel (ssh -L) to a loopback port does what one would be for.
 */
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

struct http_request {
    const char *method; /* "GET", "HEAD", "POST", "PUT" */
    const char *path;   /* below the server's address: "/api/v1/runs" */
    const char *type;   /* Content-Type of the body; NULL: there is no body */
    bool gzipped;       /* the body is, and the header says so */
    const void *body;
    size_t len;
    long timeout_s;             /* for all of it */
    double patience_s;          /* for trying again what may pass; 0: there is one try */
    const char *const *headers; /* "Name: value", ended by NULL; NULL: none but the usual */
};

struct http_answer {
    int status;       /* 200 to 599 */
    long retry_after; /* s, as the server asked; 0: it did not */
    long long length; /* Content-Length, -1 when there is none */
    struct buf body;  /* the caller's; its maximum is that of an answer */
};

/* "7.88.1". GATE_IO: there is no curl here that would do; the message names the remedy. */
enum gate_status http_client_version(char version[32], struct gate_error *err);

/* An answer (408, 425, 429, 500, 502, 503, 504) after which the same question may get another. */
bool http_may_pass(int status);

/*
 * Asks the server, and waits for the whole answer. GATE_OK: there is one, of whatever status.
 * GATE_IO: there is none, or half of one; what the server made of the request is not known. In both
 * cases what may pass is tried again, never before the Retry-After that the server named; a 500 may
 * be the request's fault, and is tried three times.
 * GATE_ENVIRONMENT: the server is not the one that was meant (its certificate), or its answer is
 * longer than the maximum; asking again would not help. The message never has the token in it.
 */
enum gate_status http_client_ask(const struct remote *remote, const struct http_request *request,
                                 struct http_answer *answer, struct gate_error *err);

/*
 * Fetch: libraries from the server into the artifact cache.
 *
 * What is loaded and run later is known by its SHA-256, which the stored baselines name: bytes with
 * another hash are refused, from any server. So no token is needed, unless the server wants one.
 */

/* {0} to begin with. The server is looked for when something is asked of it. */
struct fetch {
    struct remote_choice choice;
    struct remote remote;
    bool is_open;              /* it is named */
    struct gate_error failure; /* status 0, or why the server is not asked any more */
};

/*
 * The path of a library in the cache, where it is now. GATE_USAGE: no server is named, or not
 * rightly. GATE_NO_VERDICT: the server does not have it. GATE_ENVIRONMENT: the
 * bytes have another hash, or the server is not the one that was meant. GATE_IO: there is no curl,
 * the server cannot be reached or does not answer well (it is not asked again), or the cache cannot
 * be written.
 */
enum gate_status fetch_library(struct fetch *f, const char *sha256, char path[PATHS_MAX],
                               struct gate_error *err);

#endif
