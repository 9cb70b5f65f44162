/* SPDX-License-Identifier: Apache-2.0 */
/*
 * findings.h: what is known of the commits of a search, kept in its journal: a line each.
 */
#ifndef GATE_BISECT_FINDINGS_H
#define GATE_BISECT_FINDINGS_H

#include "gate/base/journal.h"
#include "gate/bisect/commits.h"
#include "gate/bisect/search.h"

/* What is known of a commit. */
struct finding {
    enum search_state state;
    char code[65];    /* of its library's machine code, or of the file; "": not built */
    double log_ratio; /* to the good commit; NaN: not measured */
    char reason[300];
};

/* As journal_open(); fills `findings`, one for each commit. */
enum gate_status findings_open(const char *path, const char *about, bool restart,
                               const struct commits *commits, struct journal *out,
                               struct finding *findings, struct gate_error *err);
enum gate_status findings_put(struct journal *j, const char *commit, const struct finding *f,
                              struct gate_error *err);

#endif
