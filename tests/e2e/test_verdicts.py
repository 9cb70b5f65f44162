# SPDX-License-Identifier: Apache-2.0
"""What processes measured becomes a verdict, an exit code and a reason."""
import glob
import json
import os
import unittest

from harness import FIRST, SECOND, SUITE, WORKER, FakeRuns, read_file, write_file



class Verdicts(FakeRuns):
    """p50 is 1000 ns in all runs unless said, so that verdicts are known."""

    def test_without_a_baseline_there_is_no_verdict(self):
        code, document, _ = self.run_gate()
        self.assertEqual(code, 3)
        self.assertEqual({c["verdict"] for c in document["cases"]}, {"no-verdict"})
        self.assertFalse(os.path.exists(self.path("baselines")))
        missing = "no comparable baseline is stored, and their folder does not exist"
        self.assertTrue(document["cases"][0]["reason"].startswith(missing))
        os.mkdir(self.path("baselines"))
        self.assertNotIn("their folder", self.run_gate()[1]["cases"][0]["reason"])

    def test_first_measurements_are_taken_when_asked(self):
        self.accept()
        code, document, _ = self.run_gate()
        self.assertEqual(code, 0)
        self.assertEqual(document["verdict"], "pass")
        self.assertEqual(document["cases"][0]["baseline"]["p50_ns"], 1000.0)

    def test_a_time_that_is_hardly_known_is_a_baseline_that_says_so(self):
        """The pairs carry the verdict. The fake's interval is 0.1 % to either side; half of the
        threshold is 1 %."""
        for lo, says in ((985.0, True), (995.0, False)):
            with self.subTest(lo=lo):
                wide = {"p50_lo_ns": lo, "p50_hi_ns": 1007.0}
                code, document, errors = self.run_gate("--accept-new", only=FIRST, timing=wide)
                self.assertEqual(code, 0, errors)
                case = self.cases(document)[FIRST]
                self.assertEqual("though its p50 is known within 1.10 % only" in case["reason"],
                                 says, case["reason"])
                self.assertIsNotNone(self.cases(self.run_gate()[1])[FIRST]["baseline"])
                os.remove(glob.glob(self.path("baselines/*.json"))[0])

    def test_what_leaves_work_out_is_no_first_baseline(self):
        """Alone, too, it is timed on fresh inputs; one process may err."""
        for alone, verdict in (([1.4] * 5, "wrong"), ([1.4, 1.0, 1.4, 1.4, 1.4], "pass"),
                               ([1.2] * 5, "pass")):
            with self.subTest(alone=alone):
                _, document, errors = self.run_gate(
                    "--accept-new", alone={SECOND: alone}, count=self.path(f"count-{alone[1]}"))
                case = self.cases(document)[SECOND]
                self.assertEqual(case["verdict"], verdict, errors)
                self.assertEqual(len(case["processes"]), 5)
                self.assertEqual("where its result is there already" in case["reason"],
                                 verdict == "wrong")
                self.assertEqual(self.cases(document)[FIRST]["verdict"], "pass")
                for path in glob.glob(self.path("baselines/*.json")):
                    os.remove(path)
        _, document, _ = self.run_gate(alone={SECOND: [1.4] * 5}, count=self.path("count"))
        case = self.cases(document)[SECOND]
        self.assertEqual((case["verdict"], len(case["processes"])), ("wrong", 5))

    def test_a_regression_is_confirmed_in_fresh_processes(self):
        self.accept()
        code, document, _ = self.run_gate(p50={SECOND: 1100.0})
        case = self.cases(document)[SECOND]
        self.assertEqual((code, document["verdict"], case["verdict"]), (1, "regression",
                                                                        "regression"))
        self.assertEqual([p["stage"] for p in case["processes"]],
                         ["first"] * 5 + ["confirmation"] * 5)
        self.assertAlmostEqual(case["ratio"]["value"], 1.1)
        self.assertEqual((case["mode"], case["baseline"]["made_by"]), ("paired", "accept-new"))
        first = self.cases(document)[FIRST]
        self.assertEqual(first["verdict"], "pass")
        self.assertEqual([p["swapped"] for p in first["processes"]],
                         [False, True, False, True, False])

    def test_a_regression_says_what_differs_in_its_kernels(self):
        def kernel(name, code, **figures):
            return dict({"name": name, "code_sha256": code * 64, "grid": "132 x 1 x 1",
                         "block": "128 x 1 x 1", "shared_bytes": 1024, "registers": 96,
                         "stack": 0, "barriers": 1, "code": 4096}, **figures)
        self.accept()
        reports = {name: self.path(f"report.{name}") for name in ("text", "markdown")}
        code, document, errors = self.run_gate(
            *(f"--report={name}={path}" for name, path in reports.items()),
            p50={SECOND: 1100.0}, only=SECOND,
            timing={"kernels": [kernel("same", "a"),
                                kernel("spills", "b", registers=128, local_stores=64),
                                kernel("moved", "c"), kernel("again", "a", launches=8),
                                kernel("new\x1b[1m", "d")]},
            baseline_kernels=[kernel("same", "a"), kernel("spills", "e", local_stores=0),
                              kernel("moved", "f"), kernel("again", "a", launches=1),
                              kernel("old", "9")])
        self.assertEqual(code, 1, errors)
        arms = {arm["role"]: arm for arm in self.cases(document)[SECOND]["arms"]}
        self.assertEqual(len(arms["candidate"]["timing"]["kernels"]), 5)
        for path in reports.values():
            said = " ".join(read_file(path).split())
            for line in ("spills: registers 96 -> 128, bytes of local stores 0 -> 64",
                         "moved: other machine code, the same figures",
                         "again: launches 1 -> 8",
                         "new??1m: the baseline does not launch it",
                         "old: the baseline's, not launched any more"):
                self.assertIn(line, said.replace("\\", "").replace("&gt;", ">"))
            self.assertNotIn("same: ", said)

    def test_the_threshold_can_be_moved(self):
        """p90 is reported, and not judged."""
        self.accept()
        for threshold, expected in (("15%", 0), ("5 %", 1)):
            code, document, _ = self.run_gate("--threshold", threshold, p50={SECOND: 1100.0})
            self.assertEqual(code, expected)
            self.assertAlmostEqual(self.cases(document)[SECOND]["ratio_p90"]["value"], 1.1)

    def test_a_suite_can_set_the_threshold_of_a_case(self):
        self.accept()
        SUITE["cases"][1]["threshold"] = 0.15
        try:
            self.setUp_suite()
            self.assertEqual(self.run_gate(p50={SECOND: 1100.0})[0], 0)
            self.assertEqual(self.run_gate(p50={FIRST: 1100.0})[0], 1)
        finally:
            del SUITE["cases"][1]["threshold"]

    def test_on_the_threshold_there_is_no_verdict_after_twenty_processes(self):
        self.accept()
        code, document, _ = self.run_gate(p50={SECOND: 1020.0})
        self.assertEqual(code, 3)
        case = self.cases(document)[SECOND]
        self.assertEqual(case["verdict"], "no-verdict")
        self.assertEqual(len(case["processes"]), 20)

    def test_what_a_call_takes_on_the_host_is_reported_and_judged_when_asked(self):
        """The device's time is the same."""
        self.accept()
        calls = {SECOND: 1.5}
        text = self.path("report.txt")
        for call_ns, told in ((199e3, False), (201e3, True)):  # half of it is 100 us
            code, document, errors = self.run_gate("--report", f"text={text}", calls=calls,
                                                   call_ns=call_ns)
            self.assertEqual(code, 0, errors)
            case = self.cases(document)[SECOND]
            self.assertAlmostEqual(case["ratio_calls"]["value"], 1.5)
            self.assertNotIn("host_threshold", document["policy"])
            self.assertEqual("launch()      +50.0 % " in read_file(text), told)
        code, document, _ = self.run_gate("--host-threshold", "20%", calls=calls)
        case = self.cases(document)[SECOND]
        self.assertEqual((code, case["verdict"], len(case["processes"])), (1, "regression", 10))
        self.assertEqual(document["policy"]["host_threshold"], 0.2)
        self.assertIn("launch() on the host: slower by 50.00 %", case["reason"])
        self.assertIn("Its time on the device: ", case["reason"])
        self.assertEqual(self.cases(document)[FIRST]["verdict"], "pass")
        self.assertEqual(len(self.cases(document)[FIRST]["processes"]), 5)
        self.assertEqual(self.run_gate("--host-threshold", "60%", calls=calls)[0], 0)

    def test_a_call_that_takes_twice_as_long_fails_by_itself(self):
        self.accept()
        for ratio, call_ns, red in ((2.2, 30e3, True), (1.9, 30e3, False), (2.2, 10e3, False)):
            with self.subTest(ratio=ratio, call_ns=call_ns):
                code, document, _ = self.run_gate(calls={SECOND: ratio}, call_ns=call_ns)
                case = self.cases(document)[SECOND]
                self.assertEqual((code, case["verdict"]),
                                 (1, "regression") if red else (0, "pass"), case["reason"])
                self.assertEqual("launch() on the host: slower by 120.00 %" in case["reason"], red)

    def test_equal_kernels_may_be_called_slowly(self):
        """Same machine code is settled by one process, but says nothing of launch()."""
        self.accept()
        same = {"same_code": [FIRST, SECOND]}
        for arguments, verdict in (((), "pass"), (("--host-threshold", "20%"), "regression")):
            with self.subTest(verdict):
                _, document, _ = self.run_gate(*arguments, calls={SECOND: 1.5}, **same)
                case = self.cases(document)[SECOND]
                self.assertEqual(case["verdict"], verdict)
                self.assertAlmostEqual(case["ratio_calls"]["lo"], 1.5)

    def test_calls_of_one_file_ask_for_no_other_process(self):
        self.accept()
        code, document, _ = self.run_gate(library="old", calls={SECOND: 1.5})
        self.assertEqual((code, [len(c["processes"]) for c in document["cases"]]), (0, [1, 1]))

    def test_a_call_that_was_not_measured_is_no_green(self):
        self.accept()
        code, document, _ = self.run_gate("--host-threshold", "20%")
        self.assertEqual(code, 3)
        self.assertIn("launch() on the host: the worker did not measure it",
                      self.cases(document)[FIRST]["reason"])

    def test_an_open_question_about_calls_does_not_open_the_other_again(self):
        """1.5 at 50 % stays open for 20 processes; the device's time passed after five."""
        self.accept()
        code, document, _ = self.run_gate("--host-threshold", "50%",
                                          calls={SECOND: 1.5},
                                          log_ratio={SECOND: [0.0] * 5 + [0.5]},
                                          count=self.path("count"))
        case = self.cases(document)[SECOND]
        self.assertEqual((code, case["verdict"], len(case["processes"])), (3, "no-verdict", 20))
        self.assertIn("Its time on the device: +0.00 %", case["reason"])

    def test_faster_is_an_improvement_and_the_baseline_stays(self):
        self.accept()
        code, document, _ = self.run_gate(p50={SECOND: 900.0})
        self.assertEqual(code, 0)
        self.assertEqual(self.cases(document)[SECOND]["verdict"], "improvement")
        self.assertEqual(self.cases(self.run_gate()[1])[SECOND]["baseline"]["p50_ns"], 1000.0)

    def test_what_leaves_work_out_where_it_is_done_is_not_faster(self):
        """It was seen in fresh processes once more."""
        self.accept()
        for arguments in ((), ("--ratchet",)):
            code, document, _ = self.run_gate(*arguments, p50={SECOND: 900.0},
                                              fresh={SECOND: 1.1})
            case = self.cases(document)[SECOND]
            self.assertEqual((code, case["verdict"], len(case["processes"])),
                             (3, "no-verdict", 10))
            self.assertIn("faster where its result is there already: ", case["reason"])
            self.assertIn("slower by 10.00 %", case["reason"])
        self.assertEqual(self.cases(self.run_gate()[1])[SECOND]["baseline"]["p50_ns"], 1000.0)

    def test_what_is_left_of_an_improvement_on_fresh_inputs_decides_where_times_are_noisy(self):
        self.accept()
        noisy = {SECOND: [1.1, 0.9, 1.15, 1.0, 0.95] * 4}
        for p50, verdict, processes in ((700.0, "improvement", 5), (900.0, "pass", 20)):
            code, document, errors = self.run_gate(
                p50={SECOND: p50}, freshs=noisy, count=self.path(f"count-{p50}"))
            case = self.cases(document)[SECOND]
            self.assertEqual((code, case["verdict"], len(case["processes"])),
                             (0, verdict, processes), errors)
        self.assertIn("faster, which is not believed: ", case["reason"])

    def test_what_was_not_timed_on_fresh_inputs_is_not_called_faster(self):
        self.accept()
        code, document, _ = self.run_gate(p50={SECOND: 900.0}, fresh={})
        case = self.cases(document)[SECOND]
        self.assertEqual((code, case["verdict"]), (0, "pass"))
        self.assertIn("faster, which is not believed: ", case["reason"])
        self.assertIn("the worker did not measure it", case["reason"])
        self.assertEqual(self.run_gate(p50={SECOND: 1100.0}, fresh={})[0], 1)

    def test_the_ratchet_follows_a_confirmed_improvement(self):
        self.accept()
        code, document, errors = self.run_gate("--ratchet", p50={SECOND: 900.0})
        self.assertEqual(code, 0, errors)
        case = self.cases(document)[SECOND]
        self.assertEqual(len(case["processes"]), 10)
        baseline = self.cases(self.run_gate()[1])
        self.assertEqual(baseline[SECOND]["baseline"]["p50_ns"], 900.0)
        self.assertEqual(baseline[FIRST]["baseline"]["p50_ns"], 1000.0)
        self.assertNotEqual(baseline[FIRST]["baseline"]["library_sha256"],
                            baseline[SECOND]["baseline"]["library_sha256"])


