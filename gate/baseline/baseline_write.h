/* SPDX-License-Identifier: Apache-2.0 */
/*
 * baseline_write.h: the stored baselines as the text of a file that is read and reviewed: one line
 * a case, a run of a trend, or a change.
 */
#ifndef GATE_BASELINE_BASELINE_WRITE_H
#define GATE_BASELINE_BASELINE_WRITE_H

#include <cjson/cJSON.h>

#include "gate/base/buf.h"

/* Appends a document that baseline.schema.json describes. */
void baseline_write(const cJSON *document, struct buf *out);

#endif
