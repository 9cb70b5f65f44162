# SPDX-License-Identifier: Apache-2.0
"""`gate run` against the merge base and the stored baseline at once: one blocks, one warns."""

import csv
import json
import os
import shutil
import subprocess
import unittest
import xml.etree.ElementTree as ElementTree

from harness import FIRST, GATE, SECOND, WORKER, FakeRuns, read_file, write_file


class Repository(FakeRuns):
    """The baseline is of the first commit, `trunk` has become 5 % slower since, and a branch is as
    fast as that."""

    def setUp(self):
        super().setUp()
        self.repository = self.path("repository")
        os.mkdir(self.repository)
        self.git("init", "-q", "-b", "trunk")
        self.git("config", "user.email", "a@example.org")
        self.git("config", "user.name", "A")
        self.write("gate.json", json.dumps({
            "schema": "gate-config/1", "library": "built.so", "build": "cp library built.so",
            "suite": self.suite, "baselines": self.path("baselines"), "main": "trunk",
            "database": self.path("gate.db")}))
        self.write(".gitignore", "built.so\n")
        self.commit("time=100000")
        self.run_here("--accept-new")
        os.remove(self.path("count"))
        self.base = self.commit("time=105000")
        self.git("checkout", "-q", "-b", "change")
        self.commit("time=105010")

    def git(self, *args):
        return subprocess.run(["git", *args], cwd=self.repository, check=True, text=True,
                              capture_output=True).stdout.strip()

    def write(self, name, text):
        write_file(os.path.join(self.repository, name), text)

    def commit(self, library):
        self.write("library", library)
        self.write("built.so", library)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", library)
        return self.git("rev-parse", "HEAD")

    def run_here(self, *args, status=0, **fake):
        env = {k: v for k, v in os.environ.items()
               if k == "GATE_LOCKS" or not k.startswith("GATE_")}
        env.update(GATE_CACHE=self.path("cache"), FAKE=json.dumps(
            {"by_file": 0.0005, "count": self.path("count"), **fake}))
        done = subprocess.run(
            [GATE, "run", "--json", "--device", "cuda:0", "--worker", WORKER, "--provider",
             self.path("x.so"), "--pause", "0", *args], cwd=self.repository, env=env, text=True,
            capture_output=True, check=False, stdin=subprocess.DEVNULL)
        if status is not None:
            self.assertEqual(done.returncode, status, done.stderr + done.stdout)
        return json.loads(done.stdout) if done.stdout else done.stderr


