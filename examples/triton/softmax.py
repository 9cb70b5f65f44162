# SPDX-License-Identifier: Apache-2.0
"""Softmax of rows in Triton. `bundle.py triton softmax.py softmax.kgb` makes a library of it."""
import triton
import triton.language as tl


@triton.jit
def softmax(x, y, x_stride, y_stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < n
    values = tl.load(x + row * x_stride + columns, mask=inside, other=-float("inf"))
    values = values.to(tl.float32)
    powers = tl.exp(values - tl.max(values, axis=0))
    result = powers / tl.sum(powers, axis=0)
    tl.store(y + row * y_stride + columns, result.to(y.dtype.element_ty), mask=inside)


def variant(dtype, block, num_warps):
    return {"kernel": softmax, "op": "softmax", "name": f"softmax_{dtype}_{block}",
            "dtypes": [dtype], "when": [f"n <= {block}"], "grid": ["m"],
            "arguments": {"x": "in0", "y": "out0", "x_stride": "in0_stride0",
                          "y_stride": "out0_stride0", "n": "n"},
            "constants": {"BLOCK": block}, "num_warps": num_warps}


# The first one that serves a problem runs. Rows of multiples of 16 are loaded 16 bytes at once.
BUNDLE = []
for element in ("fp16", "fp32"):
    for size, warps in ((1024, 4), (4096, 8), (16384, 16)):
        plain = variant(element, size, warps)
        BUNDLE += [dict(plain, name=plain["name"] + "_by_16",
                        divisible=["n", "x_stride", "y_stride"]), plain]
