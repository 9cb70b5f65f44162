# SPDX-License-Identifier: Apache-2.0
"""Stored baselines: how runs in a row move them, what a run records of a case, the libraries."""
import glob
import json
import math
import os
import shutil
import statistics
import subprocess
import unittest

from harness import FIRST, GATE, SECOND, FakeRuns, read_file, write_file



class Baselines(FakeRuns):
    """What several runs in a row do to a baseline (gate/baseline/ratchet.c)."""

    def baseline_log(self):
        done = subprocess.run([GATE, "baseline", "log", "--json", "--baselines",
                               self.path("baselines")], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=True)
        return [(c["case"], c["action"], c["reason"]) for c in json.loads(done.stdout)[2:]]

    def test_small_improvements_in_a_row_move_the_baseline(self):
        self.accept()
        for run in range(1, 5):
            code, document, errors = self.run_gate("--ratchet", p50={SECOND: 990.0})
            self.assertEqual(code, 0, errors)
            self.assertIn(f"run {run} of 5", self.cases(document)[SECOND]["reason"])
            self.assertEqual(self.baseline_log(), [])
        self.assertEqual(self.run_gate(p50={SECOND: 990.0})[0], 0)  # without --ratchet: no part
        code, document, errors = self.run_gate("--ratchet", p50={SECOND: 990.0})
        self.assertEqual(code, 0, errors)
        self.assertEqual(self.cases(document)[SECOND]["verdict"], "pass")
        ((case, action, reason),) = self.baseline_log()
        self.assertEqual((case, action), (SECOND, "trend"))
        self.assertIn("5 runs in a row found it faster, this one by 1.00 %", reason)
        baseline = self.cases(self.run_gate()[1])[SECOND]["baseline"]
        self.assertEqual(baseline["p50_ns"], 990.0)

    def test_a_baseline_that_git_ignores_is_not_to_be_committed(self):
        self.assertIn("has changed: commit it\n", self.run_gate("--accept-new")[2])
        shutil.rmtree(self.path("baselines"))
        subprocess.run(["git", "init", "-q", self.folder], check=True)
        write_file(self.path(".gitignore"), "baselines/")
        self.assertIn("has changed\n", self.run_gate("--accept-new")[2])

    def test_a_baseline_without_a_commit_is_said_to_be_none_that_can_be_rebuilt(self):
        said = "no commit is known here, so a new baseline names none"
        for options, expected in ((("--accept-new",), True), (("--ratchet",), True), ((), False)):
            self.assertEqual(said in self.run_gate(*options)[2], expected, options)

    def slow_hour(self, *args):
        return self.run_gate(*args, baseline_p50=1050.0, p50={FIRST: 1050.0, SECOND: 1050.0})

    def test_a_baseline_that_measures_slower_is_an_epoch_and_no_red(self):
        self.accept()
        for run in range(1, 6):
            code, document, errors = self.slow_hour("--ratchet")
            self.assertEqual(code, 0, errors)
            case = self.cases(document)[SECOND]
            self.assertEqual(case["verdict"], "pass")
            self.assertIn("re-measures 5.00 % slower than its record", case["reason"])
            self.assertEqual((case["baseline"]["p50_ns"], case["baseline"]["again_ns"]),
                             (1000.0, 1050.0))
            self.assertTrue(case["baseline"]["off"])
            self.assertEqual(len(self.baseline_log()), 2 * (run == 5))
        self.assertIn("a new epoch", case["reason"])
        self.assertEqual({action for _, action, _ in self.baseline_log()}, {"epoch"})
        case = self.cases(self.slow_hour()[1])[SECOND]
        self.assertFalse(case["baseline"]["off"])
        self.assertEqual(case["baseline"]["p50_ns"], 1050.0)

    def test_a_record_that_is_off_is_told_without_the_ratchet_too(self):
        self.accept()
        code, document, _ = self.slow_hour("--report", "text=r.txt", "--report", "markdown=r.md")
        self.assertEqual(code, 0)
        self.assertTrue(self.cases(document)[SECOND]["baseline"]["off"])
        for name in ("r.txt", "r.md"):
            self.assertIn("slower than its record", read_file(self.path(name)))
        self.assertEqual(self.baseline_log(), [])

    def test_a_baseline_of_another_device_model(self):
        """Each model has a file; one under another's name is refused before anything runs."""
        self.accept()
        other = {"device": {"model": "other-gpu"}}
        code, document, _ = self.run_gate(greeting=other)
        self.assertEqual(code, 3)
        for case in document["cases"]:
            self.assertEqual((case["baseline"], case["mode"]), (None, "none"))
            self.assertIn("no comparable baseline", case["reason"])
        os.rename(self.path("baselines/fake-gpu.json"), self.path("baselines/other-gpu.json"))
        code, document, errors = self.run_gate(greeting=other)
        self.assertEqual((code, document), (4, None), errors)
        self.assertIn("other-gpu.json", errors)
        self.assertIn("fake-gpu", errors)

    def test_another_driver_begins_an_epoch_at_once(self):
        self.accept()
        code, _, errors = self.run_gate("--ratchet", greeting={"device": {"driver": "2"}})
        self.assertEqual(code, 0, errors)
        self.assertEqual([action for _, action, _ in self.baseline_log()], ["epoch", "epoch"])
        self.assertIn("the epoch was 1/1/0 and is 2/1/0", self.baseline_log()[0][2])


