# SPDX-License-Identifier: Apache-2.0
"""Times of other tools: `gate import --from`, and how they are shown where the gate's are.

sanitized: gate reads files of other tools
"""

import json
import os
import subprocess
import unittest

import foreign_files as made
from harness import GATE, GPU, Gate, SeededCase, token, watched, write_file

GOOGLE = made.google(made.google_row("BM_X<float>/8", 12), made.google_row("BM_X<float>/8", 90),
                     made.google_row("BM_X<float>/8", 10))

# Tool, file, options; the cases with p50 and p90 in ns, samples, the name of the figure.
READ = [
    ("nvbench", made.nvbench("1.2e-05", 1.5e-05), (),
     [("copy/t-f32/elements-1024", 12000, None, 500, "mean"),
      ("copy/t-f32/elements-2048", 15000, None, 500, "mean")]),
    ("pytest-benchmark", made.pytest(**{"test_x[1-2]": 2e-5}), (),
     [("tests/test_a.py--test_x-1-2", 20000, None, 25, "median")]),
    ("google-benchmark", GOOGLE, ("--device", "nvidia-h200"),
     [("bm_x-float-/8", 12000, None, 3, "median")]),
    ("junit", made.junit('<testcase classname="a.b" name="t[&lt;x&gt;]" time="0.25"/>'),
     ("--device", "host-x"), [("a.b/t--x", 250000000, None, 1, "one-time")]),
    ("csv", '\ufeffname,p50_ns,p90_ns\r\n"a ""b"", c",1500,1600\n\nplain,2.5e3,\n',
     ("--device", "host-x"), [("a--b---c", 1500, 1600, 1, "p50"), ("plain", 2500, None, 1, "p50")]),
]

