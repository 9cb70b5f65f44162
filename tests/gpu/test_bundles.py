# SPDX-License-Identifier: Apache-2.0
"""The Triton kernels of examples/triton as bundles, on a GPU."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = os.environ["KERNEL_GATE_BUILD"]
ROOT = os.environ["KERNEL_GATE_ROOT"]
BUNDLER = os.path.join(BUILD, "share", "kernel-gate", "bundle.py")
MOST_HALF_WIDTH = 0.003
CC = shutil.which("cc") or shutil.which("gcc")
try:
    import triton
except ImportError:
    triton = None


def manifest_of(path):
    """The manifest of a bundle, and its files by their names: gate/library/machine_code.h."""
    with open(path, "rb") as file:
        data = file.read()
    manifest = json.loads(data[:int.from_bytes(data[-16:-8], "little")])
    names = dict.fromkeys(launch["code"] for kernel in manifest["kernels"]
                          for launch in kernel["launches"])
    at, files = int.from_bytes(data[-16:-8], "little"), {}
    sizes = data[-16 - 8 * len(names):-16]
    for i, name in enumerate(names):
        size = int.from_bytes(sizes[8 * i:8 * i + 8], "little")
        files[name] = data[at:at + size]
        at += size
    return manifest, files


@unittest.skipUnless(triton, "no Triton for this Python")
class Triton(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        shutil.copytree(os.path.join(ROOT, "examples", "triton"), cls.folder, dirs_exist_ok=True)
        for name in ("softmax", "matmul"):
            subprocess.run([sys.executable, BUNDLER, "triton", f"{name}.py", f"{name}.kgb"],
                           cwd=cls.folder, check=True)
        cls.compile("softmax_reference.c", "softmax_reference.so", "-lm")

    @classmethod
    def compile(cls, source, library, *options):
        if not CC:
            raise unittest.SkipTest("no C compiler")
        subprocess.run([CC, "-std=c11", "-O2", "-fPIC", "-shared", "-I",
                        os.path.join(BUILD, "include", "kernel-gate"), "-I", ROOT, source, "-o",
                        library, *options], cwd=cls.folder, check=True)

    def gate(self, *arguments):
        done = subprocess.run([os.path.join(BUILD, "bin", "gate"), *arguments], cwd=self.folder,
                              env=dict(os.environ, GATE_CACHE=os.path.join(self.folder, "cache")),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False)
        return done

    def test_run_and_run_again_beside_the_stored_bundle(self):
        for name in ("softmax", "matmul"):
            with self.subTest(name):
                options = ("--device", "cuda:0", "--suite", f"{name}.json", "--library",
                           f"{name}.kgb", "--baselines", f"{name}-baselines", "--allow-dirty",
                           "--no-vendors", "--no-ceilings")
                first = self.gate("run", *options, "--accept-new")
                self.assertEqual(first.returncode, 0, first.stdout + first.stderr)
                again = self.gate("run", *options, "--full", "--json")
                self.assertEqual(again.returncode, 0, again.stderr)
                for case in json.loads(again.stdout)["cases"]:
                    self.assertEqual((case["mode"], case["verdict"]), ("paired", "pass"))

    def test_the_same_code_launched_by_hand_takes_the_same_time(self):
        manifest, files = manifest_of(os.path.join(self.folder, "softmax.kgb"))
        kernel = next(k for k in manifest["kernels"] if k["name"] == "softmax_fp16_4096_by_16")
        launch = kernel["launches"][0]
        with open(os.path.join(self.folder, "twin.cubin"), "wb") as file:
            file.write(files[launch["code"]])
        shutil.copy(os.path.join(ROOT, "tests", "gpu", "bundle_twin.c"), self.folder)
        with open(os.path.join(self.folder, "twin.c"), "w", encoding="utf-8") as file:
            file.write(f"const char twin_entry[] = \"{launch['entry']}\";\n"
                       f"const unsigned twin_longest = 4096, twin_block = {launch['block'][0]}, "
                       f"twin_shared = {launch['shared']};\n")
        self.compile("bundle_twin.c", "twin.so", "twin.c", "-ldl")
        done = self.gate("compare", "softmax.kgb", "twin.so", "--device", "cuda:0", "--suite",
                         "softmax.json", "--filter", "softmax/fp16/m8192-n4096", "--full", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        ratio = json.loads(done.stdout)["cases"][0]["ratio"]
        print("# bundle / library by hand:", ratio)
        self.assertLessEqual(ratio["lo"], 1)
        self.assertGreaterEqual(ratio["hi"], 1)
        self.assertLessEqual((ratio["hi"] - ratio["lo"]) / 2, MOST_HALF_WIDTH)


if __name__ == "__main__":
    unittest.main()
