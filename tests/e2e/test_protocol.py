"""Runs with a worker that measures what it is told to, and misbehaves as it is told to."""
import fcntl
import glob
import json
import math
import os
import statistics
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
             "--baselines", self.path("baselines"), "--timeout", "2", *args],
            cwd=self.folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            check=False)
        document = json.loads(done.stdout) if done.stdout else None
        return done.returncode, document, done.stderr

    def cases(self, document):
        return {c["id"]: c for c in document["cases"]}

    def accept(self):
        code, _, errors = self.run_gate("--accept-new", library="old")
        self.assertEqual(code, 0, errors)


class Verdicts(Gate):
    """p50 is 1000 ns in all runs unless said, so that verdicts are known."""

    def test_without_a_best_there_is_no_verdict(self):
        code, document, _ = self.run_gate()
        self.assertEqual(code, 3)
        self.assertEqual({c["verdict"] for c in document["cases"]}, {"no-verdict"})
        self.assertFalse(os.path.exists(self.path("baselines")))

    def test_first_measurements_are_taken_when_asked(self):
        self.accept()
        code, document, _ = self.run_gate()
        self.assertEqual(code, 0)
        self.assertEqual(document["verdict"], "pass")
        self.assertEqual(document["cases"][0]["best"]["p50_ns"], 1000.0)

    def test_a_time_that_is_hardly_known_is_a_best_that_says_so(self):
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
                self.assertIsNotNone(self.cases(self.run_gate()[1])[FIRST]["best"])
                os.remove(glob.glob(self.path("baselines/*.json"))[0])

    def test_a_regression_is_confirmed_in_fresh_processes(self):
        self.accept()
        code, document, _ = self.run_gate(p50={SECOND: 1100.0})
        case = self.cases(document)[SECOND]
        self.assertEqual((code, document["verdict"], case["verdict"]), (1, "regression",
                                                                        "regression"))
        self.assertEqual([p["stage"] for p in case["processes"]],
                         ["first"] * 5 + ["confirmation"] * 5)
        self.assertAlmostEqual(case["ratio"]["value"], 1.1)
        self.assertEqual((case["mode"], case["best"]["made_by"]), ("paired", "accept-new"))
        first = self.cases(document)[FIRST]
        self.assertEqual(first["verdict"], "pass")
        self.assertEqual(len(first["processes"]), 5)

    def test_roles_are_swapped_in_every_other_process(self):
        self.accept()
        _, document, _ = self.run_gate()
        self.assertEqual([p["swapped"] for p in document["cases"][0]["processes"]],
                         [False, True, False, True, False])

    def test_the_threshold_can_be_moved(self):
        self.accept()
        self.assertEqual(self.run_gate("--threshold", "15%", p50={SECOND: 1100.0})[0], 0)
        self.assertEqual(self.run_gate("--threshold", "5 %", p50={SECOND: 1100.0})[0], 1)

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

    def test_p90_is_gated_when_asked(self):
        self.accept()
        code, document, _ = self.run_gate("--threshold", "15%", "--p90-threshold", "2%",
                                          p50={SECOND: 1100.0})
        self.assertEqual(code, 1)
        self.assertIn("p90", self.cases(document)[SECOND]["reason"])

    def test_faster_is_an_improvement_and_the_best_stays(self):
        self.accept()
        code, document, _ = self.run_gate(p50={SECOND: 900.0})
        self.assertEqual(code, 0)
        self.assertEqual(self.cases(document)[SECOND]["verdict"], "improvement")
        self.assertEqual(self.cases(self.run_gate()[1])[SECOND]["best"]["p50_ns"], 1000.0)

    def test_the_ratchet_follows_a_confirmed_improvement(self):
        self.accept()
        code, document, errors = self.run_gate("--ratchet", p50={SECOND: 900.0})
        self.assertEqual(code, 0, errors)
        case = self.cases(document)[SECOND]
        self.assertEqual(len(case["processes"]), 10)
        best = self.cases(self.run_gate()[1])
        self.assertEqual(best[SECOND]["best"]["p50_ns"], 900.0)
        self.assertEqual(best[FIRST]["best"]["p50_ns"], 1000.0)
        self.assertNotEqual(best[FIRST]["best"]["library_sha256"],
                            best[SECOND]["best"]["library_sha256"])


