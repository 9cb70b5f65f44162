# SPDX-License-Identifier: Apache-2.0
"""Each fuzz target lets a bounded number of inputs through, the same ones each time.

runs long: the targets are built with clang and two sanitizers
"""

import os
import subprocess
import sys
import unittest

ROOT = os.environ["KERNEL_GATE_ROOT"]
sys.path.insert(0, os.path.join(ROOT, "tests", "fuzz"))
import fuzz  # noqa: E402

# About a second each; more is for `make fuzz` and the night.
RUNS = {"run": 300, "request": 1500, "gzip": 20000, "suite": 2000, "baseline": 500, "op": 2000,
        "foreign": 5000}
BUILD = os.path.join(ROOT, "build", "fuzz")


def why_not():
    clang = subprocess.run([os.path.join(ROOT, "ci", "deps.sh"), "--check", "fuzz"],
                           stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return "no clang with libFuzzer (ci/deps.sh fuzz)" if clang.returncode else None


class Fuzz(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        reason = why_not()
        if reason:
            raise unittest.SkipTest(reason)
        made = subprocess.run(["make", "-s", f"-j{os.cpu_count()}", "fuzz-targets"], cwd=ROOT,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        if made.returncode:
            raise AssertionError(f"the targets cannot be built:\n{made.stdout}")

    def lets_through(self, target):
        status, output = fuzz.run(BUILD, target, f"-runs={RUNS[target]}")
        self.assertEqual(status, 0, output)
        found = fuzz.statistics(output)
        self.assertGreaterEqual(found.inputs, RUNS[target], output)

    def test_run(self):
        self.lets_through("run")

    def test_request(self):
        self.lets_through("request")

    def test_gzip(self):
        self.lets_through("gzip")

    def test_suite(self):
        self.lets_through("suite")

    def test_op(self):
        self.lets_through("op")

    def test_foreign(self):
        self.lets_through("foreign")

    def test_baseline(self):
        self.lets_through("baseline")


class Seeds(unittest.TestCase):
    """Without good inputs to begin with a target finds next to nothing."""

    def test_there_are_some_and_they_are_short(self):
        for target in fuzz.TARGETS:
            made = list(fuzz.seeds(target))
            self.assertGreater(len(made), 5, target)
            self.assertLessEqual(max(map(len, made)), fuzz.MAX_LENGTH, target)

    def test_each_route_of_the_api_has_one(self):
        text = b"\n".join(fuzz.seeds("request"))
        for path in (b"runs/", b"cases", b"trends", b"compare", b"alerts/", b"openapi.json"):
            self.assertIn(b"/api/v1/" + path, text)

    def test_the_words_are_those_of_the_schemas(self):
        self.assertIn('"\\"p50_ns\\""', fuzz.dictionary("run"))


if __name__ == "__main__":
    unittest.main()
