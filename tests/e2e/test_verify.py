# SPDX-License-Identifier: Apache-2.0
"""`gate verify` on the host device: its tables, its exit codes, and that a fault shows again."""
import json
import os
import pty
import re
import shlex
import shutil
import stat
import subprocess
import unittest

from harness import (DRAW, FIRST, GATE, HOST, SANITIZED, WORKER, FakeRuns, Gate, mutant,
                     write_file)

CASE = "gemm/fp32/m96-n80-k72"


class Verify(Gate):
    def copy_of_host(self):
        """A mutant opens its original by path: a copy keeps it apart from what is beside it."""
        return shutil.copy(HOST, os.path.join(self.folder, "copy.so"))

    def verify(self, *args, case=CASE, **more):
        done = self.gate("verify", "--device", "host", "--suite", "smoke", "--filter", case,
                         "--json", *args, **more)
        return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr


class Right(Verify):
    def test_the_smoke_suite(self):
        code, document, errors = self.verify(case="*")
        self.assertEqual(code, 0, errors)
        self.assertEqual(document["schema"], "gate-verify/1")
        self.assertGreaterEqual(len(document["cases"]), 20)
        for case in document["cases"]:
            self.assertEqual((case["outcome"], case["message"]), ("right", ""), case["id"])
            arm = case["arms"][0]
            self.assertIsNone(arm["timing"])
            self.assertGreaterEqual(arm["verify"]["checks"], 25, case["id"])
            self.assertEqual(arm["verify"]["skipped"], 0, case["id"])

    def test_what_was_covered_is_told_by_class(self):
        _, document, _ = self.verify("--seed", "7")
        verify = document["cases"][0]["arms"][0]["verify"]
        covered = verify["covered"]
        self.assertEqual(set(covered["values"]), {
            "random_normal", "random_uniform", "exact_integers", "exact_cancellation",
            "exact_powers_of_two", "nan_and_infinity", "nan_and_infinity_in_second", "constant",
            "zeros", "one_value"})
        self.assertLessEqual(len(covered["values"]), verify["values"])  # zeros are of four kinds
        # All but the launches in a row, on a small shape and on the case.
        self.assertEqual(sum(covered["values"].values()), verify["checks"] - 2)
        self.assertEqual(sum(covered["shapes"].values()), verify["shapes"])
        layouts = covered["layouts"]
        self.assertEqual(set(layouts), {"dense", "padded_rows", "wide_rows", "odd_rows",
                                        "far_rows", "unmapped_beside"})
        self.assertEqual(layouts["dense"] + verify["layouts"], verify["checks"] - 2)
        self.assertEqual(covered["launches"]["of_checks"] + covered["launches"]["in_a_row"],
                         verify["launches"])
        done = self.gate("verify", "--device", "host", "--suite", "smoke", "--filter", CASE,
                         "--seed", "7")
        table = done.stdout.split("covered ")[1].split("\n\n")[0].splitlines()
        self.assertEqual(table[0].split(), ["class", "gemm"])
        rows = [line.rsplit(None, 1) for line in table[1:-1]]
        told = {" ".join(name.split()): int(n) for name, n in rows}
        # Launches in a row are as many as there is time for.
        self.assertEqual({name: n for name, n in told.items() if "launches" not in name},
                         {f"{of} {name.replace('_', ' ')}": n for of, counts in covered.items()
                          for name, n in counts.items() if of != "launches"})
        self.assertEqual(told["launches of checks"], covered["launches"]["of_checks"])

    def test_a_single_sum_that_nearly_cancels(self):
        """Seeds whose one element is small by chance, so that rounding is no small share of it."""
        suite = os.path.join(self.folder, "single.json")
        cases = [{"op": "gemm", "dtype": "fp32", "m": 1, "n": 1, "k": 4096},
                 {"op": "linear_relu", "dtype": "fp32", "m": 1, "n": 1, "k": 4096}]
        write_file(suite, json.dumps({"schema": "gate-suite/1", "name": "single", "cases": cases}))
        for seed in ("c", "10", "18", "2c", "36"):
            done = self.gate("verify", "--device", "host", "--suite", suite, "--seed", seed,
                             "--library", HOST)
            self.assertEqual(done.returncode, 0, done.stdout)

    def test_the_error_over_the_vendors(self):
        code, document, errors = self.verify("--library", mutant("right"), "--provider",
                                             self.copy_of_host())
        self.assertEqual(code, 0, errors)
        verify = document["cases"][0]["arms"][0]["verify"]
        self.assertEqual(verify["vendor"], "host")
        self.assertAlmostEqual(verify["vendor_ratio"], 1)

    def test_vendors_come_when_asked_for_and_nothing_is_timed(self):
        """By a worker that only says what it is called with."""
        worker = os.path.join(self.folder, "worker")
        write_file(worker, '#!/bin/sh\necho "$@" >&2\nexit 1\n')
        os.chmod(worker, 0o755)
        command = ("verify", "--device", "cuda:0", "--suite", "smoke", "--worker", worker,
                   "--library", HOST)
        for options, providers in (((), 0), (("--vendors",), 4), (("--provider", "x.so"), 1)):
            done = self.gate(*command, *options)
            self.assertEqual(done.stderr.count("--provider"), providers, done.stderr)
            self.assertIn(" --untimed", done.stderr)

    def test_the_error_of_each_output(self):
        for suite, case, names in (("smoke", "linear_relu_bwd/fp32/m65-*", ["dx", "dw", "db"]),
                                   ("ops", "attention_bwd/fp32/*", ["dq", "dk", "dv"])):
            _, document, _ = self.verify("--suite", suite, case=case)
            verify = document["cases"][0]["arms"][0]["verify"]
            self.assertEqual(list(verify["outputs"]), names)
            self.assertEqual(max(verify["outputs"].values()), verify["rel_fro"])
            self.assertGreater(min(verify["outputs"].values()), 0)
            self.assertEqual(len(set(verify["outputs"].values())), 3)
        _, document, _ = self.verify()
        self.assertNotIn("outputs", document["cases"][0]["arms"][0]["verify"])
    @unittest.skipIf(SANITIZED, "it needs more addresses itself")
    def test_a_guard_that_is_not_to_be_had_is_counted(self):
        case = "gemm/fp16/m96-n80-k72"
        looks = []
        for addresses in (None, 6 << 30):
            code, document, errors = self.verify(case=case, addresses=addresses)
            self.assertEqual(code, 0, errors)
            looks.append(document["cases"][0]["arms"][0]["verify"])
        self.assertNotIn("not_guarded", looks[0])
        self.assertGreater(looks[1]["not_guarded"], 0)
        self.assertEqual(looks[1]["not_guarded"], looks[1]["skipped"])
        self.assertRegex(looks[1]["why_not_guarded"], "no [0-9]+ GiB of addresses in one piece")
        self.assertEqual(looks[0]["checks"], looks[1]["checks"])  # one more in plain memory
        done = self.gate("verify", "--device", "host", "--suite", "smoke", "--filter", case,
                         addresses=6 << 30)
        self.assertIn(" guards not offered (the host has no ", done.stdout)

    def test_what_the_library_does_not_serve_is_counted(self):
        case = "gemm/fp16/m96-n80-k72"
        options = ("--library", mutant("host_unusual"))
        code, document, errors = self.verify(*options, case=case, GATE_MUTANT="one_shape")
        self.assertEqual(code, 0, errors)
        (arm,) = document["cases"][0]["arms"]
        self.assertGreater(arm["verify"]["not_served"], 10)
        self.assertEqual(arm["verify"]["skipped"], arm["verify"]["not_served"])
        self.assertGreater(arm["verify"]["checks"], 0)
        self.assertTrue(arm["verify"]["own_shape_only"])
        # Where no other shape was looked at no classes have met.
        self.assertEqual([name in arm["verify"] for name in ("shapes", "pairs", "pairs_of")],
                         [False, False, True])
        for command in (("verify",), ("run", "--budget", "20", "--accept-new")):
            done = self.gate(*command, "--device", "host", "--suite", "smoke", "--filter", case,
                             *options, GATE_MUTANT="one_shape")
            self.assertIn(f"\nleft out: {arm['verify']['not_served']} edge shapes not served\n"
                          "1 case was looked at on its own shape alone, since the kernel takes "
                          f"no other: {case}\n", done.stdout)

    def test_a_shape_that_is_too_large_is_counted(self):
        done = self.gate("verify", "--device", "host", "--suite", "host", "--filter",
                         "gemv/fp16/*", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        look = json.loads(done.stdout)["cases"][0]["arms"][0]["verify"]
        self.assertEqual((look["too_large"], look["skipped"]), (1, 1))

    def test_what_a_kernel_refuses_is_counted(self):
        code, document, errors = self.verify("--library", mutant("host_unusual"),
                                             case="gemm/fp16/m96-n80-k72", GATE_MUTANT="dense_only")
        self.assertEqual(code, 0, errors)
        look = document["cases"][0]["arms"][0]["verify"]
        self.assertGreater(look["refused"], 0)
        self.assertEqual(look["skipped"], look["refused"])
        self.assertNotIn("own_shape_only", look)

    def test_each_seed_asks_as_much(self):
        """Seed 9 draws a shape of few elements, which normal inputs say nothing of."""
        checks = {self.verify("--seed", seed)[1]["cases"][0]["arms"][0]["verify"]["checks"]
                  for seed in ("9", "a")}
        self.assertEqual(len(checks), 1, checks)

    def test_a_run_asks_the_same_of_a_kernel(self):
        done = self.gate("run", "--device", "host", "--suite", "smoke", "--filter", CASE, "--json",
                         "--budget", "1")
        self.assertEqual(done.returncode, 3, done.stderr)  # it has no baseline
        _, document, _ = self.verify()
        looks = [d["cases"][0]["arms"][0]["verify"]["checks"]
                 for d in (json.loads(done.stdout), document)]
        self.assertEqual(looks[0], looks[1])


class Wrong(Verify):
    FAULT = {"GATE_MUTANT": "k_tail", "case": "gemm/fp16/m96-n80-k72"}

    def test_a_death_is_put_down_to_a_check(self):
        code, document, _ = self.verify("--library", mutant("host_products"),
                                        GATE_MUTANT="int_index", case="gemm/fp16/m96-n80-k72")
        self.assertEqual(code, 2)
        self.assertRegex(document["cases"][0]["message"],
                         r"^died: the worker process .* \(in phase verify, probe 'exact integers' "
                         r"on gemm/fp16/m\d+-n\d+-k\d+ \(dense, rows 2\^30 elements apart\)\)")

    def test_where_and_how_to_see_it_again(self):
        code, document, _ = self.verify("--library", mutant("host_products"), **self.FAULT)
        self.assertEqual(code, 2)
        (case,) = document["cases"]
        self.assertRegex(case["message"],
                         r"^probe 'exact integers' on gemm/fp16/m\d+-n\d+-k\d+ \(.*\): output 'c': "
                         r"\d+ of \d+ elements .* first bad element \[\d+, \d+\], in row \d+ and "
                         r"tile \(\d+, \d+\): expected \S+, got \S+?(; in dense .*)?$")
        words = shlex.split(case["reproduce"])
        self.assertEqual(words[:2], ["gate", "verify"])
        again = self.gate(*words[1:], "--json", GATE_MUTANT=self.FAULT["GATE_MUTANT"])
        self.assertEqual(json.loads(again.stdout)["cases"][0]["message"], case["message"])

    def test_whether_it_is_the_layout_is_said(self):
        for library, name, dense in (("host_products", "input_stride", "right"),
                                     ("host_rare", "whole_second_dense", "right"),
                                     ("host_products", "k_tail", "wrong too")):
            _, document, _ = self.verify("--library", mutant(library), "--seed", "1",
                                         GATE_MUTANT=name, case=self.FAULT["case"])
            self.assertRegex(document["cases"][0]["message"], f"; in dense tensors it is {dense}$")

    def test_a_crash_in_dense_tensors_is_put_down_to_them(self):
        code, document, _ = self.verify("--library", mutant("host_products"),
                                        GATE_MUTANT="input_stride_then_crash",
                                        case=self.FAULT["case"])
        self.assertEqual(code, 2)
        self.assertRegex(document["cases"][0]["message"],
                         r"^died: .* \(in phase verify, probe '[^']+' on \S+ \(dense\)\)")

    def test_a_run_says_the_same(self):
        done = self.gate("run", "--device", "host", "--suite", "smoke", "--filter",
                         self.FAULT["case"], "--library", mutant("host_products"), "--json",
                         GATE_MUTANT=self.FAULT["GATE_MUTANT"])
        self.assertEqual(done.returncode, 2)
        reason = json.loads(done.stdout)["cases"][0]["reason"]
        message, command = reason.split("; again: ")
        again = self.gate(*shlex.split(command)[1:], "--json",
                          GATE_MUTANT=self.FAULT["GATE_MUTANT"])
        self.assertEqual(json.loads(again.stdout)["cases"][0]["message"], message)

    def test_a_fault_that_shows_when_it_is_timed_is_shown_again_by_a_run(self):
        done = self.gate("run", "--device", "host", "--suite", "smoke", "--filter",
                         self.FAULT["case"], "--library", mutant("host_timed"), "--json",
                         GATE_MUTANT="coarse")
        reason = json.loads(done.stdout)["cases"][0]["reason"]
        message, command = reason.split("; again: ")
        words = shlex.split(command)
        self.assertEqual(words[:2], ["gate", "run"])
        again = self.gate(*words[1:], "--json", GATE_MUTANT="coarse")
        self.assertEqual(json.loads(again.stdout)["cases"][0]["reason"].split(";")[0],
                         message.split(";")[0])

    def test_the_table(self):
        done = self.gate("verify", "--device", "host", "--suite", "smoke", "--seed", "12ab",
                         "--filter", "gemm/fp32/*", "--library", mutant("host_zeros"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("0 right, 2 wrong", done.stdout)
        self.assertIn("again: gate verify --device host --suite smoke", done.stdout)
        self.assertIn("--seed 00000000000012ab", done.stdout)

    def test_a_broken_provider_is_no_fault_of_the_candidate(self):
        copy = self.copy_of_host()
        for name in ("host_zeros", "crash"):
            code, document, errors = self.verify("--library", copy, "--provider", mutant(name))
            self.assertEqual(code, 0, errors)
            self.assertNotIn("vendor", document["cases"][0]["arms"][0]["verify"])


class Refused(Verify):
    def assert_refused(self, says, *args):
        done = self.gate("verify", *args)
        self.assertEqual((done.returncode, done.stdout), (64, ""), done.stderr)
        self.assertIn(says, done.stderr)

    def test_options(self):
        self.assert_refused("--tier is 'weekly', expected", "--tier", "weekly")
        self.assert_refused("--seed is 'xyz', expected", "--seed", "xyz")
        self.assert_refused("unexpected argument", "what")
        self.assert_refused("has no word", "--wrapper", " ")
        self.assert_refused("no suite is named", "--suite", "nope", "--device", "host")

    def test_a_case_that_no_kernel_serves(self):
        suite = os.path.join(self.folder, "s.json")
        write_file(suite, json.dumps({"schema": "gate-suite/1", "name": "s", "cases": [
            {"op": "gemm", "dtype": "fp16", "m": 3, "n": 3, "k": 3}]}))
        done = self.gate("verify", "--device", "host", "--suite", suite, "--library",
                         mutant("host_unusual"), GATE_MUTANT="multiples_of_8")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("1 not served", done.stdout)


# As compute-sanitizer: runs the program, and says by its own exit code that it found something.
WRAPPER = """#!/bin/bash
[ "$1 $2" = "--tool memcheck" ] || exit 1
shift 2
[ -z "$CANNOT" ] || { echo "no driver" >&2; exit 1; }
"$@"
code=$?
exit ${FOUND:-$code}
"""


class Wrapped(Verify):
    def setUp(self):
        super().setUp()
        self.wrapper = write_file(os.path.join(self.folder, "wrapper"), WRAPPER)
        os.chmod(self.wrapper, 0o755)

    def verify(self, *args, status=0, case="gemm/fp32/*", **env):
        names = dict(os.environ, GATE_MUTANT_OF=HOST, **env)
        done = subprocess.run(
            [GATE, "verify", "--wrapper", f"{self.wrapper} --tool  memcheck", "--device", "host",
             "--filter", case, "--json", "--seed", DRAW, *args], env=names, cwd=self.folder,
            text=True, capture_output=True, stdin=subprocess.DEVNULL, check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return json.loads(done.stdout) if done.stdout else done.stderr

    def test_it_is_on_small_shapes(self):
        said = self.verify()
        self.assertEqual((said["tier"], said["suite"], said["wrapper_findings"]),
                         ("small", "smoke", 0))
        self.assertEqual({c["outcome"] for c in said["cases"]}, {"right"})

    def test_what_it_finds_is_no_pass(self):
        self.assertEqual(self.verify(status=2, FOUND="99")["wrapper_findings"], 1)

    def test_one_that_cannot_start_is_no_pass(self):
        self.assertIn("no driver", self.verify(status=2, CANNOT="1"))

    def test_a_wrong_result_under_it(self):
        said = self.verify("--library", mutant("host_unwritten"), status=2)
        self.assertEqual({c["outcome"] for c in said["cases"]}, {"wrong"})


class Hostile(FakeRuns):
    def test_a_message_cannot_speak_to_the_terminal(self):
        fake = {"only": FIRST,
                "record": {"outcome": "wrong", "message": "bad \x1b[31m", "arms": []}}
        done = self.gate("verify", "--suite", self.suite, "--device", "cuda:0", "--worker", WORKER,
                         "--library", write_file(self.path("new.so"), "new"),
                         FAKE=json.dumps(fake))
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(f"{FIRST}: wrong: bad \ufffd[31m\n", done.stdout)


if __name__ == "__main__":
    unittest.main()
