/*
 * best_write.h: the stored bests as the text of a file that is read and reviewed: one line a case,
 * a run of a trend, or a change.
 */
#ifndef GATE_BEST_BEST_WRITE_H
#define GATE_BEST_BEST_WRITE_H

#include <cjson/cJSON.h>

#include "gate/base/buf.h"

/* Appends a document that best.schema.json describes. */
void best_write(const cJSON *document, struct buf *out);

#endif
