/* SPDX-License-Identifier: Apache-2.0 */
/*
 * needs.h: does the hash of a library's file tell all of its code?
 */
#ifndef GATE_LIBRARY_NEEDS_H
#define GATE_LIBRARY_NEEDS_H

#include <stdbool.h>
#include <stddef.h>

/* Are the libraries that the loader brings with it (DT_NEEDED) those of the system alone: of C, of
 * C++, and of the GPU's driver? Else the first other one is in `other`, and so is what it says of a
 * file that is not one for the loader. What a library opens by itself is not seen. */
bool needs_only_system(const char *path, char *other, size_t size);

#endif
