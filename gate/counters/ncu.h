/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ncu.h: NVIDIA's Nsight Compute: where it is, how it is called, and the table that it writes.
 */
#ifndef GATE_COUNTERS_NCU_H
#define GATE_COUNTERS_NCU_H

#include "gate/base/error.h"
#include "gate/base/paths.h"
#include "gate/counters/counters.h"

#define NCU_KERNELS_MAX 16
#define NCU_NAME_SIZE 1001 /* of a name that is longer the beginning is kept */

struct ncu_kernel {
    char name[NCU_NAME_SIZE]; /* mangled */
    struct counter_values values;
};

/* The launches of a case that were profiled, in their order; the first ones. */
struct ncu_table {
    struct ncu_kernel kernels[NCU_KERNELS_MAX];
    size_t n;
};

/* On PATH, in the CUDA toolkit's folder, or of an installation of its own. GATE_ENVIRONMENT: it is
 * nowhere. */
enum gate_status ncu_find(char path[PATHS_MAX], struct gate_error *err);

#define NCU_WORDS 16
#define NCU_METRICS_SIZE 4096

/* The words before the program that it is to profile, between cudaProfilerStart() and
 * cudaProfilerStop() alone; `metrics` has room for their names, and `log` is where it writes. */
unsigned ncu_words(const char *path, const char *log, bool hopper, char metrics[NCU_METRICS_SIZE],
                   const char *words[NCU_WORDS]);

/* A kernel of this name, or of one that it is part of, comes before those of each case. */
#define NCU_MARK "kernel_gate_case_begins"

/* Reads what it wrote of so many cases, which nobody vouches for; of those that were not reached n
 * is 0. GATE_ENVIRONMENT: it says that it may not, or failed, and the error is what it says;
 * GATE_IO: it is no such table. */
enum gate_status ncu_read(const char *text, size_t len, struct ncu_table *cases, size_t n_cases,
                          struct gate_error *err);

#endif
