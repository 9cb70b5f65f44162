# SPDX-License-Identifier: Apache-2.0
"""gate bisect as a black box: over histories whose libraries say how fast they are.

also runs long: 50 histories in place of 2
"""

import json
import os
import random
import re
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
        self.assertEqual(self.git("rev-parse", "--symbolic-full-name", "HEAD"), "refs/heads/main")
        self.assertFalse(os.path.exists(
            os.path.join(self.repository, self.git("rev-parse", "--git-path", "BISECT_START"))))
        return done

    def found(self, *args, **more):
        """The commit that is named, and the verdict of its comparison with the one before it."""
        out = self.bisect(*args, **more).stdout
        found, = re.findall(r"^([0-9a-f]{40}) is the first bad commit$", out, re.M)
        return self.ids.index(found) if found in self.ids else found, out

    def line(self, n, culprit, broken=(), slower=1.05):
        """Commits of which each third only touches a comment, so that its library is the same."""
        for i in range(n):
            time = 100000 * (slower if i >= culprit else 1) + i // 3
            self.commit(f"time={time:.2f}\n", i not in broken)

    # ---- the answer ----

    def test_a_loss_of_accuracy(self):
        """It is as fast as before, so no part of a slowdown tells the commits apart."""
        for i in range(6):
            self.commit(f"time={100000 + i}\nerror={0.0005 if i > 2 else 0.0001}\n")
        found, out = self.found()
        self.assertEqual(found, 3, out)

    def test_histories_of_30_commits(self):
        for number in range(50 if os.environ.get("KERNEL_GATE_LONG") else 2):
            chance = random.Random(number)
            broken = set(chance.sample(range(1, N - 1), 4))
            culprit = chance.choice([i for i in range(1, N) if i not in broken])
            self.new_repository()
            self.line(N, culprit, broken, chance.choice((1.03, 1.05, 1.5)))
            if culprit - 1 in broken:
                self.assertIn("could not be judged", self.bisect(status=3).stderr)
            else:
                self.assertEqual(self.found()[0], culprit, (number, broken))

    def test_the_evidence_is_of_the_commit_itself(self):
        self.line(8, 5)
        found, out = self.found()
        self.assertEqual(found, 5)
        self.assertRegex(out[out.index("is the first bad commit"):],
                         rf"regression +{FIRST}: slower by [456]\.\d\d %")

    def test_the_largest_of_two_steps(self):
        for i in range(12):
            time = 100000 * (1.03 if i >= 3 else 1) * (1.09 if i >= 8 else 1)
            self.commit(f"time={time:.1f}\n{i}")
        self.assertEqual(self.found()[0], 8)

    def test_what_is_many_times_as_slow(self):
        self.line(6, 3, slower=9)
        self.assertEqual(self.found()[0], 3)

    def test_what_is_wrong_is_found_as_well(self):
        for i in range(9):
            self.commit(f"time=100000\n{i}\n{'wrong' if i >= 6 else ''}")
        found, out = self.found()
        self.assertEqual(found, 6)
        self.assertRegex(out[out.index("is the first bad commit"):], rf"wrong +{FIRST}")

    def test_a_wrong_commit_on_the_way_to_a_slow_one_is_skipped(self):
        for i in range(9):
            self.commit(f"time={105000 if i >= 6 else 100000}\n{i}\n{'wrong' if i == 4 else ''}")
        self.assertEqual(self.found()[0], 6)

    def test_a_merge_is_one_commit(self):
        self.line(3, 9)
        self.git("checkout", "-q", "-b", "side")
        self.commit("time=105000\na")
        self.commit("time=105000\nb")
        self.git("checkout", "-q", "main")
        self.git("merge", "-q", "--no-ff", "-m", "merged", "side")
        merge = self.git("rev-parse", "HEAD")
        self.commit("time=105000\nc")
        self.assertEqual(self.found()[0], merge)

    # ---- what cannot be done ----

    def test_there_must_be_something_to_look_for(self):
        self.line(4, 9)
        self.assertIn("is not worse", self.bisect(status=3).stderr)

    def test_a_machine_that_cannot_tell(self):
        self.line(4, 2)
        done = self.bisect(status=4, greeting={"control_ns": 0})
        self.assertIn("ended with 4", done.stderr)
        self.assertNotIn("not worse", done.stderr)
        self.assertEqual(self.found()[0], 2)

    def test_a_good_commit_that_does_not_build(self):
        self.line(4, 2, broken={0})
        self.assertIn("cannot be built", self.bisect(status=4).stderr)

    def test_usage(self):
        self.line(3, 2)
        self.assertIn("nope", self.bisect("--good", "nope", status=64).stderr)
        done = self.bisect("--case", "gemm/fp32/m9-n9-k9", status=64)
        self.assertRegex(done.stderr, "no case of suite .* matches 'gemm/fp32/m9-n9-k9'")
        self.assertNotIn("building", done.stderr)
        self.bisect("--filter", "x", status=64)

    def test_a_bisection_of_the_user_is_left_alone(self):
        self.line(3, 2)
        self.git("bisect", "start")
        self.assertIn("under way", subprocess.run(
            [GATE, "bisect", "--case", FIRST, "--good", self.ids[0]], cwd=self.repository,
            capture_output=True, text=True, check=False).stderr)
        self.assertTrue(os.path.exists(
            os.path.join(self.repository, self.git("rev-parse", "--git-path", "BISECT_START"))))
        self.git("bisect", "reset")


if __name__ == "__main__":
    unittest.main()