class Bests(Gate):
    """What several runs in a row do to a best (gate/ratchet.h)."""

    def best_log(self):
        done = subprocess.run([GATE, "best", "log", "--json", "--baselines",
                               self.path("baselines")], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=True)
        return [(c["case"], c["action"], c["reason"]) for c in json.loads(done.stdout)[2:]]

    def test_small_improvements_in_a_row_move_the_best(self):
        self.accept()
        for run in range(1, 5):
            code, document, errors = self.run_gate("--ratchet", p50={SECOND: 990.0})
            self.assertEqual(code, 0, errors)
            self.assertIn(f"run {run} of 5", self.cases(document)[SECOND]["reason"])
            self.assertEqual(self.best_log(), [])
        self.assertEqual(self.run_gate(p50={SECOND: 990.0})[0], 0)  # without --ratchet: no part
        code, document, errors = self.run_gate("--ratchet", p50={SECOND: 990.0})
        self.assertEqual(code, 0, errors)
        self.assertEqual(self.cases(document)[SECOND]["verdict"], "pass")
        ((case, action, reason),) = self.best_log()
        self.assertEqual((case, action), (SECOND, "trend"))
        self.assertIn("5 runs in a row found it faster, this one by 1.00 %", reason)
        best = self.cases(self.run_gate()[1])[SECOND]["best"]
        self.assertEqual(best["p50_ns"], 990.0)

    def test_a_run_that_is_not_faster_ends_the_trend(self):
        self.accept()
        for p50 in [990.0] * 4 + [1000.0] + [990.0] * 4:
            self.assertEqual(self.run_gate("--ratchet", p50={SECOND: p50})[0], 0)
        self.assertEqual(self.best_log(), [])

    def slow_hour(self, *args):
        return self.run_gate(*args, best_p50=1050.0, p50={FIRST: 1050.0, SECOND: 1050.0})

    def test_a_best_that_measures_slower_is_an_epoch_and_no_red(self):
        self.accept()
        for run in range(1, 6):
            code, document, errors = self.slow_hour("--ratchet")
            self.assertEqual(code, 0, errors)
            case = self.cases(document)[SECOND]
            self.assertEqual(case["verdict"], "pass")
            self.assertIn("re-measures 5.00 % slower than its record", case["reason"])
            self.assertEqual((case["best"]["p50_ns"], case["best"]["again_ns"]), (1000.0, 1050.0))
            self.assertTrue(case["best"]["off"])
            self.assertEqual(len(self.best_log()), 2 * (run == 5))
        self.assertIn("a new epoch", case["reason"])
        self.assertEqual({action for _, action, _ in self.best_log()}, {"epoch"})
        case = self.cases(self.slow_hour()[1])[SECOND]
        self.assertFalse(case["best"]["off"])
        self.assertEqual(case["best"]["p50_ns"], 1050.0)

    def test_a_record_that_is_off_is_told_without_the_ratchet_too(self):
        self.accept()
        code, document, _ = self.slow_hour("--report", "text=r.txt", "--report", "markdown=r.md")
        self.assertEqual(code, 0)
        self.assertTrue(self.cases(document)[SECOND]["best"]["off"])
        for name in ("r.txt", "r.md"):
            with open(self.path(name), encoding="utf-8") as file:
                self.assertIn("slower than its record", file.read())
        self.assertEqual(self.best_log(), [])

    def test_another_driver_begins_an_epoch_at_once(self):
        self.accept()
        code, _, errors = self.run_gate("--ratchet", greeting={"device": {"driver": "2"}})
        self.assertEqual(code, 0, errors)
        self.assertEqual([action for _, action, _ in self.best_log()], ["epoch", "epoch"])
        self.assertIn("the epoch was 1/1/0 and is 2/1/0", self.best_log()[0][2])