class Sides(Repository):
    def verdicts(self, document):
        return {(c["verdict"], c["warning"]["verdict"]) for c in document["cases"]}

    def test_the_base_blocks_and_the_baseline_warns(self):
        document = self.run_here("--against", "merge-base", "--warn-against", "baseline")
        self.assertEqual(self.verdicts(document), {("pass", "regression")})
        self.assertEqual(document["policy"]["against"], self.base)
        self.assertEqual(document["policy"]["warn_against"], "baseline")
        self.assertIn("slower by", document["cases"][0]["warning"]["reason"])
        self.assertAlmostEqual(document["cases"][0]["warning"]["ratio"]["value"], 1.05, delta=0.01)

    def test_the_reverse(self):
        document = self.run_here("--warn-against", "merge-base", status=1)
        self.assertEqual(self.verdicts(document), {("regression", "pass")})
        self.assertEqual(document["policy"]["warn_against"], self.base)
        self.assertNotIn("base", document["policy"])
        self.assertTrue(all(c["baseline"] for c in document["cases"]))

    def test_one_table_has_both(self):
        names = {"text": "r.txt", "markdown": "r.md", "junit": "r.xml", "csv": "r.csv"}
        self.run_here("--against", "merge-base", "--warn-against", "baseline",
                      *[word for kind, name in names.items()
                        for word in ("--report", f"{kind}={self.path(name)}")])
        said = {}
        for kind, name in names.items():
            said[kind] = read_file(self.path(name))
        where = f"against {self.base[:12]}, where this branch left trunk"
        for kind in ("text", "markdown"):
            self.assertIn(where, said[kind])
            self.assertNotIn(self.base, said[kind])
        head, = (line for line in said["text"].splitlines() if line.startswith("case "))
        self.assertTrue(head.endswith("verdict  vs baseline"), head)
        self.assertRegex(said["text"], rf"{FIRST} .* pass +\+[45]\.\d+ % regression\n")
        self.assertIn(f"warning {SECOND} against baseline: regression: slower by", said["text"])
        self.assertIn("against baseline, as a warning: 2 regression\n2 pass", said["text"])
        self.assertIn(f"| vs {self.base[:12]} | MDE | verdict | vs baseline |", said["markdown"])
        self.assertRegex(said["markdown"],
                         rf"\| `{FIRST}` .* pass \| ⚠️ \+[45]\.\d+ % regression \|\n")
        self.assertRegex(said["markdown"],
                         rf"- ⚠️ `{SECOND}` against baseline: regression: slower by")
        for row in csv.DictReader(said["csv"].splitlines()):
            self.assertEqual((row["against"], row["verdict"]), (self.base, "pass"))
            self.assertEqual((row["warn_against"], row["warning_verdict"]),
                             ("baseline", "regression"))
            self.assertAlmostEqual(float(row["warning_ratio"]), 1.05, delta=0.01)
            self.assertTrue(row["warning_reason"].startswith("slower by"))
        suite = ElementTree.fromstring(said["junit"])
        self.assertEqual((suite.get("failures"), suite.get("errors")), ("0", "0"))
        for case in suite.iter("testcase"):
            self.assertRegex(case.findtext("system-out"),
                             r"as a warning, against baseline: \+[45]\.\d+ % regression: slower by")

    def test_a_case_of_the_same_code_is_said_to_be(self):
        names = {"text": "r.txt", "markdown": "r.md", "junit": "r.xml"}
        self.run_here("--against", "merge-base", "--seed", "1", same_code=[SECOND],
                      *[word for kind, name in names.items()
                        for word in ("--report", f"{kind}={self.path(name)}")])
        said = {kind: read_file(self.path(name)) for kind, name in names.items()}
        self.assertRegex(said["text"], rf"\n{SECOND} .* same code .* pass\n")
        self.assertRegex(said["markdown"], rf"\| `{SECOND}` .* \| same code \| ")
        first, second = ElementTree.fromstring(said["junit"]).iter("testcase")
        self.assertNotIn("same code", first.findtext("system-out"))
        self.assertIn(f"against {self.base[:12]}: same code", second.findtext("system-out"))
        self.assertNotIn("no baseline", said["markdown"])
        self.assertEqual(said["markdown"].count("| same code |"), 1)

    def test_what_is_wrong_beside_one_of_them_is_wrong(self):
        # The first comparison takes five processes.
        document = self.run_here("--against", "merge-base", "--warn-against", "baseline", status=2,
                                 act="die", act_from=5, only=SECOND)
        first, second = document["cases"]
        self.assertEqual((first["verdict"], second["verdict"]), ("pass", "wrong"))
        self.assertTrue(second["arms"][0]["verify"]["ok"])
        self.assertEqual(len(second["processes"]), 5)

    def test_parts_have_both(self):
        parts = [self.path(f"{i}.json") for i in (1, 2)]
        for i in (1, 2):
            self.run_here("--against", "merge-base", "--warn-against", "baseline", "--shard",
                          f"{i}/2", "--report", "json=" + parts[i - 1])
        done = self.gate("merge", "--json", "--db", self.path("merged.db"), *parts)
        merged = json.loads(done.stdout)
        self.assertEqual(self.verdicts(merged), {("pass", "regression")})
        self.assertEqual(merged["policy"]["base"], "trunk")
        self.run_here("--shard", "2/2", "--report", "json=" + parts[1], status=1)
        self.assertIn("different things",
                      self.gate("merge", "--db", self.path("merged.db"), *parts).stderr)

    def test_where_there_is_no_base(self):
        self.assertIn("fetch it", self.run_here("--against", "merge-base", "--base", "release",
                                                status=64))
        self.git("checkout", "-q", "trunk")
        self.assertIn("HEAD is on 'trunk', so merge-base would compare it with itself",
                      self.run_here("--warn-against", "merge-base", status=64))
        self.git("checkout", "-q", "--orphan", "other")
        self.commit("time=1")
        self.assertIn("no commit in common", self.run_here("--against", "merge-base", status=64))

    def test_the_base_of_origin_is_newer_than_a_branch_of_that_name(self):
        self.git("update-ref", "refs/remotes/origin/trunk", self.base)
        self.git("branch", "-f", "trunk", "trunk~1")
        document = self.run_here("--against", "merge-base")
        self.assertEqual(document["policy"]["against"], self.base)


class Rebuilt(Repository):
    """The baseline's commit gives another file here, as with another compiler of the host code."""
    LAUNCHES = "launches 1 code %s grid 132x1x1 block 384x1x1 shared 1024; order %016d"

    def run_rebuilt(self, stored, now):
        """What the baseline launched when it was stored, and what its rebuild launches."""
        shutil.rmtree(self.path("baselines"))
        self.run_here("--accept-new", timing={"launches": stored} if stored else {})
        self.commits = getattr(self, "commits", 0) + 1
        self.commit(f"time=10502{self.commits}")
        shutil.rmtree(self.path("cache"))
        os.remove(self.path("count"))
        document = self.run_here("--build", "cp library built.so; echo x >> built.so", status=None,
                                 baseline_launches=now)
        return document["cases"][0]

    def test_it_may_differ_in_host_code_only(self):
        one = self.LAUNCHES % ("a" * 64, 1)
        case = self.run_rebuilt(one, one)
        self.assertEqual(case["mode"], "paired")
        self.assertIn("its host code differs, its launches are the stored ones", case["reason"])

    def test_other_launches_are_not_the_baseline(self):
        one = self.LAUNCHES % ("a" * 64, 1)
        for now, why in ((self.LAUNCHES % ("b" * 64, 1), "kernel 1 of 1 has other device code"),
                         (self.LAUNCHES % ("a" * 64, 2), "the order of its launches, their"),
                         (one.replace("132x", "66x"), "grid 66x1x1, and the stored one 132x1x1"),
                         (one + "; order 1", "runs 2 different kernels, and the stored one 1"),
                         ("", "what its launches run is not known here")):
            with self.subTest(why):
                case = self.run_rebuilt(one, now)
                self.assertNotEqual(case["mode"], "paired")
                self.assertIn(why, case["reason"])
                self.assertIn(" is not the baseline: ", case["reason"])

    def test_what_is_not_stored_cannot_be_compared(self):
        case = self.run_rebuilt(None, self.LAUNCHES % ("a" * 64, 1))
        self.assertNotEqual(case["mode"], "paired")
        self.assertIn("the machine code of the stored one is not recorded", case["reason"])


if __name__ == "__main__":
    unittest.main()
