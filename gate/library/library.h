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

/* ---- bundle.c: a bundle as a table of kernels, which the gate itself launches ----
 *
 * A kernel of the table is asked by the functions below where one of a shared object has supports()
 * and prepare(), which do not say whose they are: several bundles may be open. All else is as
 * kernel.h says. An op that is not known yet is none that its kernels serve.
 */

/* GATE_WRONG: "manifest:LINE:COLUMN: ..." what does not fit together. The piece, which has a
 * manifest, outlives the bundle. */
enum gate_status bundle_open(const struct piece *piece, struct bundle **out,
                             const struct kg_library **table, struct gate_error *err);
void bundle_close(struct bundle *b); /* NULL is fine */

/* Loads the machine code that this GPU can run. GATE_WRONG: it can run none; else as driver.h. */
enum gate_status bundle_start(struct bundle *b, const struct kg_device *device,
                              struct gate_error *err);

bool bundle_has(const struct kg_kernel *k); /* is it of a bundle? Then: */
bool bundle_serves(const struct kg_kernel *k, const struct kg_problem *p,
                   const struct kg_device *device);
enum kg_status bundle_prepare(const struct kg_kernel *k, const struct kg_problem *p,
                              const struct kg_device *device, void **plan);
const char *bundle_fault(const struct kg_kernel *k); /* why it did not; "": not known */

/* ---- driver.c: launches machine code by CUDA's driver ----
 *
 * It is asked for by name: no CUDA header or library is needed to build the gate. The device's
 * context is current already.
 */

struct driver_launch {
    void *function;
    unsigned grid[3], cluster[3], block[3];
    unsigned shared; /* dynamic bytes */
    void *stream;
    void **arguments; /* where each value lies */
};

/* GATE_ENVIRONMENT: there is no driver, or too old a one. */
enum gate_status driver_start(struct gate_error *err);

/* Of a cubin, which is loaded where *module is NULL. GATE_WRONG: it cannot be, or has none of this
 * name. */
enum gate_status driver_function(const void *cubin, void **module, const char *name,
                                 void **function, struct gate_error *err);
void driver_unload(void *module); /* NULL is fine */

/* Lets launches have so many dynamic bytes of shared memory, and such clusters. GATE_WRONG: *what
 * is refused, "shared" or "cluster". */
enum gate_status driver_allow(const struct driver_launch *l, const char **what,
                              struct gate_error *err);

/* False: the driver refuses. */
bool driver_launch(const struct driver_launch *l);

#endif
