/* SPDX-License-Identifier: Apache-2.0 */
/*
 * baseline_file.h: what a file of baselines may hold, as gate/formats/baseline.schema.json
 * publishes it.
 */
#ifndef GATE_BASELINE_BASELINE_FILE_H
#define GATE_BASELINE_BASELINE_FILE_H

#include "gate/document/fields.h"

extern const struct shape baseline_file;

#endif
