/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_setup.h: what is needed before anything is measured: suite, target and a worker with its
 * device, which is waited for while another gate or program is busy on it.
 */
#ifndef GATE_CLI_RUN_SETUP_H
#define GATE_CLI_RUN_SETUP_H

#include "gate/cli/run_request.h"
#include "gate/device/device_lock.h"
#include "gate/run/memory.h"

struct run_setup {
    struct suite suite;
    struct suite whole; /* the same without filter and shard */
    bool own_suite;     /* a file, and none of those that come with the gate */
    struct shard shard;
    struct target target;
    struct supervisor *supervisor;
    struct device_lock lock; /* of the device, against other gates */
    struct memory *memory;   /* of earlier runs; NULL: nothing is remembered */
    bool remember;           /* what this run found, once it is at its end */
};

/* The suite that is asked for on this device, by its filter; the shard is not taken yet. */
enum gate_status run_setup_suite(const struct run_request *r, const char *device,
                                 struct run_setup *out, struct gate_error *err);

enum gate_status run_setup_open(const struct run_request *r, struct run_setup *out,
                                struct gate_error *err);
void run_setup_close(struct run_setup *s);

#endif
