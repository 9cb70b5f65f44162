# SPDX-License-Identifier: Apache-2.0
"""A kernel that is slower on the host device, as `gate run` measures it.

runs alone: a busy host gives no verdict
"""
import unittest

from harness import SANITIZED, Smoke, mutant


@unittest.skipIf(SANITIZED, "it asks how fast code is")
class Slow(Smoke):
    def test_three_times_as_slow_is_a_regression(self):
        """Where other work comes or goes meanwhile, the control moves and the gate rightly says so
        (4, or 3): then once more. A pass it must never be."""
        self.run_smoke("--accept-new", cases="gemm/fp32/m96-*")
        for _ in range(3):
            code, document, errors = self.run_smoke("--library", mutant("host_slow"),
                                                    cases="gemm/fp32/m96-*")
            self.assertIn(code, (1, 3, 4), errors)
            if code == 1:
                break
        if code != 1:
            why = document["cases"][0]["reason"]
            self.skipTest(f"this machine is too busy for a verdict: {why}")
        self.assertGreater(document["cases"][0]["ratio"]["lo"], 1.02)

    def test_a_call_that_takes_longer_on_the_host(self):
        """1.5 times: below a threshold of 100 %, above one of 20 % of the host's time. Whether
        there is a verdict of it goes by the machine; a pass it must never be."""
        self.run_smoke("--accept-new", cases="gemm/fp32/m96-*")
        code, document, errors = self.run_smoke(
            "--library", mutant("host_slow"), "--threshold", "100%", "--host-threshold", "20%",
            cases="gemm/fp32/m96-*", GATE_SLOW="1.5")
        self.assertIn(code, (1, 3, 4), errors)
        case = document["cases"][0]
        if code != 1:
            self.skipTest(f"this machine is too busy for a verdict: {case['reason']}")
        self.assertGreater(case["ratio_calls"]["value"], 1.2)
        self.assertIn("launch() on the host: ", case["reason"])


if __name__ == "__main__":
    unittest.main()
