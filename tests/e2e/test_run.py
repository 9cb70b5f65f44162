# SPDX-License-Identifier: Apache-2.0
"""`gate run` on the host device, with right and broken kernel libraries."""
import csv
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import unittest
import xml.etree.ElementTree as ElementTree

from harness import (DRAW, GATE, HOST, Smoke, mutant, read_bytes, read_file, skip_if_starved,
                     write_file)

class Accuracy(Smoke):
    """A kernel within the limits, but thirty times less accurate than the baseline."""

    def against(self, candidate, baseline, **env):
        done = self.gate("run", "--device", "host", "--suite", "smoke", "--json", "--budget", "20",
                         "--threshold", "90%", "--filter", "gemm/fp32/m96-*", "--pause", "0",
                         "--library", candidate, "--against", baseline, **env)
        return done.returncode, json.loads(done.stdout)["cases"][0]

    def test_a_jump_of_the_error_is_a_regression_whatever_the_speed(self):
        code, case = self.against(mutant("host_unusual"), HOST, GATE_MUTANT="short_factors")
        self.assertEqual((code, case["verdict"]), (1, "regression"))
        self.assertGreater(case["error_ratio"], 10)
        self.assertRegex(case["reason"],
                         r"^less accurate: the relative error is \S+, \S+ times what the other "
                         r"library has on the same inputs.* Its speed: ")


class AccuracyByRecord(Smoke):
    """The same, where the baseline's library is not at hand, and only its numbers are."""

    def smoke(self, library, *args, **env):
        copy = shutil.copy(HOST, self.path("copy.so"))
        done = self.gate("run", "--device", "host", "--suite", "smoke", "--json", "--budget", "20",
                         "--threshold", "90%", "--filter", "gemm/fp32/m96-*", "--pause", "0",
                         "--library", library, "--provider", copy, *args, **env)
        return done.returncode, json.loads(done.stdout)["cases"][0]

    def test_a_jump_of_the_error_is_a_regression_here_too(self):
        before = shutil.copy(mutant("right"), self.path("before.so"))
        with open(before, "ab") as file:
            file.write(b"another file of the same code")
        self.smoke(before, "--accept-new")
        shutil.rmtree(self.path("cache"))
        code, case = self.smoke(mutant("host_unusual"), GATE_MUTANT="short_factors")
        self.assertEqual((code, case["verdict"], case["mode"]), (1, "regression", "number"))
        self.assertGreater(case["error_ratio"], 10)
        self.assertRegex(case["reason"], "^less accurate: .* what the baseline has by its record")


