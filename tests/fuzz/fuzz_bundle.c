/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_bundle.c: the manifest of a bundle, and the same bytes as its machine code. */
#include <string.h>

#include "tests/fuzz/edits.h"
#include "gate/library/library.h"
#include "gate/library/machine_code.h"

static const char good_text[] =
    "{\"schema\":\"gate-bundle/1\",\"provider\":\"mine\",\"version\":\"1\",\"kernels\":[{"
    "\"op\":\"rmsnorm\",\"name\":\"one\",\"dtypes\":[\"fp16\"],\"when\":[\"n % 16 == 0\"],"
    "\"workspace\":\"4 * m\",\"nondeterministic\":true,\"launches\":[{\"code\":\"a.cubin\","
    "\"entry\":\"one\",\"grid\":[\"m\"],\"cluster\":[\"1\"],\"block\":[\"128\"],\"shared\":"
    "\"2 * n\",\"arguments\":[{\"type\":\"pointer\",\"value\":\"in0\"},"
    "{\"type\":\"i64\",\"value\":\"in0_stride0\"},{\"type\":\"f32\",\"value\":\"eps\"}]}]}]}";

/* Each launch has a file of its own. */
static void use(struct piece *piece, const uint8_t *data, size_t size)
{
    struct gate_error err = {0};
    struct bundle *bundle;
    const struct kg_library *table;
    for (size_t i = 0; i < piece->manifest->n_kernels; i++) {
        const struct manifest_kernel *k = &piece->manifest->kernels[i];
        for (size_t j = 0; j < k->n_launches && piece->n_files < PIECE_FILES_MAX; j++)
            piece->files[piece->n_files++] = (struct kg_file){k->launches[j].code, data, size};
        if (k->n_launches && piece->n_files == PIECE_FILES_MAX)
            return;
    }
    if (bundle_open(piece, &bundle, &table, &err) == GATE_OK)
        bundle_close(bundle);
    else
        fuzz_expect(!strncmp(err.message, "manifest:", 9), "a place", err.message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static cJSON *good;
    struct gate_error err = {0};
    struct buf text;
    good = good ? good : cJSON_Parse(good_text);
    buf_init(&text, (size_t)1 << 20);
    edits_text(good, data, size, &text);
    struct piece piece = {.bytes = text, .object_bytes = text.len};
    if (manifest_parse((struct bytes){(const unsigned char *)text.data, text.len}, &piece.manifest,
                       &err) == GATE_OK)
        use(&piece, data, size);
    else
        fuzz_expect(!strncmp(err.message, "manifest:", 9), "a place", err.message);
    manifest_free(piece.manifest);
    buf_release(&text);
    return 0;
}
