/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_users.h: which of the processes that the driver lists really computes on a GPU.
 *
 * NVML keeps entries of processes that ended long ago, and in a container it names processes of
 * the host by numbers that here belong to another process or to none. An entry is believed only
 * when /proc agrees.
 */
#ifndef GATE_DEVICE_CUDA_USERS_H
#define GATE_DEVICE_CUDA_USERS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cuda_user {
    pid_t pid;
    char name[32]; /* the process's command name; "?" when it cannot be read */
};

/*
 * Whether `pid` is a living process that holds an NVIDIA device file open. One whose open files may
 * not be read counts: the doubt is resolved towards "busy", since a shared GPU spoils a measurement
 * without a trace. A zombie does not count, it has closed its files. `proc_root` is "/proc".
 */
bool cuda_user_is_alive(const char *proc_root, pid_t pid);

/* Finds the first of `pids` that is not `self` and is alive; false when there is none. */
bool cuda_users_find(const char *proc_root, const pid_t *pids, size_t n, pid_t self,
                     struct cuda_user *out);

/*
 * Whether the driver's list can be believed here: it names this very process, which must have
 * opened the GPU before. It does not where NVML is absent, or in a container whose process ids are
 * not the driver's: then it is not known which other processes compute on the GPU, and "not busy"
 * means nothing.
 */
bool cuda_users_are_known(const pid_t *pids, size_t n, pid_t self);

/* The same of the GPU with this uuid ("GPU-..."), by asking NVML. */
bool cuda_users_checked(const char *uuid);

/*
 * By what number the driver lists this very process: `self` where its list names that, else the one
 * number that came to the list while this process opened the GPU, from `before` to `now`; 0 where
 * there is none, or more than one.
 */
pid_t cuda_users_self(const pid_t *before, size_t n_before, const pid_t *now, size_t n_now,
                      pid_t self);

#ifdef __cplusplus
}
#endif

#endif
