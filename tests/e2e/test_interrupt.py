# SPDX-License-Identifier: Apache-2.0
"""A `gate run` that is interrupted says so, and leaves nothing half done."""

import json
import os
import signal
import subprocess
import time
import unittest
import xml.etree.ElementTree as ElementTree

from harness import GATE, SECOND, WORKER, FakeRuns, read_file, write_file


class Interrupted(FakeRuns):
    def kept(self):
        """What a run may change, by name and content."""
        files = {}
        for folder, _, names in os.walk(self.folder):
            for path in (os.path.join(folder, name) for name in names):
                if "gate.db" not in path:
                    with open(path, "rb") as file:
                        files[path] = file.read()
        return files, self.gate("export", "--format", "ndjson").stdout

    def interrupt(self, number, command, *args, worker=WORKER, fake=None):
        """The worker falls silent at the second case; then the signal comes."""
        marker = self.path("marker")
        fake = fake or {"only": SECOND, "act": "silence", "marker": marker}
        gate = subprocess.Popen(
            [GATE, command, "--suite", self.suite, "--device", "cuda:0", "--worker", worker,
             "--library", self.path("old.so"), "--timeout", "600", *args],
            cwd=self.folder, text=True,
            env=dict(os.environ, GATE_CACHE=self.path("cache"), FAKE=json.dumps(fake)),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while not os.path.exists(marker):
            self.assertIsNone(gate.poll())
            time.sleep(0.01)
        gate.send_signal(number)
        out, errors = gate.communicate()
        os.remove(marker)
        return gate.returncode, out, errors

    def test_it_says_so_and_nothing_has_changed(self):
        self.accept()
        before = self.kept()
        self.assertEqual(len(before[1].splitlines()), 1)
        for number, name in (signal.SIGINT, "Interrupt"), (signal.SIGTERM, "Terminated"):
            with self.subTest(name):
                code, out, errors = self.interrupt(
                    number, "run", "--baselines", self.path("baselines"), "--ratchet",
                    "--allow-dirty", "--report", "json=r.json",
                    "--report", "junit=r.xml")
                # It ends by the signal, so that a shell's loop does, too.
                self.assertEqual((code, out), (-number, ""), errors)
                said = rf"interrupted by signal {number:d} \({name}\) when [01] of 2 cases were "
                self.assertRegex(errors, "(?m)^gate run: " + said)
                report = json.loads(read_file(self.path("r.json")))
                self.assertEqual(report["exit_code"], 128 + number)
                self.assertRegex(report["message"], said)
                self.assertEqual(len(ElementTree.parse(self.path("r.xml")).findall(".//error")), 1)
                os.remove(self.path("r.json"))
                os.remove(self.path("r.xml"))
                self.assertEqual(self.kept(), before)

    def test_while_counters_are_read(self):
        """The verdict is known by then, and still nothing is stored."""
        self.accept()
        write_file(self.path("new.so"), "new")
        before = self.kept()
        write_file(self.path("ncu"), f"#!/bin/sh\n: >'{self.path('marker')}'\nexec sleep 600\n")
        os.chmod(self.path("ncu"), 0o755)
        path = os.environ["PATH"]
        os.environ["PATH"] = self.folder + ":" + path
        try:
            code, out, errors = self.interrupt(
                signal.SIGINT, "run", "--baselines", self.path("baselines"), "--counters",
                "--pause", "0", "--library", self.path("new.so"), fake={"p50": {SECOND: 1100.0}})
        finally:
            os.environ["PATH"] = path
            os.remove(self.path("ncu"))
        self.assertEqual((code, out), (-signal.SIGINT, ""), errors)
        self.assertIn("interrupted during the search for causes: nothing is stored", errors)
        self.assertEqual(self.kept(), before)

    def test_before_anything_is_measured(self):
        """The worker does not even greet."""
        self.accept()
        before = self.kept()
        silent = self.path("silent")
        write_file(silent, f"#!/bin/sh\n: >'{self.path('marker')}'\nexec cat\n")
        os.chmod(silent, 0o755)
        for command, said in (("run", "nothing was measured, nothing is stored, and no baseline"),
                              ("verify", "it has no result")):
            with self.subTest(command):
                code, out, errors = self.interrupt(signal.SIGINT, command, worker=silent)
                self.assertEqual((code, out), (-signal.SIGINT, ""), errors)
                self.assertIn(f"gate {command}: interrupted: {said}", errors)
        os.remove(silent)
        self.assertEqual(self.kept(), before)

    def test_a_verification_says_how_far_it_came(self):
        self.accept()
        code, out, errors = self.interrupt(signal.SIGTERM, "verify")
        self.assertEqual((code, out), (-signal.SIGTERM, ""), errors)
        self.assertRegex(errors, r"gate verify: interrupted by signal 15 \(Terminated\) when "
                                 r"1 of 2 cases were verified, [01] of them wrong")


if __name__ == "__main__":
    unittest.main()
