/*
 * supervisor.h: workers on a short leash.
 *
 * The supervisor never opens a device or a kernel library. It starts worker processes (each in a
 * process group of its own), gives them one case at a time by the protocol of gate/PROTOCOL.md, and
 * kills and replaces those that hang, die, spoil their device or talk nonsense. Such an end costs
 * the case that was at work and no other one.
 */
#ifndef GATE_SUPERVISOR_H
#define GATE_SUPERVISOR_H

#include <cjson/cJSON.h>
#include <stdint.h>

#include "suite.h"

struct supervisor;

struct supervisor_options {
    const char *worker;  /* program; NULL: this program's own "worker" command */
    const char *device;  /* "host" or "cuda:N" */
    const char *library; /* the candidate */
    const char *const *providers;
    unsigned n_providers;
    double timeout_s; /* longest silence of a worker before it is killed */
};

enum case_outcome {
    CASE_MEASURED,
    CASE_WRONG,
    CASE_UNSUPPORTED,
    CASE_ENVIRONMENT,
};

struct case_result {
    enum case_outcome outcome;
    char message[1000];
    cJSON *arms; /* by run.schema.json; the caller's; never NULL, empty when the worker died */
};

/*
 * Starts the first worker and hears its greeting. GATE_ENVIRONMENT: the device is missing or busy.
 * GATE_USAGE, GATE_WRONG: what the worker says of the library. The options must outlive *out.
 */
enum gate_status supervisor_start(const struct supervisor_options *options, struct supervisor **out,
                                  struct gate_error *err);
void supervisor_stop(struct supervisor *s); /* NULL is fine */

/* The first worker's greeting: device, contract, libraries, absent. */
const cJSON *supervisor_greeting(const struct supervisor *s);

/* Runs one case; starts a worker when there is none. Fails only when no worker can be had. */
enum gate_status supervisor_run_case(struct supervisor *s, const struct suite_case *c,
                                     uint64_t seed, double budget_ms, struct case_result *out,
                                     struct gate_error *err);

/* Ends the worker, so that the next case gets a fresh process. */
void supervisor_retire_worker(struct supervisor *s);

#endif