class Records(Gate):
    """What the record says of a case is what all of its processes found."""

    TIMES = [1500.0, 1010.0, 1000.0, 990.0, 1005.0]

    def test_the_time_of_a_case_is_the_median_over_its_processes(self):
        self.accept()
        code, document, errors = self.run_gate(count=self.path("count"), d={SECOND: [0.0]},
                                               p50s={SECOND: self.TIMES})
        self.assertEqual(code, 0, errors)
        case = self.cases(document)[SECOND]
        timing, best = (arm["timing"] for arm in case["arms"][:2])
        self.assertEqual([p["p50_ns"] for p in case["processes"]], self.TIMES)
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
        self.assertEqual((best["p50_ns"], best["processes"], best["spread"]), (1000.0, 5, 0.0))

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


class Noise(Gate):
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
        code, document, errors = self.run_gate(*args, count=self.path("count"), d=d)
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
                    self.assertGreater(case["mde"], 1)
                os.unlink(self.path("count"))

    def test_in_any_order(self):
        """Also where the slow ones come first and a suspicion is raised."""
        self.accept()
        for order in (sorted(self.BUSY), sorted(self.BUSY, reverse=True), self.BUSY[9:] +
                      self.BUSY[:9]):
            code, document, _ = self.run_gate(count=self.path("count"), d={SECOND: order * 2})
            self.assertIn(code, (0, 3))
            self.assertNotEqual(self.cases(document)[SECOND]["verdict"], "regression")
            os.unlink(self.path("count"))

    def test_five_wild_processes_are_no_pass_though_none_is_slow(self):
        _, cases = self.run_noisy(**{SECOND: self.NOT_SLOW})
        self.assertEqual(len(cases[FIRST]["processes"]), 5)
        self.assertGreaterEqual(len(cases[SECOND]["processes"]), 8)


class Effort(Gate):
    def test_later_processes_sample_longer_where_a_process_did_not_know_its_ratio(self):
        """A replay of the fake lasts 10 us, so eight rounds are 0.384 ms."""
        self.accept()
        code, _, errors = self.run_gate("--budget", "77", budgets=self.path("budgets"),
                                        widths={FIRST: 0.002, SECOND: 0.0005})
        self.assertEqual(code, 0, errors)
        with open(self.path("budgets"), encoding="utf-8") as file:
            budgets = [json.loads(line) for line in file]
        of = {name: [ms for n, ms in budgets if n == name] for name in (FIRST, SECOND)}
        self.assertEqual(of[SECOND], [77] + [0] * 4)
        # 40 samples with twice the width: 80 rounds would do, 72 of them beyond the eight.
        self.assertEqual(of[FIRST][0], 77)
        for ms in of[FIRST][1:]:
            self.assertAlmostEqual(ms, 80 * 0.048)


class Adjudication(Gate):
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

    def test_a_slowdown_without_cycles_is_the_clock(self):
        self.accept()
        code, document, _ = self.run_gate(p50={SECOND: 1100.0}, cycles={SECOND: 1.0})
        self.assertEqual(code, 4)
        self.assertIn("cycles", self.cases(document)[SECOND]["reason"])

    def test_a_control_that_moves_is_the_machine(self):
        self.accept()
        code, document, _ = self.run_gate(p50={SECOND: 1100.0}, drift=self.path("drift"))
        self.assertEqual(code, 4)
        self.assertGreater(document["control_drift"], 0.005)
        self.assertIn("control", self.cases(document)[SECOND]["reason"])

    def test_a_control_that_was_not_timed_is_the_machine(self):
        self.accept()
        code, document, _ = self.run_gate(p50={SECOND: 1100.0}, greeting={"control_ns": 0})
        self.assertEqual(code, 4)
        self.assertIsNone(document["control_drift"])
        self.assertIn("control kernel was not timed", self.cases(document)[SECOND]["reason"])

    def test_without_the_control_nothing_is_kept(self):
        code, document, _ = self.run_gate("--accept-new", greeting={"control_ns": 0})
        self.assertEqual(code, 3)
        for case in document["cases"]:
            self.assertEqual(case["verdict"], "no-verdict")
            self.assertIn("control could not be timed", case["reason"])

    def test_a_slowdown_whose_cycles_were_not_counted_is_the_clock(self):
        self.accept()
        code, document, _ = self.run_gate(p50={SECOND: 1100.0}, cycles={SECOND: None})
        self.assertEqual(code, 4)
        self.assertIn("SM cycles were counted in 0 of 10 processes",
                      self.cases(document)[SECOND]["reason"])

    def test_a_control_that_moves_does_not_fail_what_passes(self):
        self.accept()
        self.assertEqual(self.run_gate(drift=self.path("drift"))[0], 0)


