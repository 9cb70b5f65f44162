/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http.h: the server: connections, limits, headers. What is said is up to api_call.h.
 *
 * Each connection has a thread of its own, so a handler is a function that reads, checks and
 * answers. Those of one address share what they may take of stores and memory (http_share.c).
 */
#ifndef SERVER_HTTP_HTTP_H
#define SERVER_HTTP_HTTP_H

#include <stdbool.h>
#include <stdint.h>

#include "gate/base/error.h"

#define HTTP_MAX_CONNECTIONS 1024

struct http;

struct http_options {
    int listen_fd;         /* bound and listening; the server takes it over, also when it fails */
    bool listen_is_passed; /* by systemd, which listens on after the server's end */
    const char *db;        /* path of the database, made when it is not there */
    const char *web_root;  /* or NULL: the page that was built in */
    const char *artifacts; /* folder of the artifacts, made when it is not there */
    const char *tls_cert;  /* PEM files, both or none */
    const char *tls_key;
    const char *main_branch;    /* whose runs raise alerts */
    const char *commit_url;     /* of a commit on the forge, "%s" in its place, or NULL */
    const char *public_url;     /* of this server, or NULL */
    const char *webhook;        /* an address that is told of alerts (webhook.h), or NULL */
    const char *webhook_secret; /* file */
    int64_t keep_samples_ms;    /* raw samples of older runs are dropped; 0: never */
    const char *allow_hosts;    /* names with commas between them, or NULL */
    bool private_reads;         /* reading takes a token too */
    int64_t max_connections;
    int64_t max_per_address; /* connections of one address */
    int64_t timeout_s;       /* of silence; a request may take twice as long, a body four times */
};

/* Opens the database and starts to serve. GATE_IO when the database cannot be opened. */
enum gate_status http_start(const struct http_options *options, struct http **out,
                            struct gate_error *err);

/* Starts to look at new runs. Alerts are logged from here on, so it comes after the first line. */
enum gate_status http_watch(struct http *h, struct gate_error *err);

/* To be called about once a second: closes the connections that are past their deadline. */
void http_tick(struct http *h);

/* Does the background thread go on, and with it all that writes? For a watchdog. */
bool http_is_alive(struct http *h);

/* Takes no more connections, lets requests that are under way end (5 s), stops. NULL is fine. */
void http_stop(struct http *h);

#endif