class Kept(FakeRuns):
    """What was measured is shown, whether or not it can be stored at the end."""

    def run_with(self, command, *args):
        """The worker does this at each start."""
        worker = write_file(self.path("worker"),
                            f"#!/bin/sh\n{command}\nexec '{WORKER}' \"$@\"\n")
        os.chmod(worker, 0o755)
        report = self.path("report.txt")
        code, document, errors = self.run_gate("--worker", worker, "--report", "text=" + report,
                                               *args)
        return code, document, errors, read_file(report)

    def test_a_history_that_is_gone_at_the_end(self):
        folder = self.path("history")
        os.mkdir(folder)
        self.accept()
        code, document, errors, report = self.run_with(f"rm -rf '{folder}'", "--db",
                                                       folder + "/gate.db")
        self.assertEqual((code, document["verdict"], len(document["cases"])), (74, "pass", 2))
        self.assertIn(folder, document["not_stored"])
        self.assertIn("NOT STORED", report)
        self.assertIn("2 pass", report)
        self.assertIn(document["not_stored"], errors)

    def test_baselines_that_cannot_be_written(self):
        folder = self.path("baselines")
        code, document, _, report = self.run_with(f"rm -rf '{folder}'", "--accept-new")
        self.assertEqual((code, len(document["cases"])), (74, 2))
        self.assertIn("NOT STORED at its end, and no baseline has changed", report)
        done = self.gate("export", "--db", self.path("gate.db"))
        self.assertEqual(done.stdout, "")