class Libraries(Gate):
    """The library of the best: artifact, number, refusal."""

    def artifacts(self):
        return glob.glob(self.path("cache/artifacts/*.so"))

    def drop_artifacts(self):
        for name in self.artifacts():
            os.unlink(name)

    def test_a_best_is_kept_with_its_library(self):
        self.accept()
        (name,) = self.artifacts()
        with open(name, encoding="utf-8") as file:
            self.assertEqual(file.read(), "old")

    def test_without_its_library_the_number_is_held_against(self):
        self.accept()
        self.drop_artifacts()
        code, document, errors = self.run_gate()
        self.assertEqual(code, 0, errors)
        self.assertEqual(document["cases"][0]["mode"], "number")
        self.assertIn("held against its number", document["cases"][0]["reason"])

    def test_a_number_goes_red_for_a_large_excess(self):
        self.accept()
        self.drop_artifacts()
        code, document, _ = self.run_gate(p50={SECOND: 1300.0})
        self.assertEqual(code, 1)
        self.assertEqual(self.cases(document)[SECOND]["verdict"], "regression")

    def test_a_number_that_is_beaten_moves_no_best(self):
        """It is of other hours of the machine; only the best's own library tells."""
        self.accept()
        self.drop_artifacts()
        code, document, errors = self.run_gate("--ratchet", p50={FIRST: 700.0, SECOND: 700.0})
        self.assertEqual(code, 0, errors)
        case = document["cases"][0]
        self.assertEqual((case["mode"], case["verdict"]), ("number", "improvement"))
        self.assertIn("moves no best: that takes its library", case["reason"])
        self.assertEqual(self.run_gate()[1]["cases"][0]["best"]["p50_ns"], 1000.0)

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

    def test_a_best_that_fails_here_leaves_its_number(self):
        self.accept()
        code, document, _ = self.run_gate(best_fails="it is all zeros")
        self.assertEqual(code, 0)
        self.assertEqual(document["cases"][0]["mode"], "number")
        self.assertIn("it is all zeros", document["cases"][0]["reason"])

    def test_a_best_that_is_lost_again_and_again_ends_without_a_verdict(self):
        self.accept()
        code, document, errors = self.run_gate(best_is_lost=True)
        self.assertEqual(code, 3, errors)
        for case in document["cases"]:
            self.assertEqual(case["verdict"], "no-verdict")
            self.assertEqual(len(case["processes"]), 1)
            self.assertIn("only 1 of at least 5 processes", case["reason"])
            self.assertIn("the best could not be measured in 3 processes", case["reason"])
        self.assertEqual(document["n_processes"], 4)

    def test_against_a_file(self):
        with open(self.path("other.so"), "w", encoding="utf-8") as file:
            file.write("other")
        code, document, errors = self.run_gate("--against", self.path("other.so"),
                                               p50={SECOND: 1100.0})
        self.assertEqual(code, 1, errors)
        self.assertEqual(self.cases(document)[FIRST]["verdict"], "pass")

    def test_against_what_is_neither_file_nor_commit(self):
        code, document, errors = self.run_gate("--against", "no-such-thing")
        self.assertEqual((code, document), (64, None), errors)
        self.assertIn("no-such-thing", errors)

    def test_accepting_goes_with_the_stored_best_alone(self):
        code, document, _ = self.run_gate("--against", self.suite, "--accept-new")
        self.assertEqual((code, document), (64, None))


