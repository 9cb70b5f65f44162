# SPDX-License-Identifier: Apache-2.0
"""What a run says and does round its measurements: reports, trees, cases that are not served."""

import fcntl
import json
import os
import shutil
import subprocess
import unittest
import unittest.mock
import xml.etree.ElementTree as ElementTree

from harness import FIRST, GATE, SECOND, SUITE, WORKER, FakeRuns, read_file, write_file


class Reports(FakeRuns):
    FORMATS = ("text", "markdown", "json", "csv", "junit")

    def reports(self):
        return [word for f in self.FORMATS for word in ("--report", f"{f}={self.path(f)}")]

    def read(self, name):
        return read_file(self.path(name))

    def test_a_run_that_ends_early_leaves_its_reason_in_place_of_old_reports(self):
        for name in self.FORMATS:
            write_file(self.path(name), "device  of yesterday, all passed")
        code, document, errors = self.run_gate("--suite", "none.json", *self.reports())
        self.assertEqual((code, document), (74, None))
        reason = errors.splitlines()[-1].removeprefix("gate run: ")
        for name in self.FORMATS:
            with self.subTest(name):
                self.assertNotIn("yesterday", self.read(name))
                self.assertIn("none.json", self.read(name))
        self.assertEqual(json.loads(self.read("json")), {
            "schema": "gate-error/1", "exit_code": 74, "message": reason})
        suites = ElementTree.fromstring(self.read("junit"))
        self.assertEqual((suites.get("errors"), suites.find(".//error").get("message")),
                         ("1", reason))

    def test_what_is_refused_leaves_its_reason_too(self):
        for wrong in (["--threshold", "much"], ["--against", self.suite, "--ratchet"]):
            with self.subTest(wrong):
                write_file(self.path("text"), "device  of yesterday, all passed")
                code, _, _ = self.run_gate("--report", f"text={self.path('text')}", *wrong)
                self.assertEqual(code, 64)
                self.assertNotIn("yesterday", self.read("text"))
                self.assertIn("64", self.read("text"))

    def test_whatever_is_refused_leaves_it_wherever_the_report_stands(self):
        report = ["--report", "text=" + self.path("text")]
        for command in (["run", "--threshold", "much", *report], ["run", "x", *report],
                        ["run", "--nosuch", "--report=" + report[1]],
                        ["run", "--report", "foo=foo", *report],
                        ["run", "--shard", "1/2", *report],
                        ["run", "--shard", "1/2", "--device", "all", *report],
                        ["compare", "a", *report], ["compare", "no.so", "no.so", *report],
                        ["merge", *report], ["calibrate", "--budget", "x", *report]):
            with self.subTest(command):
                write_file(self.path("text"), "device  of yesterday, all passed")
                done = self.gate(*command)
                self.assertEqual(done.returncode, 64)
                self.assertNotIn("yesterday", self.read("text"))
                self.assertIn(done.stderr.splitlines()[0].split(": ", 1)[1], self.read("text"))
                self.assertIn("64", self.read("text"))
                self.assertFalse(os.path.exists(self.path("foo")))

    def test_while_a_run_goes_on_no_old_report_is_left(self):
        write_file(self.path("text"), "device  of yesterday, all passed")
        self.run_gate("--report", f"text={self.path('text')}", "--worker", self.worker(
            f"cp {self.path('text')} {self.path('seen')}; exec {WORKER} \"$@\""))
        self.assertIn("the run has not ended", self.read("seen"))
        self.assertNotIn("has not ended", self.read("text"))

    def worker(self, script):
        path = self.path("worker.sh")
        write_file(path, f"#!/bin/sh\n{script}\n")
        os.chmod(path, 0o755)
        return path

    def test_a_report_that_cannot_be_written_is_known_before_anything_is_measured(self):
        code, _, errors = self.run_gate("--report", "markdown=/nonexistent/r.md", "--worker",
                                        self.worker("touch started"))
        self.assertEqual(code, 74, errors)
        self.assertFalse(os.path.exists(self.path("started")))

    def junit(self, *arguments, **fake):
        code, _, errors = self.run_gate("--report", f"junit={self.path('junit')}", *arguments,
                                        **fake)
        suites = ElementTree.fromstring(self.read("junit"))
        return code, int(suites.get("failures")), int(suites.get("errors")), errors

    def test_junit_is_green_where_the_exit_code_is_0_and_nowhere_else(self):
        self.assertEqual(self.junit()[:3], (3, 0, 2))  # no baseline
        self.accept()
        self.assertEqual(self.junit()[:3], (0, 0, 0))
        self.assertEqual(self.junit(log_ratio={FIRST: [0.05]})[:3], (1, 1, 0))

    def test_what_holds_for_all_cases_is_said_once(self):
        for name in ("text", "markdown"):
            self.run_gate("--report", f"{name}={self.path(name)}")
            self.assertEqual(self.read(name).count("no comparable baseline"), 1)
            self.assertIn("2 cases: no comparable baseline", self.read(name))


