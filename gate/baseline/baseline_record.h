/* SPDX-License-Identifier: Apache-2.0 */
/*
 * baseline_record.h: a record, and a change, as a file of baselines has it and as the program has
 * it. Texts stay whose they are.
 */
#ifndef GATE_BASELINE_BASELINE_RECORD_H
#define GATE_BASELINE_BASELINE_RECORD_H

#include "gate/baseline/baseline.h"
#include "gate/baseline/baseline_file.h"

struct baseline_entry record_read(const struct file_entry *e);
struct baseline_change record_read_change(const struct file_change *c);

/* Rounded, as people review it. */
struct file_entry record_write(const struct baseline_entry *e);
struct file_change record_write_change(const struct baseline_change *c);

#endif