class Contracts(Gate):
    def test_another_contract_is_never_compared(self):
        self.accept()
        code, document, _ = self.run_gate(greeting={"contract": "fake-v2"})
        self.assertEqual(code, 3)
        self.assertIn("no comparable best", document["cases"][0]["reason"])

    def test_a_wrong_result_beats_a_regression(self):
        self.accept()
        code, document, _ = self.run_gate(
            p50={FIRST: 2000.0}, only=SECOND,
            record={"outcome": "wrong", "message": "all zeros", "arms": []})
        self.assertEqual(code, 2)
        self.assertRegex(self.cases(document)[SECOND]["reason"],
                         "^all zeros; again: gate verify .* --filter gemm/fp32/m3-n3-k3 --seed ")
        self.assertEqual(self.cases(document)[FIRST]["verdict"], "regression")

    def test_a_case_without_kernel_is_incomplete(self):
        self.accept()
        code, _, _ = self.run_gate(only=FIRST, record={"outcome": "unsupported", "arms": []})
        self.assertEqual(code, 3)

    def test_a_case_that_the_device_cannot_hold_is_environment(self):
        self.accept()
        code, _, _ = self.run_gate(only=FIRST, record={"outcome": "environment", "arms": []})
        self.assertEqual(code, 4)


class BadWorkers(Gate):
    def assert_costs_its_case_only(self, says, **fake):
        self.accept()
        code, document, errors = self.run_gate(only=FIRST, **fake)
        self.assertEqual(code, 2, errors)
        cases = self.cases(document)
        self.assertEqual(cases[FIRST]["verdict"], "wrong")
        self.assertIn(says, cases[FIRST]["reason"])
        self.assertEqual(cases[FIRST]["arms"], [])
        self.assertEqual(cases[SECOND]["verdict"], "pass")

    def test_death(self):
        self.assert_costs_its_case_only("last words", act="die")

    def test_death_names_the_signal(self):
        self.assert_costs_its_case_only("killed by signal 6", act="die")

    def test_early_end(self):
        self.assert_costs_its_case_only("ended with exit code 0", act="end")

    def test_silence(self):
        self.assert_costs_its_case_only("no sign of life for 2 s", act="silence")

    def test_flood(self):
        self.assert_costs_its_case_only("a line of more than", act="flood")

    def test_text_that_is_not_json(self):
        self.assert_costs_its_case_only("talked nonsense", before="hello\n")

    def test_answer_for_another_case(self):
        self.assert_costs_its_case_only("answered for case", record={"done": "other"})

    def test_unknown_outcome(self):
        self.assert_costs_its_case_only("outcome", record={"outcome": "splendid"})

    def test_measured_without_a_measurement(self):
        self.assert_costs_its_case_only("outcome", record={"arms": []})

    def test_record_that_breaks_the_schema(self):
        self.assert_costs_its_case_only("'arms'", record={"arms": [{"provider": "fake"}]})

    def test_arms_that_are_a_number(self):
        self.assert_costs_its_case_only("must be an array", record={"arms": 3})

    def test_times_that_cannot_be(self):
        for p50, says in ((0, "more than 0"), (-1000.0, "more than 0"), (1e300, "at most 1e+15")):
            with self.subTest(p50=p50):
                self.assert_costs_its_case_only("'/0/timing/p50_ns'", timing={"p50_ns": p50})
                self.assert_costs_its_case_only(says, timing={"p50_ns": p50})

    def test_too_few_samples(self):
        self.assert_costs_its_case_only("it took 7 samples of 'fake', at least 8 count",
                                        timing={"samples": 7})

    def test_a_ratio_that_cannot_be(self):
        """It comes from the second process on, as the first one has no best yet."""
        for ratio in (0, 1e7, -1):
            with self.subTest(ratio=ratio):
                self.accept()
                code, document, _ = self.run_gate(ratio={SECOND: ratio})
                self.assertEqual(code, 2)
                self.assertIn("'/1/timing/ratio_to_candidate/value'",
                              self.cases(document)[SECOND]["reason"])

    def test_phases_without_end(self):
        self.assert_costs_its_case_only("no sign of life for 20 s", act="phases")

    def test_a_worker_that_cannot_be_started_again(self):
        """What was measured is kept, and the cases that lack processes say why."""
        self.accept()
        code, document, errors = self.run_gate(starts=self.path("starts"), starts_max=4)
        self.assertEqual(code, 4, errors)
        for case in document["cases"]:
            self.assertEqual(case["verdict"], "environment")
            self.assertIn("GPU 0 is busy", case["reason"])
            self.assertGreater(len(case["processes"]), 0)
            self.assertTrue(case["arms"])

    def test_death_that_does_not_come_again_is_still_wrong(self):
        self.assert_costs_its_case_only("last words", act="die", marker=self.path("marker"))


