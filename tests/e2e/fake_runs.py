"""Runs of two cases with a worker that measures what it is told to (fake_worker.py)."""
import json
import os
import subprocess
import tempfile
import unittest

BUILD = os.environ["KERNEL_GATE_BUILD"]
GATE = os.path.join(BUILD, "bin", "gate")
WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fake_worker.py")
FIRST, SECOND = "gemm/fp32/m2-n2-k2", "gemm/fp32/m3-n3-k3"
SUITE = {"schema": "gate-suite/1", "name": "two",
         "cases": [{"op": "gemm", "dtype": "fp32", "m": n, "n": n, "k": n} for n in (2, 3)]}


class Gate(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.suite = self.path("suite.json")
        self.setUp_suite()

    def setUp_suite(self):
        with open(self.suite, "w", encoding="utf-8") as file:
            json.dump(SUITE, file)

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_gate(self, *args, library="new", **fake):
        """Runs the suite with a fake worker; returns exit code, run document and diagnostics."""
        env = dict(os.environ, FAKE=json.dumps(fake), GATE_CACHE=self.path("cache"))
        file = self.path(library + ".so")
        with open(file, "w", encoding="utf-8") as out:
            out.write(library)
        done = subprocess.run(
            [GATE, "run", "--json", "--suite", self.suite, "--device", "cuda:0", "--worker", WORKER,
             "--library", file, "--provider", "x.so", "--db", self.path("gate.db"), "--pause", "0",
             "--baselines", self.path("baselines"), "--timeout", "60", *args],
            cwd=self.folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            check=False)
        document = json.loads(done.stdout) if done.stdout else None
        return done.returncode, document, done.stderr

    def cases(self, document):
        return {c["id"]: c for c in document["cases"]}

    def accept(self):
        code, _, errors = self.run_gate("--accept-new", library="old")
        self.assertEqual(code, 0, errors)
