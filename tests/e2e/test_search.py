# SPDX-License-Identifier: Apache-2.0
"""gate search as a black box: over libraries that say how fast they are, and over real ones."""

import json
import os
import re
import subprocess
import sys
import unittest

from harness import FIRST, ROOT, SANITIZED, WORKER, FakeRuns, read_file, write_file

# Proposes what its list holds, as text, and leaves what it has seen behind.
PROPOSER = """
import json, os, shutil, sys
seen = os.environ["SEARCH_SEEN"]
shutil.copy(seen, %(copy)r)
with open(%(count)r, "a+") as file:
    file.write("x")
    at = file.tell() - 1
with open(%(lines)r) as file:
    lines = file.read().splitlines()
line = lines[at] if at < len(lines) else ""
if line == "flood":
    sys.stdout.write("x" * (20 << 20))
elif line == "fail":
    sys.exit("no idea")
else:
    print(line)
"""

class Search(FakeRuns):
    def write(self, name, text):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write_file(path, text)
        return path

    def libraries(self, times, **more):
        """libs/00.so and so on of these times, whose files all differ."""
        for number, time in enumerate(times):
            self.write(f"libs/{number:02}.so", f"time={time}\n{number}\n")
        for name, text in more.items():
            self.write(f"libs/{name}.so", text)
        return self.path("libs")

    def search(self, *args, status=0, **fake):
        if "log_ratio" not in fake:
            fake.setdefault("by_file", 0.002)
        fake.setdefault("count", self.path("processes"))
        old = self.write("old.so", "time=100000")
        done = self.gate("search", "--case", FIRST, "--suite", self.suite, "--device", "cuda:0",
                         "--worker", WORKER, "--against", old, "--pause", "0",
                         *args, FAKE=json.dumps(fake))
        self.assertEqual(done.returncode, status, done.stderr + done.stdout)
        return done

    def answer(self, *args, **more):
        return json.loads(self.search("--json", *args, **more).stdout)

    def processes(self):
        return os.path.getsize(self.path("processes"))

    # ---- a folder ----

    def test_the_fastest_of_a_folder(self):
        folder = self.libraries([100000, 95000, 101000, 90000, 130000, 99990],
                                bad="wrong time=50000")
        os.rename(os.path.join(folder, "03.so"), os.path.join(folder, "03.kgb"))
        answer = self.answer("--from", folder)
        winner = answer["winner"]
        self.assertTrue(winner["name"].endswith("/03.kgb"), winner)
        self.assertLess(abs(winner["ratio"] - 0.9), 0.005)
        self.assertLessEqual(winner["risk"], 0.01)
        self.assertGreaterEqual(winner["processes"], 10)
        states = {os.path.basename(c["library"]): c["state"] for c in answer["candidates"]}
        self.assertEqual(states["bad.so"], "wrong")
        self.assertEqual(states["04.so"], "beaten")
        self.assertEqual(states["03.kgb"], "in")
        text = self.search("--from", folder).stdout
        self.assertIn(f"gate run --library {winner['library']} --ratchet", text)
        self.assertIn("over all calls of this search", text)
        self.assertFalse(os.path.exists(self.path("baselines")), "a search moved a baseline")

    def test_work_that_is_left_out_does_not_win(self):
        """The fastest two leave it out where the result is there already, one of them by less than
        gate run looks for."""
        folder = self.libraries([100000, 97000], cheat="time=90000 idles=1.12",
                                sly="time=96000 idles=1.018")
        answer = self.answer("--from", folder)
        self.assertTrue(answer["winner"]["name"].endswith("/01.so"), answer)
        by_name = {os.path.basename(c["library"]): c for c in answer["candidates"]}
        for name in ("cheat.so", "sly.so"):
            self.assertEqual(by_name[name]["state"], "beaten")
            self.assertIn("leaves work out", by_name[name]["reason"])
        self.assertIn("sly.so: it leaves work out", self.search("--from", folder).stdout)

    def test_equals_have_no_winner(self):
        folder = self.libraries([100000] * 12, same="time=100000")
        answer = self.answer("--from", folder, status=3)
        self.assertIsNone(answer["winner"])
        self.assertEqual(len(answer["candidates"]), 13)
        same, = [c for c in answer["candidates"] if c["library"].endswith("same.so")]
        self.assertIn("machine code is that of the library to beat", same["reason"])

    def test_runs_are_limited(self):
        folder = self.libraries([100000, 95000, 90000])
        answer = self.answer("--from", folder, "--max-runs", "2", status=0)
        self.assertEqual(sum(c["processes"] > 0 for c in answer["candidates"]), 2)

    def test_it_goes_on_where_it_was_stopped(self):
        folder = self.libraries([100000, 95000, 90000, 97000])
        self.search("--from", folder, status=4, starts=self.path("starts"), starts_max=12)
        before = self.processes()
        winner = self.answer("--from", folder)["winner"]
        done = self.processes()
        self.assertTrue(winner["name"].endswith("/02.so"))
        self.assertEqual(self.answer("--from", folder)["winner"], winner)
        self.assertEqual(self.processes(), done, "what was found was measured again")
        self.search("--from", folder, "--restart")
        self.assertGreaterEqual(self.processes() - done, done - before)

    def test_all_calls_spend_the_risk_of_one(self):
        """Each call measures one more candidate; the first and the last lose their confirmation."""
        folder = self.libraries([100000] * 3)

        def call(n, *d, status):
            done = self.answer("--from", folder, "--max-runs", str(n),
                               count=self.path(f"call-{n}"), status=status, log_ratio={FIRST: d})
            self.assertEqual(done["confirmations"], n)
            return done["winner"]

        lucky = [-0.015] * 5 + [0]
        self.assertIsNone(call(1, *lucky, status=3))
        winner = call(2, -0.016, status=0)
        n = winner["processes"]
        self.assertAlmostEqual(winner["risk"] / (4 * (n + 1) / (2 ** (n + 1) - 1)), 1)
        self.assertLessEqual(winner["risk"], 0.01)
        self.assertEqual(call(3, *[d * 1.1 for d in lucky], status=0), winner)
        for n in (3, 1):
            known = self.path("known")
            self.search("--from", folder, "--max-runs", str(n),
                        count=known, log_ratio={FIRST: [-0.5]}, status=0 if n == 3 else 3)
            self.assertFalse(os.path.exists(known), "what was found was measured again")

    def test_a_file_that_changed_is_another_candidate(self):
        folder = self.libraries([95000, 90000])
        self.assertTrue(self.answer("--from", folder)["winner"]["name"].endswith("/01.so"))
        self.write("libs/01.so", "time=130000")
        again = self.search("--json", "--from", folder)
        self.assertTrue(json.loads(again.stdout)["winner"]["name"].endswith("/00.so"))
        self.assertRegex(again.stderr,
                         "[1-9] runs are from an earlier call; --restart forgets them")
        done = self.processes()
        self.write("libs/01.so", "time=90000\n1\n")
        self.assertTrue(self.answer("--from", folder)["winner"]["name"].endswith("/01.so"))
        self.assertEqual(self.processes(), done, "what was found was measured again")

    # ---- parameters ----

    def test_combinations_are_built(self):
        build = ('test "$TILE" -ne 3 && echo "time=$((TILE * STAGES * 1000))" > built.so; '
                 'echo "$TILE $STAGES" >> log')
        answer = self.answer("--parameter", "TILE=30,45,3", "--parameter", "STAGES=2..3",
                             "--build", build, "--built", "built.so")
        self.assertEqual(answer["winner"]["name"], "TILE=30 STAGES=2")
        self.assertEqual(answer["parameters"], {"TILE": ["30", "45", "3"], "STAGES": ["2", "3"]})
        by_name = {c["name"]: c for c in answer["candidates"]}
        self.assertEqual(len(by_name), 6)
        self.assertEqual(by_name["TILE=3 STAGES=2"]["state"], "failed")
        self.assertIn("built.so", by_name["TILE=3 STAGES=2"]["reason"])
        twins = {by_name[n]["state"] for n in ("TILE=30 STAGES=3", "TILE=45 STAGES=2")}
        self.assertIn("beaten", twins)
        with open(self.path("log"), encoding="utf-8") as log:
            self.assertEqual(len(log.readlines()), 6)

    def test_builds_that_hang_or_flood_fail_alone(self):
        """What a build has started ends with it, in a session of its own as well."""
        self.write("words-5", "x" + "ä" * 180)  # its end is cut within a character
        self.write("words-6", "ä" * 250 + "x")  # and of this one the beginning
        build = ('case $TILE in 3) (setsid sh -c "echo \\$\\$ > left; exec sleep 1000" &); '
                 'until test -s left; do :; done; sleep 1000;; 4) cat /dev/zero;; '
                 '[56]) cat words-$TILE >&2; exit 1;; '
                 '*) echo "time=${TILE}000" > built.so; echo $TILE >> log;; esac')
        options = ["--parameter", "TILE=3,4,5,6,80,95", "--build", build, "--built", "built.so"]
        done = self.search("--json", *options, "--patience", "5")
        answer = json.loads(done.stdout)
        self.assertEqual(answer["winner"]["name"], "TILE=80")
        by_name = {c["name"]: c for c in answer["candidates"]}
        for name, why in (("TILE=3", "did not end in its time (--patience) and was killed"),
                          ("TILE=4", "printed too much and was killed")):
            self.assertEqual(by_name[name]["state"], "failed")
            self.assertIn(why, by_name[name]["reason"])
            self.assertRegex(done.stderr, f"{name}: failed: .*{re.escape(why)}\n")
        for name in ("TILE=5", "TILE=6"):
            self.assertRegex(by_name[name]["reason"], " ended with 1: x?ä+$")
        left = int(read_file(self.path("left")))
        self.assertFalse(os.path.exists(f"/proc/{left}"), "a process is left")
        processes = self.processes()
        self.assertEqual(self.answer(*options, "--patience", "0.1")["winner"], answer["winner"])
        self.assertEqual(self.processes(), processes, "what was found was measured again")
        self.assertEqual(sorted(read_file(self.path("log")).split()), ["80", "95"])

    # ---- proposals ----

    def proposer(self, *lines):
        self.write("lines", "\n".join(lines))
        script = self.write("propose.py", PROPOSER % {
            "copy": self.path("seen.json"), "count": self.path("asked"),
            "lines": self.path("lines")})
        return f"{sys.executable} {script}"

    def test_a_command_that_goes_wrong_in_every_way(self):
        folder = self.libraries([97000, 90000], bad="wrong")
        good = [json.dumps({"library": f"{folder}/{name}.so"}) for name in ("00", "bad", "01")]
        command = self.proposer("no JSON", "flood", good[0], good[0], "fail", good[1],
                                '{"library": "nowhere.so"}', good[2], '{"parameters": {"X": 1}}')
        done = self.search("--json", "--propose", command)
        answer = json.loads(done.stdout)
        self.assertTrue(answer["winner"]["name"].endswith("/01.so"))
        self.assertEqual([c["state"] for c in answer["candidates"]],
                         ["in", "wrong", "failed", "in"])
        for word in ("the proposal:1:1", "printed too much", "proposed before", "no idea",
                     "neither a"):
            self.assertIn(word, done.stderr)
        seen = json.loads(read_file(self.path("seen.json")))
        self.assertEqual(len(seen["candidates"]), 4)
        self.assertLess(abs(seen["candidates"][0]["ratio"] - 0.97), 0.005)
        again = self.answer("--propose", command)
        self.assertEqual(again["winner"], answer["winner"])

    def test_a_command_that_hangs_ends_the_race(self):
        done = self.search("--propose", "sleep 1000", "--patience", "0.1", status=3)
        self.assertIn("did not end in its time", done.stderr)
        self.assertIn("5 proposals in a row", done.stderr)

    def test_proposed_parameters(self):
        command = self.proposer('{"parameters": {"TILE": 95}}', '{"parameters": {"TILE": 96}}',
                                '{"parameters": {"TILE": "80"}}')
        answer = self.answer("--propose", command, "--parameter", "TILE=80,95", "--build",
                             "echo time=${TILE}000 > built.so", "--built", "built.so")
        self.assertEqual(answer["winner"]["name"], "TILE=80")
        self.assertEqual(len(answer["candidates"]), 2)

    # ---- what cannot be done ----

    def test_usage(self):
        folder = self.libraries([1])
        for args in ((), ("--from", folder, "--propose", "x"), ("--from", folder, "--gain", "no"),
                     ("--parameter", "TILE=1"), ("--from", folder, "--gain", "0%"),
                     ("--from", folder, "--seed", "1"),
                     ("--build", "x", "--built", "y", "--parameter", "tile=1"),
                     ("--build", "x", "--built", "y", "--parameter", "TILE=1,$(x)"),
                     ("--build", "x", "--built", "y", "--parameter", "TILE=3..1"),
                     ("--build", "x", "--built", "y", "--parameter", "A=1..64", "--parameter",
                      "B=1..64")):
            self.search(*args, status=64)
        self.search("--from", self.path("nowhere"), status=74)

    # ---- on the host ----

    @unittest.skipIf(SANITIZED, "it asks how fast code is")
    def test_real_kernels_of_the_host(self):
        text = read_file(os.path.join(ROOT, "examples/mykernels/mykernels.c"))
        call = "    multiply(&args->in[0], &args->in[1], &args->out[0]);"
        self.assertIn(call, text)
        source = self.write("k.c", text.replace(
            call, "    for (int i = 0; i < REPEAT; i++) {\n    " + call +
            '\n        __asm__ volatile("" ::: "memory");\n    }'))
        suite = self.write("small.json", json.dumps(
            {"schema": "gate-suite/1", "name": "small",
             "cases": [{"op": "gemm", "dtype": "fp32", "m": 24, "n": 24, "k": 24}]}))
        build = (f"cc -std=c11 -O3 -march=native -shared -fPIC -I{ROOT}/kernels "
                 f"-DREPEAT=$REPEAT {source} -o built.so -lm")
        old = self.path("old.so")
        subprocess.run(build.replace("$REPEAT", "4").replace("built.so", old), shell=True,
                       check=True)
        done = self.gate("search", "--json", "--case", "gemm/fp32/m24-n24-k24", "--suite", suite,
                         "--device", "host", "--against", old, "--parameter", "REPEAT=1,12",
                         "--build", build, "--built", "built.so", "--pause", "0", "--budget", "5",
                         "--risk", "20%", "--wait", "600", "--timeout", "600")
        if done.returncode in (3, 4):  # a wrong winner it never has
            self.skipTest("this machine is too busy for a verdict: " + done.stderr[-300:])
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        answer = json.loads(done.stdout)
        self.assertEqual(answer["winner"]["name"], "REPEAT=1")
        self.assertLess(answer["winner"]["ratio"], 0.5)
        states = {c["name"]: c["state"] for c in answer["candidates"]}
        self.assertNotEqual(states["REPEAT=12"], "in")


if __name__ == "__main__":
    unittest.main()