class Thresholds(FakeRuns):
    """The rule that is printed is the rule that was applied, and who changes it is named."""

    def git(self, *args):
        subprocess.run(["git", "-c", "user.name=A", "-c", "user.email=a@b", *args],
                       cwd=self.folder, check=True, capture_output=True)

    def write(self, threshold, host):
        first, second = SUITE["cases"]
        write_file(self.suite, json.dumps({**SUITE, "cases": [
            first, {**second, **({"threshold": threshold} if threshold else {})}]}))
        if host:
            write_file(self.path("gate.json"), json.dumps(
                {"schema": "gate-config/1", "host_threshold": host}))

    def test_a_row_shows_a_threshold_of_its_own(self):
        self.accept()
        self.write(1.0, None)
        report = self.path("report.txt")
        code, document, errors = self.run_gate("--report", "text=" + report,
                                               p50={SECOND: 1770.0})
        self.assertEqual(code, 0, errors)
        rows = {line.split()[0]: line for line in read_file(report).splitlines()
                if line.startswith("gemm/")}
        self.assertTrue(rows[FIRST].endswith(" pass"), rows[FIRST])
        self.assertTrue(rows[SECOND].endswith(" pass (threshold 100 %)"), rows[SECOND])
        self.assertNotIn("changed", document["policy"])  # outside of a repository

    def test_a_change_of_the_thresholds_is_warned_of(self):
        self.accept()
        self.write(None, "20%")
        self.git("init", "-q", "-b", "main")
        self.git("add", "suite.json", "gate.json")
        self.git("commit", "-q", "-m", "one")
        self.git("checkout", "-q", "-b", "change")
        calls = {"calls": {}}
        self.assertNotIn("changed", self.run_gate(**calls)[1]["policy"])
        self.write(1.0, "90%")
        report = self.path("report.md")
        code, document, errors = self.run_gate("--report", "markdown=" + report, **calls)
        self.assertEqual(code, 0, errors)
        changes = ["gate.json: host_threshold 20% -> 90%",
                   f"{SECOND}: threshold 2 % -> 100 %"]
        self.assertEqual(document["policy"]["changed"], changes)
        for change in changes:
            self.assertIn("warning: changed against the base: " + change, errors)
            self.assertIn(change, read_file(report))

    def test_another_suite_or_other_baselines_are_warned_of(self):
        """They bring thresholds that nothing here can be compared with."""
        self.accept()
        config = {"schema": "gate-config/1", "suite": "old.json"}
        write_file(self.path("gate.json"), json.dumps(config))
        self.git("init", "-q", "-b", "main")
        self.git("add", "suite.json", "gate.json")
        self.git("commit", "-q", "-m", "one")
        self.git("checkout", "-q", "-b", "change")
        self.assertNotIn("changed", self.run_gate()[1]["policy"])
        write_file(self.path("gate.json"),
                   json.dumps({**config, "suite": "suite.json", "baselines": "others"}))
        document = self.run_gate()[1]
        self.assertEqual(document["policy"]["changed"],
                         ["gate.json: suite old.json -> suite.json",
                          "gate.json: baselines none -> others"])


    def test_what_git_did_not_show_to_its_end_is_not_compared(self):
        self.accept()
        self.write(None, "20%")
        self.git("init", "-q", "-b", "main")
        self.git("add", "suite.json", "gate.json")
        self.git("commit", "-q", "-m", "one")
        self.git("checkout", "-q", "-b", "change")
        self.write(1.0, "90%")
        git = write_file(self.path("git"), f'#!/bin/sh\n{shutil.which("git")} "$@" || exit\n'
                         'for word; do [ "$word" != show ] || exit 1; done\n')
        os.chmod(git, 0o755)
        with unittest.mock.patch.dict(os.environ, PATH=f"{self.folder}:{os.environ['PATH']}"):
            self.assertNotIn("changed", self.run_gate(calls={})[1]["policy"])