ROW = made.google_row
# Tool, file, what the message says. The options name a device, a commit and a branch.
REFUSED = [
    ("nvbench", "x", "file:1:1: expected a value"),
    ("nvbench", "", "file:1:1"),
    ("nvbench", "[" * 40, "file:1:33"),
    ("nvbench", [], "file: has no list 'benchmarks'"),
    ("nvbench", {"devices": [], "benchmarks": {}}, "file: has no list 'benchmarks'"),
    ("nvbench", {"benchmarks": [{"name": "a"}]}, "/benchmarks/0: must have a 'name', a list 'st"),
    ("nvbench", {"benchmarks": ["a"]}, "file: is no file of this tool: malformed JSON"),
    ("nvbench", made.nvbench("1e-5", devices=("",)), "/devices/0: must have an 'id' of 0 to"),
    ("nvbench", made.nvbench("1e-5", devices=("x" * 101,)), "a 'name' of 1 to 100 bytes"),
    ("nvbench", made.nvbench("1e-5", devices=("+",)), "/devices/0: must have an 'id'"),
    ("nvbench", made.nvbench("1e-5", device=7), "/benchmarks/0/states/0: its device 7 is not"),
    ("nvbench", made.nvbench("1e-5", device={}), "its device {} is not"),
    ("nvbench", made.nvbench("1e-5", device=0.5), "its device 0.5 is not"),
    ("nvbench", made.nvbench("1e-5", is_skipped="true"), "has no result with a time (1 without)"),
    ("nvbench", made.nvbench("nan"), "/benchmarks/0/states/0: must have"),
    ("nvbench", made.nvbench("0x10"), "with a finite number as 'value'"),
    ("nvbench", made.nvbench("-1e-5"), "cannot take -10000 ns"),
    ("nvbench", made.nvbench(1e7), "cannot take 1e+16 ns"),
    ("nvbench", made.nvbench(None), "has no result with a time (1 without)"),
    ("nvbench", made.nvbench("1e-5", "1e-5", axis_values=[]), "(/benchmarks/0/states/1) are one"),
    ("nvbench", made.nvbench("1e-5", axis_values=[{"name": "x" * 1000, "value": "1"}]),
     "a name must have 1 to 1000 bytes, this has 1007"),
    ("pytest-benchmark", json.dumps(made.pytest(a=1)).replace('"median": 1', '"median": NaN'),
     "expected a value"),
    ("pytest-benchmark", made.pytest(a=-1),
     "/benchmarks/0: 'tests/test_a.py::a' cannot take -1e+09 ns"),
    ("pytest-benchmark", {"benchmarks": [{"fullname": "a", "stats": {"rounds": 1}}]},
     "/benchmarks/0: must have a text 'fullname', and in 'stats' a number 'median'"),
    ("pytest-benchmark", {"benchmarks": [7]}, "/benchmarks/0: must have a text 'fullname'"),
    ("google-benchmark", made.google(ROW("a", 1, "hours")), "one of 'ns' 'us' 'ms' 's' as 'time_"),
    ("google-benchmark", made.google(ROW("a", 2), ROW("a", "1")), "must have a text 'name', a num"),
    ("google-benchmark", made.google(ROW("a", 5), ROW("a", 0), ROW("a", 5)), "cannot take 0 ns"),
    ("google-benchmark", made.google(ROW("a", 1), ROW("A", 1)), "are one case"),
    ("google-benchmark", made.google(ROW("a", 1, error_occurred=True)), "no result with a time"),
    ("google-benchmark", made.google(ROW("a", 1, error_occurred="yes")), "no result with a time"),
    ("google-benchmark", made.google(ROW("a", 1, skipped="yes")), "no result with a time"),
    ("junit", "x", "file:1: syntax error"),
    ("junit", "<a>\n", "file:2: no element found"),
    ("junit", "<a>\n</b>", "file:2: mismatched tag"),
    ("junit", "<a b='\udcff'/>", "file:1: not well-formed"),
    ("junit", "<!DOCTYPE a [<!ENTITY b 'c'>]><a/>", "a document type is not read"),
    ("junit", "<a b='&c;'/>", "undefined entity"),
    ("junit", made.junit('<testcase time="1"/>'), "file:3: a testcase has no name"),
    ("junit", made.junit('<testcase name="a" time="1,5"/>'), "must be in seconds, is '1,5'"),
    ("junit", made.junit('<testcase name="a" time="-1"/>'), "must be in seconds, is '-1'"),
    ("junit", made.junit('<testcase name="a"><testcase name="b"/></testcase>'), "in a testcase"),
    ("junit", made.junit(f'<testcase name="{"a" * 1001}" time="1"/>'), "this has 1001"),
    ("junit", made.junit('<testcase name="a" time="1"/>', '<testcase name="a" time="2"/>'),
     "'a' (line 3) and 'a' (line 4) are one case, 'foreign/junit/a'"),
    ("junit", made.junit('<testcase name="a" time="1"><skipped/></testcase>'), "(1 without)"),
    ("csv", "", "file:1: there is no column ''"),
    ("csv", "name\na\n", "name and p50_ns at least"),
    ("csv", "name,p50_us\na,1\n", "there is no column 'p50_us'"),
    ("csv", "name,p50_ns,name\na,1,b\n", "the column 'name' is there twice"),
    ("csv", "name,p50_ns\na,1,2\n", "file:2: has 3 fields, the first line 2"),
    ("csv", "name,p50_ns\na,\n", "file:2: p50_ns must be a number above 0, is ''"),
    ("csv", "name,p50_ns\na,inf\n", "is 'inf'"),
    ("csv", 'name,p50_ns\n"a\nb",1\nc,0\n', "file:4: p50_ns must be a number above 0"),
    ("csv", "name,p50_ns\na,-1\n", "is '-1'"),
    ("csv", "name,p50_ns\na, 1\n", "is ' 1'"),
    ("csv", "name,p50_ns\n,1\n", "a name must have 1 to 1000 bytes, this has 0"),
    ("csv", 'name,p50_ns\n"a,1\n', "file:2: a quote has no end"),
    ("csv", 'name,p50_ns\na"b,1\n', "must begin and end with one"),
    ("csv", 'name,p50_ns\n"a"b,1\n', "must begin and end with one"),
    ("csv", "name,p50_ns\ra,1\n", "a carriage return stands alone"),
    ("csv", "name,p50_ns\na" + "," * 1023, "has 1024 fields, the first line 2"),
    ("csv", "name,p50_ns\na" + "," * 1024, "has more fields than"),
    ("csv", "name,p50_ns,p50_lo_ns,p50_hi_ns\na,5,6,7\n", "must be around p50_ns"),
    ("csv", "name,p50_ns\na\udcff,1\n", "file:2: is not UTF-8"),
    ("csv", "name,p50_ns\na\0,1\n", "file:2: is not UTF-8"),
    ("csv", "name,p50_ns\na,1\na,2\n", "'a' (line 2) and 'a' (line 3) are one case"),
    ("csv", "name,p50_ns\n" + "".join(f"a{i},1\n" for i in range(10001)), "may have 10000"),
]


