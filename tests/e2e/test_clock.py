# SPDX-License-Identifier: Apache-2.0
"""The clock of a machine stops or jumps."""
import os
import subprocess
import tempfile
import unittest

from harness import DRAW, GATE, HERE, HOST


CASE = "gemm/fp32/m4-n1-k3"
SAYS = "the clock stopped or jumped: "


class Clock(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.preload = os.path.join(cls.folder, "clock.so")
        subprocess.run(["cc", "-shared", "-fPIC", os.path.join(HERE, "fake_clock.c"), "-o",
                        cls.preload, "-ldl"], check=True)

    def gate(self, clock, command, *args, cases=CASE, timeout="600"):
        """ASan wants to be loaded first, and does not mind here."""
        asan = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        return subprocess.run(
            [GATE, command, "--device", "host", "--suite", "smoke", "--filter", cases, "--timeout",
             timeout, "--json", *args], cwd=self.folder,
            env=dict(os.environ, FAKE_CLOCK=clock, LD_PRELOAD=self.preload, ASAN_OPTIONS=asan),
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    def test_it_is_told_at_once(self):
        """Before any kernel runs: by a look at the system's, and by the control where that misses
        it. Later on a clock that is not the system's is taken for the deed of a library."""
        quick = ("--budget", "1")
        for clock, says in (("stops", "the clock of the process is not the system's: "),
                            ("jumps", SAYS + "the control took -?2.592e.15 ns")):
            for command in (("run", "--accept-new"), ("calibrate",), ("compare", HOST, HOST)):
                with self.subTest(clock=clock, command=command[0]):
                    done = self.gate(clock, *command, *quick)
                    self.assertEqual((done.returncode, done.stdout), (4, ""), done.stderr)
                    self.assertRegex(done.stderr, says)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "baselines")))

    def test_a_long_run_says_what_it_does(self):
        """Into a log, too: a line every 20 s, which the fake clock makes 20 ms."""
        done = self.gate("hurries", "verify", "--seed", DRAW, cases="gemm/*", timeout="86400")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"(?m)^gate: verifying \[\d+/\d+\] gemm/\S+ \(for \d+ s\)$")

    def test_without_a_fault_the_same_measures(self):
        done = self.gate("works", "run", "--budget", "1")
        self.assertIn(done.returncode, (0, 3), done.stderr)
        self.assertNotIn(SAYS, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