class Outside(FakeRuns):
    """What somebody outside did to the process is not put down to the kernel."""

    WRONG = {"outcome": "wrong", "spoiled": True, "message":
             "the kernel changed the state of the process: the scheduling policy or niceness"}

    def run_with(self, count, *records):
        self.accept()
        code, document, errors = self.run_gate(count=self.path(count),
                                               records={FIRST: list(records)})
        return code, self.cases(document)[FIRST]["verdict"], errors

    def test_a_niceness_that_changed_once_is_looked_at_again_and_nothing_else(self):
        other = {**self.WRONG, "message": "the kernel changed the state of the process: the mask"}
        for n, (records, expected) in enumerate((((self.WRONG, {}), (0, "pass")),
                                                 ((self.WRONG, self.WRONG, {}), (2, "wrong")),
                                                 ((other, {}), (2, "wrong")))):
            self.assertEqual(self.run_with(f"count-{n}", *records)[:2], expected)


class Regime(FakeRuns):
    """Input sets are decided by the first process of a case, and kept."""

    def run_with(self, sets):
        self.accept()
        code, document, errors = self.run_gate(count=self.path("count"), sets={FIRST: sets})
        return code, self.cases(document)[FIRST], errors

    def test_the_sets_of_the_first_process_are_asked_of_the_others(self):
        code, case, errors = self.run_with([8, None])
        self.assertEqual((code, case["verdict"]), (0, "pass"), errors)
        timing = case["arms"][0]["timing"]
        self.assertEqual((timing["input_sets"], len(case["processes"])), (8, 5))

    def test_processes_of_two_regimes_are_not_pooled(self):
        code, case, _ = self.run_with([8, None, 4])
        self.assertEqual((code, case["verdict"]), (4, "environment"))
        self.assertEqual(len(case["processes"]), 2)
        self.assertIn("rotated over 8 sets of inputs, and a later one over 4", case["reason"])