class Accepted(Smoke):
    """One run of each op into an empty history, with all reports. test_verify.py verifies the whole
    suite, and `make run` measures that of the host."""

    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.kept, ignore_errors=True)
        names = {"json": "r.json", "text": "r.txt", "markdown": "r.md", "csv": "r.csv",
                 "junit": "r.xml"}
        reports = [x for name, file in names.items() for x in ("--report", f"{name}={file}")]
        cls.done = subprocess.run(
            [GATE, "run", "--device", "host", "--suite", "smoke", "--filter", "*/fp16/*",
             "--budget", "5", "--accept-new", "--seed", DRAW, *reports],
            env=dict(os.environ, GATE_CACHE=os.path.join(cls.kept, "cache")),
            cwd=cls.kept, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    def setUp(self):
        self.folder = self.kept
        self.assertEqual(self.done.returncode, 0, self.done.stderr)
        self.document = json.loads(read_file(self.path("r.json")))

    def test_every_case_is_verified_timed_and_accepted(self):
        self.assertEqual(self.document["device"]["kind"], "host")
        self.assertGreaterEqual(len({case["op"] for case in self.document["cases"]}), 5)
        for case in self.document["cases"]:
            arm = case["arms"][0]
            self.assertTrue(arm["verify"]["ok"], case["id"])
            self.assertLessEqual(arm["verify"]["rel_fro"], arm["verify"]["limit"])
            self.assertGreaterEqual(arm["timing"]["samples"], 8)
            self.assertIsNone(arm["timing"]["power_w"])  # the host has no sensor that tells
            self.assertIsNone(arm["timing"]["temperature_c"])
            self.assertEqual(len(case["processes"]), 5)
            self.assertLessEqual(arm["timing"]["p50_lo_ns"], arm["timing"]["p50_ns"])
            self.assertLessEqual(arm["timing"]["p50_ns"], arm["timing"]["p50_hi_ns"])
            self.assertEqual(case["verdict"], "pass")
        model = self.document["device"]["model"]
        stored = json.loads(read_file(self.path(f"baselines/{model}.json")))
        self.assertEqual(len(stored["cases"]), len(self.document["cases"]))

    def test_reports_are_written_beside_the_table(self):
        case = "gemm/fp16/m4-n1-k3"
        n = len(self.document["cases"])
        self.assertIn(case, self.done.stdout)
        self.assertEqual(len(ElementTree.parse(self.path("r.xml")).findall(".//testcase")), n)
        with open(self.path("r.csv"), encoding="utf-8", newline="") as file:
            self.assertEqual(len(list(csv.DictReader(file))), n)
        for name in ("r.md", "r.txt"):
            self.assertIn(case, read_file(self.path(name)))

    def test_the_history_keeps_every_run(self):
        case = "gemm/fp16/m96-n80-k72"
        code, _, errors = self.run_smoke("--accept-new", "--baselines", "others", cases=case)
        self.assertEqual(code, 0, errors)
        exported = self.gate("export", "--format", "ndjson").stdout.splitlines()
        self.assertEqual(len(exported), 2)
        self.assertNotEqual(json.loads(exported[0])["uuid"], json.loads(exported[1])["uuid"])
        board = self.gate("leaderboard", "--json")
        self.assertIn(case, board.stdout)
        history = self.gate("history", case, "--json")
        self.assertEqual(len(json.loads(history.stdout)), 2)


class Right(Smoke):
    def test_what_kernels_print_does_not_disturb(self):
        code, document, errors = self.run_smoke("--accept-new", "--library", mutant("chatter"),
                                                cases="gemm/fp32/m4-*")
        self.assertEqual(code, 0, errors)
        self.assertTrue(all(c["verdict"] == "pass" for c in document["cases"]))

    def test_a_provider_is_timed_beside_the_candidate(self):
        copy = shutil.copy(HOST, self.path("copy.so"))
        code, document, errors = self.run_smoke("--accept-new", "--library", mutant("right"),
                                                "--provider", copy, cases="gemm/fp32/m96-*")
        self.assertEqual(code, 0, errors)
        self.assertEqual(document["libraries"][0]["file"], "right.so")
        for case in document["cases"]:
            self.assertEqual([a["role"] for a in case["arms"]], ["candidate", "provider"],
                             (case["reason"], errors))
            self.assertIsNone(case["arms"][0]["timing"]["ratio_to_candidate"])
            self.assertGreater(case["arms"][1]["timing"]["ratio_to_candidate"]["value"], 0)

    def test_a_seed_makes_the_inputs(self):
        errors = [self.run_smoke("--seed", seed, cases="gemm/fp32/m96-*")[1]["cases"][0]["arms"][0]
                  ["verify"]["max_abs"] for seed in ("1234", "1234", "1235")]
        self.assertEqual(errors[0], errors[1])
        self.assertNotEqual(errors[0], errors[2])


class Broken(Smoke):
    def test_what_is_wrong_is_neither_timed_nor_a_baseline(self):
        for name, says in (("host_zeros", "relative error 1 is over the limit"),
                           ("host_unwritten", "never written"),
                           ("crash", "about to crash"),
                           ("exits", "ended with exit code 0"),
                           ("hang", "hung: no sign of life for 2 s"),
                           ("refuses", "returned 'unsupported'")):
            with self.subTest(name):
                code, document, errors = self.run_smoke("--accept-new", "--library", mutant(name),
                                                        *(["--timeout", "2"] * (name == "hang")))
                skip_if_starved(self, document["cases"])
                self.assertEqual(code, 2, errors)
                for case in document["cases"]:
                    self.assertEqual(case["verdict"], "wrong")
                    self.assertIn(says, case["reason"])
                    self.assertEqual([arm["timing"] for arm in case["arms"] if arm["timing"]], [])
                self.assertEqual(os.listdir(self.path("baselines")), [])

    def test_a_broken_provider_is_no_fault_of_the_candidate(self):
        # The mutant opens its original by path: a copy keeps it apart from the candidate.
        copy = shutil.copy(HOST, self.path("copy.so"))
        for name in ("crash", "host_zeros", "refuses"):
            code, document, errors = self.run_smoke("--library", copy, "--provider", mutant(name),
                                                    cases="gemm/fp32/m4-*")
            self.assertEqual(code, 3, errors)  # it has no baseline
            for case in document["cases"]:
                self.assertTrue(all(a["timing"] is None for a in case["arms"][1:]))


class Refused(Smoke):
    def assert_refused(self, code, says, *args):
        done = self.gate("run", *args)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(says, done.stderr)
        self.assertEqual(done.stdout, "")

    def test_what_is_not_there(self):
        write_file(self.path("text.so"), "not a shared object")
        copy = shutil.copy(HOST, self.path("copy.so"))
        for code, says, words in (
                (4, "", "--device cuda:99 --suite smoke"),
                (64, "unknown device 'tpu'", "--device tpu --suite smoke"),
                (64, "no suite is named 'nope'", "--suite nope --device host"),
                (64, "matches", "--filter nothing --device host --suite host"),
                (64, "both of provider 'host'", f"--device host --provider {copy} --suite host"),
                (74, "cannot read kernel library", "--device host --library nowhere.so"),
                (74, "cannot open 'nowhere.json'",
                 f"--device host --suite nowhere.json --library {HOST}"),
                (2, "cannot be loaded", "--device host --library text.so")):
            with self.subTest(words):
                self.assert_refused(code, says, *words.split())

    def test_bad_numbers(self):
        for option, value in (("--threshold", "-1"), ("--threshold", "2x"), ("--threshold", "2"),
                              ("--threshold", "0x1p-3%"), ("--threshold", "101%"),
                              ("--timeout", "0"), ("--timeout", "soon"), ("--seed", "xyz"),
                              ("--change", "1x"), ("--commit", "f" * 39), ("--shard", "3/2"),
                              ("--report", "pdf=x"), ("--report", "json="), ("--seed", "-1")):
            self.assert_refused(64, f"{option} is '{value}', expected", option, value)

    def test_a_folder_without_a_library(self):
        """The gate's own kernels are no stand-in for those of a repository."""
        write_file(self.path("mine.json"), "{}")
        for suite in ([], ["--suite", "mine.json"]):
            self.assert_refused(64, "no library is named", "--device", "host", "--accept-new",
                                *suite)
        self.assertEqual(os.listdir(self.folder), ["mine.json"])
        done = self.gate("verify", "--device", "host")
        self.assertEqual(done.returncode, 64)
        self.assertIn("`gate init` writes one", done.stderr)

    def test_library_that_is_cut_off_or_of_another_machine(self):
        with open(HOST, "rb") as file:
            whole = file.read()
        for name, content in (("foreign.so", whole[:18] + b"\xb7\0" + whole[20:]),
                              ("32.so", whole[:4] + b"\1" + whole[5:]),
                              ("cut.so", whole[:5000])):
            with open(self.path(name), "wb") as file:
                file.write(content)
        for name, why in (("foreign.so", "another type of machine"), ("cut.so", "is cut off"),
                          ("32.so", ", class 1; this gate is of ")):
            self.assert_refused(2, f"'{name}': it cannot be loaded: it", "--device", "host",
                                "--library", name)
            self.assert_refused(2, why, "--device", "host", "--library", name)

    def test_a_report_replaces_a_report_only(self):
        """What the run needs is as it was, also where the command line is refused."""
        shutil.copy(HOST, self.path("copy.so"))
        os.symlink("copy.so", self.path("link.so"))
        names = ("copy.so", "link.so", "suite.json", "gate.json", "op.json", "baselines/host.json")
        for name in names[2:]:
            write_file(self.path(name), '{"schema": "gate-config/1"}')
        before = [read_bytes(self.path(name)) for name in names]
        for name in names:
            for options, says in (((), f"would overwrite '{name}', which is no report"),
                                  (("--thresold", "2"), "unexpected option '--thresold'")):
                self.assert_refused(64, says, *options, "--library", "copy.so", "--suite",
                                    "suite.json", "--report", "csv=" + name)
        self.assertEqual([read_bytes(self.path(name)) for name in names], before)
        self.assert_refused(64, "would overwrite './gate.db', which is the history", "--library",
                            "copy.so", "--report", "json=./gate.db")
        self.assert_refused(64, "two reports would be written to './one'", "--suite", "smoke",
                            "--report", "json=one", "--report", "csv=./one")
        write_file(self.path("old"), "")
        for report in ("text", "markdown", "json", "junit", "csv", "text"):
            self.assert_refused(64, "matches 'no'", "--suite", "smoke", "--filter", "no",
                                "--report", report + "=old")

    def test_a_report_that_is_printed_again_replaces_no_history(self):
        self.assertEqual(self.run_smoke(cases="gemm/fp32/m4-*")[0], 3)
        before = read_bytes(self.path("gate.db"))
        done = self.gate("report", "--output", "gate.db")
        self.assertEqual(done.returncode, 64, done.stderr)
        self.assertIn("would overwrite 'gate.db', which is the history", done.stderr)
        self.assertEqual(read_bytes(self.path("gate.db")), before)

    def test_a_config_or_suite_that_cannot_be_read(self):
        config = self.path("gate.json")
        os.symlink("nowhere", config)
        self.assert_refused(74, "cannot open 'gate.json': No such file", "--suite", "smoke")
        os.remove(config)
        os.symlink("gate.json", config)
        self.assert_refused(74, "cannot open 'gate.json': Too many levels", "--suite", "smoke")
        os.remove(config)
        os.mkfifo(config)
        self.assert_refused(74, "'gate.json' is a pipe", "--suite", "smoke")
        os.remove(config)
        os.mkfifo(self.path("suite.json"))
        self.assert_refused(74, "is a pipe", "--device", "host", "--suite", "./suite.json",
                            "--library", HOST)

    def test_library_that_is_huge_or_no_file(self):
        with open(self.path("huge.so"), "wb") as file:
            file.truncate(6 << 30)
        os.mkfifo(self.path("pipe.so"))
        for name, why in (("huge.so", "is larger than the 1024 MiB"),
                          ("pipe.so", "is not a regular file"),
                          ("/dev/zero", "is not a regular file")):
            self.assert_refused(2, why, "--device", "host", "--library", name)

    def test_library_of_another_abi(self):
        self.assert_refused(2, "kernel ABI 3", "--device", "host", "--library",
                            mutant("wrong_abi"))

    def test_library_without_the_symbol(self):
        plain = os.path.join(self.folder, "plain.so")
        subprocess.run(["cc", "-shared", "-x", "c", "/dev/null", "-o", plain], check=True)
        self.assert_refused(2, "exports no 'kg_library'", "--device", "host", "--library", plain)

    def test_truncated_baseline(self):
        self.run_smoke("--accept-new", cases="gemm/fp32/m4-*")
        (name,) = os.listdir(self.path("baselines"))
        with open(self.path(f"baselines/{name}"), "r+", encoding="utf-8") as file:
            file.truncate(100)
        self.assert_refused(74, name, "--device", "host", "--suite", "smoke")

    def test_database_that_is_none(self):
        write_file(self.path("gate.db"), "certainly not a database, but a long text " * 50)
        self.assert_refused(74, "gate.db", "--device", "host", "--suite", "smoke")

    def test_database_in_a_folder_that_is_not_there(self):
        self.assert_refused(74, "nowhere", "--suite", "smoke", "--db", "nowhere/gate.db")


class FullDisk(Smoke):
    """A file size limit of the process stands for a full disk: write() fails in the same places."""

    def limited(self, *args):
        script = 'ulimit -f 64; trap "" XFSZ; exec "$@"'
        return subprocess.run(["bash", "-c", script, "bash", GATE, *args], cwd=self.folder,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    def test_nothing_is_half_written(self):
        # The store is about 100 KiB, more than the limit: the run must fail and leave no run.
        done = self.limited("run", "--device", "host", "--suite", "smoke", "--filter",
                            "gemm/fp32/m4-*", "--accept-new")
        self.assertEqual(done.returncode, 74, done.stderr)
        self.assertFalse(os.path.exists(self.path("baselines")))
        self.assertEqual([n for n in os.listdir(self.folder) if "tmp" in n], [])

    def test_a_report_that_cannot_be_written_costs_no_other(self):
        done = self.gate("run", "--device", "host", "--suite", "smoke", "--filter",
                         "gemm/fp32/m4-*", "--accept-new", "--report", "json=/dev/full",
                         "--report", "markdown=r.md")
        self.assertEqual(done.returncode, 74, done.stderr)
        self.assertIn("/dev/full", done.stderr)
        self.assertIn("gemm/fp32/m4-n1-k3", done.stdout)
        self.assertTrue(os.path.exists(self.path("r.md")))
        reports = [n for n in os.listdir(self.folder) if n.startswith("r.")]
        self.assertEqual(reports, ["r.md"])

    def test_a_report_without_a_folder_is_refused_before_anything_runs(self):
        done = self.gate("run", "--device", "host", "--suite", "smoke", "--accept-new",
                         "--report", "text=nowhere/r.txt")
        self.assertEqual((done.returncode, done.stdout), (74, ""))
        self.assertIn("nowhere", done.stderr)

    def test_baselines_that_could_not_be_kept_are_refused_before_anything_runs(self):
        write_file(self.path("file"), "not a folder")
        for bad in ("file", "nowhere/below"):
            done = self.gate("run", "--device", "host", "--suite", "smoke", "--accept-new",
                             "--baselines", bad)
            self.assertEqual((done.returncode, done.stdout), (74, ""))
            self.assertIn(bad, done.stderr)
        self.assertEqual(self.gate("export", "--format", "ndjson").stdout, "")


class Together(Smoke):
    def test_two_runs_at_once_lose_no_baseline(self):
        """As of two containers that share the stored baselines and nothing else."""
        commands = [[GATE, "run", "--device", "host", "--suite", "smoke", "--filter", cases,
                     "--budget", "5", "--accept-new", "--seed", DRAW]
                    for cases in ("gemm/fp32/*", "gemv/fp32/*")]
        runs = [subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL,
                                 env=dict(os.environ, GATE_CACHE=tempfile.mkdtemp(),
                                          GATE_LOCKS=tempfile.mkdtemp()),
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                for command in commands]
        for run in runs:
            # No complaint: only that nothing is committed here, and the baselines have to be.
            said = run.communicate()[1]
            self.assertEqual(re.findall(rb"gate run: (?!\S+ has changed|no commit is known here)",
                                        said), [], said)
            self.assertEqual(run.returncode, 0)
        (name,) = os.listdir(self.path("baselines"))
        stored = json.loads(read_file(self.path(f"baselines/{name}")))
        ops = {case.split("/")[0] for case in stored["cases"]}
        self.assertEqual(ops, {"gemm", "gemv"})

    def test_a_worker_does_not_outlive_its_gate(self):
        """The hanging kernel says its process id; the gate is killed; the worker must go."""
        pid_file = self.path("pid")
        gate = subprocess.Popen(
            [GATE, "run", "--device", "host", "--suite", "smoke", "--filter", "gemm/fp32/m4-*",
             "--library", mutant("hang"), "--timeout", "600"], cwd=self.folder,
            env=dict(os.environ, GATE_MUTANT_OF=HOST, GATE_MUTANT_PID=pid_file),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not os.path.exists(pid_file):
            self.assertIsNone(gate.poll())
            time.sleep(0.01)
        worker = int(read_file(pid_file))
        gate.kill()
        gate.wait()
        while self.is_running(worker):
            time.sleep(0.01)

    @staticmethod
    def is_running(pid):
        try:
            return read_file(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()[0] != "Z"
        except FileNotFoundError:
            return False


class ReadOnly(Smoke):
    @unittest.skipIf(os.geteuid() == 0 and not os.path.exists("/usr/bin/setpriv"),
                     "root writes anywhere, and setpriv is not here")
    def test_folder_without_write_permission(self):
        os.chmod(self.folder, 0o555)
        command = [GATE, "run", "--device", "host", "--suite", "smoke"]
        if os.geteuid() == 0:
            command = ["setpriv", "--reuid=65534", "--clear-groups", *command]
        done = subprocess.run(command, cwd=self.folder, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False)
        os.chmod(self.folder, 0o755)
        if "setpriv: failed to execute" in done.stderr:
            self.skipTest("another user cannot reach the build here")
        self.assertEqual(done.returncode, 74, done.stderr)
        self.assertIn("gate.db", done.stderr)


if __name__ == "__main__":
    unittest.main()
