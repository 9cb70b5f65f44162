/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xml.h: text in XML, between tags or in a quoted attribute.
 */
#ifndef SERVER_TEXT_XML_H
#define SERVER_TEXT_XML_H

#include "gate/base/buf.h"

/* UTF-8; a character that XML 1.0 cannot hold becomes U+FFFD. */
void xml_text(struct buf *out, const char *text);

#endif