class Coverage(FakeRuns):
    """What a run leaves out is missed."""

    def write_suite(self, *sizes, name="two"):
        cases = [{"op": "gemm", "dtype": "fp32", "m": n, "n": n, "k": n} for n in sizes]
        write_file(self.suite, json.dumps({"schema": "gate-suite/1", "name": name,
                                           "cases": cases}))

    def retire(self, case, *args):
        return self.gate("baseline", "retire", case, "--baselines", self.path("baselines"), *args)

    def test_a_case_that_left_its_suite_is_missed_until_it_is_retired(self):
        self.accept()
        self.write_suite(2)
        code, document, _ = self.run_gate()
        missing = self.cases(document)[SECOND]
        self.assertEqual((code, missing["verdict"], missing["arms"]), (3, "no-verdict", []))
        self.assertIn("taken in suite 'two', which does not have the case any more",
                      missing["reason"])
        self.assertIn(f"gate baseline retire {SECOND} --reason TEXT", missing["reason"])
        self.write_suite(2, name="other")  # in which nothing was taken
        self.assertEqual(self.run_gate()[0], 0)
        self.write_suite(2)
        self.assertEqual(self.retire(SECOND).returncode, 64)
        done = self.retire(SECOND, "--reason", "the op is gone")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        code, document, _ = self.run_gate()
        self.assertEqual((code, len(document["cases"])), (0, 1))
        log = json.loads(self.gate("baseline", "log", "--json", "--baselines",
                                   self.path("baselines")).stdout)
        self.assertEqual([log[-1][key] for key in ("case", "action", "from_ns", "to_ns",
                                                   "reason")],
                         [SECOND, "retire", 1000.0, None, "the op is gone"])
        done = self.retire("*", "--reason", "all")
        self.assertEqual(done.returncode, 64)
        self.assertIn("'*' is a pattern", done.stderr)
        done = self.retire(SECOND, "--reason", "again")
        self.assertEqual(done.returncode, 64)
        self.assertIn("has no baseline in", done.stderr)

    def test_a_case_knows_all_suites_that_it_was_taken_in(self):
        self.accept()
        self.write_suite(2, 3, name="other")
        self.assertEqual(self.run_gate("--ratchet", p50={SECOND: 900.0})[0], 0)
        (file,) = glob.glob(self.path("baselines/*.json"))
        stored = json.loads(read_file(file))["cases"]
        self.assertEqual(stored[FIRST]["suites"], ["two"])
        self.assertEqual(stored[SECOND]["suites"], ["two", "other"])

    def test_a_part_of_the_suite_does_for_no_job(self):
        self.accept()
        self.assertEqual(self.run_gate("--filter", "*m2*")[0], 0)
        os.environ["CI"] = "true"
        self.addCleanup(os.environ.pop, "CI")
        code, _, errors = self.run_gate("--filter", "*m2*")
        self.assertEqual(code, 3)
        self.assertIn("leaves out 1 of the suite's 2 cases", errors)
        self.assertEqual(self.run_gate("--filter", "*")[0], 0)
        report = self.path("report.txt")
        code, document, errors = self.run_gate("--filter", "*m2*", "--partial", "--report",
                                               "text=" + report)
        self.assertEqual(code, 0, errors)
        self.assertEqual(document["filtered"], [{"id": SECOND}])
        self.assertIn(f"left out by --filter: 1 of the suite's 2 cases: {SECOND}\n",
                      read_file(report))


