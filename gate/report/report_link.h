/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_link.h: addresses of the dashboard's pages; `link` is its own.
 */
#ifndef GATE_REPORT_REPORT_LINK_H
#define GATE_REPORT_REPORT_LINK_H

#include "gate/base/buf.h"

void report_link_run(const char *link, const char *uuid, struct buf *out);
void report_link_case(const char *link, const char *id, const char *device_model, struct buf *out);

#endif
