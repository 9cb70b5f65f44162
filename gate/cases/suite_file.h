/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suite_file.h: what a suite's file may hold, as gate/formats/suite.schema.json publishes it.
 */
#ifndef GATE_CASES_SUITE_FILE_H
#define GATE_CASES_SUITE_FILE_H

#include "gate/document/fields.h"

extern const struct shape suite_file;

#endif
