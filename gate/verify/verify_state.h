/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_state.h: what a kernel must leave alone beside memory: the state of the process.
 *
 * A launch that changes how numbers are rounded, who hears signals, the folder, the limits, the
 * environment, or that leaves threads, files or memory behind changes everything that is measured
 * after it.
 */
#ifndef GATE_VERIFY_VERIFY_STATE_H
#define GATE_VERIFY_VERIFY_STATE_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "gate/launch/arm.h"

/* What a process has of each. */
struct state_counts {
    unsigned threads, files, children;
};

/* What a change of these is called: somebody outside may have made it. */
#define STATE_SCHEDULING "the scheduling policy or niceness"

/* What something must leave alone, before it. */
struct surroundings {
    unsigned float_control; /* rounding, flushing of subnormals, exception masks */
    char folder[512];
    unsigned long long signals_ignored, signals_caught, signals_blocked;
    uint64_t environment; /* a hash of its variables */
    char limits[2048];
    char affinity[256];
    mode_t umask;
    int scheduler, niceness;
    struct state_counts counts;
    struct device_state device;
};

enum gate_status surroundings_read(struct device *d, struct surroundings *out,
                                   struct gate_error *err);

/*
 * Has a kernel changed anything since `before`, or taken most of the device's memory? Then says so
 * in v. There may be `more` threads, files and children than before: a CUDA driver makes a few when
 * it pleases. GATE_ENVIRONMENT: most of the memory went, and by the driver not to this process, or
 * that is not known.
 */
#define STATE_MORE_ON_GPU 64
#define STATE_MORE_ANY UINT_MAX
enum gate_status surroundings_compare(struct device *d, const struct surroundings *before,
                                      unsigned more, struct verification *v,
                                      struct gate_error *err);

/*
 * The same for what a library changes before its first launch: a limit that was set while it was
 * opened, or in prepare(), would pass for the usual. It may start threads and open files.
 * GATE_WRONG: something changed; `what` is what changed it.
 */
enum gate_status surroundings_check(struct device *d, const struct surroundings *before,
                                    const char *what, struct gate_error *err);

/* What launches may lose. */
struct holdings {
    struct state_counts counts;
    size_t heap_bytes;    /* allocated by malloc() */
    size_t address_bytes; /* private and writable, of the whole process */
    struct device_state device;
};

enum gate_status holdings_read(struct device *d, struct holdings *out, struct gate_error *err);

/*
 * Did each of so many launches lose memory, or every one, or every other one, leave a thread, a
 * file or a child behind? Then says so in v. `at`: before them, after the first half and at the
 * end. What is kept for good, by one half of them alone, is not lost, nor what a driver makes when
 * it pleases. Device memory is handed out in pieces of MiB, so that small losses stay unseen; where
 * the driver does not report whose it is, another process that starts takes it in one of the
 * halves. `host`: no driver takes memory of the process either.
 */
void holdings_compare(const struct holdings at[3], unsigned launches, bool host,
                      struct verification *v);

#endif
