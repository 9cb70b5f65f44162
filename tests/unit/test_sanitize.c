/* SPDX-License-Identifier: Apache-2.0 */
/* test_sanitize.c: logs of compute-sanitizer. */
#include <stdlib.h>
#include <string.h>

#include "gate/run/sanitize.h"
#include "tests/unit/unit.h"

static void read_log(const char *text, const char *patterns, struct sanitize_tool *tool)
{
    FILE *log = *text ? fmemopen((char *)text, strlen(text), "r") : fopen("/dev/null", "re");
    assert_non_null(log);
    assert_true(sanitize_read_log(log, patterns, tool));
    fclose(log);
}

TEST(reports_are_counted)
{
    static const char log[] = "========= COMPUTE-SANITIZER\n"
                              "kernel output\n"
                              "========= Invalid __shared__ read of size 2 bytes\n"
                              "=========     at one()+0x10\n"
                              "========= \n"
                              "========= Program hit cudaErrorLaunchFailure\n"
                              "=========     Saved host backtrace\n"
                              "=========\n"
                              "========= ERROR SUMMARY: 2 errors\n";
    struct sanitize_tool tool = {0};
    read_log(log, NULL, &tool);
    assert_int_equal(tool.errors, 2);
    assert_string_equal(tool.texts[0].text,
                        "Invalid __shared__ read of size 2 bytes; at one()+0x10");
    read_log(log, "# all of one()\none()+0x?0\n", &tool);
    assert_int_equal(tool.errors, 3);
    assert_int_equal(tool.allowed, 1);
    read_log("", NULL, &tool);
    read_log("=========", NULL, &tool);
    assert_int_equal(tool.errors, 3);
    read_log("========= ERROR SUMMARY: 9 errors\n"
             "========= ERROR SUMMARY: 7 errors were not printed. Use --print-limit\n",
             NULL, &tool);
    assert_int_equal(tool.errors, 4);
}

TEST(a_log_that_cannot_be_read)
{
    struct sanitize_tool tool = {0};
    FILE *folder = fopen("/", "re");
    assert_non_null(folder);
    assert_false(sanitize_read_log(folder, NULL, &tool));
    fclose(folder);
}

TEST(a_report_that_comes_again_is_kept_once)
{
    static const char log[] = "========= Race reported between Write access at one()+0x10\n"
                              "=========     and Read access at one()+0x20 [16 hazards]\n"
                              "========= Race reported between Write access at one()+0x10\n"
                              "=========     and Read access at one()+0x30 [16 hazards]\n"
                              "========= Race reported between Write access at one()+0x10\n"
                              "=========     and Read access at one()+0x20 [8 hazards]\n";
    static const char writes[] = "========= Invalid __global__ write of size 4 bytes\n"
                                 "=========     at one()+0x40\n"
                                 "=========     by thread (1,0,0) in block (0,0,0)\n"
                                 "=========     Address 0x7f00 is out of bounds\n"
                                 "========= Invalid __global__ write of size 4 bytes\n"
                                 "=========     at one()+0x40\n"
                                 "=========     by thread (2,0,0) in block (9,0,0)\n"
                                 "=========     Address 0x7f04 is out of bounds\n";
    struct sanitize_tool tool = {0};
    read_log(log, NULL, &tool);
    assert_int_equal(tool.errors, 3);
    assert_int_equal(tool.n_texts, 2);
    assert_int_equal(tool.texts[0].times, 2);
    assert_int_equal(tool.texts[1].times, 1);
    assert_non_null(strstr(tool.texts[1].text, "+0x30"));
    read_log(writes, NULL, &tool);
    assert_int_equal(tool.n_texts, 3);
    assert_int_equal(tool.texts[2].times, 2);
}
