# SPDX-License-Identifier: Apache-2.0
"""What is replaced in the kernel of examples/block_scales, by what."""

SCALE = "scale_of(s, j, b)"
AT = "const int64_t at = row * s->stride[0] + block;"
POWER = "ldexpf(1, code - 127)"

WRONG = {
    "halves_swapped": ("4 * (l % 2)", "4 * (1 - l % 2)"),
    "one_scale_for_all": (SCALE, "scale_of(s, 0, 0)"),
    "one_scale_for_a_row": (SCALE, "scale_of(s, j, 0)"),
    "scale_of_the_next_block": (SCALE, "scale_of(s, j, b + 1 < k / BLOCK ? b + 1 : b)"),
    "scales_transposed": (AT, "const int64_t t = block * s->shape[0] + row;\n"
                              "    const int64_t at = t / s->shape[1] * s->stride[0] + "
                              "t % s->shape[1];"),
    "int4_without_a_sign": ("(code ^ 8) - 8", "code"),
    "int4_with_a_sign_bit": ("(code ^ 8) - 8", "code & 8 ? -(code & 7) : code"),
    "int4_without_its_least": ("(float)((code ^ 8) - 8)", "fmaxf((float)((code ^ 8) - 8), -7)"),
    "e2m1_without_its_largest": ("4, 6}", "4, 4}"),
    "e2m1_negative_zero_is_a_number": ("code & 8 ? -e2m1", "code == 8 ? -0.25f : code & 8 ? -e2m1"),
    "nan_scale_is_a_power": (f"code == 255 ? NAN : {POWER}", POWER),
    "nan_scale_is_0": ("255 ? NAN", "255 ? 0"),
    "scales_up_to_2_15": (POWER, "ldexpf(1, code > 142 ? 15 : code - 127)"),
    "scales_from_2_14_on": (POWER, "ldexpf(1, code < 113 ? -14 : code - 127)"),
    "scales_in_fp16": ("return ((const float *)s->data)[at]",
                       "return (float)(_Float16)((const float *)s->data)[at]"),
    "bias_of_e8m0_off_by_one": ("code - 127", "code - 126"),
    "stride_of_numbers_ignored": ("j * q->stride[0] / 2", "j * k / 2"),
    "stride_of_scales_ignored": ("row * s->stride[0]", "row * s->shape[1]"),
    "no_fifth_block": ("b < k / BLOCK; b++", "b < k / BLOCK && b != 4; b++"),
    "scales_kept": ("    for (int64_t i = 0; i < m; i++)\n",
                    "    static float kept;\n    static const void *of;\n"
                    "    kept = of == s->data ? kept : scale_of(s, 0, 0);\n    of = s->data;\n"
                    "    for (int64_t i = 0; i < m; i++)\n", SCALE, f"(j + b ? {SCALE} : kept)"),
}

RIGHT = {
    "in_double": ("float sum", "double sum", "store(y, i * y->stride[0] + j, sum)",
                  "store(y, i * y->stride[0] + j, (float)sum)"),
    "from_the_last_block": ("b = 0; b < k / BLOCK; b++", "b = k / BLOCK; b-- > 0;"),
    "scales_before_it_sums": ("numbers, l);\n", f"numbers, l) * {SCALE};\n", f"part * {SCALE}",
                              "part"),
    "another_nan": ("0x7fff;\n    else", "0xffc1;\n    else"),
}
