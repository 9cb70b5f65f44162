# SPDX-License-Identifier: Apache-2.0
"""Workers that misbehave, and other things that keep a gate from measuring.

sanitized: gate reads a worker's answers
"""
import fcntl
import os
import subprocess
import unittest

from harness import FIRST, GATE, SECOND, FakeRuns, read_file, skip_if_starved


class Contracts(FakeRuns):
    def test_another_contract_is_never_compared(self):
        self.accept()
        code, document, _ = self.run_gate(greeting={"contract": "fake-v2"})
        self.assertEqual(code, 3)
        self.assertIn("no comparable baseline is stored; --accept-new makes this measurement one",
                      document["cases"][0]["reason"])

    def test_a_wrong_result_beats_a_regression(self):
        self.accept()
        code, document, _ = self.run_gate(
            p50={FIRST: 2000.0}, only=SECOND,
            record={"outcome": "wrong", "message": "all zeros", "arms": []})
        self.assertEqual(code, 2)
        self.assertRegex(self.cases(document)[SECOND]["reason"],
                         "^all zeros; again: gate verify .* --filter gemm/fp32/m3-n3-k3 --seed ")
        self.assertEqual(self.cases(document)[FIRST]["verdict"], "regression")

    def test_a_case_without_kernel_or_that_the_device_cannot_hold(self):
        self.accept()
        for outcome, code in (("unsupported", 3), ("environment", 4)):
            record = {"outcome": outcome, "arms": []}
            self.assertEqual(self.run_gate(only=FIRST, record=record)[0], code)


class BadWorkers(FakeRuns):
    def assert_costs_its_case_only(self, says, *args, **fake):
        if not os.path.exists(self.path("baselines")):
            self.accept()
        code, document, errors = self.run_gate(*args, only=FIRST, **fake)
        cases = self.cases(document)
        skip_if_starved(self, document["cases"])
        self.assertEqual(code, 2, errors)
        self.assertEqual(cases[FIRST]["verdict"], "wrong")
        self.assertIn(says, cases[FIRST]["reason"])
        self.assertEqual(cases[FIRST]["arms"], [])
        self.assertEqual(cases[SECOND]["verdict"], "pass")

    def test_a_worker_that_fails_its_task(self):
        """An act, or what is merged into its answer."""
        for says, fake in (
                ("killed by signal 6 (Aborted); its last words: \"last words\"", {"act": "die"}),
                ("last words", {"act": "die", "marker": self.path("marker")}),  # and not again
                ("ended with exit code 0", {"act": "end"}),
                ("a line of more than", {"act": "flood"}),
                ("talked nonsense", {"before": "hello\n"}),
                ("answered for case", {"record": {"done": "other"}}),
                ("without the task's nonce", {"record": {"nonce": "0123456789abcdef"}}),
                ("/outcome: ", {"record": {"outcome": "splendid"}}),
                ("outcome does not fit", {"record": {"arms": []}}),
                ("/arms/0: ", {"record": {"arms": [{"provider": "fake"}]}}),
                ("must be an array", {"record": {"arms": 3}}),
                ("it took 7 samples of 'fake', at least 8 count", {"timing": {"samples": 7}})):
            with self.subTest(says):
                self.assert_costs_its_case_only(says, **fake)

    def test_silence(self):
        """Signs of life alone do not keep a worker alive for ever."""
        for act, seconds in (("silence", 2), ("phases", 20)):
            with self.subTest(act):
                self.assert_costs_its_case_only(f"no sign of life for {seconds} s", "--timeout",
                                                "2", act=act)

    def test_times_that_cannot_be(self):
        for p50, says in ((0, "more than 0"), (-1000.0, "more than 0"), (1e300, "at most 1e+15")):
            with self.subTest(p50=p50):
                self.assert_costs_its_case_only("/arms/0/timing/p50_ns: ", timing={"p50_ns": p50})
                self.assert_costs_its_case_only(says, timing={"p50_ns": p50})

    def test_a_worker_that_is_spoiled_is_replaced(self):
        """Both cases are wrong, which alone costs no worker."""
        for spoiled, expected in ((False, 1), (True, 2)):
            starts = self.path(f"starts-{spoiled}")
            code, document, errors = self.run_gate(
                starts=starts, starts_max=100,
                record={"outcome": "wrong", "message": "zeros", "arms": [], "spoiled": spoiled})
            self.assertEqual(code, 2, errors)
            self.assertEqual({c["verdict"] for c in document["cases"]}, {"wrong"})
            self.assertEqual(os.path.getsize(starts), expected)

    def test_a_ratio_that_cannot_be(self):
        """It comes from the second process on, as the first one has no baseline yet."""
        for ratio in (0, 1e7, -1):
            with self.subTest(ratio=ratio):
                self.accept()
                code, document, _ = self.run_gate(ratio={SECOND: ratio})
                self.assertEqual(code, 2)
                self.assertIn("/arms/1/timing/ratio_to_candidate/value: ",
                              self.cases(document)[SECOND]["reason"])

    def test_a_case_that_the_first_process_alone_serves(self):
        self.accept()
        refused = {"outcome": "unsupported", "arms": [], "message": "'fake' offers no kernel"}
        code, document, errors = self.run_gate(count=self.path("count"),
                                               records={FIRST: [{}, refused]})
        self.assertEqual(code, 2, errors)
        self.assertIn("a later one has none", self.cases(document)[FIRST]["reason"])
        self.assertEqual(self.cases(document)[SECOND]["verdict"], "pass")

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