class NotServed(FakeRuns):
    """A case for which the library has no kernel."""

    UNSERVED = {"only": SECOND, "record": {"outcome": "unsupported", "arms": [],
                                           "message": "'old' offers no kernel"}}

    def test_of_a_suite_of_its_own_it_is_no_verdict(self):
        code, document, errors = self.run_gate("--accept-new", **self.UNSERVED)
        self.assertEqual(code, 3, errors)
        case = self.cases(document)[SECOND]
        self.assertEqual((case["verdict"], case["reason"]),
                         ("no-verdict", "not served: 'old' offers no kernel"))
        self.assertNotIn("not_served", document)

    def shipped(self, *arguments, **fake):
        """The two cases of the suite that comes with the gate and is named smoke."""
        return self.run_gate("--suite", "smoke", "--filter", "gemm/fp32/m4-n1-k3*", *arguments,
                             **fake)

    def test_all_of_a_suite_is_no_verdict_whosever_it_is(self):
        code, document, _ = self.shipped(only="gemm/fp32/m4-n1-k3",
                                         record=self.UNSERVED["record"])
        self.assertEqual((code, [c["verdict"] for c in document["cases"]]), (3, ["no-verdict"]))

    def test_of_a_suite_of_the_gate_it_is_named_and_does_not_count(self):
        _, document, _ = self.run_gate("--suite", "smoke", "--filter", "gemm/fp32/*",
                                       "--accept-new")
        served = sorted(c["id"] for c in document["cases"])
        self.assertGreater(len(served), 1)
        os.remove(self.path("baselines/fake-gpu.json") if os.path.exists(
            self.path("baselines/fake-gpu.json")) else next(
                e.path for e in os.scandir(self.path("baselines")) if e.name.endswith(".json")))
        report = self.path("report.txt")
        code, document, errors = self.run_gate(
            "--suite", "smoke", "--filter", "gemm/fp32/*", "--accept-new", "--report",
            f"text={report}", only=served[0], record=self.UNSERVED["record"])
        self.assertEqual(code, 0, errors)
        self.assertEqual(document["not_served"], [{"id": served[0]}])
        self.assertEqual(sorted(c["id"] for c in document["cases"]), served[1:])
        self.assertIn(f"not served, and not counted: 1 of the suite's "
                      f"{len(served) + len(document['filtered'])} cases: "
                      f"{served[0]}\n", read_file(report))

    def test_what_was_served_once_counts(self):
        arguments = ("--suite", "smoke", "--filter", "gemm/fp32/*")
        _, document, _ = self.run_gate(*arguments, "--accept-new")
        gone = document["cases"][0]["id"]
        code, document, _ = self.run_gate(*arguments, only=gone, record=self.UNSERVED["record"])
        self.assertEqual((code, self.cases(document)[gone]["verdict"]), (3, "no-verdict"))


