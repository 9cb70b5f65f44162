# SPDX-License-Identifier: Apache-2.0
"""examples/month.py: the repositories that a stranger may look at, made anew."""

import json
import os
import re
import subprocess
import sys
import unittest

from harness import GATE, ROOT, SANITIZED, Gate, read_file, write_file


@unittest.skipIf(SANITIZED, "each of its commands has tests of its own")
class Month(Gate):
    def make(self, system):
        at = self.path(system)
        done = subprocess.run([sys.executable, os.path.join(ROOT, "examples/month.py"), at, system,
                               GATE], env=dict(os.environ, GATE_BASELINES="", GATE_DB=""),
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return at, done.stdout

    def ask(self, at, *command):
        return subprocess.run(command, cwd=at, check=True, capture_output=True, text=True).stdout

    def test_github(self):
        at, log = self.make("github")
        self.assertIn(re.sub(r"(?m)^", "    ", log.strip()),
                      read_file(os.path.join(ROOT, "examples/README.md")))
        self.assertEqual(self.ask(at, "git", "status", "--short"), "")
        self.assertTrue(os.path.exists(os.path.join(at, ".github/workflows/kernel-gate.yml")))
        wrong = read_file(os.path.join(at, "merge-requests/12.md"))
        self.assertIn("## ❌ Kernel Gate: wrong", wrong)
        self.assertIn("is over the limit", wrong)
        slower = read_file(os.path.join(at, "merge-requests/17.md"))
        self.assertIn("## ❌ Kernel Gate: regression", slower)
        self.assertRegex(slower, r"`gemm/fp32/m128-n128-k128` \| .* \| \+89\.8 % ")
        self.assertNotIn("fold-the-scale", self.ask(at, "git", "branch", "--merged", "main"))
        changes = json.loads(self.ask(at, GATE, "baseline", "log", "--json"))
        self.assertEqual([(c["action"], c["reason"][:3]) for c in changes],
                         [("accept", "the")] * 4)
        self.assertEqual([c["to_ns"] > c["from_ns"] for c in changes[2:]], [True, True])
        history = json.loads(self.ask(at, GATE, "history", "gemm/fp32/m128-n128-k128", "--json"))
        verdicts = [run["verdict"] for run in history]
        self.assertEqual((len(verdicts), verdicts.count("regression")), (19, 1))

    def test_gitlab(self):
        at, _ = self.make("gitlab")
        self.assertIn("GATE run --wait", read_file(os.path.join(at, ".gitlab-ci.yml")))
        self.assertFalse(os.path.exists(os.path.join(at, ".github")))


class Disturbed(Gate):
    def test_environment_on_a_cpu_says_what_to_do(self):
        run = json.loads(read_file(os.path.join(ROOT, "examples/recorded/slow.json")))
        for verdict, exit_code in (("regression", 1), ("environment", 4)):
            run.update(verdict=verdict, exit_code=exit_code)
            for case in run["cases"]:
                case["verdict"] = verdict
            write_file(self.path("run.json"), json.dumps(run))
            db = self.path(verdict + ".db")
            done = self.gate("import", "--db", db, "run.json")
            self.assertEqual(done.returncode, 0, done.stderr)
            for form in ("text", "markdown"):
                said = self.gate("report", "--db", db, "--format", form).stdout
                self.assertEqual("`chrt -f 1 gate run` (as root)" in said, exit_code == 4, said)


if __name__ == "__main__":
    unittest.main()
