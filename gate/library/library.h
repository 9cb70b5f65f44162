/* SPDX-License-Identifier: Apache-2.0 */
/*
 * library.h: opening a kernel library and distrusting it.
 *
 * Used by workers. The table that a library returns is checked once, on opening: everything else
 * in the gate may then rely on it. Kernels run in this process; what they do to it is the
 * supervisor's business.
 */
#ifndef GATE_LIBRARY_LIBRARY_H
#define GATE_LIBRARY_LIBRARY_H

#include <stdbool.h>

#include "kernels/kernel.h"
#include "gate/base/error.h"
#include "gate/library/machine_code.h"
#include "gate/library/piece.h"

struct bundle;

struct library {
    void *handle;          /* of dlopen(); NULL: it is a bundle */
    struct bundle *bundle; /* NULL: it is none */
    const struct kg_library *table;
    char file[256]; /* name without folder */
    char sha256[65];
    struct piece piece;        /* read if it has files that belong to it */
    struct machine_code *code; /* NULL: of no GPU */
    int copy;                  /* descriptor of the copy that was loaded; -1: none */
    bool started;              /* open() has succeeded, so that close() may be called */
};

/*
 * Opens `path` for devices of `kind`. `own_copy`: load a copy in memory, so that a file that is
 * loaded already is loaded once more, with state of its own; it cannot find libraries beside it by
 * $ORIGIN then. GATE_IO: no such file. GATE_WRONG: neither a shared
 * object nor a bundle, no kg_library symbol, another ABI version, a table that breaks the rules of
 * kernel.h, a manifest that breaks its rules.
 */
enum gate_status library_open(const char *path, uint32_t kind, bool own_copy, struct library *out,
                              struct gate_error *err);

/* Calls the library's open() with its files; GATE_WRONG, with its status. */
enum gate_status library_start(struct library *lib, const struct kg_device *device,
                               struct gate_error *err);

/* Calls close() of a library that was started, then unloads. Nothing for one that was never opened.
 */
void library_close(struct library *lib);

/* supports() and prepare() of a kernel that has them, or of a bundle's; why the latter failed. */
bool library_serves(const struct kg_kernel *k, const struct kg_problem *p,
                    const struct kg_device *device);
enum kg_status library_prepare(const struct kg_kernel *k, const struct kg_problem *p,
                               const struct kg_device *device, void **plan);
const char *library_fault(const struct kg_kernel *k); /* "": not known */

/* The kernel named, or with name = NULL the first that supports the problem; NULL: none. */
const struct kg_kernel *library_choose(const struct library *lib, const struct kg_problem *p,
                                       const struct kg_device *device, const char *name);

const char *library_status_name(enum kg_status status);

#endif
