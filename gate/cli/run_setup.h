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

/* Before it: is a library named, where the gate's own kernels are not meant? */
enum gate_status run_setup_check_library(const struct run_request *r, struct gate_error *err);

enum gate_status run_setup_open(const struct run_request *r, struct run_setup *out,
                                struct gate_error *err);
void run_setup_close(struct run_setup *s);

/*
 * What a change does to the thresholds that it is judged by. Whoever makes a kernel slower could
 * also widen its threshold: then the run passes, and its reports say what was changed.
 */
#define RUN_RULES_MAX 64

struct run_rules {
    char *changed[RUN_RULES_MAX]; /* "gemm/...: threshold 2 % -> 100 %" */
    size_t n;
};

/*
 * Compares the thresholds of the suite's file and of gate.json with those of a commit, and warns of
 * each change on standard error. `suite_path`: NULL, no file of the repository. Files that the
 * commit did not have have changed nothing. To be released in either case.
 */
enum gate_status run_rules_compare(const char *commit, const char *suite_path,
                                   const struct suite *now, double threshold, struct run_rules *out,
                                   struct gate_error *err);
void run_rules_release(struct run_rules *r);

#endif
