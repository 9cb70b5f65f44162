# SPDX-License-Identifier: Apache-2.0
"""Bundles as a black box: one is made of what nvcc compiles, opened, compared and stored. What they
launch is in tests/unit/test_bundle.c, and in tests/gpu/test_bundles.py on a GPU."""
import glob
import json
import os
import shutil
import subprocess
import sys
import unittest

import harness
from harness import BUILD, WORKER, Gate, write_file

NVCC = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
SOURCE = """
extern "C" __global__ void scale(const float *x, float *y, int n, double by, float plus)
{
    y[blockIdx.x * n + threadIdx.x] = x[blockIdx.x * n + threadIdx.x] * FACTOR * by + plus;
}
extern "C" __global__ void nothing() {}
"""
POINTERS = [{"type": "pointer", "value": "in0"}, {"type": "pointer", "value": "out0"}]
MANIFEST = {
    "schema": "gate-bundle/1", "provider": "mine", "version": "1", "kernels": [
        {"op": "rmsnorm", "name": "scaled", "dtypes": ["fp32"], "when": ["n <= 1024"],
         "launches": [
             {"code": "scale.cubin", "entry": "nothing", "grid": ["1"], "block": ["1"],
              "arguments": []},
             {"code": "scale.cubin", "entry": "scale", "grid": ["m"], "block": ["n"],
              "arguments": [*POINTERS, {"type": "i32", "value": "n"},
                            {"type": "f64", "value": "eps"}, {"type": "f32", "value": "2"}]}]}]}