class Noise(FakeRuns):
    """Unchanged code on a noisy host: d of each process of a CPU kernel, recorded on two shared
    cores with busy loops beside the gate."""

    BUSY = [0.0002, -0.0024, -0.8012, 0.0255, 0.0289, -0.0017, -0.0007, -0.4432, 0.0065, 0.1204,
            -0.35, 0.478, 0.0034, -0.01, 0.1921, 0.069, -0.174, -0.1192, -0.0014, 0.2207]
    BUSY_TOO = [-0.017, -0.0006, 0.6123, -0.1571, 0.0072, -0.0012, 0.3555, 0.0028, 0.0003, 0.0182,
                -0.0119, -0.0032, 0.4787, 0.0057, -0.0043, -0.4355, -0.0772, -0.8172, -0.3966,
                0.2581]
    NOT_SLOW = [0.0013, -0.0026, -0.6102, -0.2293, 0.0031]

    def run_noisy(self, *args, **d):
        self.accept()
        code, document, errors = self.run_gate(*args, count=self.path("count"), log_ratio=d)
        self.assertIsNotNone(document, errors)
        return code, self.cases(document)

    def test_a_busy_host_is_no_verdict_and_no_red(self):
        for threshold in ("2%", "0.5%"):
            with self.subTest(threshold=threshold):
                code, cases = self.run_noisy("--threshold", threshold,
                                             **{FIRST: self.BUSY, SECOND: self.BUSY_TOO})
                self.assertEqual(code, 3)
                for case in cases.values():
                    self.assertEqual(case["verdict"], "no-verdict")
                    self.assertEqual(len(case["processes"]), 20)
                    self.assertIn("this machine resolves", case["reason"])
                    self.assertGreater(case["mde"], 0.1)
                os.unlink(self.path("count"))

    def test_in_any_order(self):
        """Also where the slow ones come first and a suspicion is raised."""
        self.accept()
        for order in (sorted(self.BUSY), sorted(self.BUSY, reverse=True), self.BUSY[9:] +
                      self.BUSY[:9]):
            code, document, _ = self.run_gate(count=self.path("count"),
                                              log_ratio={SECOND: order * 2})
            self.assertIn(code, (0, 3))
            self.assertNotEqual(self.cases(document)[SECOND]["verdict"], "regression")
            os.unlink(self.path("count"))

    def test_five_wild_processes_are_no_pass_though_none_is_slow(self):
        _, cases = self.run_noisy(**{SECOND: self.NOT_SLOW})
        self.assertEqual(len(cases[FIRST]["processes"]), 5)
        self.assertGreaterEqual(len(cases[SECOND]["processes"]), 8)


