# SPDX-License-Identifier: Apache-2.0
"""`gate calibrate`: what it finds, what it keeps when it is cut short, and what it refuses."""
import json
import os
import signal
import subprocess
import time
import unittest

from harness import FIRST, GATE, SECOND, WORKER, FakeRuns, read_file, write_file


SHARES = [0, 0.005, 0.01, 0.02, 0.025, 0.03, 0.05]
HOST_CASE = "gemm/fp32/m4-n1-k3"


class Calibrate(FakeRuns):
    def start(self, *args, **fake):
        """With the fake worker, of which a process is as slow as the next one, nearly."""
        fake = {"count": self.path("count"), **fake}
        write_file(self.path("new.so"), "new")
        return self.launch("--suite", self.suite, "--device", "cuda:0", "--worker", WORKER,
                           "--library", self.path("new.so"), *args, FAKE=json.dumps(fake))

    def launch(self, *args, **env):
        return subprocess.Popen(
            [GATE, "calibrate", "--json", "--db", self.path("gate.db"), *args], cwd=self.folder,
            env=dict(os.environ, GATE_CACHE=self.path("cache"), **env), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def finish(self, gate):
        out, errors = gate.communicate()
        return gate.returncode, json.loads(out) if out else None, errors

    def calibrate(self, *args, **fake):
        return self.finish(self.start("--processes", "7", "--timeout", "60", *args, **fake))

    def stored(self):
        if not os.path.exists(self.path("gate.db")):
            return []
        done = subprocess.run([GATE, "export", "--format", "ndjson", "--db", self.path("gate.db")],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def figures(self, document):
        return {c["id"]: c for c in document["calibration"]["cases"]}

    def incomplete(self, document):
        return {c["id"]: (c["processes"], c["wanted"], c["verdict"])
                for c in document["calibration"].get("incomplete", [])}


class Found(Calibrate):
    def test_changed_baselines_make_no_tree_dirty(self):
        git = lambda *args: subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", *args], cwd=self.folder,
            check=True, capture_output=True)
        os.mkdir(self.path("kept"))
        for name in ("kept/gpu.json", "code.cu"):
            write_file(self.path(name), "1")
        git("init", "-q")
        git("add", "kept", "code.cu")
        git("commit", "-qm", "one")
        for name, dirty in (("kept/gpu.json", False), ("code.cu", True)):
            write_file(self.path(name), "2")
            document = self.calibrate("--baselines", "kept")[1]
            self.assertEqual(document["git"]["dirty"], dirty, name)

    def test_what_is_red_and_what_is_not(self):
        code, document, errors = self.calibrate("--report", "text=r.txt", "--report",
                                                "markdown=r.md",
                                                ceilings={"ceilings": {"read_gbps": 4000}})
        self.assertEqual((code, document["verdict"]), (0, "pass"), errors)
        self.assertEqual(document["ceilings"], {"read_gbps": 4000})
        self.assertEqual(self.incomplete(document), {})
        self.assertEqual(document["calibration"]["processes"], 7)
        for case in self.figures(document).values():
            self.assertTrue(case["resolved"])
            self.assertEqual([s["share"] for s in case["injected"]], SHARES)
            red = {s["share"]: s["red"] / s["decisions"] for s in case["injected"]}
            self.assertEqual((red[0], red[0.01], red[0.025], red[0.05]), (0, 0, 1, 1))
            self.assertEqual({len(s["log_ratio"]) for s in case["injected"]}, {7})
        self.assertEqual(self.stored(), [document])
        for name in ("r.txt", "r.md"):
            text = read_file(self.path(name))
            self.assertIn("2 of 2 cases resolve 2 %; red: unchanged 0 % (0 of 4000 decisions)",
                          text)
            self.assertNotIn("ncomplete", text)

    def test_a_case_that_is_too_noisy_is_named(self):
        code, document, errors = self.calibrate("--report", "text=r.txt", noise={SECOND: 0.02})
        self.assertEqual((code, document["verdict"]), (3, "no-verdict"), errors)
        figures = self.figures(document)
        self.assertEqual([figures[FIRST]["resolved"], figures[SECOND]["resolved"]], [True, False])
        self.assertRegex(read_file(self.path("r.txt")), SECOND + r" .* no ")

    def test_seeds(self):
        """Two calibrations have inputs of their own, unless a seed is named."""
        seeds = [self.calibrate("--filter", FIRST, *words)[1]["seed"]
                 for words in ((), (), ("--seed", "aa"))]
        self.assertEqual(len(set(seeds)), 3)
        self.assertNotIn("0" * 16, seeds)
        self.assertEqual(seeds[2], "00000000000000aa")

    def test_on_the_host(self):
        """What a machine resolves is its own affair; the record of it is whole."""
        code, document, errors = self.finish(self.launch(
            "--device", "host", "--suite", "smoke", "--filter", HOST_CASE, "--processes", "5",
            "--budget", "1"))
        self.assertIn(code, (0, 3), errors)
        self.assertEqual(self.incomplete(document), {})
        case = self.figures(document)[HOST_CASE]
        self.assertEqual([len(s["log_ratio"]) for s in case["injected"]], [5] * len(SHARES))
        self.assertEqual({s["decisions"] for s in case["injected"]}, {2000})
        self.assertEqual(case["resolved"], code == 0)
        self.assertEqual(self.stored(), [document])
        report = subprocess.run([GATE, "report", "--db", self.path("gate.db")], text=True,
                                stdin=subprocess.DEVNULL, capture_output=True, check=False)
        self.assertIn("calibration, 5 processes a case", report.stdout)
        self.assertIn(HOST_CASE, report.stdout)


class CutShort(Calibrate):
    """What is measured stays: five processes of a case or more are figures."""

    def interrupted(self, number, process, *args):
        """The worker of this process falls silent at the second case; then the signal comes."""
        marker = self.path("marker")
        gate = self.start("--processes", "20", "--timeout", "600", *args, only=SECOND,
                          act="silence", act_from=process, marker=marker)
        while not os.path.exists(marker):
            self.assertIsNone(gate.poll())
            time.sleep(0.01)
        gate.send_signal(number)
        return self.finish(gate)

    def test_a_signal_keeps_the_cases_that_are_measured(self):
        for number, name in ((signal.SIGTERM, "Terminated"), (signal.SIGINT, "Interrupt")):
            with self.subTest(name):
                code, document, errors = self.interrupted(number, 4, "--report", "text=r.txt",
                                                          "--report", "markdown=r.md")
                self.assertEqual((code, document["verdict"]), (3, "no-verdict"), errors)
                self.assertEqual(list(self.figures(document)), [FIRST])
                self.assertEqual(self.incomplete(document), {FIRST: (5, 20, "no-verdict"),
                                                             SECOND: (4, 20, "no-verdict")})
                self.assertEqual(self.stored(), [document])
                said = f"no-verdict, 4 of 20 processes: interrupted by signal {number:d}"
                for report in ("r.txt", "r.md"):
                    text = read_file(self.path(report)).replace("\\", "")
                    self.assertRegex(text, f"{SECOND}.*{said}.*{name}")
                for file in ("marker", "count", "gate.db"):
                    os.remove(self.path(file))

    def test_a_signal_before_anything_is_measured_keeps_nothing(self):
        code, document, errors = self.interrupted(signal.SIGTERM, 2)
        self.assertEqual((code, document, self.stored()), (3, None, []), errors)
        self.assertIn("nothing is kept", errors)
        self.assertIn("interrupted by signal 15", errors)

    def test_a_worker_that_dies_costs_its_case(self):
        code, document, errors = self.calibrate("--report", "text=r.txt", act="die", only=FIRST,
                                                act_from=5)
        self.assertEqual((code, document["verdict"]), (2, "wrong"), errors)
        self.assertEqual(list(self.figures(document)), [SECOND])
        self.assertEqual(self.incomplete(document), {FIRST: (5, 7, "wrong")})
        self.assertEqual(self.stored(), [document])
        self.assertIn("killed by signal 6", read_file(self.path("r.txt")))

    def test_what_the_device_cannot_hold_costs_its_case(self):
        code, document, errors = self.calibrate(
            only=FIRST, record={"outcome": "environment", "message": "out of memory"})
        self.assertEqual((code, list(self.figures(document))), (4, [SECOND]), errors)
        self.assertEqual(self.incomplete(document), {FIRST: (0, 7, "environment")})

    def test_no_worker_any_more(self):
        """The first start is the greeting's, one more is for the libraries of the baselines."""
        code, document, errors = self.calibrate(starts=self.path("starts"), starts_max=7)
        self.assertEqual(code, 4, errors)
        self.assertEqual(self.incomplete(document), {FIRST: (6, 7, "environment"),
                                                     SECOND: (6, 7, "environment")})
        self.assertEqual(set(self.figures(document)), {FIRST, SECOND})
        self.assertIn("GPU 0 is busy", document["calibration"]["incomplete"][0]["reason"])

    def test_nothing_but_wrong_is_no_calibration(self):
        code, document, errors = self.calibrate(act="die")
        self.assertEqual((code, document, self.stored()), (2, None, []), errors)
        self.assertIn(f"case '{FIRST}', after 0: died", errors)

    def test_a_share_that_cannot_be(self):
        unfit, no_number = "its outcome does not fit its record", "/log_ratio/6: must be a number"
        for bad, said in ((1e300, unfit), (14, unfit), ("much", no_number), (None, no_number)):
            with self.subTest(bad=bad):
                code, _, errors = self.calibrate(record={"log_ratio": [0] * 6 + [bad]})
                self.assertEqual(code, 2, errors)
                self.assertIn(said, errors)


class Refused(Calibrate):
    def test_numbers_and_words(self):
        for words, says in (*((["--processes", n], f"--processes is '{n}', expected")
                              for n in ("4", "201", "-1", "many", "")),
                            (["host"], "unexpected argument 'host'")):
            code, document, errors = self.finish(self.launch(*words))
            self.assertEqual((code, document, self.stored()), (64, None, []), errors)
            self.assertIn(says, errors)

    def test_a_history_that_cannot_be_written(self):
        """Known before anything is measured."""
        write_file(self.path("gate.db"), "certainly not a database, but a long text " * 50)
        code, document, errors = self.calibrate()
        self.assertEqual((code, document), (74, None), errors)
        self.assertIn("gate.db", errors)
        self.assertFalse(os.path.exists(self.path("count")))


if __name__ == "__main__":
    unittest.main()
