/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch.h: libraries from the tracking server into the artifact cache.
 *
 * What is loaded and run later is known by its SHA-256, which the stored baselines name: bytes with
 * another hash are refused, from any server. So no token is needed, unless the server wants one.
 */
#ifndef GATE_TRACKER_FETCH_H
#define GATE_TRACKER_FETCH_H

#include "gate/base/error.h"
#include "gate/tracker/http_client.h"
#include "gate/base/paths.h"
#include "gate/tracker/remote.h"

/* {0} to begin with. The server is looked for when something is asked of it. */
struct fetch {
    struct remote_choice choice;
    struct remote remote;
    struct http_client *client;
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

void fetch_release(struct fetch *f);

#endif
