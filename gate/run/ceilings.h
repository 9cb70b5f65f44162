/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ceilings.h: what the device reaches at best in this run (gate/worker/ceilings.h), by a worker of
 * its own after the verdicts, and how much of it each case reaches.
 */
#ifndef GATE_RUN_CEILINGS_H
#define GATE_RUN_CEILINGS_H

#include "gate/run/supervisor.h"

/* What a document has of it. */
struct run_ceilings {
    bool asked;
    struct document_ceilings document;
    char message[400];
};

/* Only of a GPU; what cannot be had is said in the document. No other worker may be at work. */
void run_ceilings_measure(const struct supervisor_options *options,
                          const struct document_device *device, struct run_ceilings *out);

/* The share of these ceilings that a case of this dtype reaches; NaN: not known. Memory is held to
 * the faster of reading and copying, and fp32 to three TF32 products where that is faster. */
double run_ceilings_share(const struct document_ceilings *c, const char *dtype,
                          const struct document_timing *timing);

#endif
