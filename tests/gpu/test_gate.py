# SPDX-License-Identifier: Apache-2.0
"""`gate` on a GPU: right and broken libraries, busy and missing devices."""
import json
import os
import shutil
import subprocess
import tempfile
import unittest

BUILD = os.environ["KERNEL_GATE_BUILD"]
GATE = os.path.join(BUILD, "bin", "gate")
LIBRARIES = os.path.join(BUILD, "lib", "kernel-gate")
OURS = os.path.join(LIBRARIES, "libours.so")
CASE = "linear_relu/fp16/m1024-k784-n2048"


def mutant(name):
    return os.path.join(BUILD, "tests", "mutants", name + ".so")


class Gate(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def gate(self, *args, **env):
        return subprocess.run([GATE, *args], cwd=self.folder, stdin=subprocess.DEVNULL,
                              env=dict(os.environ, GATE_MUTANT_OF=OURS,
                                       GATE_CACHE=os.path.join(self.folder, "cache"), **env),
                              capture_output=True, text=True, check=False)

    def absent(self, **env):
        doctor = self.gate("doctor", "--device", "cuda:0", "--json", **env)
        return [a["provider"] for a in json.loads(doctor.stdout)["absent"]]

    def run_suite(self, *args, suite="canonical", cases=CASE, **env):
        done = self.gate("run", "--device", "cuda:0", "--suite", suite, "--filter", cases, "--json",
                         *args, **env)
        return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr


class Right(Gate):
    def test_kernels_for_older_devices(self):
        done = self.gate("verify", "--device", "cuda:0", "--suite", "smoke", "--library",
                         mutant("only_sm80"), "--provider", OURS)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_vendors_are_right(self):
        absent = self.absent()
        for suite, vendor, cases in (
                ("smoke", "cudnn", "attention_fwd/*"), ("smoke", "cublas", "[gl]*/[bft]*"),
                ("smoke", "cublaslt", "linear*"), ("canonical", "cublas", "linear_relu/*/m256*"),
                ("canonical", "eager", "linear_relu/*/m256*")):
            with self.subTest(vendor, suite=suite):
                if vendor in absent:
                    self.skipTest(f"{vendor} is not on this machine")
                library = os.path.join(LIBRARIES, f"lib{vendor}_provider.so")
                done = self.gate("verify", "--device", "cuda:0", "--suite", suite, "--filter",
                                 cases, "--library", library, "--provider", OURS)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_cudnn_that_is_not_where_it_is_said_to_be_is_absent(self):
        self.assertIn("cudnn", self.absent(KG_CUDNN="/nonexistent"))

    def test_every_gemm_family_case_has_arms_of_cublas(self):
        if "cublas" in self.absent():
            self.skipTest("cuBLAS is not on this machine")
        for cases in ("gemm/fp16/m4096*", "gemv/fp32/m2048*", "linear_relu*/tf32/m1024*"):
            code, document, errors = self.run_suite("--accept-new", cases=cases)
            self.assertEqual(code, 0, errors)
            for case in document["cases"]:
                op = case["id"].split("/")[0]
                vendors = ["cublas"] + ["cublaslt"] * (op != "gemv") + \
                    ["eager"] * (op == "linear_relu")
                self.assertEqual([a["provider"] for a in case["arms"]], ["ours", *vendors])
                ratio = case["arms"][1]["timing"]["ratio_to_candidate"]
                self.assertLessEqual(ratio["lo"], ratio["value"])
                self.assertLessEqual(ratio["value"], ratio["hi"])

    def test_clock_and_rotation_are_recorded(self):
        code, document, errors = self.run_suite("--accept-new")
        self.assertEqual(code, 0, errors)
        timing = document["cases"][0]["arms"][0]["timing"]
        self.assertTrue(timing["cold"])
        self.assertGreater(timing["input_sets"], 1)
        self.assertEqual(timing["launches_per_sample"] % timing["input_sets"], 0)
        self.assertGreaterEqual(timing["throttled_power_ns"], 0)
        self.assertGreater(timing["sm_clock_mhz"], 200)
        for key, least, most in (("power_w", 20, 2000), ("temperature_c", 10, 120)):
            for moment in ("before", "after"):
                self.assertTrue(least < timing[key][moment] < most, (key, timing[key]))
        self.assertGreaterEqual(timing["single_samples"], 10)

    def test_each_case_has_its_share_of_what_is_reached_here(self):
        code, document, errors = self.run_suite("--accept-new", cases="gemm/fp16/m4096*")
        self.assertEqual(code, 0, errors)
        reached = document["ceilings"]
        self.assertEqual(set(reached), {"read_gbps", "copy_gbps", "fp16_tflops", "bf16_tflops",
                                        "tf32_tflops", "fp32_tflops"}, reached)
        timing = document["cases"][0]["arms"][0]["timing"]
        share = max(timing["tflops"] / reached["fp16_tflops"],
                    timing["gbps"] / max(reached["read_gbps"], reached["copy_gbps"]))
        self.assertAlmostEqual(timing["measured_ceiling"] / share, 1, places=6)
        self.assertTrue(0.1 < share < 1.1, share)

    def test_unchanged_code_in_another_file_passes(self):
        self.run_suite("--accept-new")
        code, document, errors = self.run_suite("--library", mutant("right"))
        self.assertEqual(code, 0, errors)
        self.assertEqual(document["cases"][0]["mode"], "paired")
        self.assertFalse(document["cases"][0]["same_library"])

    def test_the_same_code_in_another_file_is_known_to_be(self):
        other = shutil.copy(OURS, os.path.join(self.folder, "other.so"))
        with open(other, "ab") as file:
            file.write(b"another file")
        self.run_suite("--accept-new", "--baselines", "baselines")
        code, document, errors = self.run_suite("--library", other, "--baselines", "baselines")
        self.assertEqual(code, 0, errors)
        (case,) = document["cases"]
        self.assertEqual((case["mode"], case["same_library"], case["same_code"]),
                         ("paired", False, True))
        candidate, baseline = (arm["timing"] for arm in case["arms"][:2])
        self.assertRegex(candidate["code_sha256"], "^[0-9a-f]{64}$")
        self.assertEqual(candidate["code_sha256"], baseline["code_sha256"])
        for key in ("registers", "shared_bytes", "spill_bytes"):
            self.assertEqual(candidate[key], baseline[key])
        self.assertGreater(candidate["registers"], 0)

    def test_the_smoke_suite_and_that_its_code_is_known_in_another_file(self):
        other = shutil.copy(OURS, os.path.join(self.folder, "other.so"))
        with open(other, "ab") as file:
            file.write(b"another file")
        code, document, errors = self.run_suite("--accept-new", suite="smoke", cases="*")
        not_timed = {c["id"]: c["reason"] for c in document["cases"] if c["verdict"] != "pass"}
        self.assertEqual((code, not_timed), (0, {}), errors)
        self.assertEqual(document["device"]["kind"], "cuda")
        for case in document["cases"]:
            for arm in case["arms"]:
                self.assertTrue(arm["verify"]["ok"], (case["id"], arm["provider"],
                                                      arm["verify"]["message"]))
                self.assertGreaterEqual(arm["timing"]["samples"], 8)
        _, document, errors = self.run_suite("--library", other, suite="smoke", cases="*")
        not_known = [case["id"] for case in document["cases"] if not case["same_code"]]
        self.assertEqual(not_known, [], errors)

    def test_code_of_another_library_is_not_the_same(self):
        self.run_suite("--accept-new", "--baselines", "baselines")
        code, document, errors = self.run_suite("--library", mutant("right"), "--baselines",
                                                "baselines")
        self.assertEqual(code, 0, errors)
        self.assertFalse(document["cases"][0]["same_code"])

    def test_calibration_of_a_case(self):
        done = self.gate("calibrate", "--device", "cuda:0", "--suite", "canonical", "--filter",
                         CASE, "--processes", "5", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        (case,) = json.loads(done.stdout)["calibration"]["cases"]
        red = {i["share"]: i["red"] / i["decisions"] for i in case["injected"]}
        self.assertEqual((red[0], red[0.05]), (0, 1))


class Broken(Gate):
    def assert_wrong(self, name, says, *args):
        code, document, errors = self.run_suite("--accept-new", "--library", mutant(name), *args)
        self.assertEqual(code, 2, errors)
        (case,) = document["cases"]
        self.assertEqual(case["verdict"], "wrong")
        self.assertIn(says, case["reason"])
        self.assertTrue(all(arm["timing"] is None for arm in case["arms"]))
        self.assertEqual(os.listdir(os.path.join(self.folder, "baselines")), [])

    def test_zeros(self):
        self.assert_wrong("cuda_zeros", "relative error 1 is over the limit")

    def test_illegal_address(self):
        self.assert_wrong("cuda_illegal", "illegal memory access")

    def test_a_kernel_that_never_ends(self):
        self.assert_wrong("cuda_hang", "hung: no sign of life", "--timeout", "5")

    def test_a_launch_that_synchronises(self):
        self.assert_wrong("cuda_synchronises", "cannot be recorded")

    def test_crash_of_the_process(self):
        self.assert_wrong("crash", "about to crash")

    def test_a_spoiled_context_costs_its_case_only(self):
        """The provider spoils the device in every case; each candidate is measured all the same."""
        copy = shutil.copy(OURS, os.path.join(self.folder, "copy.so"))
        code, document, errors = self.run_suite("--accept-new", "--library", copy, "--provider",
                                                mutant("cuda_illegal"), suite="smoke",
                                                cases="gem*/fp16/*")
        self.assertEqual(code, 0, errors)
        for case in document["cases"]:
            self.assertEqual(case["verdict"], "pass")
            self.assertIn("left out 'mutant'", case["reason"])

    def test_a_tenth_slower_is_a_regression(self):
        self.run_suite("--accept-new")
        code, document, errors = self.run_suite("--library", mutant("cuda_slow"))
        self.assertEqual(code, 1, errors)
        self.assertGreater(document["cases"][0]["ratio"]["value"], 1.05)

    def test_a_provider_that_answers_zeros_is_shown_and_not_timed(self):
        copy = shutil.copy(OURS, os.path.join(self.folder, "copy.so"))
        code, document, errors = self.run_suite("--accept-new", "--library", copy, "--provider",
                                                mutant("cuda_zeros"))
        self.assertEqual(code, 0, errors)
        candidate, provider = document["cases"][0]["arms"]
        self.assertIsNotNone(candidate["timing"])
        self.assertFalse(provider["verify"]["ok"])
        self.assertIsNone(provider["timing"])


class Environment(Gate):
    def test_a_device_that_is_not_there(self):
        code, document, errors = (lambda d: (d.returncode, d.stdout, d.stderr))(
            self.gate("run", "--device", "cuda:63", "--suite", "smoke"))
        self.assertEqual((code, document), (4, ""), errors)

    def test_all_devices_hidden(self):
        code, document, errors = self.run_suite(suite="smoke", cases="*", CUDA_VISIBLE_DEVICES="")
        self.assertEqual((code, document), (4, None), errors)

    def test_a_gpu_that_another_process_uses(self):
        other = subprocess.Popen(
            [GATE, "worker", "--device", "cuda:0", "--library", OURS], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            self.assertIn("hello", other.stdout.readline())
            code, document, errors = self.run_suite(suite="smoke", cases="*")
            self.assertEqual((code, document), (4, None), errors)
            self.assertIn("busy", errors)
        finally:
            other.communicate(timeout=60)


if __name__ == "__main__":
    unittest.main()