class DirtyTree(FakeRuns):
    def setUp(self):
        super().setUp()
        self.git("init", "-q")
        self.git("config", "user.email", "a@example")
        self.git("config", "user.name", "A")
        write_file(self.path("source"), "1")
        self.git("add", "source")
        self.git("commit", "-qm", "one")

    def git(self, *arguments):
        subprocess.run(["git", "-C", self.folder, *arguments], check=True)

    def test_it_gives_no_baseline_unless_that_is_meant(self):
        self.accept()
        write_file(self.path("source"), "2")
        for option in ("--accept-new", "--ratchet"):
            code, document, errors = self.run_gate(option)
            self.assertEqual((code, document), (64, None))
            self.assertIn("--allow-dirty", errors)
        self.assertEqual(self.run_gate()[0], 0)
        os.remove(next(e.path for e in os.scandir(self.path("baselines"))
                       if e.name.endswith(".json")))
        self.assertEqual(self.run_gate("--accept-new", "--allow-dirty")[0], 0)
        done = self.gate("baseline", "show", "--json")
        self.assertEqual({b["dirty"] for b in json.loads(done.stdout)}, {True})

    def is_dirty(self, *arguments):
        return self.run_gate(*arguments)[1]["git"]["dirty"]

    def test_what_a_run_changed_in_the_baselines_does_not_count(self):
        self.accept()
        self.git("add", "baselines")
        self.git("commit", "-qm", "baselines")
        for _ in range(2):
            code, document, errors = self.run_gate("--ratchet", p50={SECOND: 990.0})
            self.assertEqual((code, document["git"]["dirty"]), (0, False), errors)
        status = subprocess.run(["git", "-C", self.folder, "status", "--short"], check=True,
                                capture_output=True, text=True).stdout
        self.assertIn(" M baselines/", status)
        # The folder as it is configured, and what lies in it alone.
        self.assertTrue(self.is_dirty("--baselines", self.path("others")))
        self.assertTrue(self.is_dirty("--baselines", self.folder))
        self.assertTrue(self.is_dirty("--baselines", os.path.dirname(self.folder)))
        write_file(self.path("source"), "2")
        self.assertTrue(self.is_dirty())
        self.git("checkout", "-q", "source")
        self.assertFalse(self.is_dirty())
        write_file(self.path(".git/index"), "none")
        self.assertTrue(self.is_dirty(), "git cannot tell")


class Wait(FakeRuns):
    """The lock of the device is held by somebody else."""

    def hold(self):
        self.run_gate()
        name = next(n for n in os.listdir(self.folder) if n.endswith(".lock"))
        file = open(self.path(name), encoding="ascii")  # pylint: disable=consider-using-with
        self.addCleanup(file.close)
        fcntl.flock(file, fcntl.LOCK_EX)
        return file

    def run_gate(self, *args, **fake):
        before = os.environ["GATE_LOCKS"]
        os.environ["GATE_LOCKS"] = self.folder
        try:
            return super().run_gate(*args, **fake)
        finally:
            os.environ["GATE_LOCKS"] = before

    def test_without_waiting_it_is_refused(self):
        self.hold()
        code, _, errors = self.run_gate()
        self.assertEqual(code, 4)
        self.assertIn("is busy: another gate (process", errors)
        self.assertEqual(self.run_gate("--wait", "0.01")[0], 4)

    def test_it_goes_on_when_the_other_has_ended(self):
        file = self.hold()
        suite = self.suite
        env = dict(os.environ, GATE_LOCKS=self.folder, GATE_CACHE=self.path("cache"), FAKE="{}")
        with subprocess.Popen(
                [GATE, "run", "--suite", suite, "--device", "cuda:0", "--worker", WORKER,
                 "--library", self.path("new.so"), "--provider", "x.so", "--pause", "0",
                 "--wait", "600"], env=env, cwd=self.folder, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True) as gate:
            self.assertIn("waiting: ", gate.stderr.readline())
            file.close()
            gate.communicate()
            self.assertEqual(gate.returncode, 3)


if __name__ == "__main__":
    unittest.main()
