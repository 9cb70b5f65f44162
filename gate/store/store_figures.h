/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_figures.h: what follows from the parts of a case together.
 *
 * A timing counts only if its arm passed verification in this run, or another tool measured it, and
 * a candidate's only if its case is not wrong. The baseline that is measured beside the candidate
 * is neither candidate nor provider: it is the line that both are compared with.
 */
#ifndef GATE_STORE_STORE_FIGURES_H
#define GATE_STORE_STORE_FIGURES_H

#include "gate/document/document.h"

struct store_figures {
    const struct document_arm *candidate; /* the first; NULL: none that counts */
    double baseline_p50_ns;  /* as measured in this run, else as on record; NAN: neither */
    double control_ns;       /* median over the processes; 0: not known */
    const char *peer;        /* the provider that is hardest to beat; "": none */
    double peer_ratio;       /* the candidate's p50 over its */
    double peer_lo, peer_hi; /* its interval; 0: it is not from pairs */
};

bool store_arm_counts(const struct document_case *c, const struct document_arm *arm);
void store_figures_read(const struct document_case *c, struct store_figures *out);

#endif
