/* SPDX-License-Identifier: Apache-2.0 */
/*
 * document_cut.h: one case out of a run document, as text.
 *
 * A document of thousands of cases takes a third of a second to parse, and nearly all of it would
 * be thrown away again.
 */
#ifndef SERVER_API_DOCUMENT_CUT_H
#define SERVER_API_DOCUMENT_CUT_H

#include <stdbool.h>
#include <stddef.h>

#include "gate/base/buf.h"

/*
 * Appends the document, which is valid JSON, without the cases of other ids. A case whose id cannot
 * be told without unescaping stays. False: no cases were found, or memory is short; parse the
 * whole.
 */
bool document_cut(const char *text, size_t len, const char *case_id, struct buf *out);

#endif
