/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/right_sums.h"

#include <stdlib.h>

#include "gate/device/device.h"
#include "gate/verify/verify_compare.h"
#include "kernels/ops/rows.h"
#include "tests/unit/filled.h"

#define PART_FACTOR 3 /* limits, for rows and tiles: verify_compare.c */

double right_share(const struct kg_problem *p, enum probe probe, right_kernel *kernel,
                   const struct way *w, uint64_t seed, char *text, size_t size)
{
    struct image image = image_filled(p, probe, seed);
    double *reference[KG_MAX_TENSORS], share = 0;
    float *out[KG_MAX_TENSORS];
    const struct problem_tensor *about = &image.about[image.n_in];
    for (unsigned i = 0; i < image.n_out; i++) {
        const size_t n = (size_t)problem_tensor_elements(&about[i]);
        reference[i] = calloc(n, sizeof *reference[i]);
        out[i] = calloc(n, sizeof *out[i]);
        assert_true(reference[i] && out[i]);
    }
    if (seed % 2)
        probe_change(probe, p, image.view, ~seed);
    assert_int_equal(rows_reference(p, image.view, reference, 1), KG_OK);
    kernel(p, w, image.view, out);
    for (unsigned i = 0; i < image.n_out; i++) {
        double norm = 0;
        int64_t finite = 0;
        struct look look;
        for (int64_t at = 0; at < problem_tensor_elements(&about[i]); at++) {
            kg_store_float(out[i], about[i].dtype, at, out[i][at]);
            norm += isfinite(reference[i][at]) ? reference[i][at] * reference[i][at] : 0;
            finite += isfinite(reference[i][at]);
        }
        const struct kg_tensor got = problem_dense(&about[i], out[i]);
        compare_start(
            &look, p, &about[i], probe,
            fmax(compare_least_rms(probe, p, &about[i]), finite ? sqrt(norm / (double)finite) : 0));
        look.unbiased = probe == PROBE_NORMAL && !op_of(p)->rounds_inside;
        host_parts(&got, reference[i], &look.rule, &look.found);
        const double parts = fmax(look.found.worst_row, look.found.worst_tile) / PART_FACTOR;
        share = fmax(share, fmax(compare_whole_error(&look), parts) / look.limit);
        if (!compare_is_right(&look, text, size))
            share = fmax(share, 1.001);
        else if (look.rule.exact)
            share = fmin(share, 1);
        free(reference[i]);
        free(out[i]);
    }
    image_release(&image);
    return share;
}

void right_check(const struct right_ways *r, const char *op, const struct dtype *dtype)
{
    const unsigned seeds = getenv("KERNEL_GATE_LONG") ? 1000 : r->seeds;
    for (int probe = 0; probe < PROBES; probe++) {
        uint64_t state = (uint64_t)probe;
        unsigned checked = 0;
        double largest = 0;
        for (uint64_t seed = 0; checked < seeds && seed < 64 * seeds; seed++) {
            const struct kg_problem p = r->draw(op, dtype, &state);
            char text[500] = "", id[PROBLEM_ID_MAX];
            if (!probe_applies((enum probe)probe, &p))
                continue;
            const unsigned way = checked++ % r->n_ways;
            const double share = right_share(&p, (enum probe)probe, r->kernel, &r->ways[way], seed,
                                             text, sizeof text);
            problem_id(&p, id);
            if (!(share <= 1))
                fail_msg("kernel %u, probe '%s', seed %u, %s: %s", way,
                         probe_name((enum probe)probe), (unsigned)seed, id, text);
            largest = fmax(largest, share);
        }
        assert_true(checked == 0 || (checked == seeds && largest >= r->least_share));
    }
}
