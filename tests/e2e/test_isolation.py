# SPDX-License-Identifier: Apache-2.0
"""What a broken library does to its worker costs its own case and nothing else."""
import json
import os
import subprocess
import unittest
import uuid

from harness import BUILD, DRAW, GATE, HOST, SANITIZED, skip_if_starved
from mutants.left import processes_with

ROGUE = os.path.join(BUILD, "tests", "mutants", "rogue.so")
BAD, GOOD = "gemm/fp32/m4-n1-k3", "gemm/fp32/m96-n80-k72"
HUNG = r"^hung: no sign of life for 4 s \(in phase verify\)"


class Rogue(unittest.TestCase):
    def verify(self, deed, limit="", timeout="4"):
        """Verifies both cases; returns their objects. Nothing that was started may be left."""
        mark = "GATE_TEST_MARK=" + uuid.uuid4().hex
        env = dict(os.environ, GATE_MUTANT_OF=HOST, GATE_MUTANT=deed)
        env.update([mark.split("=")])
        command = [GATE, "verify", "--device", "host", "--suite", "smoke", "--filter",
                   "gemm/fp32/*", "--library", ROGUE, "--timeout", timeout, "--json",
                   "--seed", DRAW]
        script = f'{limit} exec "$@"'
        done = subprocess.run(["bash", "-c", script, "bash", *command], env=env,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        self.assertTrue(done.stdout, done.stderr)
        self.assertEqual(processes_with(mark), [])
        cases = {c["id"]: c for c in json.loads(done.stdout)["cases"]}
        self.assertEqual(set(cases), {BAD, GOOD})
        skip_if_starved(self, cases.values())
        return done.returncode, cases

    def test_a_deed_costs_its_own_case(self):
        for deed, says in (
                ("spin_on", HUNG),
                ("ignore_all", HUNG),
                ("exit_0", "ended with exit code 0"),
                ("exit_at_once", "ended with exit code 0"),
                ("abort_now", "signal 6"),
                ("end_thread", "hung|ended"),
                ("leave_child", "child processes"),
                ("leave_child_and_exit", "ended with exit code 0"),  # it keeps the pipe
                ("taints", "must be exactly|first bad element"),
                ("flood", "^hung: no sign of life for 4 s"),
                ("forge", "nonce"),
                ("close_all", "died|nonsense|state of the process"),
                ("overflow_stack", "signal 11" if not SANITIZED else "died")):
            with self.subTest(deed):
                code, cases = self.verify(deed)
                self.assertEqual((code, cases[BAD]["outcome"]), (2, "wrong"),
                                 cases[BAD]["message"])
                self.assertRegex(cases[BAD]["message"], says)
                self.assertEqual(cases[GOOD]["outcome"], "right", cases[GOOD]["message"])

    def test_a_hang_ends_by_the_limit_that_the_gate_was_given(self):
        """Nothing else ends it: no runner's limit is set on the command."""
        for timeout in ("2", "3"):
            code, cases = self.verify("sleep_on", timeout=timeout)
            self.assertEqual((code, cases[BAD]["outcome"]), (2, "wrong"))
            self.assertEqual(cases[GOOD]["outcome"], "right")
            self.assertRegex(cases[BAD]["message"],
                             rf"^hung: no sign of life for {timeout} s \(in phase ")

    def test_who_is_stopped_or_out_of_processor_time_did_not_hang(self):
        for deed, limit, timeout, says in (
                ("stop_on", "", "2", r"^stopped: .* \(in phase verify"),
                ("spin_on", "ulimit -t 3;", "60", r"^out of time: .*ulimit -t")):
            code, cases = self.verify(deed, limit, timeout)
            self.assertEqual((code, cases[BAD]["outcome"]), (4, "environment"),
                             cases[BAD]["message"])
            self.assertRegex(cases[BAD]["message"], says)
            self.assertEqual(cases[GOOD]["outcome"], "right", cases[GOOD]["message"])

    def test_daemon(self):
        # It is nobody's child before the kernel returns, and so costs nothing but its own life.
        code, cases = self.verify("leave_daemon")
        self.assertEqual(cases[GOOD]["outcome"], "right")
        self.assertIn(code, (0, 2))

    def test_much_output(self):
        code, cases = self.verify("flood_64_mib")
        self.assertEqual(cases[GOOD]["outcome"], "right")
        self.assertIn((code, cases[BAD]["outcome"]), [(0, "right"), (2, "wrong")])

    @unittest.skipIf(SANITIZED, "sanitizers reserve more address space than the limit leaves")
    def test_out_of_memory(self):
        code, cases = self.verify("eat_memory", limit="ulimit -v 4000000;")
        self.assertEqual(cases[GOOD]["outcome"], "right", cases[GOOD]["message"])
        self.assertNotEqual((code, cases[BAD]["outcome"]), (0, "right"))


class Stack(unittest.TestCase):
    def verify(self, limit):
        command = [GATE, "verify", "--device", "host", "--suite", "smoke", "--filter",
                   "gemm/fp32/*", "--library", HOST, "--seed", DRAW]
        done = subprocess.run(["bash", "-c", f'ulimit {limit}; exec "$@"', "bash", *command],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def test_a_small_one_is_raised(self):
        for kib in (192, 256):
            with self.subTest(kib=kib):
                code, output = self.verify(f"-S -s {kib}")
                self.assertEqual(code, 0, output)

    def test_one_that_cannot_be_raised_is_no_fault_of_the_kernel(self):
        code, output = self.verify("-s 256")
        self.assertEqual(code, 4, output)
        self.assertIn("256 KiB here ('ulimit -Hs'), and needs 1024", output)


if __name__ == "__main__":
    unittest.main()
