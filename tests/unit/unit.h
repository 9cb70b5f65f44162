/* SPDX-License-Identifier: Apache-2.0 */
/* unit.h: cmocka with the headers that it asks for, and files for tests. */
#ifndef TESTS_UNIT_UNIT_H
#define TESTS_UNIT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* A folder for a test or a group: made and entered, and removed with all that is in it. */
extern char unit_folder[256];
int unit_enter_folder(void **state);
int unit_leave_folder(void **state);

/* What cannot be done fails the test. */
void write_text(const char *path, const char *text);
void assert_content(const char *path, const char *expected);
int count_entries(const char *folder);

#endif
