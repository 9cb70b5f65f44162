/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge.h: the parts of a suite, measured apart (shard.h), as one run.
 */
#ifndef GATE_RUN_MERGE_H
#define GATE_RUN_MERGE_H

#include "gate/base/buf.h"
#include "gate/document/document.h"

/*
 * Appends the document of the whole run. The same parts give the same document, uuid and all.
 *
 * GATE_USAGE: a document is no part, or they are parts of different suites, commits, libraries or
 * policies. GATE_NO_VERDICT: a part is missing, or there twice. GATE_ENVIRONMENT: they were
 * measured on different device models, in different epochs or by different contracts.
 */
enum gate_status merge_documents(const struct document *parts, size_t n, struct buf *out,
                                 struct gate_error *err);

#endif