class Neighbours(FakeRuns):
    def test_two_gates_do_not_measure_beside_each_other(self):
        self.accept()
        with open(os.path.join(os.environ["GATE_LOCKS"], "kernel-gate-GPU-0.lock"), "a+",
                  encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.truncate(0)
            file.write("4711\n")
            file.flush()
            code, document, errors = self.run_gate()
        self.assertEqual((code, document), (4, None))
        self.assertIn("another gate (process 4711) measures on it", errors)
        self.assertEqual(self.run_gate()[0], 0)

    def test_what_a_gpu_cannot_be_asked_is_told(self):
        self.accept()
        for key, said in (("users_checked", "users of the GPU not checked"),
                          ("launch_order_checked", "order of launches not checked")):
            for checked in (True, False):
                code, document, errors = self.run_gate("--report", "text=r.txt",
                                                       greeting={key: checked})
                self.assertEqual(code, 0, errors)
                self.assertIs(document[key], checked)
                self.assertEqual(said in read_file(self.path("r.txt")), not checked)
            self.assertNotIn(key, self.run_gate()[1])


class Providers(FakeRuns):
    """A provider that misbehaves is left out; the candidate's verdict stands."""

    def test_death_in_a_providers_hands_and_while_all_are_measured(self):
        self.accept()
        for fake in ({"at_work": "vendor"}, {"at_work": "", "phase": "measure"}):
            code, document, errors = self.run_gate(act="die", providers=["vendor"], **fake)
            self.assertEqual(code, 0, errors)
            self.assertIn("left out 'vendor'", document["cases"][0]["reason"])
            self.assertIn("last words", document["cases"][0]["reason"])

    def test_a_worker_cannot_blame_forever(self):
        self.accept()
        code, document, _ = self.run_gate(
            providers=["vendor"], record={"outcome": "provider", "message": "vendor: spoiled it"})
        self.assertEqual(code, 2)
        self.assertIn("blamed", document["cases"][0]["reason"])


class Greetings(FakeRuns):
    def test_what_a_worker_is_refused_for(self):
        for code, says, greeting in (
                (4, "GPU 0 is busy", {"refuse": "environment", "message": "GPU 0 is busy"}),
                (2, "no 'kg_library'", {"refuse": "wrong", "message": "no 'kg_library'"}),
                (2, "protocol", {"hello": "gate-worker/9"}),
                (2, "/device/", {"device": {"sm_count": -1}}),
                (2, "/device/", {"device": {"model": "../../etc/passwd"}})):
            got, document, errors = self.run_gate(greeting=greeting)
            self.assertEqual((got, document), (code, None), errors)
            self.assertIn(says, errors)

    def test_a_program_that_is_not_there(self):
        for name in ("/nonexistent", "nonexistent"):
            done = subprocess.run(
                [GATE, "run", "--suite", self.suite, "--device", "cuda:0", "--worker", name,
                 "--db", self.path("gate.db"), "--library", self.suite],
                stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 74)
            self.assertIn(f"cannot run worker '{name}'", done.stderr)


if __name__ == "__main__":
    unittest.main()
