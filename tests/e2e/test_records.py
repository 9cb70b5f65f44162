# SPDX-License-Identifier: Apache-2.0
"""The commands on stored runs: import, export, report, history and leaderboard.

sanitized: gate reads stored runs
"""

import csv
import io
import json
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
import unittest
import xml.etree.ElementTree as ElementTree
import zlib

from harness import GATE, ROOT, read_file, write_file

SAMPLE_TEXT = read_file(os.path.join(ROOT, "tests/data/run-h200.json"))
CASE = "attention_fwd/fp16/b8-h16-s512-d64/causal"
SLOW, FAST = 26210, 23980  # ns: the sample's p50 of CASE, and another's


def document(number, p50_ns=None, model=None, commit=None):
    """The sample as another run, `number` minutes later."""
    run = json.loads(SAMPLE_TEXT)
    run["uuid"] = f"5a3b1e00-0000-4000-8000-{number:012d}"
    run["time_ms"] += number * 60000
    if model:
        run["device"]["model"] = model
    if commit:
        run["git"]["commit"] = commit
    if p50_ns:
        case = next(c for c in run["cases"] if c["id"] == CASE)
        for key in ("p10_ns", "p50_ns", "p50_lo_ns", "p50_hi_ns", "p90_ns"):
            case["arms"][0]["timing"][key] = p50_ns
        for process in case["processes"]:
            process["p50_ns"] = p50_ns
    return run


def ndjson(*runs):
    return "".join(json.dumps(run) + "\n" for run in runs)