class Records(FakeRuns):
    """What the record says of a case is what all of its processes found."""

    TIMES = [1500.0, 1010.0, 1000.0, 990.0, 1005.0]

    def test_the_time_of_a_case_is_the_median_over_its_processes(self):
        self.accept()
        code, document, errors = self.run_gate(count=self.path("count"), log_ratio={SECOND: [0.0]},
                                               p50s={SECOND: self.TIMES})
        self.assertEqual(code, 0, errors)
        case = self.cases(document)[SECOND]
        timing, baseline = (arm["timing"] for arm in case["arms"][:2])
        self.assertEqual([p["p50_ns"] for p in case["processes"]], self.TIMES)
        for process in case["processes"]:
            self.assertAlmostEqual(process["half_width"], 0.001)
        self.assertEqual((timing["p50_ns"], timing["p50_lo_ns"], timing["p50_hi_ns"]),
                         (1005.0, 990.0, 1500.0))
        self.assertAlmostEqual(timing["p90_ns"], 1005.0 * 1.01)
        self.assertAlmostEqual(timing["p10_ns"], 1005.0 * 0.995)
        self.assertEqual(timing["processes"], 5)
        logs = [math.log(t) for t in self.TIMES]
        self.assertAlmostEqual(timing["spread"], statistics.stdev(logs))
        # The fake's first process said 1 TFLOP/s at 1500 ns.
        self.assertAlmostEqual(timing["tflops"], 1500 / 1005)
        self.assertIsNone(timing["ceiling"])
        self.assertEqual((baseline["p50_ns"], baseline["processes"], baseline["spread"]),
                         (1000.0, 5, 0.0))

    def test_the_median_takes_the_confirmation_in(self):
        self.accept()
        _, document, _ = self.run_gate(count=self.path("count"),
                                       p50s={SECOND: [1100.0] * 4 + [1110.0] * 6})
        timing = self.cases(document)[SECOND]["arms"][0]["timing"]
        self.assertEqual((timing["p50_ns"], timing["processes"]), (1110.0, 10))

    def test_one_process_keeps_the_interval_of_its_samples(self):
        _, document, _ = self.run_gate(p50={SECOND: 1100.0})
        timing = self.cases(document)[SECOND]["arms"][0]["timing"]
        self.assertEqual((timing["p50_lo_ns"], timing["processes"]), (1100.0 * 0.999, 1))
        self.assertNotIn("spread", timing)


