# SPDX-License-Identifier: Apache-2.0
"""The ops of examples/ that have kernels for a GPU, as their makefiles built them."""
import json
import os
import subprocess
import tempfile
import unittest

BUILD = os.environ["KERNEL_GATE_BUILD"]
OPS = ("moe_up", "paged_decode", "delta_rule")


class OwnOps(unittest.TestCase):
    def run_gate(self, op, library, folder, *args):
        """Wide enough a threshold that no noise of these short kernels is a verdict."""
        example = os.path.join(BUILD, "tests", "gpu", op)
        done = subprocess.run(
            [os.path.join(BUILD, "bin", "gate"), "run", "--device", "cuda:0", "--suite",
             os.path.join(example, op + ".json"), "--library",
             os.path.join(example, "build", f"lib{library}_cuda.so"), "--threshold", "50%",
             "--allow-dirty", "--no-vendors", "--no-ceilings", "--json", *args],
            cwd=folder, env=dict(os.environ, GATE_CACHE=os.path.join(folder, "cache")),
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        self.assertTrue(done.stdout, done.stderr)
        cases = json.loads(done.stdout)["cases"]
        self.assertEqual(len(cases), 2)
        return done.returncode, cases, done.stderr

    def test_right_kernels_pass_and_a_fault_is_red(self):
        for op in OPS:
            with self.subTest(op), tempfile.TemporaryDirectory() as folder:
                code, _, errors = self.run_gate(op, op, folder, "--accept-new")
                self.assertEqual(code, 0, errors)
                code, cases, errors = self.run_gate(op, op, folder)
                self.assertEqual((code, {(c["mode"], c["verdict"]) for c in cases}),
                                 (0, {("paired", "pass")}), errors)
                code, cases, errors = self.run_gate(op, "faulty", folder)
                self.assertEqual((code, {c["verdict"] for c in cases}), (2, {"wrong"}), errors)

    def test_each_timed_launch_begins_with_the_same_state(self):
        with tempfile.TemporaryDirectory() as folder:
            _, cases, errors = self.run_gate("delta_rule", "delta_rule", folder, "--accept-new")
            for case in cases:
                timing = case["arms"][0]["timing"]
                self.assertIsNotNone(timing, errors)
                self.assertEqual(timing["launches_per_sample"], timing["input_sets"])


if __name__ == "__main__":
    unittest.main()
