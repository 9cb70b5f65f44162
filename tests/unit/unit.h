/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit.h: cmocka with the headers that it asks for, how a test is written, and files for tests.
 *
 *     TEST(empty_files_are_refused)
 *     {
 *         assert_int_equal(count_entries("."), 0);
 *     }
 *
 * unit.c has the main() of a test program: it runs the tests of the file in their order.
 */
#ifndef TESTS_UNIT_UNIT_H
#define TESTS_UNIT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define TEST(name) TEST_WITHIN(name, NULL, NULL)

/* A test with a set-up before it and a tear-down after it; `state` is for what they share. */
#define TEST_WITHIN(name, set_up, tear_down)                                                       \
    static void test_##name(void **state);                                                         \
    __attribute__((constructor)) static void unit_lists_##name(void)                               \
    {                                                                                              \
        unit_list(__LINE__, (struct CMUnitTest){#name, test_##name, set_up, tear_down, NULL});     \
    }                                                                                              \
    static void test_##name(__attribute__((unused)) void **state)

/* A set-up before all tests of a file and a tear-down after them. */
#define TESTS_WITHIN(set_up, tear_down)                                                            \
    __attribute__((constructor)) static void list_group(void)                                      \
    {                                                                                              \
        unit_group(set_up, tear_down);                                                             \
    }

void unit_list(int line, struct CMUnitTest test);
void unit_group(CMFixtureFunction set_up, CMFixtureFunction tear_down);

/* A folder for a test or a group: made and entered, and removed with all that is in it. */
extern char unit_folder[256];
int unit_enter_folder(void **state);
int unit_leave_folder(void **state);

/* What cannot be done fails the test. */
void write_text(const char *path, const char *text);
void assert_content(const char *path, const char *expected);
int count_entries(const char *folder);

#endif
