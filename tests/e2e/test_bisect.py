# SPDX-License-Identifier: Apache-2.0
"""gate bisect as a black box: over histories whose libraries say how fast they are.

also runs long: 50 histories in place of 2
"""

import json
import os
import random
import subprocess
import unittest

from harness import FIRST, GATE, PATIENCE, WORKER, FakeRuns, write_file

N = 30
LIBRARY = "build/lib/kernel-gate/libours.so"
RULE = (LIBRARY + ":\n"
        "\tmkdir -p $(@D)\n\t%s\n\tcp library $@\n")


class Bisect(FakeRuns):
    def setUp(self):
        super().setUp()
        self.new_repository()

    def new_repository(self):
        self.repository = os.path.join(self.folder, f"r{len(os.listdir(self.folder))}")
        os.mkdir(self.repository)
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.email", "a@example.org")
        self.git("config", "user.name", "A")
        self.ids = []
        self.broken = "false"

    def git(self, *args):
        return subprocess.run(["git", *args], cwd=self.repository, check=True, text=True,
                              capture_output=True).stdout.strip()

    def write(self, name, text):
        write_file(os.path.join(self.repository, name), text)

    def commit(self, library, builds=True):
        self.write("Makefile", RULE % ("true" if builds else self.broken))
        self.write("library", library)
        self.write("number", str(len(self.ids)))
        self.git("add", "-A")
        self.git("commit", "-q", "-m", f"commit {len(self.ids)}")
        self.ids.append(self.git("rev-parse", "HEAD"))

    def bisect(self, *args, status=0, **fake):
        fake.setdefault("by_file", 0.002)
        fake.setdefault("count", self.path("count"))
        env = dict(os.environ, GATE_CACHE=self.path("cache"), FAKE=json.dumps(fake))
        done = subprocess.run(
            [GATE, "bisect", "--case", FIRST, "--good", self.ids[0], "--suite", self.suite,
             "--device", "cuda:0", "--worker", WORKER, "--pause", "0", *args],
            cwd=self.repository, env=env, capture_output=True, text=True, check=False,
            stdin=subprocess.DEVNULL, timeout=PATIENCE * 5)
        self.assertEqual(done.returncode, status, done.stderr + done.stdout)
        return done

    def answer(self, *args, **more):
        return json.loads(self.bisect("--json", *args, **more).stdout)

    def line(self, n, culprit, broken=(), slower=1.05):
        """Commits of which each third only touches a comment, so that its library is the same."""
        for i in range(n):
            time = 100000 * (slower if i >= culprit else 1) + i // 3
            self.commit(f"time={time:.2f}\n", i not in broken)

    # ---- the answer ----

    def test_histories_of_30_commits(self):
        for number in range(50 if os.environ.get("KERNEL_GATE_LONG") else 2):
            chance = random.Random(number)
            broken = set(chance.sample(range(1, N - 1), 4))
            culprit = chance.choice([i for i in range(1, N) if i not in broken])
            self.new_repository()
            self.line(N, culprit, broken, chance.choice((1.03, 1.05, 1.5)))
            first = culprit
            while first - 1 in broken:
                first -= 1
            answer = self.answer(status=0 if first == culprit else 3)
            self.assertEqual(answer["commits"], self.ids[first:culprit + 1], (number, broken))
            self.assertEqual(answer["before"], self.ids[first - 1])
            self.assertLessEqual(answer["measurements"], 8, number)

    def test_the_evidence_is_of_the_commit_itself(self):
        self.line(8, 5)
        done = self.bisect()
        lines = done.stdout.splitlines()
        self.assertEqual(lines[0], f"{self.ids[5]} commit 5")
        self.assertIn(f"{FIRST}: regression against {self.ids[4][:12]}: ", done.stdout)
        self.assertIn("+5", done.stdout)
        db, = [word for word in done.stdout.split() if word.endswith(".db")]
        told = subprocess.run([GATE, "report", "--db", db, "--json"], check=True, text=True,
                              capture_output=True).stdout
        self.assertEqual(json.loads(told)["git"]["commit"], self.ids[5])

    def test_the_largest_of_two_steps(self):
        for i in range(12):
            time = 100000 * (1.03 if i >= 3 else 1) * (1.09 if i >= 8 else 1)
            self.commit(f"time={time:.1f}\n{i}")
        self.assertEqual(self.answer()["commits"], [self.ids[8]])

    def test_what_is_many_times_as_slow(self):
        self.line(6, 3, slower=9)
        self.assertEqual(self.answer()["commits"], [self.ids[3]])

    def test_what_is_wrong_is_found_as_well(self):
        for i in range(9):
            self.commit(f"time=100000\n{i}\n{'wrong' if i >= 6 else ''}")
        answer = self.answer()
        self.assertEqual((answer["commits"], answer["verdict"]), ([self.ids[6]], "wrong"))

    def test_a_wrong_commit_on_the_way_to_a_slow_one_is_skipped(self):
        for i in range(9):
            self.commit(f"time={105000 if i >= 6 else 100000}\n{i}\n{'wrong' if i == 4 else ''}")
        self.assertEqual(self.answer()["commits"], [self.ids[6]])

    def test_equal_code_is_one_point(self):
        for i in range(20):
            self.commit("time=100000" if i < 13 else "time=105000")
        answer = self.answer()
        self.assertEqual(answer["commits"], [self.ids[13]])
        self.assertEqual(answer["measurements"], 1)

    def test_a_merge_is_one_commit(self):
        self.line(3, 9)
        self.git("checkout", "-q", "-b", "side")
        self.commit("time=105000\na")
        self.commit("time=105000\nb")
        self.git("checkout", "-q", "main")
        self.git("merge", "-q", "--no-ff", "-m", "merged", "side")
        merge = self.git("rev-parse", "HEAD")
        self.commit("time=105000\nc")
        self.assertEqual(self.answer()["commits"], [merge])

    # ---- going on ----

    def test_it_goes_on_where_it_was_stopped(self):
        self.line(16, 10, broken={4, 13})
        starts = self.path("starts")
        self.bisect(status=4, starts=starts, starts_max=15)
        journal, = [name for name in os.listdir(self.path("cache/bisect"))
                    if name.endswith(".ndjson")]
        with open(self.path("cache/bisect/" + journal), "a", encoding="utf-8") as file:
            file.write('{"commit": "cut o')
        done = self.answer()
        self.assertEqual(done["commits"], [self.ids[10]])
        again = self.answer()
        self.assertEqual((again["commits"], again["measurements"]), ([self.ids[10]], 0))
        self.bisect("--threshold", "3%", status=64)
        self.assertGreater(self.answer("--restart")["measurements"], done["measurements"])

    def test_a_build_that_failed_is_tried_again(self):
        full = self.path("full")
        self.broken = f"test ! -e {full}"
        self.line(6, 3, broken={3})
        with open(full, "w", encoding="utf-8"):
            self.bisect(status=3)
        os.remove(full)
        self.assertEqual(self.answer()["commits"], [self.ids[3]])

    def test_what_another_build_made_is_not_taken_over(self):
        self.line(6, 3)
        self.answer()
        other = ("--build", f"make -s {LIBRARY}", "--built", LIBRARY)
        self.assertIn("other options", self.bisect(*other, status=64).stderr)
        self.assertEqual(self.answer("--restart", *other)["commits"], [self.ids[3]])

    # ---- what cannot be done ----

    def test_there_must_be_something_to_look_for(self):
        self.line(4, 9)
        self.assertIn("is not worse", self.bisect(status=3).stderr)

    def test_a_machine_that_cannot_tell_is_said_to_be_one(self):
        self.line(4, 2)
        said = self.bisect(status=4, greeting={"control_ns": 0}).stderr
        self.assertIn("does not tell whether", said)
        self.assertNotIn("not worse", said)
        self.assertEqual(self.answer()["commits"], [self.ids[2]])

    def test_a_good_commit_that_does_not_build(self):
        self.line(4, 2, broken={0})
        self.assertIn("cannot be built", self.bisect(status=4).stderr)

    def test_usage(self):
        self.line(3, 2)
        self.assertIn("nope", self.bisect("--good", "nope", status=64).stderr)
        self.assertIn("before", self.bisect("--good", "HEAD", "--bad", "HEAD~1", status=64).stderr)
        self.bisect("--good", "HEAD", status=64)
        done = self.bisect("--case", "gemm/fp32/m9-n9-k9", status=64)
        self.assertIn("has no case 'gemm/fp32/m9-n9-k9'", done.stderr)
        self.assertNotIn("building", done.stderr)
        self.bisect("--filter", "x", status=64)


if __name__ == "__main__":
    unittest.main()