class Libraries(FakeRuns):
    """The library of the baseline: artifact, number, refusal."""

    def artifacts(self):
        return glob.glob(self.path("cache/artifacts/*.so"))

    def drop_artifacts(self):
        for name in self.artifacts():
            os.unlink(name)

    def test_a_baseline_is_kept_with_its_library(self):
        self.accept()
        (name,) = self.artifacts()
        self.assertEqual(read_file(name), "old")

    def test_without_its_library_the_number_is_shown_and_no_verdict(self):
        self.accept()
        self.drop_artifacts()
        for p50, change in ((1000.0, "+0.00 %"), (1200.0, "+20.00 %"), (700.0, "-30.00 %")):
            with self.subTest(p50=p50):
                code, document, errors = self.run_gate("--ratchet", p50={FIRST: p50, SECOND: p50})
                self.assertEqual(code, 3, errors)
                case = document["cases"][0]
                self.assertEqual((case["mode"], case["verdict"]), ("number", "no-verdict"))
                self.assertAlmostEqual(case["ratio"]["value"], p50 / 1000)
                self.assertEqual(case["mde"], 0.25)
                self.assertIn(f"p50 over the control is {change}", case["reason"])
                self.assertIn("'gate baseline fetch --server URL' brings the library",
                              case["reason"])
                self.assertEqual(case["baseline"]["p50_ns"], 1000.0)

    def test_a_long_reason_is_told_in_short_lines(self):
        self.accept()
        self.drop_artifacts()
        report = self.path("report.txt")
        self.assertEqual(self.run_gate("--report", "text=" + report)[0], 3)
        told = read_file(report).split("\nno-verdict ")[1].splitlines()
        self.assertGreater(len(told), 3)
        reason = [line for line in told if " " in line.strip() and line.startswith("    ")]
        self.assertGreater(len(reason), 2)
        self.assertLessEqual(max(map(len, reason)), 100)
        self.assertIn("    p50 over the control is +0.00 %", told[1])

    def test_a_number_goes_red_for_a_large_excess(self):
        self.accept()
        self.drop_artifacts()
        code, document, _ = self.run_gate(p50={SECOND: 1300.0})
        self.assertEqual(code, 1)
        self.assertEqual(self.cases(document)[SECOND]["verdict"], "regression")
        self.assertEqual(self.cases(document)[FIRST]["verdict"], "no-verdict")

    def test_a_number_of_another_epoch_is_not_compared(self):
        self.accept()
        self.drop_artifacts()
        code, document, _ = self.run_gate(greeting={"device": {"driver": "2"}})
        self.assertEqual(code, 3)
        self.assertIn("another epoch", document["cases"][0]["reason"])

    def test_a_pair_is_compared_in_another_epoch(self):
        self.accept()
        code, document, _ = self.run_gate(greeting={"device": {"driver": "2"}})
        self.assertEqual(code, 0)
        self.assertEqual(document["cases"][0]["mode"], "paired")

    def test_a_damaged_artifact_is_refused(self):
        self.accept()
        (name,) = self.artifacts()
        os.chmod(name, 0o644)
        with open(name, "a", encoding="utf-8") as file:
            file.write("x")
        code, document, errors = self.run_gate()
        self.assertEqual((code, document), (4, None))
        self.assertIn("refused", errors)

    def test_a_baseline_that_fails_here_leaves_its_number(self):
        self.accept()
        code, document, _ = self.run_gate(baseline_fails="it is all zeros")
        self.assertEqual(code, 3)
        self.assertEqual(document["cases"][0]["mode"], "number")
        self.assertIn("it is all zeros", document["cases"][0]["reason"])

    def test_a_baseline_that_is_lost_again_and_again_ends_without_a_verdict(self):
        self.accept()
        code, document, errors = self.run_gate(baseline_is_lost=True)
        self.assertEqual(code, 3, errors)
        for case in document["cases"]:
            self.assertEqual(case["verdict"], "no-verdict")
            self.assertEqual(len(case["processes"]), 1)
            self.assertIn("only 1 of at least 5 processes", case["reason"])
            self.assertIn("the baseline could not be measured in 3 processes", case["reason"])
        self.assertEqual(document["n_processes"], 4)

    def test_against_a_file(self):
        write_file(self.path("other.so"), "other")
        code, document, errors = self.run_gate("--against", self.path("other.so"),
                                               p50={SECOND: 1100.0})
        self.assertEqual(code, 1, errors)
        self.assertEqual(self.cases(document)[FIRST]["verdict"], "pass")

    def test_against_what_is_neither_file_nor_commit(self):
        code, document, errors = self.run_gate("--against", "no-such-thing")
        self.assertEqual((code, document), (64, None), errors)
        self.assertIn("no-such-thing", errors)

    def test_accepting_goes_with_the_stored_baseline_alone(self):
        code, document, _ = self.run_gate("--against", self.suite, "--accept-new")
        self.assertEqual((code, document), (64, None))


if __name__ == "__main__":
    unittest.main()