@unittest.skipUnless(NVCC, "no nvcc")
class Bundle(Gate):
    def make(self, name, factor="1", architecture="90", manifest=None):
        folder = self.path(f"{name}-files")
        os.makedirs(folder, exist_ok=True)
        write_file(os.path.join(folder, "scale.cu"), SOURCE)
        subprocess.run([NVCC, f"-DFACTOR={factor}", "-cubin", f"-arch=sm_{architecture}",
                        "scale.cu", "-o", "scale.cubin"], cwd=folder, check=True)
        write_file(os.path.join(folder, "bundle.json"), json.dumps(manifest or MANIFEST, indent=1))
        subprocess.run([sys.executable, os.path.join(BUILD, "share/kernel-gate/bundle.py"), "pack",
                        os.path.join(folder, "bundle.json"), self.path(name)], check=True,
                       capture_output=True)
        return self.path(name)

    def open_on_the_host(self, library):
        """A bundle is read and checked before it is known for which device it is."""
        return self.gate("verify", "--device", "host", "--library", library, "--filter", "gemv*")

    def test_its_code_is_known(self):
        for architecture in ("80", "90"):
            old = self.make("old.kgb", architecture=architecture)
            new = self.make("new.kgb", factor="3", architecture=architecture)
            same = self.gate("diff", new, self.path("new.kgb-files/bundle.json"))
            self.assertEqual((same.returncode, same.stdout.split(":")[1].strip()),
                             (0, "2 with the same code, 0 changed, 0 added, 0 removed"))
            done = self.gate("diff", new, old)
            self.assertIn("1 with the same code, 1 changed", done.stdout)

    def test_it_is_kept_with_its_baselines(self):
        self.make("a.kgb")
        write_file(self.path("suite.json"), json.dumps(harness.SUITE))
        done = self.gate("run", "--suite", "suite.json", "--device", "cuda:0", "--worker", WORKER,
                         "--library", "a.kgb", "--db", "gate.db", "--baselines",
                         "baselines", "--accept-new", "--json", FAKE="{}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(any("code_sha256" in x for x in json.loads(done.stdout)["libraries"]))
        os.remove(self.path("a.kgb"))
        kept, = glob.glob(self.path("cache/artifacts/*.so"))
        done = self.gate("diff", kept, "a.kgb-files/bundle.json")
        self.assertIn("2 with the same code, 0 changed, 0 added, 0 removed", done.stdout)

    def test_it_opens_for_a_gpu(self):
        done = self.open_on_the_host(self.make("a.kgb"))
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("provider 'mine' is for another kind of device", done.stderr)

    def test_what_does_not_fit_its_code(self):
        for at, old, new, says in (
                (1, '"i32"', '"i64"', "/arguments/2/type: the kernel takes 4 bytes there"),
                (1, '"scale"', '"scael"', "/entry: no kernel of 'scale.cubin' has this name"),
                (0, '"nothing"', '"scale"', "has a kernel of 5 parameters, and here are 0")):
            manifest = json.loads(json.dumps(MANIFEST))
            launches = manifest["kernels"][0]["launches"]
            launches[at] = json.loads(json.dumps(launches[at]).replace(old, new))
            done = self.open_on_the_host(self.make("a.kgb", manifest=manifest))
            self.assertEqual(done.returncode, 2)
            self.assertRegex(done.stderr, r"manifest:\d+:\d+: /kernels/0/launches/%d/" % at)
            self.assertIn(says, done.stderr)

    def test_what_is_cut_off_or_damaged(self):
        path = self.make("a.kgb")
        with open(path, "rb") as file:
            data = file.read()
        for name, bad in (("short", data[:len(data) // 2]), ("tail", data[:-1]),
                          ("sizes", data[:-24] + b"\xff" * 8 + data[-16:]),
                          ("code", data.replace(b"\x7fELF", b"\x7fELE")), ("brace", b"{"),
                          ("empty", b"")):
            with open(path, "wb") as file:
                file.write(bad)
            done = self.open_on_the_host(path)
            self.assertIn(done.returncode, (2, 64), (name, done.stderr))
            self.assertIn("a.kgb'", done.stderr)
            self.assertNotIn("another kind of device", done.stderr, name)  # it was not noticed


# As much of Triton as bundle.py asks for: it compiles to nothing.
TRITON = {
    "__init__.py": """
from types import SimpleNamespace as Some
__version__ = "0"
compiler = Some(ASTSource=lambda **source: source)
def compile(source, target, options):
    taken = [name for name, kind in source["signature"].items() if kind != "constexpr"]
    return Some(asm={"ptx": f".entry k({', '.join('.param .b64 ' + x for x in taken)})",
                     "cubin": b"code"}, metadata=Some(name="k", num_warps=4, shared=0))
""",
    "backends/__init__.py": "",
    "backends/compiler.py": "def GPUTarget(*parts): return parts\n"}
KERNELS = """
from types import SimpleNamespace as Some
BUNDLE = [{{"kernel": Some(arg_names=["x", "stride", "n", "BLOCK"]), "op": "softmax", "name": "a",
            "dtypes": ["fp16"], "grid": ["m"], **{entry}}}]
"""
ENTRY = {"arguments": {"x": "in0", "stride": "in0_stride0", "n": "n"}, "constants": {"BLOCK": 64}}


class FromTriton(Gate):
    def bundle(self, **changes):
        for name, text in TRITON.items():
            os.makedirs(os.path.dirname(self.path(f"triton/{name}")), exist_ok=True)
            write_file(self.path(f"triton/{name}"), text)
        write_file(self.path("kernels.py"), KERNELS.format(entry=ENTRY | changes))
        return subprocess.run(
            [sys.executable, os.path.join(BUILD, "share/kernel-gate/bundle.py"), "triton",
             "kernels.py", "a.kgb"], cwd=self.folder, check=False, capture_output=True, text=True,
            env=dict(os.environ, PYTHONPATH=self.folder))

    def test_what_is_taken_for_granted_is_a_condition(self):
        done = self.bundle(divisible=["n"], one=["stride"])
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("a.kgb"), "rb") as file:
            kernel, = json.loads(file.read().split(b"\n}\n")[0] + b"}")["kernels"]
        self.assertEqual(kernel["when"],
                         ["(in0) % 16 == 0", "(in0_stride0) == 1", "(n) % 16 == 0"])
        self.assertEqual(kernel["launches"][0]["arguments"],
                         [{"type": "pointer", "value": "in0"}, {"type": "i32", "value": "n"}])

    def test_names_that_the_kernel_does_not_have(self):
        for changes, says in (
                ({"divisible": ["N"]}, "'divisible' has N, which the kernel does not take"),
                ({"one": ["strides"]}, "'one' has strides, which"),
                ({"types": {"eps": "fp32"}}, "'types' has eps, which"),
                ({"constants": {"BLOCK": 64, "WARPS": 4}}, "'constants' has WARPS, which"),
                ({"arguments": ENTRY["arguments"] | {"m": "m"}}, "'arguments' has m, which"),
                ({"arguments": {"x": "in0", "n": "n"}, "one": ["stride"]},
                 "neither 'arguments' nor 'constants' have stride")):
            done = self.bundle(**changes)
            self.assertEqual(done.returncode, 1, changes)
            self.assertIn(says, done.stderr)


if __name__ == "__main__":
    unittest.main()
