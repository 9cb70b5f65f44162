/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flow.h: which instruction follows which, as a listing of nvdisasm says it by labels.
 */
#ifndef GATE_DIFF_FLOW_H
#define GATE_DIFF_FLOW_H

#include "gate/diff/listing.h"

/* The label at the beginning of a line, ".L_x_3" of ".L_x_3:", is of the next instruction of `l`.*/
void flow_add_label(struct listing *l, const char *line);

/* Fills in the steps of a listing whose lines are there; false: out of memory. */
bool flow_follow(struct listing *l);

#endif