class Import(Gate):
    def put(self, tool, file, *options, about=("--commit", made.COMMIT, "--branch", "main")):
        path = self.path("file")
        with open(path, "wb") as out:
            out.write(made.text_of(file).encode(errors="surrogateescape"))
        done = self.gate("import", "--from", tool, "file", *about, *options)
        return done.returncode, done.stdout, done.stderr

    def runs(self):
        done = self.gate("export")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def test_each_tool(self):
        for tool, file, options, cases in READ:
            with self.subTest(tool=tool):
                code, out, err = self.put(tool, file, *options, "--db", tool + ".db")
                self.assertEqual((code, out), (0, "runs: 1 stored, 0 already there\n"), err)
                run = json.loads(self.gate("export", "--db", tool + ".db").stdout)
                self.assertEqual(run["contract"], "foreign-" + tool)
                self.assertEqual((run["verdict"], run["exit_code"]), ("no-verdict", 3))
                found = [(c["id"], t["p50_ns"], t["p90_ns"], t["samples"], c["arms"][0]["kernel"])
                         for c in run["cases"] for t in [c["arms"][0]["timing"]]]
                self.assertEqual(found, [(f"foreign/{tool}/{name}", *rest)
                                         for name, *rest in cases])
                again = self.put(tool, file, *options, "--db", tool + ".db")
                self.assertEqual(again[:2], (0, "runs: 0 stored, 1 already there\n"))

    def test_what_a_file_says_of_itself(self):
        self.put("pytest-benchmark", made.pytest(a=1), about=())
        self.put("google-benchmark", GOOGLE, "--device", "nvidia-h200")
        self.put("nvbench", made.nvbench("1e-5", "2e-5", devices=("NVIDIA H200", "NVIDIA L4")))
        runs = self.runs()
        pytest, google = (next(run for run in runs if run["suite"] == tool + "-benchmark")
                          for tool in ("pytest", "google"))
        self.assertEqual(pytest["git"]["commit"], made.COMMIT)
        self.assertEqual(pytest["git"]["branch"], "main")
        self.assertEqual(pytest["time_ms"], 1772359200000)  # 2026-03-01T10:00:00Z
        self.assertEqual(pytest["device"]["model"], "host-amd-epyc-9554")
        self.assertTrue(pytest["who"].endswith("@ci7"))
        self.assertEqual(pytest["libraries"][0]["version"], "4.0.0")
        self.assertEqual(google["time_ms"], 1772366400000)
        of = {r["device"]["model"]: [c["arms"][0]["timing"]["p50_ns"] for c in r["cases"]]
              for r in runs if r["suite"] == "nvbench"}
        self.assertEqual(of, {"nvidia-h200": [10000], "nvidia-l4": [20000]})

    def test_a_median_stands_for_repetitions_that_the_file_lacks(self):
        rows = [made.google_row("a_median", 3, run_name="a", run_type="aggregate",
                                aggregate_name="median"),
                made.google_row("a_cv", 0.1, run_name="a", run_type="aggregate",
                                aggregate_name="cv"),
                made.google_row("b", 5, "ms"),
                *(made.google_row("c", time) for time in (9, 1, 7, 4)),
                made.google_row("c_median", 99, run_name="c", run_type="aggregate",
                                aggregate_name="median")]
        self.put("google-benchmark", made.google(*rows), "--device", "host-x")
        times = {c["id"]: c["arms"][0]["timing"]["p50_ns"] for c in self.runs()[0]["cases"]}
        self.assertEqual(times, {"foreign/google-benchmark/a": 3000,
                                 "foreign/google-benchmark/b": 5000000,
                                 "foreign/google-benchmark/c": 5500})

    def test_what_is_left_out_is_counted(self):
        code, _, err = self.put("junit", made.junit(
            '<testcase name="a" time="1"><failure message="x&#10;y">z<![CDATA[</a>]]></failure>'
            '</testcase>', '<testcase name="b" time="0.000"></testcase><!-- <x> -->',
            '<testcase name="c"/>', '<testcase name="d" time="2"/>'), "--device", "host-x")
        self.assertEqual(code, 0)
        self.assertIn("left out, because skipped, failed or without a time: 3", err)
        self.assertEqual([c["id"] for c in self.runs()[0]["cases"]], ["foreign/junit/d"])

    def test_a_name_that_no_id_can_be_ends_in_a_hash(self):
        names = ["x" * 200, "x" * 201, "é", "è"]
        self.put("csv", "name,p50_ns\n" + "".join(f"{n},1\n" for n in names), "--device", "host-x")
        ids = [c["id"] for c in self.runs()[0]["cases"]]
        self.assertEqual(len(set(ids)), 4, ids)
        self.assertLessEqual(max(map(len, ids)), 160)

    def test_bad_files(self):
        for tool, file, says in REFUSED:
            with self.subTest(tool=tool, says=says):
                code, out, err = self.put(tool, file, "--device", "nvidia-h200")
                self.assertEqual((code, out), (74, ""), err)
                self.assertIn(says, err)
                self.assertTrue(err.startswith("gate import: file:"), err)
        self.assertEqual(self.runs(), [])

    def test_what_is_missing_is_asked_for(self):
        write_file(self.path("file"), "name,p50_ns\na,1\n")
        for options, code, says in [
                ((), 64, "no commit is known here: add --commit HASH"),
                (("--commit", made.COMMIT), 64, "no branch is known here: add --branch NAME"),
                (("--commit", made.COMMIT, "--branch", "b"), 64, "add --device MODEL"),
                (("--commit", "HEAD"), 64, "40 hexadecimal digits"),
                (("--device", "H200"), 64, "a name such as nvidia-h200")]:
            with self.subTest(options=options):
                done = self.gate("import", "--from", "csv", "file", *options)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(says, done.stderr)
        for options, says in [(("--from", "perf"), "nvbench, pytest-benchmark"),
                              (("--device", "nvidia-h200"), "--device goes with --from")]:
            done = self.gate("import", *options, "file")
            self.assertEqual(done.returncode, 64)
            self.assertIn(says, done.stderr)

    def test_git_says_what_the_file_does_not(self):
        def git(*args):
            return subprocess.run(
                ["git", "-c", "user.name=A", "-c", "user.email=a@b", *args], cwd=self.folder,
                check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
        git("init", "-qb", "work")
        write_file(self.path("tracked"), "1")
        git("add", "tracked")
        git("commit", "-qm", "first")
        write_file(self.path("tracked"), "2")
        code, _, err = self.put("csv", "name,p50_ns\na,1\n", "--device", "host-x", about=())
        self.assertEqual(code, 0, err)
        run = self.runs()[0]
        self.assertEqual(run["time_ms"] // 1000, int(os.stat(self.path("file")).st_mtime))
        self.assertTrue(run["git"]["dirty"])
        self.put("csv", "name,p50_ns\na,2\n", "--device", "host-x")  # another commit than here
        self.assertFalse(next(r for r in self.runs() if r["git"]["commit"] == made.COMMIT)
                         ["git"]["dirty"])
        self.assertEqual(run["git"]["commit"], git("rev-parse", "HEAD"))
        self.assertEqual((run["git"]["branch"], run["git"]["subject"]), ("work", "first"))

    def test_reports_and_lists_have_blanks_for_what_is_not_known(self):
        self.put("csv", "name,p50_ns\na,1500\n", "--device", "nvidia-h200")
        texts = [self.gate("report", "--format", f).stdout for f in ("text", "markdown", "junit")]
        texts.append(self.gate("history", "foreign/csv/a").stdout)
        for text in texts:
            self.assertIn("foreign/csv/a", text)
            self.assertIn("1.500 us", text)
            self.assertNotIn("nan", text)
            self.assertNotRegex(text, r"\b0\.0+ [a-zA-Z%]")
        self.assertIn("not judged: p50 of a, by csv", texts[0])
        self.assertNotIn("foreign", self.gate("leaderboard").stdout)

    def test_a_document_does_not_mix_both(self):
        self.put("csv", "name,p50_ns\na,1500\n", "--device", "nvidia-h200")
        good = self.runs()[0]
        for change, says in [
                (lambda run, case: case.update(id="gemm/x"), "does not go with the contract"),
                (lambda run, case: run.update(contract="cold-v1"), "does not go with the contract"),
                (lambda run, case: case.update(baseline={"p50_ns": 1, "commit": "", "time_ms": 1}),
                 "it has no verdict, no baseline"),
                (lambda run, case: case.update(ratio={"value": 1, "lo": 1, "hi": 1}),
                 "it has no verdict, no baseline"),
                (lambda run, case: case["arms"][0].update(role="provider"), "no other library")]:
            run = json.loads(json.dumps(good))
            change(run, run["cases"][0])
            write_file(self.path("bad.json"), json.dumps(run))
            done = self.gate("import", "--db", "other.db", "bad.json")
            self.assertEqual(done.returncode, 74)
            self.assertIn(says, done.stderr)


TOOL = "foreign-nvbench"
CASE = "foreign/nvbench/copy/t-f32/elements-1024"
ASKED = ("devices", "machines", "controls", "changes", "pushes", "leaderboard", "baselines",
         "devices?branch=main", "vendor", "coverage")


class Shown(SeededCase):
    """A history of the gate, and behind it as many runs of nvbench: 1 ms, and then 1.2 ms."""
    n_runs = 16

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.secret = token(cls.db, "--scope", "ingest")
        cls.before = {path: cls.server.json(f"/api/v1/{path}") for path in ASKED}
        cls.badge = cls.server.json(f"/badge/{GPU}.json")
        cls.counts = cls.server.json(f"/api/v1/cases?device={GPU}")["counts"]
        runs = cls.server.json("/api/v1/runs?limit=500&branch=main")["runs"]
        last = max(run["time_ms"] for run in runs)
        cls.commit = next(run["commit"] for run in runs if run["device"] == GPU)
        cls.sent = [cls.send_run(i, last) for i in range(cls.n_runs)]
        watched(cls.db)

    @classmethod
    def send_run(cls, i, last):
        """Imports a file, and posts the document that it became to the server."""
        file = os.path.join(cls.folder.name, "bench.json")
        db = os.path.join(cls.folder.name, f"{i}.db")
        mean = (1 if i < cls.n_runs // 2 else 1.2) * 1e-3 * (1 + 0.001 * (i % 3))
        write_file(file, json.dumps(made.nvbench(mean, None)))
        os.utime(file, (last // 1000 + 60 * (i + 1),) * 2)
        subprocess.run([GATE, "import", "--from", "nvbench", file, "--db", db, "--branch", "main",
                        "--commit", f"{i:040x}" if i else cls.commit], check=True,
                       capture_output=True)
        done = subprocess.run([GATE, "export", "--db", db], check=True, stdout=subprocess.PIPE)
        run = json.loads(done.stdout)
        if i == cls.n_runs - 1:
            run["git"]["change"] = "7"
        answer = cls.server.send("/api/v1/runs", json.dumps(run).encode(), cls.secret)
        if answer.status != 201:
            raise AssertionError(answer.bytes)
        return run["uuid"]

    def get(self, path):
        return self.server.json(f"/api/v1/{path}")

    def test_the_wall_shows_them_without_a_verdict(self):
        found = self.get(f"cases?device={GPU}&sort=worst")
        case = next(c for c in found["cases"] if c["id"] == CASE)
        self.assertEqual((case["verdict"], case["contract"], case["op"]),
                         ("foreign", TOOL, "nvbench"))
        self.assertEqual(case["run"], self.sent[-1])
        self.assertAlmostEqual(case["p50_ns"], 1.2e6, delta=3e3)
        for name in ("ratio", "mde", "baseline_p50_ns", "rel_err", "p50_lo_ns", "peer"):
            self.assertIsNone(case[name], name)
        self.assertEqual(found["counts"], {**self.counts, "foreign": 1})
        only = self.get(f"cases?device={GPU}&verdict=foreign")
        self.assertEqual([c["id"] for c in only["cases"]], [CASE])
        self.assertEqual([c["id"] for c in self.get("cases?op=nvbench")["cases"]], [CASE])
        self.assertNotIn(CASE, [c["id"] for c in self.get("cases?verdict=no-verdict")["cases"]])

    def test_runs_are_marked(self):
        for query in ("", f"&device={GPU}", "&branch=main", f"&device={GPU}&branch=main"):
            runs = self.get(f"runs?limit=500&verdict=foreign{query}")["runs"]
            self.assertEqual([r["uuid"] for r in runs], self.sent[::-1], query)
            self.assertEqual({r["verdict"] for r in runs}, {"foreign"})
            none = self.get(f"runs?limit=500&verdict=no-verdict{query}")["runs"]
            self.assertFalse({r["uuid"] for r in none} & set(self.sent), query)
        self.assertEqual(runs[0]["verdicts"], dict.fromkeys(runs[0]["verdicts"], 0) |
                         {"foreign": 1})

    def test_what_judges_does_not_see_them(self):
        for path in ASKED:
            now = self.get(path)
            for device in now.get("devices", ()):  # how many runs it has is counted
                device["runs"] -= self.n_runs * (device["model"] == GPU)
            self.assertEqual(now, self.before[path], path)
        self.assertEqual(self.server.json(f"/badge/{GPU}.json")["message"].split(",")[0],
                         self.badge["message"].split(",")[0])
        run = json.loads(self.server.get(f"/api/v1/runs/{self.sent[-1]}").bytes)
        run["uuid"] = "5a3b1e00-0000-4000-8000-000000000001"
        run["git"].update(commit="f" * 40, branch="theirs", change="8", first_parents=[])
        answer = self.server.send("/api/v1/runs", json.dumps(run).encode(), self.secret)
        self.assertEqual(answer.status, 201, answer.bytes)
        for path in ("changes", "pushes"):
            self.assertEqual(self.get(path), self.before[path], path)

    def test_a_run_has_no_control(self):
        self.assertEqual(self.get(f"controls?run={self.sent[-1]}"), {"controls": []})

    def test_the_badge_of_a_case_is_its_time(self):
        badge = self.server.json(f"/badge/{GPU}/{CASE}.json")
        self.assertEqual(badge["message"], "foreign, 1.200 ms")

    def test_the_trend_has_a_change_of_level(self):
        trend = self.get(f"trends?device={GPU}&case={CASE}")
        columns = trend["series"][0]["columns"]
        self.assertEqual(columns["verdict"], ["foreign"] * self.n_runs)
        self.assertIsNone(columns["p90_ns"][0])
        self.assertEqual([c["run"] for c in trend["change_points"]],
                         [self.sent[self.n_runs // 2]])

    def test_the_alert_is_of_times_alone(self):
        alerts = [a for a in self.get("alerts?limit=200")["alerts"] if a["case"] == CASE]
        self.assertEqual([(a["kind"], a["confirmed"], a["contract"]) for a in alerts],
                         [("regression", False, TOOL)])
        self.assertAlmostEqual(alerts[0]["change"], 0.2, delta=0.01)

    def test_a_comparison_judges_nothing(self):
        first, last = self.sent[0], self.sent[-1]
        found = self.get(f"compare?a={first}&b={last}")["cases"]
        self.assertEqual([(c["judged"], c["a"]["verdict"]) for c in found], [("none", "foreign")])

    def test_the_base_of_a_run_is_of_the_same_tool(self):
        gate = next(run for run in self.get(f"runs?limit=500&device={GPU}&branch=main")["runs"]
                    if run["verdict"] != "foreign")
        before = {r["uuid"] for r in self.get("runs?limit=500")["runs"]} - set(self.sent)
        for run, allowed in ((self.sent[-1], self.sent), (gate["uuid"], before)):
            for base in ("parent", "merge-base"):
                found = self.get(f"compare?a={base}&b={run}")
                self.assertIn(found["a"]["uuid"], allowed, (run, base))
        # Runs of the gate are of its commit's parent, and before it; none of the tool is.
        self.assertEqual(self.server.get(f"/api/v1/compare?a=parent&b={self.sent[0]}").status, 404)

    def test_a_commit_names_its_run_of_the_gate(self):
        """The first run of the other tool is of the same commit, and newer."""
        found = self.get(f"compare?a={self.commit}&b={self.sent[-1]}&device={GPU}")
        self.assertNotIn(found["a"]["uuid"], self.sent)


if __name__ == "__main__":
    unittest.main()
