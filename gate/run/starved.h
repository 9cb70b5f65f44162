/* SPDX-License-Identifier: Apache-2.0 */
/*
 * starved.h: did a silent worker hang, or did it get no processor?
 *
 * The kernel counts for each thread how long it ran, and how long it could have run and waited for
 * a processor (/proc/PID/task/TID/schedstat). A thread that sleeps or is stuck in a lock does
 * neither. A wait is counted when it ends: one that has not ended is known by the thread's state.
 */
#ifndef GATE_RUN_STARVED_H
#define GATE_RUN_STARVED_H

#include <stdbool.h>
#include <sys/types.h>

/* Of all threads of a process; 0 where the system does not say. */
struct processor_time {
    double ran_s, waited_s;
    unsigned ready; /* threads that run or could run, now */
};

struct processor_time processor_time_of(pid_t pid);

/* From one reading to the next, `silence_s` apart: it waited most of the time, and had at most a
 * quarter of what it wanted. An endless loop has more, unless the machine is as busy as that. */
bool processor_was_missing(struct processor_time before, struct processor_time now,
                           double silence_s);

#endif
