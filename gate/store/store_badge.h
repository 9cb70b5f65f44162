/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_badge.h: what is shown outside of the page: badges, and the name of the database that ids
 * of the feed are made of.
 */
#ifndef GATE_STORE_STORE_BADGE_H
#define GATE_STORE_STORE_BADGE_H

#include "gate/store/store.h"

#define STORE_IDENTITY_MAX 64

/* The same as long as the database lives, and of no other. */
enum gate_status store_identity(struct store *s, char out[STORE_IDENTITY_MAX],
                                struct gate_error *err);

/* Of runs of the main branch: a merge request that is red is not the project's state. */
struct badge_facts {
    char verdict[16]; /* of the newest run; "": there is none */
    int64_t n_causes; /* of a device: store_open_causes() */
    double p50_ns;    /* of a case; 0: not timed */
};

enum gate_status store_badge_of_device(struct store *s, const char *branch,
                                       const char *device_model, struct badge_facts *out,
                                       struct gate_error *err);
enum gate_status store_badge_of_case(struct store *s, const char *branch, const char *device_model,
                                     const char *case_id, struct badge_facts *out,
                                     struct gate_error *err);

#endif