class Records(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="records.")
        self.addCleanup(shutil.rmtree, self.folder)
        self.env = dict(os.environ, NO_COLOR="1", HOME=self.folder, GIT_CONFIG_NOSYSTEM="1")
        for name in ("GATE_DB", "COLUMNS", "XDG_CONFIG_HOME"):
            self.env.pop(name, None)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        return write_file(self.path(name), text)

    def read(self, name):
        return read_file(self.path(name))

    def gate(self, *arguments, expect=0, stdin=None, env=None, **options):
        result = subprocess.run(
            [GATE, *arguments], cwd=self.folder, env=env or self.env, input=stdin,
            stdin=None if stdin is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", **options)
        self.assertEqual(result.returncode, expect, f"{arguments}: {result.stdout}{result.stderr}")
        if expect:
            self.assertEqual(result.stdout, "")
            self.assertTrue(result.stderr.startswith(f"gate {arguments[0]}: "), result.stderr)
        else:
            self.assertEqual(result.stderr, "")
        return result.stderr if expect else result.stdout

    def import_runs(self, *runs):
        return self.gate("import", "-", stdin=ndjson(*runs))

    def count(self):
        return len(self.gate("export").splitlines())


class Import(Records):
    def test_a_document(self):
        self.write("run.json", SAMPLE_TEXT)
        self.assertEqual(self.gate("import", "run.json"), "runs: 1 stored, 0 already there\n")
        out = self.gate("import", "--json", "run.json")
        self.assertEqual(json.loads(out), {"stored": 0, "existed": 1})

    def test_a_stream(self):
        runs = [document(1), document(2), document(3)]
        blank_lines = "\n\r\n" + ndjson(*runs[:2]) + "\n" + json.dumps(runs[2])
        self.assertEqual(json.loads(self.gate("import", "--json", "-", stdin=blank_lines)),
                         {"stored": 3, "existed": 0})
        self.assertEqual([json.loads(line) for line in self.gate("export").splitlines()], runs)

    def test_a_fault_names_its_line_and_leaves_nothing_of_the_document(self):
        bad = document(17)
        bad["cases"][3]["op"] = "soft max"
        lines = ndjson(*(document(n) for n in range(1, 17)), bad, document(18))
        self.write("runs.ndjson", lines)
        message = self.gate("import", "runs.ndjson", expect=74)
        self.assertIn("runs.ndjson:17:", message)
        self.assertIn("/cases/3/op: must be a name of", message)
        self.assertIn("(16 new)", message)
        self.assertEqual(self.count(), 16)
        bad["cases"][3]["op"] = "gemm"
        self.write("runs.ndjson", ndjson(*(document(n) for n in range(1, 17)), bad, document(18)))
        self.assertEqual(json.loads(self.gate("import", "--json", "runs.ndjson")),
                         {"stored": 2, "existed": 16})

    def test_what_the_sensors_said(self):
        run = document(1)
        timing = run["cases"][0]["arms"][0]["timing"]
        self.assertNotIn("power_w", timing)  # as documents were before it was kept
        timing["power_w"] = {"before": 118.2, "after": 640.5}
        timing["temperature_c"] = {"before": None, "after": 61}
        run["cases"][1]["arms"][0]["timing"].update(power_w=None, temperature_c=None)
        self.import_runs(run)
        self.assertEqual(json.loads(self.gate("export")), run)
        timing["power_w"]["before"] = -1
        run["uuid"] = document(2)["uuid"]
        message = self.gate("import", "-", stdin=ndjson(run), expect=74)
        self.assertIn("/cases/0/arms/0/timing/power_w", message)

    def assert_a_lie(self, run, says):
        message = self.gate("import", "-", stdin=ndjson(document(1), run), expect=74)
        self.assertIn("standard input:2:", message)
        self.assertIn(says, message)
        self.assertEqual(self.count(), 1)

    def test_a_verdict_that_the_cases_do_not_give(self):
        for key, value, says in (("verdict", "pass", "/verdict: is 'pass', but the cases give"),
                                 ("exit_code", 0, "/exit_code: is 0, but the cases give 2")):
            with self.subTest(key=key):
                self.assert_a_lie(dict(document(2), **{key: value}), says)

    def lying_case(self, says, **change):
        run = document(2)
        case = next(c for c in run["cases"] if c["verdict"] == "pass" and c["mode"] == "paired")
        case.update(change)
        self.assert_a_lie(run, says)

    def test_a_case_that_belies_itself(self):
        sample = document(2)["cases"][0]
        unverified = json.loads(json.dumps(sample["arms"]))
        unverified[0]["verify"]["ok"] = False
        untimed = json.loads(json.dumps(sample["arms"]))
        untimed[0]["timing"] = None
        odd = json.loads(json.dumps(sample["arms"]))
        odd[0]["timing"]["p50_lo_ns"] = 2 * odd[0]["timing"]["p50_ns"]
        bare = json.loads(json.dumps(sample["arms"]))
        bare[0]["timing"]["p90_ns"] = None
        slow = {"value": 1.03, "lo": 1.025, "hi": 1.035}
        self.lying_case("candidate that was not found right and timed", arms=unverified)
        self.lying_case("candidate that was not found right and timed", arms=untimed)
        self.lying_case("candidate that was not found right and timed", arms=[])
        self.lying_case("/cases/0/arms: the interval of a p50 does not hold it", arms=odd)
        self.lying_case("/cases/0/arms: a p90 is not known", arms=bare)
        self.lying_case("is 'pass' of a ratio of up to 1.035, over the threshold", ratio=slow)
        self.lying_case("/cases/0/ratio: the interval does not hold its value",
                        ratio={"value": 1, "lo": 1.01, "hi": 1.02})
        self.lying_case("is 'regression' of a ratio of 1.0029, below the threshold",
                        verdict="regression")
        for verdict in ("pass", "improvement"):
            self.lying_case(f"is '{verdict}' of an error that is 2.5 times the baseline's",
                            verdict=verdict, error_ratio=2.5)

    def test_no_case_and_a_case_twice(self):
        self.assert_a_lie(dict(document(2), cases=[], verdict="pass", exit_code=0),
                          "/cases: is empty, and the document has no calibration")
        run = document(2)
        run["cases"].append(run["cases"][0])
        self.assert_a_lie(run, "is there twice")

    def test_a_time_that_is_yet_to_come(self):
        hour_ms = 3600 * 1000
        now_ms = int(time.time() * 1000)
        self.assert_a_lie(dict(document(2), time_ms=now_ms + 49 * hour_ms),
                          "/time_ms: is 2.0 days ahead of this machine's clock")
        self.import_runs(dict(document(2), time_ms=now_ms + 23 * hour_ms))  # a clock that is fast
        self.assertEqual(self.count(), 2)

    def test_truncated_at_any_line(self):
        lines = SAMPLE_TEXT.splitlines(keepends=True)
        for n in range(0, len(lines), 97):
            self.write("run.json", "".join(lines[:n]))
            self.gate("import", "run.json", expect=74)
        self.assertEqual(self.count(), 0)

    def test_position_in_an_indented_document(self):
        self.write("run.json", SAMPLE_TEXT.replace('"threshold": 0.02', '"threshold": 0'))
        line = 1 + SAMPLE_TEXT[:SAMPLE_TEXT.index('"threshold"')].count("\n")
        message = self.gate("import", "run.json", expect=74)
        self.assertIn(f"run.json:{line}:16: /policy/threshold: must be more than 0, is 0", message)

    def test_a_run_of_another_commit_or_branch_is_refused(self):
        """A job with a token imports what a job with the code of a change measured."""
        git = document(1)["git"]
        self.write("run.json", json.dumps(document(1)))
        for wrong in (["--commit", "f" * 40], ["--branch", "other"],
                      ["--commit", git["commit"], "--branch", "other"]):
            self.assertIn(f", not of '{wrong[-1]}'",
                          self.gate("import", *wrong, "run.json", expect=74))
        self.assertEqual(self.count(), 0)
        self.gate("import", "--commit", git["commit"], "--branch", git["branch"], "run.json")
        self.assertEqual(self.count(), 1)

    def test_hostile_input(self):
        for text in ("", " \n\n", "[]", "null", "[" * 100000, '{"a":1,"a":2}', "{}",
                     '{"schema":"gate-run/2"}', "\0", "1e999", '"\\ud800"', "{}{}"):
            self.gate("import", "-", stdin=text, expect=74)
        self.assertIn("\ufffd[31m", self.gate("import", "-", stdin='{"\\u001b[31m":1}', expect=74))

    def test_no_input_file(self):
        self.gate("import", "none.json", expect=74)
        self.assertFalse(os.path.exists(self.path("gate.db")))
        self.gate("import", ".", expect=74)

    def test_not_a_database(self):
        self.write("gate.db", "this is no database, just a text that is long enough" * 100)
        before = self.read("gate.db")
        self.gate("import", "-", stdin=SAMPLE_TEXT, expect=74)
        self.assertEqual(self.read("gate.db"), before)

    def test_usage(self):
        self.assertIn("see 'gate import --help'", self.gate("import", expect=64))
        self.gate("import", "a", "b", expect=64)
        self.gate("import", "--db", expect=64)
        self.gate("import", "--frobnicate", "a", expect=64)
        self.assertIn("Usage: gate import", self.gate("import", "--help"))


class Export(Records):
    def test_round_trip(self):
        runs = [document(2), document(1)]
        self.import_runs(*runs)
        text = self.gate("export")
        self.assertEqual([json.loads(line) for line in text.splitlines()], runs[::-1])
        self.assertEqual(self.gate("import", "--db", "copy.db", "-", stdin=text),
                         "runs: 2 stored, 0 already there\n")
        self.assertEqual(self.gate("export", "--db", "copy.db"), text)

    def test_one_run(self):
        self.import_runs(document(1), document(2))
        out = self.gate("export", "--run", document(1)["uuid"])
        self.assertEqual(json.loads(out), document(1))
        out = self.gate("export", "--run", "latest")
        self.assertEqual(json.loads(out), document(2))

    def test_what_is_no_document_any_more(self):
        self.import_runs(document(1))
        connection = sqlite3.connect(self.path("gate.db"))
        odd = json.dumps(dict(document(1), verdict="great")).encode()
        connection.execute("UPDATE document SET packed = ?, n_bytes = ?",
                           (zlib.compress(odd), len(odd)))
        connection.commit()
        connection.close()
        for command in (["export"], ["export", "--run", "latest"], ["report", "--json"]):
            self.assertIn("/verdict: must be one of", self.gate(*command, expect=74))

    def test_csv(self):
        self.import_runs(document(1), document(2))
        rows = list(csv.DictReader(io.StringIO(self.gate("export", "--format", "csv"), newline=""),
                                   strict=True))
        self.assertEqual(len(rows), 50)
        self.assertEqual({row["run_uuid"] for row in rows},
                         {document(1)["uuid"], document(2)["uuid"]})

    def test_output_is_whole_or_not_there(self):
        self.import_runs(document(1))
        self.write("out", "as it was")

        def small_files():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

        self.gate("export", "--output", "out", expect=74, preexec_fn=small_files)
        self.assertEqual(self.read("out"), "as it was")
        self.assertEqual([n for n in os.listdir(self.folder) if n.endswith(".tmp")], [])
        self.gate("export", "--output", "out")
        self.assertEqual(json.loads(self.read("out")), document(1))

    def test_full_device(self):
        self.import_runs(document(1))
        self.write("run.json", SAMPLE_TEXT)
        with open("/dev/full", "w", encoding="utf-8") as full:
            for command in (["export"], ["report"], ["leaderboard"], ["history", CASE],
                            ["import", "run.json"]):
                result = subprocess.run([GATE, *command], cwd=self.folder, env=self.env,
                                        stdout=full, stderr=subprocess.PIPE, check=False)
                self.assertEqual(result.returncode, 74, command)

    def test_usage(self):
        self.gate("export", expect=74)
        self.import_runs(document(1))
        self.gate("export", "--format", "json", expect=64)
        self.gate("export", "--format", "yaml", expect=64)
        self.gate("export", "--run", "0" * 36, expect=64)


class Report(Records):
    def test_formats(self):
        self.import_runs(document(1))
        self.assertIn("1 regression, 2 wrong (threshold 2 %): wrong", self.gate("report"))
        self.assertIn("| case | p50 / p90 |", self.gate("report", "--format", "markdown"))
        self.assertEqual(json.loads(self.gate("report", "--json")), document(1))
        self.assertEqual(
            ElementTree.fromstring(self.gate("report", "--format", "junit")).get("failures"), "3")
        page = f"https://gate.example.org/#/run/{document(1)['uuid']}"
        linked = ("report", "--link", "https://gate.example.org")
        self.assertEqual(self.gate(*linked).splitlines()[-1], page)
        junit = ElementTree.fromstring(self.gate(*linked, "--format", "junit"))
        for failure in junit.iter("failure"):
            self.assertIn(f"run: {page}\n", failure.text)
        self.gate("report", "--format", "csv", "--output", "out.csv")
        self.assertIn("\n5a3b1e00", self.read("out.csv"))

    def test_width_of_the_terminal(self):
        self.import_runs(document(1))
        wide = self.gate("report")
        narrow = self.gate("report", env=dict(self.env, COLUMNS="80"))
        self.assertIn("ceiling", wide)
        self.assertIn("columns left out at this width", narrow)

    def test_latest_and_prefix(self):
        first, second = document(1, commit="1" * 40), document(2, commit="2" * 40)
        self.import_runs(first, second)
        self.assertIn("2" * 12, self.gate("report"))
        self.assertIn("1" * 12, self.gate("report", "--run", first["uuid"]))
        self.gate("report", "--run", "5a3b1e00", expect=64)
        self.gate("report", "--run", "ffff", expect=64)

    def test_without_runs(self):
        self.gate("report", expect=74)
        self.assertFalse(os.path.exists(self.path("gate.db")))
        self.gate("import", "-", stdin="{}", expect=74)
        self.assertIn("no runs yet", self.gate("report", expect=64))

    def test_database_from_the_environment(self):
        self.gate("import", "--db", "other.db", "-", stdin=SAMPLE_TEXT)
        self.gate("report", env=dict(self.env, GATE_DB="other.db"))

    def test_usage(self):
        for arguments in (["--format", "html"], ["stray"], ["--run"], ["--json=1"], ["-x"]):
            self.assertIn("see 'gate report --help'", self.gate("report", *arguments, expect=64))


class History(Records):
    def test_newest_first_by_device(self):
        self.import_runs(document(1), document(2, FAST), document(3, 30000, "nvidia-a100"))
        out = self.gate("history", CASE)
        self.assertLess(out.index("nvidia-a100"), out.index("nvidia-h200"))
        self.assertLess(out.index("23.98 us"), out.index("26.21 us"))
        self.assertRegex(out, r" [0-9.]+ TFLOP/s +[0-9.]+ GB/s ")
        points = json.loads(self.gate("history", CASE, "--json", "--device-model", "nvidia-h200"))
        ours = [p["p50_ns"] for p in points if p["role"] == "candidate"]
        self.assertEqual(ours, [FAST, SLOW])
        self.assertEqual({p["device_model"] for p in points}, {"nvidia-h200"})
        self.assertEqual(len(json.loads(self.gate("history", CASE, "--json", "--limit", "1"))), 2)

    def test_a_pattern_of_cases(self):
        self.import_runs(document(1), document(2, FAST))
        every = json.loads(self.gate("history", "*", "--json"))
        some = json.loads(self.gate("history", CASE.split("/")[0] + "/*", "--json"))
        one = json.loads(self.gate("history", CASE, "--json"))
        self.assertEqual({p["case"] for p in one}, {CASE})
        self.assertEqual([p for p in some if p["case"] == CASE], one)
        self.assertEqual([p for p in every if p in some], some)
        self.assertGreater(len({p["case"] for p in every}), len({p["case"] for p in some}))
        self.assertIn(f"{CASE} on nvidia-h200\n", self.gate("history", "*"))

    def test_faults(self):
        self.import_runs(document(1))
        self.assertIn("no verified measurements of 'gemm/none'",
                      self.gate("history", "gemm/none", expect=64))
        self.gate("history", CASE, "--device-model", "nvidia-none", expect=64)
        self.gate("history", expect=64)
        for limit in ("0", "-1", "x", "1x", "", "99999999999999999999"):
            self.gate("history", CASE, "--limit", limit, expect=64)

    def test_wrong_measurements_are_no_history(self):
        self.import_runs(document(1))
        points = json.loads(
            self.gate("history", "linear_relu/tf32/m1024-n2048-k784", "--json"))
        self.assertEqual({p["provider"] for p in points}, {"cublas"})


class Leaderboard(Records):
    def test_lowest_of_each_provider(self):
        self.import_runs(document(1), document(2, FAST, commit="2" * 40), document(3, SLOW))
        leaders = json.loads(self.gate("leaderboard", "--json"))
        ours = [x for x in leaders if x["case"] == CASE and x["role"] == "candidate"]
        self.assertEqual([(x["p50_ns"], x["commit"]) for x in ours], [(FAST, "2" * 40)])
        self.assertIn("222222222222", self.gate("leaderboard"))
        self.gate("leaderboard", "--device-model", "none", expect=64)
        none = self.gate("leaderboard", "--json", "--device-model", "none")
        self.assertEqual(json.loads(none), [])

    def test_of_nothing(self):
        self.write("nothing", "")
        self.gate("import", "nothing", expect=74)
        self.assertIn("no verified measurement is stored", self.gate("leaderboard"))


if __name__ == "__main__":
    unittest.main()
