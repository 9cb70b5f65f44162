# SPDX-License-Identifier: Apache-2.0
"""What an earlier run found is not looked for again, and cannot be forged by a library."""
import fcntl
import json
import os
import shutil
import tempfile
import unittest

from harness import HOST, Gate, mutant, read_file, write_file

N, ANEW = 4, 3
SUITE = {"schema": "gate-suite/1", "name": "five",
         "cases": [{"op": "linear_relu_bwd", "dtype": "fp32", "m": 3, "n": n, "k": 5}
                   for n in range(1, N + 1)]}


class Memory(Gate):
    """Each test begins where two runs of the host's library have been."""
    before = None  # their folder

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.before, ignore_errors=True)

    def setUp(self):
        super().setUp()
        self.found = self.path("cache/memory/found.json")
        if Memory.before:
            shutil.copytree(Memory.before, self.folder, dirs_exist_ok=True)
            return
        write_file(self.path("suite.json"), json.dumps(SUITE))
        _, self.first, _ = self.run_suite("--accept-new")
        # The candidate beside its baseline is another question than the candidate alone.
        _, alone, _ = self.run_suite()
        self.assertEqual(self.remembered(self.first) + self.remembered(alone), [])
        write_file(self.path("uuid"), alone["uuid"])
        Memory.before = shutil.copytree(self.folder, tempfile.mkdtemp(), dirs_exist_ok=True)

    def run_suite(self, *args, library=HOST, **env):
        done = self.gate("run", "--device", "host", "--suite", self.path("suite.json"), "--json",
                         "--library", library, "--budget", "5", "--pause", "0",
                         "--threshold", "50%", *args, **env)
        self.assertTrue(done.stdout, done.stderr)
        return done.returncode, json.loads(done.stdout), done.stderr

    def run_alone(self, *args, **more):
        """Beside no baseline, which takes one process: as the first of the two runs."""
        return self.run_suite("--baselines", "nowhere", *args, **more)

    def remembered(self, document, role="candidate"):
        """The runs that verified each case, where it was not this one."""
        arms = [arm for c in document["cases"] for arm in c["arms"] if arm["role"] == role]
        return [arm["verify"]["verified_in"] for arm in arms if "verified_in" in arm["verify"]]

    def test_a_run_of_the_same_library_verifies_a_part_anew(self):
        uuid = read_file(self.path("uuid"))
        code, document, errors = self.run_suite("--report", "text=" + self.path("report"))
        self.assertEqual(code, 0, errors)
        self.assertEqual(self.remembered(document), [uuid] * (N - ANEW))
        self.assertEqual(self.remembered(document, "baseline"), [uuid] * (N - ANEW))
        for c in document["cases"]:
            candidate = c["arms"][0]
            for verify in (arm["verify"] for arm in c["arms"]):
                self.assertEqual(list(verify["outputs"]), ["dx", "dw", "db"])
                self.assertEqual(max(verify["outputs"].values()), verify["rel_fro"])
            self.assertGreater(candidate["verify"]["checks"], 0)
            self.assertGreater(candidate["timing"]["single_samples"], 0)
        text = read_file(self.path("report"))
        self.assertEqual(text.count("pass, verified in run " + uuid[:8]), N - ANEW, text)
        self.assertEqual(text.count("pass, verified\n"), ANEW, text)
        self.assertIn(f"{N - ANEW} of {N} cases were verified in earlier runs", text)

    def test_only_the_same_thing_is_remembered(self):
        other = self.path("other.so")
        shutil.copy(HOST, other)
        with open(other, "ab") as file:
            file.write(b"x")
        for args, env, library, n in (((), {}, other, 0), (("--full",), {}, HOST, 0),
                                      ((), {"MY_TILE": "64"}, HOST, 0), ((), {}, HOST, N - ANEW)):
            with self.subTest(args=args, env=env, library=library):
                _, document, errors = self.run_alone(*args, library=library, **env)
                self.assertEqual(len(self.remembered(document)), n, errors)

    def test_a_library_cannot_write_what_is_remembered(self):
        _, document, errors = self.run_alone(library=mutant("forger"))
        self.assertIn("was changed while kernels ran", errors)
        self.assertFalse(os.path.exists(self.found))

    def test_a_library_that_is_wrong_is_not_believed_in_any_case(self):
        """Whatever it was right in: nothing of it is remembered."""
        code, document, errors = self.run_suite(library=mutant("host_products"),
                                                GATE_MUTANT="k_tail")
        self.assertEqual((code, document["verdict"]), (2, "wrong"), errors)
        sha256 = document["libraries"][0]["sha256"]
        entries = json.loads(read_file(self.found))["entries"]
        self.assertEqual([e for e in entries if e["library_sha256"] == sha256], [])
        self.assertTrue(entries)

    def test_a_file_that_is_not_one_is_nothing(self):
        write_file(self.found, '{"schema": "gate-memory/1", "entries": [{"key": 7}]}')
        code, document, errors = self.run_alone()
        self.assertEqual((code, self.remembered(document)), (3, []), errors)
        _, document, _ = self.run_alone()
        self.assertEqual(len(self.remembered(document)), N - ANEW)

    def test_one_run_at_a_time_holds_it(self):
        with open(self.path("cache/memory/lock"), "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            code, document, errors = self.run_alone()
        self.assertEqual((code, self.remembered(document)), (3, []), errors)
        self.assertIn("nothing is remembered of earlier runs: another run holds", errors)

    def test_what_looks_faster_is_verified_by_this_run(self):
        for _ in range(2):
            _, document, errors = self.run_suite("--against", mutant("host_slow"), GATE_SLOW="10")
        self.assertEqual(self.remembered(document), [], errors)
        self.assertIn("improvement", {c["verdict"] for c in document["cases"]})

    def test_what_was_not_verified_becomes_no_baseline(self):
        _, document, _ = self.run_suite()
        of = [c["id"] for c in document["cases"] if "verified_in" in c["arms"][0]["verify"]]
        done = self.gate("baseline", "accept", of[0], "--reason", "why")
        self.assertEqual(done.returncode, 64, done.stderr)
        self.assertIn("measure again with --full", done.stderr)


if __name__ == "__main__":
    unittest.main()
