/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_suite.c: a file of cases, kernels/suites/NAME.json. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/edits.h"
#include "gate/cases/suite.h"

static const char good_text[] =
    "{\"schema\":\"gate-suite/1\",\"name\":\"t\",\"cases\":["
    "{\"op\":\"gemm\",\"dtype\":\"fp16\",\"m\":1,\"n\":2,\"k\":1,\"inputs\":{\"a\":[1]},"
    "\"expect\":{\"c\":[1,2]}},"
    "{\"op\":\"attention_fwd\",\"dtype\":\"bf16\",\"b\":1,\"h\":32,\"kv_heads\":8,\"sq\":1,"
    "\"s\":2048,\"d\":128,\"causal\":true},"
    "{\"op\":\"linear_relu_bwd\",\"dtype\":\"fp32\",\"m\":256,\"k\":256,\"n\":512},"
    "{\"op\":\"gemv\",\"dtype\":\"fp32\",\"m\":2,\"k\":2,\"threshold\":0.05}]}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static cJSON *good;
    static int fd = -1;
    static char path[64];
    struct gate_error err = {0};
    struct suite suite = {0};
    struct buf text;
    if (!good) {
        good = cJSON_Parse(good_text);
        fd = memfd_create("suite", MFD_CLOEXEC);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        fuzz_expect(good && fd >= 0, "a file in memory", path);
    }
    buf_init(&text, (size_t)1 << 20);
    edits_text(good, data, size, &text);
    fuzz_expect(ftruncate(fd, 0) == 0 && pwrite(fd, text.data, text.len, 0) == (ssize_t)text.len,
                "a file in memory", path);
    if (suite_load(path, &suite, &err) == GATE_OK) {
        fuzz_expect(suite.file.name != NULL, "a name", "none");
        for (size_t i = 0; i < suite.n_cases; i++) {
            const struct kg_problem *p = &suite.cases[i].problem;
            fuzz_expect(strlen(suite.cases[i].id) < PROBLEM_ID_MAX, "an id that fits",
                        suite.cases[i].id);
            fuzz_expect(problem_flops(p) >= 0 && problem_bytes(p) > 0, "work to do",
                        suite.cases[i].id);
        }
        suite_filter(&suite, "gemm*");
        suite_free(&suite);
    } else {
        fuzz_expect(err.message[0] != '\0', "a reason", "none");
    }
    buf_release(&text);
    return 0;
}
