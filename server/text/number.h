/* SPDX-License-Identifier: Apache-2.0 */
/*
 * number.h: numbers as JSON writes them.
 */
#ifndef SERVER_TEXT_NUMBER_H
#define SERVER_TEXT_NUMBER_H

#include <stddef.h>
#include <stdint.h>

#define NUMBER_MAX 32 /* the longest, with room for a NUL that is not written */

/* Each returns how many bytes it wrote. */
size_t number_integer(int64_t value, char out[NUMBER_MAX]);
/* Nine significant digits; "null" when it is not finite. */
size_t number_real(double value, char out[NUMBER_MAX]);

#endif
