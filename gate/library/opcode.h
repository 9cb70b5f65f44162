/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opcode.h: what the instructions of a GPU do, in words for a report.
 *
 * The names are those of nvdisasm (CUDA Binary Utilities, "Instruction Set Reference").
 */
#ifndef GATE_LIBRARY_OPCODE_H
#define GATE_LIBRARY_OPCODE_H

#include <stdbool.h>

/* "stores a spilled register or a local array" for STL; NULL: an opcode that needs no words. */
const char *opcode_meaning(const char *opcode);

/* What makes up a kernel's time: arithmetic and its tensor cores, access to memory, waiting. */
bool opcode_is_work(const char *opcode);

#endif
