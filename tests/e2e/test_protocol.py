"""The supervisor against workers of every kind of bad behaviour (gate/PROTOCOL.md)."""
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
        with open(self.suite, "w", encoding="utf-8") as file:
            json.dump(SUITE, file)

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_gate(self, *args, **fake):
        """Runs the suite with a fake worker; returns exit code, run document and diagnostics."""
        env = dict(os.environ, FAKE=json.dumps(fake))
        done = subprocess.run(
            [GATE, "run", "--json", "--suite", self.suite, "--device", "cuda:0", "--worker", WORKER,
             "--library", "fake.so", "--provider", "x.so", "--db", self.path("gate.db"),
             "--baselines", self.path("baselines"), "--timeout", "2", *args],
            env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        document = json.loads(done.stdout) if done.stdout else None
        return done.returncode, document, done.stderr

    def cases(self, document):
        return {c["id"]: c for c in document["cases"]}

    def accept(self):
        code, _, errors = self.run_gate("--accept-new")
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

    def test_a_regression_is_confirmed_in_three_processes(self):
        self.accept()
        code, document, _ = self.run_gate(p50={SECOND: 1100.0})
        case = self.cases(document)[SECOND]
        self.assertEqual((code, document["verdict"], case["verdict"]), (1, "regression",
                                                                        "regression"))
        self.assertEqual(case["processes_p50_ns"], [1100.0] * 3)
        self.assertAlmostEqual(case["ratio"]["value"], 1.1)
        self.assertEqual(self.cases(document)[FIRST]["verdict"], "pass")
        self.assertEqual(self.cases(document)[FIRST]["processes_p50_ns"], [1000.0])

    def test_the_threshold_can_be_moved(self):
        self.accept()
        self.assertEqual(self.run_gate("--threshold", "15%", p50={SECOND: 1100.0})[0], 0)
        self.assertEqual(self.run_gate("--threshold", "0.05", p50={SECOND: 1100.0})[0], 1)

    def test_an_interval_that_holds_the_threshold_is_no_verdict(self):
        self.accept()
        code, document, _ = self.run_gate(p50={SECOND: 1020.0})
        self.assertEqual(code, 3)
        self.assertEqual(self.cases(document)[SECOND]["verdict"], "no-verdict")

    def test_faster_is_an_improvement_and_the_best_stays(self):
        self.accept()
        code, document, _ = self.run_gate("--accept-new", p50={SECOND: 900.0})
        self.assertEqual(code, 0)
        self.assertEqual(self.cases(document)[SECOND]["verdict"], "improvement")
        self.assertEqual(self.cases(self.run_gate()[1])[SECOND]["best"]["p50_ns"], 1000.0)

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
        self.assertEqual(self.cases(document)[SECOND]["reason"], "all zeros")
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

    def test_death_that_does_not_come_again_is_still_wrong(self):
        self.assert_costs_its_case_only("last words", act="die", marker=self.path("marker"))


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
             "--db", self.path("gate.db"), "--library", "x"], env=env, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 64)
        self.assertIn("cannot run worker '/nonexistent'", done.stderr)


if __name__ == "__main__":
    unittest.main()
