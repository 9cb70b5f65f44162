# SPDX-License-Identifier: Apache-2.0
"""`gate worker` itself, as the supervisor speaks to it (gate/worker/PROTOCOL.md).

sanitized: a worker reads its tasks
"""
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import unittest

from harness import BUILD, GATE, HOST

ONCE = os.path.join(BUILD, "tests", "mutants", "once.so")
ZEROS = os.path.join(BUILD, "tests", "mutants", "host_zeros.so")
CASE = {"op": "gemm", "dtype": "fp32", "m": 8, "n": 8, "k": 8}


class Task(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.baseline = shutil.copy(HOST, os.path.join(folder.name, "baseline.so"))
        with open(self.baseline, "rb") as file:
            self.sha256 = hashlib.sha256(file.read()).hexdigest()

    def said(self, **members):
        """What a worker answers to a task beside a baseline, line by line."""
        task = {"task": "measure", "case": CASE, "seed": "00000000000000aa", "skip": [],
                "budget_ms": 1, "baseline": self.sha256, "verify": False, "providers": False,
                **members}
        done = subprocess.run([GATE, "worker", "--device", "host", "--library", HOST, "--baseline",
                               self.baseline], input=json.dumps(task) + "\n", capture_output=True,
                              text=True, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def prepared(self, swap):
        """Whose kernels are prepared for a case, in turn."""
        said = self.said(swap=swap)
        self.assertEqual(said[-1]["outcome"], "measured", said[-1])
        return [line["provider"] for line in said if line.get("phase") == "prepare"]

    def test_who_comes_first_has_its_code_loaded_first(self):
        one, *others = self.prepared(False)
        self.assertEqual(others, ["baseline", "baseline", one])
        self.assertEqual(self.prepared(True), ["baseline", one, one, "baseline"])

    def test_which_node_of_a_launch_is_slower(self):
        answer = self.said(task="transplant")[-1]
        self.assertEqual(answer["outcome"], "verified", answer)
        self.assertIn("of no nodes", answer["blame"]["message"])


class Control(unittest.TestCase):
    def test_it_is_timed_where_something_will_be(self):
        for more, timed in (([], True), (["--untimed"], False)):
            done = subprocess.run([GATE, "worker", "--device", "host", "--library", HOST, *more],
                                  input="", capture_output=True, text=True, check=True)
            self.assertEqual((json.loads(done.stdout)["control_ns"] or 0) > 0, timed)


class Baselines(unittest.TestCase):
    def libraries(self, folder, *args):
        """What a worker says that it has opened: file and provider of each."""
        spoilt = shutil.copy(HOST, os.path.join(folder, "spoilt.so"))
        done = subprocess.run([GATE, "worker", "--device", "host", *args], input="",
                              env={**os.environ, "GATE_MUTANT_OF": spoilt}, capture_output=True,
                              text=True, check=True)
        said = json.loads(done.stdout.splitlines()[0])["libraries"]
        return [(lib["file"], lib["provider"]) for lib in said]

    def test_two_baselines_are_two_libraries(self):
        """The loader takes a path that it knows for the same file, and copies in memory that come
        and go have the same path."""
        with tempfile.TemporaryDirectory() as folder:
            (zeros,) = self.libraries(folder, "--library", ZEROS)
            (host,) = self.libraries(folder, "--library", HOST)
            both = self.libraries(folder, "--library", HOST, "--baseline", HOST,
                                  "--baseline", ZEROS)
            turned = self.libraries(folder, "--library", HOST, "--baseline", ZEROS,
                                    "--baseline", HOST)
        self.assertNotEqual(zeros, host)
        self.assertEqual(both, [host, host, zeros])
        self.assertEqual(turned, [host, zeros, host])

    def test_a_library_that_cannot_be_there_twice(self):
        """It is right, and cannot be compared: that is not its fault."""
        with tempfile.TemporaryDirectory() as folder:
            spoilt = shutil.copy(HOST, os.path.join(folder, "spoilt.so"))
            for names in (["--library", ONCE, "--baseline", HOST],
                          ["--library", HOST, "--baseline", ONCE]):
                done = subprocess.run([GATE, "worker", "--device", "host", *names], input="",
                                      env={**os.environ, "GATE_MUTANT_OF": spoilt}, text=True,
                                      capture_output=True, check=False)
                said = json.loads(done.stdout.splitlines()[0])
                self.assertEqual((done.returncode, said["refuse"]), (4, "environment"))
                self.assertIn("returned 'unsupported'", said["message"])
                self.assertEqual("is loaded twice" in said["message"], names[1] == ONCE)
            self.assertEqual(len(self.libraries(folder, "--library", ONCE)), 1)


if __name__ == "__main__":
    unittest.main()
