/* SPDX-License-Identifier: Apache-2.0 */
/*
 * put_cubin.c: writes a shared object with two kernels for sm_90, "one" and "two".
 *
 *     put_cubin FILE CODE
 *
 * CODE are the bytes of "one", which are no instructions.
 */
#include <stdio.h>

#include "gate/base/file.h"
#include "tests/unit/cubin_file.h"

int main(int argc, char **argv)
{
    struct cubin c = cubin_plain;
    struct buf file;
    struct gate_error err = {0};
    if (argc != 3) {
        fprintf(stderr, "usage: put_cubin FILE CODE\n");
        return GATE_USAGE;
    }
    c.first = argv[2];
    cubin_put_library(&file, &c, 1);
    enum gate_status status = file_write_atomic(argv[1], file.data, file.len, &err);
    buf_release(&file);
    if (status)
        fprintf(stderr, "%s\n", err.message);
    return (int)status;
}
