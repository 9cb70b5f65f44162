/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracker.h: what is sent to the tracking server, and what comes from it.
 */
#ifndef GATE_TRACKER_TRACKER_H
#define GATE_TRACKER_TRACKER_H

#include "gate/base/paths.h"
#include "gate/store/store_outbox.h"
#include "gate/tracker/http_client.h"

/*
 * Push: sends what waits in a store for a server, oldest first (store_outbox.h).
 *
 * What may pass (no connection, half an answer, 408, 425, 429, 500, 502, 503, 504) is tried again
 * (backoff.h), and never before the Retry-After that the server named. What the server will never
 * take (400, 409, 413, 415, 422) is marked as refused. Anything else, such as 401 or a redirect, is
 * about the server or the token and not about the entry: it ends the sending, and what is left
 * waits.
 *
 * An entry waits until the answer names it: a 200 of another server that listens there, a login
 * page perhaps, is no receipt.
 */
struct push_counts {
    size_t n_created, n_existed; /* runs that are there now, and that were there already */
    size_t n_libraries;          /* that are there now, or were */
    size_t n_refused;            /* of both kinds */
    size_t left[OUTBOX_KINDS];   /* waiting */
    char newest[65];             /* uuid of the last run that is there now, or was; "": of none */
};

/* Called with one line about what is waited for or was refused. */
typedef void (*push_say_fn)(const char *line);

/*
 * Sends what waits for `server` to `remote`; NULL: only counts it. Gives up when it has
 * tried again for `patience_s` and nothing was sent meanwhile; requests under way end by
 * themselves.
 * GATE_OK: nothing is left, and nothing was refused; else GATE_IO, or GATE_ENVIRONMENT when the
 * server is not the one that was meant, with the last reason. *counts is filled in any case.
 */
enum gate_status push_waiting(const struct remote *remote, struct store *store, const char *server,
                              double patience_s, push_say_fn say, struct push_counts *counts,
                              struct gate_error *err);

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
    bool is_open;              /* it is named, and there is a curl */
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