class Effort(FakeRuns):
    def budgets(self, *args, **fake):
        path = self.path("budgets")
        code, _, errors = self.run_gate("--budget", "77", *args, budgets=path, **fake)
        self.assertEqual(code, 0, errors)
        with open(path, encoding="utf-8") as file:
            budgets = [json.loads(line) for line in file]
        os.unlink(path)
        return {name: [ms for n, ms in budgets if n == name] for name in (FIRST, SECOND)}

    def test_a_file_against_itself_gets_its_eight_rounds(self):
        """But where it is measured in full, may become a baseline, or vendors stand beside it."""
        self.accept()
        vendor = {"providers": ["vendor"]}
        for args, fake, first in (((), {}, 0), (("--full",), {}, 77), (("--ratchet",), {}, 77),
                                  ((), vendor, 77)):
            with self.subTest(args=args, fake=fake):
                of = self.budgets(*args, library="old", **fake)
                self.assertEqual((of[FIRST][0], of[SECOND][0]), (first, first))

    def test_later_processes_sample_longer_where_a_process_did_not_know_its_ratio(self):
        """A replay of the fake lasts 10 us, so eight rounds are 0.384 ms."""
        self.accept()
        of = self.budgets(widths={FIRST: 0.002, SECOND: 0.0005})
        self.assertEqual(of[SECOND], [77] + [0] * 4)
        # 40 samples with twice the width: 80 rounds would do, 72 of them beyond the eight.
        self.assertEqual(of[FIRST][0], 77)
        for ms in of[FIRST][1:]:
            self.assertAlmostEqual(ms, 80 * 0.048)


