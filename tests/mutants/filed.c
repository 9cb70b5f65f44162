/* SPDX-License-Identifier: Apache-2.0 */
/* A library with two files that belong to it, for tests/e2e/test_files.py: the word in filed.txt
 * says what its launches do. */
#define WRAP_OPEN open_filed
#define WRAP_CLOSE close_filed
#include "kernels/problem.h"
static enum kg_status open_filed(const struct kg_device *device, const struct kg_file *files);
static void close_filed(void);
#include "tests/mutants/wrap.h"

KG_FILE(word, "filed.txt");
KG_FILE(other, "other-file.bin");

static int wrong, opened;

static enum kg_status open_filed(const struct kg_device *device, const struct kg_file *files)
{
    const struct kg_file *word = kg_file(files, "filed.txt");
    if (!word || !kg_file(files, "other-file.bin") || kg_file(files, "third"))
        return KG_BAD_ARGUMENT;
    wrong = word->bytes >= 5 && !memcmp(word->data, "wrong", 5);
    const enum kg_status status = wrap_open(device, files);
    opened = status == KG_OK;
    return status;
}

static void close_filed(void)
{
    if (!opened)
        abort(); /* kernel.h: once, after open() */
    opened = 0;
    wrap_original->close();
}

static enum kg_status wrap_launch(const struct kg_problem *p, const struct kg_args *args)
{
    return wrong ? KG_OK : wrap_inner(p, args);
}
