/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.h: what earlier runs found and need not be found again, in <cache>/memory/found.json.
 *
 * An entry says "this library was right on this problem", "the vendors' kernels took so long beside
 * it" or "this device reaches these rates". Its key is a hash of all that it depends on.
 *
 * Who can forge it? Kernels run in workers, as the same user, so a library could write to the file.
 * So it is read before the first worker starts, one run holds it until all its workers and what
 * they started are gone, and a file that changed meanwhile is thrown away. A library is known by
 * the hash that is computed here, before it is loaded, and never by what a worker says. It is
 * assumed that nothing else runs as this user that may lie: no job of somebody who is not trusted,
 * no process that outlives a run which was killed, no program that a library installed. docs/ci.md
 * says so.
 */
#ifndef GATE_RUN_MEMORY_H
#define GATE_RUN_MEMORY_H

#include <stdbool.h>

#include "gate/document/document.h"

struct memory;

struct memory_entry {
    const char *key;             /* SHA-256 of all that it depends on */
    const char *library_sha256;  /* that it is about; NULL: none */
    const char *run_uuid, *seed; /* of the run that found it */
    const char **fingerprints;   /* of the candidate's outputs with that seed */
    size_t n_fingerprints;
    bool has_ceilings;
    struct document_ceilings ceilings;
    struct document_arm *arms;
    size_t n_arms;
};

/*
 * Reads the memory for a run of `library` and holds it. NULL, and why on standard error: another
 * run holds it, it cannot be read, or a hash of the library would not tell
 * all of its code, since it loads others that do not come with the system.
 */
struct memory *memory_open(const char *library);

/* Writes what was put or forgotten, if `keep`, and lets go of it. No worker may be alive. NULL is
 * fine. */
void memory_close(struct memory *m, bool keep);

#endif