class Adjudication(FakeRuns):
    def test_the_same_file_is_never_a_regression(self):
        self.accept()
        code, document, _ = self.run_gate(library="old", p50={SECOND: 1100.0})
        self.assertEqual(code, 4)
        case = self.cases(document)[SECOND]
        self.assertEqual(case["verdict"], "environment")
        self.assertTrue(case["same_library"])

    def test_the_same_machine_code_is_never_a_regression(self):
        """The libraries are two files, and one kernel of them is the same in both."""
        self.accept()
        code, document, _ = self.run_gate(p50={FIRST: 1100.0, SECOND: 1100.0}, same_code=[SECOND])
        self.assertEqual(code, 1)
        first, second = (self.cases(document)[name] for name in (FIRST, SECOND))
        self.assertEqual((first["verdict"], first["same_code"]), ("regression", False))
        self.assertEqual((second["verdict"], second["same_code"]), ("environment", True))
        self.assertFalse(second["same_library"])
        self.assertIn("run the same machine code", second["reason"])

    def same_code(self, n, *args, others=0, **fake):
        """Runs n cases that run the same machine code, but for some of them; their documents."""
        cases = [{"op": "gemm", "dtype": "fp32", "m": k, "n": k, "k": k} for k in range(2, n + 2)]
        write_file(self.suite, json.dumps(dict(SUITE, cases=cases)))
        self.accept()
        names = [f"gemm/fp32/m{k}-n{k}-k{k}" for k in range(2, n + 2)]
        code, document, errors = self.run_gate(*args, same_code=names[others:], **fake)
        self.assertEqual(code, 0, errors)
        return document["cases"]

    def test_the_same_code_takes_one_process_and_a_tenth_of_it_all(self):
        """The tenth joins the processes that another case needs."""
        cases = self.same_code(200, "--seed", "1", others=1)
        short = [c for c in cases if len(c["processes"]) == 1]
        full = [c for c in cases if len(c["processes"]) >= 5]
        self.assertEqual(len(short) + len(full), 200)
        self.assertTrue(8 <= len(full) <= 35, len(full))
        for case in short:
            self.assertEqual((case["verdict"], case["same_code"]), ("pass", True))
            self.assertTrue(case["reason"].startswith("same code: "), case["reason"])
            self.assertTrue(case["arms"][0]["verify"]["ok"])

    def test_no_process_is_started_for_the_tenth_alone(self):
        for case in self.same_code(60, "--seed", "1"):
            self.assertEqual(len(case["processes"]), 1)

    def test_which_tenth_that_is_goes_by_the_seed(self):
        def full(seed):
            return {c["id"] for c in self.same_code(60, "--seed", seed, others=1)
                    if len(c["processes"]) > 1}
        self.assertEqual(full("1"), full("1"))
        self.assertNotEqual(full("1"), full("2"))

    def test_the_same_code_in_full(self):
        for case in self.same_code(4, "--full"):
            self.assertGreaterEqual(len(case["processes"]), 5)

    def test_the_same_code_while_baselines_may_move(self):
        """It is measured in full where that may move its baseline; else that stays as it is."""
        n = 4
        names = [f"gemm/fp32/m{k}-n{k}-k{k}" for k in range(2, n + 2)]
        cases = self.same_code(n, "--ratchet", "--seed", "1")
        self.assertEqual([len(c["processes"]) for c in cases], [1] * n)

        def stored():
            return read_file(self.path("baselines/fake-gpu.json"))
        before = stored()

        def processes(**fake):
            code, document, errors = self.run_gate("--ratchet", "--seed", "1", same_code=names,
                                                   **fake)
            self.assertEqual(code, 0, errors)
            return [len(c["processes"]) for c in document["cases"]]
        self.assertEqual(processes(), [1] * n)
        self.assertEqual(stored(), before)
        slow_hour = {"baseline_p50": 1050.0, "p50": dict.fromkeys(names, 1050.0)}
        self.assertGreaterEqual(min(processes(**slow_hour)), 5)
        self.assertGreaterEqual(min(processes()), 5)  # which ends the trend
        self.assertEqual(processes(), [1] * n)
        self.assertGreaterEqual(min(processes(greeting={"device": {"driver": "2"}})), 5)
        self.assertNotEqual(stored(), before)

    def test_the_same_file_on_a_noisy_host(self):
        """It has no machine code to compare and no cycles, but the file has a hash."""
        cases = [{"op": "gemm", "dtype": "fp32", "m": k, "n": k, "k": k} for k in range(2, 102)]
        write_file(self.suite, json.dumps(dict(SUITE, cases=cases)))
        host = {"greeting": {"device": {"kind": "host"}}}
        code, document, errors = self.run_gate("--accept-new", library="old", **host)
        self.assertEqual(code, 0, errors)
        noise = {c["id"]: 1300.0 for c in document["cases"]}
        for library, same in (("old", True), ("new", False)):
            _, document, _ = self.run_gate("--seed", "1", library=library, p50=noise, **host)
            short = [c for c in document["cases"] if len(c["processes"]) == 1]
            self.assertEqual(len(short), 100 if same else 0)
            for case in short:
                self.assertEqual((case["verdict"], case["same_library"]), ("pass", True))
                self.assertRegex(case["reason"], "^same code: candidate and the baseline are the "
                                 "same file.*noise")
                self.assertTrue(case["arms"][0]["verify"]["ok"])
            for case in document["cases"]:
                if case not in short:
                    self.assertGreaterEqual(len(case["processes"]), 5)
                    self.assertNotEqual(case["verdict"], "pass")

    def test_the_same_code_is_verified(self):
        self.accept()
        wrong = {"outcome": "wrong", "message": "element 3 is 7"}
        code, document, _ = self.run_gate(same_code=[FIRST, SECOND], record=wrong, only=SECOND)
        self.assertEqual(code, 2)
        self.assertEqual(self.cases(document)[FIRST]["verdict"], "pass")
        self.assertEqual(self.cases(document)[SECOND]["verdict"], "wrong")

    def test_a_slowdown_that_is_the_clock_or_the_machine(self):
        self.accept()
        for p50, fake, says in (
                (1100.0, {"cycles": {SECOND: 1.0}}, "cycles"),
                (1100.0, {"cycles": {SECOND: None}}, "SM cycles were counted in 0 of 10 processes"),
                (1100.0, {"greeting": {"control_ns": 0}}, "control kernel was not timed"),
                (1060.0, {"drift": self.path("drift")}, "control")):
            code, document, _ = self.run_gate(p50={SECOND: p50}, **fake)
            self.assertEqual(code, 4)
            self.assertIn(says, self.cases(document)[SECOND]["reason"])
            self.assertEqual(document["control_drift"] is None, "greeting" in fake)
        self.assertGreater(document["control_drift"], 0.005)

    def test_without_the_control_nothing_is_kept(self):
        code, document, _ = self.run_gate("--accept-new", greeting={"control_ns": 0})
        self.assertEqual(code, 3)
        for case in document["cases"]:
            self.assertEqual(case["verdict"], "no-verdict")
            self.assertIn("control kernel could not be timed", case["reason"])

    def test_a_control_that_moves_does_not_fail_what_passes(self):
        self.accept()
        self.assertEqual(self.run_gate(drift=self.path("drift"))[0], 0)


if __name__ == "__main__":
    unittest.main()
