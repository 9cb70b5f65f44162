# SPDX-License-Identifier: Apache-2.0
"""What a broken library does while its process holds a GPU costs its own case and nothing else."""
import json
import os
import subprocess
import time
import unittest
import uuid

from mutants import left

BUILD = os.environ["KERNEL_GATE_BUILD"]
GATE = os.path.join(BUILD, "bin", "gate")
OURS = os.path.join(BUILD, "lib", "kernel-gate", "libours.so")
BAD, GOOD = "gemm/fp32/m4-n1-k3", "gemm/fp32/m96-n80-k72"
SMALL_CHANGE = 32 << 20  # bytes that a driver may keep for itself; a context takes hundreds of MiB
POLLS, POLL_S = 600, 0.1  # until what a dead process had is free: a driver takes its time


def mutant(name):
    return os.path.join(BUILD, "tests", "mutants", name + ".so")


def uuid_of_the_device():
    done = subprocess.run([GATE, "doctor", "--device", "cuda:0", "--json"], check=False,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return json.loads(done.stdout)["device"]["uuid"]


class UnderFire(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        memory = left.memory_of(uuid_of_the_device())
        cls.used = staticmethod(memory.__enter__())
        cls.addClassCleanup(memory.__exit__, None, None, None)

    def assert_memory_is_free(self, before):
        """States are waited for, not times: it ends with the first look that finds all free."""
        for _ in range(POLLS):
            now = self.used()
            if now <= before + SMALL_CHANGE:
                return
            time.sleep(POLL_S)
        self.fail(f"{now - before} bytes of the device's memory are still taken")

    def verify(self, library, deed):
        """Verifies both cases; returns their objects. Nothing may be left, here or there."""
        before = self.used()
        mark = "GATE_TEST_MARK=" + uuid.uuid4().hex
        env = dict(os.environ, GATE_MUTANT_OF=OURS, GATE_MUTANT=deed)
        env.update([mark.split("=")])
        done = subprocess.run(
            [GATE, "verify", "--device", "cuda:0", "--suite", "smoke", "--filter", "gemm/fp32/*",
             "--library", mutant(library), "--timeout", "5", "--json"], env=env, check=False,
            stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertTrue(done.stdout, done.stderr)
        self.assertEqual(left.processes_with(mark), [])
        self.assert_memory_is_free(before)
        cases = {c["id"]: c for c in json.loads(done.stdout)["cases"]}
        self.assertEqual(set(cases), {BAD, GOOD})
        return done.returncode, cases

    def assert_costs_one_case(self, library, deed, says):
        code, cases = self.verify(library, deed)
        self.assertEqual((code, cases[BAD]["outcome"]), (2, "wrong"), cases[BAD]["message"])
        self.assertRegex(cases[BAD]["message"], says)
        self.assertEqual(cases[GOOD]["outcome"], "right", cases[GOOD]["message"])

    def test_a_right_library_leaves_nothing(self):
        code, cases = self.verify("right", "")
        self.assertEqual(code, 0, cases)

    def test_endless_loop_in_the_launcher(self):
        self.assert_costs_one_case("rogue", "spin_on", "hung: no sign of life for 5 s")

    def test_sleep_deaf_to_signals(self):
        self.assert_costs_one_case("rogue", "ignore_all", "hung: no sign of life for 5 s")

    def test_kernel_that_never_ends(self):
        self.assert_costs_one_case("cuda_rogue", "kernel_hangs", "hung: no sign of life for 5 s")

    def test_kernel_and_launcher_that_never_end(self):
        self.assert_costs_one_case("cuda_rogue", "both_hang", "hung: no sign of life for 5 s")

    def test_exit_0(self):
        self.assert_costs_one_case("rogue", "exit_0", "ended with exit code 0")

    def test_exit_without_handlers(self):
        self.assert_costs_one_case("rogue", "exit_at_once", "ended with exit code 0")

    def test_abort(self):
        self.assert_costs_one_case("rogue", "abort_now", "signal 6")

    def test_segmentation_fault(self):
        self.assert_costs_one_case("rogue", "overflow_stack", "signal 11")

    def test_grandchild_that_keeps_the_device(self):
        self.assert_costs_one_case("cuda_rogue", "keeps_the_device", "ended with exit code 0")

    def test_endless_output(self):
        self.assert_costs_one_case("rogue", "flood", "hung: no sign of life for 5 s")

    def test_sticky_error(self):
        self.assert_costs_one_case("cuda_rogue", "sticky_error", "illegal memory access")

    def test_leak(self):
        """1 MiB a launch, which the check of many launches tells."""
        self.assert_costs_one_case("cuda_rogue", "leak", "leaks device memory")

    def test_out_of_memory(self):
        self.assert_costs_one_case("cuda_rogue", "out_of_memory", "launch")


if __name__ == "__main__":
    unittest.main()