class Neighbours(Gate):
    def test_two_gates_do_not_measure_beside_each_other(self):
        self.accept()
        with open(os.path.join(tempfile.gettempdir(), "kernel-gate-GPU-0.lock"), "a+",
                  encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.truncate(0)
            file.write("4711\n")
            file.flush()
            code, document, errors = self.run_gate()
        self.assertEqual((code, document), (4, None))
        self.assertIn("measured by another gate (process 4711)", errors)
        self.assertEqual(self.run_gate()[0], 0)

    def test_a_gpu_whose_users_cannot_be_told_is_told(self):
        self.accept()
        for checked in (True, False):
            code, document, errors = self.run_gate("--report", "text=r.txt",
                                                   greeting={"users_checked": checked})
            self.assertEqual(code, 0, errors)
            self.assertIs(document["users_checked"], checked)
            with open(self.path("r.txt"), encoding="utf-8") as file:
                self.assertEqual("users of the GPU not checked" in file.read(), not checked)
        self.assertNotIn("users_checked", self.run_gate()[1])


class Providers(Gate):
    """A provider that misbehaves is left out; the candidate's verdict stands."""

    def test_death_in_a_providers_hands(self):
        self.accept()
        code, document, errors = self.run_gate(act="die", at_work="vendor", providers=["vendor"])
        self.assertEqual(code, 0, errors)
        self.assertIn("left out 'vendor'", document["cases"][0]["reason"])
        self.assertIn("last words", document["cases"][0]["reason"])

    def test_death_while_all_are_measured(self):
        self.accept()
        code, document, errors = self.run_gate(act="die", phase="measure", at_work="",
                                               providers=["vendor"])
        self.assertEqual(code, 0, errors)
        self.assertIn("left out 'vendor'", document["cases"][0]["reason"])

    def test_a_worker_cannot_blame_forever(self):
        self.accept()
        code, document, _ = self.run_gate(
            providers=["vendor"], record={"outcome": "provider", "message": "vendor: spoiled it"})
        self.assertEqual(code, 2)
        self.assertIn("blamed", document["cases"][0]["reason"])


class Greetings(Gate):
    def assert_refused(self, code, says, **fake):
        got, document, errors = self.run_gate(**fake)
        self.assertEqual(got, code, errors)
        self.assertIsNone(document)
        self.assertIn(says, errors)

    def test_no_gpu_is_exit_4(self):
        self.assert_refused(4, "GPU 0 is busy",
                            greeting={"refuse": "environment", "message": "GPU 0 is busy"})

    def test_bad_library_is_exit_2(self):
        self.assert_refused(2, "no 'kg_library'",
                            greeting={"refuse": "wrong", "message": "it exports no 'kg_library'"})

    def test_another_protocol(self):
        self.assert_refused(2, "protocol", greeting={"hello": "gate-worker/9"})

    def test_a_device_that_breaks_the_schema(self):
        self.assert_refused(2, "'device'", greeting={"device": {"sm_count": -1}})

    def test_a_model_that_is_a_path(self):
        self.assert_refused(2, "'device'", greeting={"device": {"model": "../../etc/passwd"}})

    def test_a_program_that_is_not_there(self):
        env = dict(os.environ)
        done = subprocess.run(
            [GATE, "run", "--suite", self.suite, "--device", "cuda:0", "--worker", "/nonexistent",
             "--db", self.path("gate.db"), "--library", self.suite], env=env,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 64)
        self.assertIn("cannot run worker '/nonexistent'", done.stderr)


if __name__ == "__main__":
    unittest.main()
