# SPDX-License-Identifier: Apache-2.0
"""The nightly tier calls the host library right: one small case of each op and dtype, and a larger
one of attention where the draw is another than that of all runs.

runs long: the tier takes seconds of processor time for a case.
"""
import concurrent.futures
import json
import os
import unittest

from harness import HOST, Gate, write_file

PRODUCT = {"m": 24, "n": 20, "k": 40}
SIZES = {"gemm": PRODUCT, "gemv": {"m": 33, "k": 70}, "linear_relu": PRODUCT,
         "linear_relu_bwd": PRODUCT, "batched_gemm": {"b": 2, "m": 9, "n": 12, "k": 17},
         "grouped_gemm": {"g": 3, "m": 24, "n": 12, "k": 17},
         "rmsnorm": {"m": 9, "n": 40}, "gemm_fp8": PRODUCT,
         "gemm_fp8_block": {"m": 20, "n": 24, "k": 144},
         "attention_fwd": {"b": 1, "h": 2, "kv_heads": 1, "sq": 16, "s": 32, "d": 64},
         "attention_bwd": {"b": 1, "h": 2, "kv_heads": 1, "sq": 8, "s": 16, "d": 32},
         "attention_paged": {"b": 2, "h": 2, "kv_heads": 1, "sq": 2, "t": 3, "blocks": 7,
                             "page": 16, "d": 32}}
# In which a right kernel was once called wrong.
LARGER = {("attention_fwd", "fp32"): {"b": 1, "h": 4, "kv_heads": 2, "sq": 64, "s": 256, "d": 128}}
DTYPES = ("fp16", "bf16", "fp32", "tf32")
# Others are drawn beside it: a case of attention_bwd takes half a minute of processor time, one of
# attention_paged a whole one.
OWN_DTYPES = {"gemm_fp8": ("e4m3",), "gemm_fp8_block": ("e4m3",), "attention_bwd": ("fp32",),
              "rmsnorm": ("fp16", "fp32"), "batched_gemm": ("bf16", "tf32"),
              "grouped_gemm": ("fp16",), "attention_paged": ("fp32",)}


class Nightly(Gate):
    def looked(self, suite, tier, dtype):
        done = self.gate("verify", "--device", "host", "--suite", suite, "--tier", tier, "--json",
                         "--library", HOST, "--timeout", "600", GATE_LOCKS=self.path(dtype))
        document = json.loads(done.stdout)
        (case,) = document["cases"]
        self.assertEqual((done.returncode, case["outcome"], document["tier"]), (0, "right", tier),
                         (document["seed"], case, done.stderr))
        return case

    def verify_case(self, case):
        suite = self.path(f"{case['dtype']}.json")
        os.mkdir(self.path(case["dtype"]))  # two processes that share no lock
        write_file(suite, json.dumps({"schema": "gate-suite/1", "name": "nightly",
                                      "cases": [case]}))
        more, fewer = (self.looked(suite, tier, case["dtype"])["arms"][0]["verify"]["checks"]
                       for tier in ("nightly", "commit"))
        self.assertGreater(more, 10 * fewer)

    def verify(self, op):
        larger = LARGER if "KERNEL_GATE_DRAW" in os.environ else {}
        with concurrent.futures.ThreadPoolExecutor(2) as pool:  # a processor each
            list(pool.map(self.verify_case,
                          [{"op": op, "dtype": dtype, **larger.get((op, dtype), SIZES[op])}
                           for dtype in OWN_DTYPES.get(op, DTYPES)]))


for _op in SIZES:
    setattr(Nightly, f"test_{_op}", lambda self, op=_op: self.verify(op))


if __name__ == "__main__":
    unittest.main()
