# SPDX-License-Identifier: Apache-2.0
"""GEMM in Triton. `bundle.py triton matmul.py matmul.kgb` makes a library of it."""
import triton
import triton.language as tl


@triton.jit
def matmul(a, b, c, m, n, k, a_stride, b_stride, c_stride,
           M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, GROUP: tl.constexpr):
    # Blocks of a group share rows of A and columns of B in the L2.
    block, rows, columns = tl.program_id(0), tl.cdiv(m, M), tl.cdiv(n, N)
    group = block // (GROUP * columns)
    height = min(rows - group * GROUP, GROUP)
    row = group * GROUP + block % (GROUP * columns) % height
    column = block % (GROUP * columns) // height
    i = (row * M + tl.arange(0, M)).to(tl.int64)
    j = (column * N + tl.arange(0, N)).to(tl.int64)
    x = tl.arange(0, K)
    sums = tl.zeros((M, N), dtype=tl.float32)
    for start in range(0, k, K):
        left = tl.load(a + i[:, None] * a_stride + (start + x)[None, :],
                       mask=(i[:, None] < m) & ((start + x)[None, :] < k), other=0)
        right = tl.load(b + (start + x).to(tl.int64)[:, None] * b_stride + j[None, :],
                        mask=((start + x)[:, None] < k) & (j[None, :] < n), other=0)
        sums = tl.dot(left, right, sums)
    tl.store(c + i[:, None] * c_stride + j[None, :], sums.to(c.dtype.element_ty),
             mask=(i[:, None] < m) & (j[None, :] < n))


def variant(m, n, k, num_warps, num_stages):
    return {"kernel": matmul, "op": "gemm", "name": f"matmul_{m}x{n}x{k}", "dtypes": ["fp16"],
            "grid": [f"((m + {m - 1}) / {m}) * ((n + {n - 1}) / {n})"],
            "arguments": {"a": "in0", "b": "in1", "c": "out0", "m": "m", "n": "n", "k": "k",
                          "a_stride": "in0_stride0", "b_stride": "in1_stride0",
                          "c_stride": "out0_stride0"},
            "constants": {"M": m, "N": n, "K": k, "GROUP": 8},
            "num_warps": num_warps, "num_stages": num_stages}


# The first one that serves a problem runs: large tiles where there are enough of them, and where
# rows begin at multiples of 16 elements; the last one serves all.
BY_16 = {"divisible": ["n", "k", "a_stride", "b_stride", "c_stride"]}
BUNDLE = [dict(variant(128, 256, 64, 8, 3), **BY_16, when=["m * n >= 2048 * 2048"]),
          dict(variant(64, 64, 64, 4, 4), **BY_16),
          variant(64, 64, 32, 4, 2)]
