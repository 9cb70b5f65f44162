# SPDX-License-Identifier: Apache-2.0
"""gate diff as a black box: on what nvcc makes where it is there, and on files that are none."""

import json
import os
import re
import shutil
import subprocess
import unittest

from harness import HOST, Gate, write_file

# `spill` has more values than registers, `array` an index that is known to no compiler.
SOURCE = """
__global__ void __launch_bounds__(1024, 2) spill(const float *x, float *y)
{
    float a[64];
#pragma unroll
    for (int i = 0; i < 64; i++) a[i] = x[i * 1024 + threadIdx.x];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 64; i++) y[i * 1024 + threadIdx.x] = a[i] * a[(i + 7) % 64] + a[63 - i];
}
__global__ void sum(const float *x, float *y)
{
    __shared__ float s[128];
    s[threadIdx.x] = x[threadIdx.x] * FACTOR;
    __syncthreads();
    y[threadIdx.x] = s[127 - threadIdx.x];
}
"""
ARCHITECTURES = (80, 90)
NVCC = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")


def compiled_figures(log):
    """What ptxas -v says of each kernel and architecture."""
    figures, name, frame = {}, None, None
    for line in log.splitlines():
        if found := re.search(r"Compiling entry function '(\S+)' for 'sm_(\d+)'", line):
            name = (found[1], int(found[2]))
        elif found := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+)", line):
            frame = [int(n) for n in found.groups()]
        elif found := re.search(r"Used (\d+) registers, used (\d+) barriers", line):
            shared = re.search(r"(\d+) bytes smem", line)
            figures[name] = [int(found[1]), *frame, int(shared[1]) if shared else 0,
                             int(found[2])]
    return figures


# In place of nvdisasm: its format as of CUDA 12, and no real code.
DISASSEMBLER = """#!/bin/sh
test "$1 $2" = "-c -fun" && { test -s "$4" || test -s "$5"; } || exit 1
case $3 in *,*) # two kernels at once
    echo '	.section	.text._Z5spillPKfPf,"ax",@progbits'
    echo '        /*0000*/                   EXIT ;'
    echo '	.section	.debug_frame,"",@progbits'
    echo '        /*0000*/                   NOP ;';;
esac
echo '	.section	.text._Z3sumPKfPf,"ax",@progbits'
echo '.text._Z3sumPKfPf:'
echo '        /*0000*/                   LDC R1, c[0x0][0x28] ;'
echo '.L_x_0:'
echo '	//## File "/src/sum.cu", line 12'
echo '        /*0010*/              @!P0 LDG.E R2, desc[UR4][R2.64] ;'
if test ! -e %(count)s; then
    echo > %(count)s
    echo '        /*0020*/                   FFMA R3, R2, R2, RZ ;'
else
    echo '	//## File "/src/a/spill.cuh", line 34 inlined at "/src/sum.cu", line 13'
    echo '        /*0020*/                   STL [R1], R2 ;'
    echo '        /*0030*/                   FMUL R3, R2, R2 ;'
fi
echo '        /*0040*/                   BRA `(.L_x_0) ;'
"""


class Diff(Gate):
    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)
        return self.path(name)

    @unittest.skipUnless(shutil.which("nvcc"), "no nvcc")
    def test_figures_are_those_of_ptxas(self):
        source, logs = self.path("k.cu"), []
        write_file(source, SOURCE)
        for factor in (2, 3):
            logs.append(subprocess.run(
                ["nvcc", "-shared", "-Xcompiler", "-fPIC", "-Xptxas", "-v", f"-DFACTOR={factor}",
                 *(f"-gencode=arch=compute_{a},code=sm_{a}" for a in ARCHITECTURES), source,
                 "-o", self.path(f"{factor}.so")],
                check=True, capture_output=True, text=True).stderr)
        new, old = self.path("3.so"), self.path("2.so")
        kernels = json.loads(self.gate("diff", new, old, "--json").stdout)["kernels"]
        told = {(k["new"]["name"], k["architecture"]):
                [k["new"][name] for name in ("registers", "stack", "local_stores", "local_loads",
                                             "shared", "barriers")] for k in kernels}
        self.assertEqual(told, compiled_figures(logs[1]))
        self.assertTrue(any(figures[2] for figures in told.values()), "nothing is spilled")
        for kernel in kernels:
            self.assertEqual(kernel["change"], "changed" if "sum" in kernel["new"]["name"]
                             else "same")
        subprocess.run(["strip", new, "-o", self.path("stripped.so")], check=True)
        self.assertIn("4 with the same code", self.gate("diff", "stripped.so", new).stdout)
        self.assertIn("2 kernels: 1 with", self.gate("diff", new, old, "--arch", "90").stdout)
        self.show_cases(new, old, [k["new"]["name"] for k in kernels if k["architecture"] == 90])
        self.show_instructions(new, old)
        self.refuse("has a kernel for sm_70", new, old, "--arch", "70")

    @unittest.skipUnless(NVCC, "no nvcc")
    def test_what_each_way_to_compress_leaves(self):
        """docs/faq.md says so: zstd is opened, and LZ4 is said not to be."""
        nvcc = [NVCC, "-arch=sm_90", "-shared", "-Xcompiler", "-fPIC"]
        modes = re.search(r"--compress-mode \[([\w,]+)\]", subprocess.run(
            [NVCC, "--help"], check=True, capture_output=True, text=True).stdout)
        if not modes:
            self.skipTest("this nvcc has no --compress-mode")
        self.write("k.cu", b"__global__ void k(float *x) {\n" + b"".join(
            b"x[%d] = x[%d] * x[threadIdx.x];\n" % (i, 3 * i) for i in range(64)) + b"}\n")
        subprocess.run([*nvcc, "--compress-mode=none", self.path("k.cu"), "-o",
                        self.path("plain.so")], check=True)
        for mode in modes[1].split(","):
            subprocess.run([*nvcc, f"--compress-mode={mode}", "-Xfatbin", "-compress-all",
                            self.path("k.cu"), "-o", self.path("k.so")], check=True)
            done = self.gate("diff", "k.so", "plain.so")
            self.assertIn("LZ4" if mode == "speed" else "1 with the same code",
                          done.stdout + done.stderr, mode)

    def show_cases(self, new, old, names):
        """A run of the host, in which two of three cases are said to launch the kernels."""
        suite = {"schema": "gate-suite/1", "name": "three", "description": "x", "cases": [
            {"op": "gemm", "dtype": "fp32", "m": 4, "n": n, "k": 4} for n in (1, 2, 3)]}
        write_file(self.path("three.json"), json.dumps(suite))
        ran = self.gate("run", "--suite", "three.json", "--library", HOST, "--budget", "1",
                        "--json")
        document = json.loads(ran.stdout)
        for case, name in zip(document["cases"], sorted(names)):
            case["arms"][0]["timing"]["kernels"] = [
                {"name": name, "grid": "1 x 1 x 1", "block": "1 x 1 x 1", "shared_bytes": 0,
                 "registers": 8}]
        write_file(self.path("run.json"), json.dumps(document))
        shown = self.gate("diff", new, old, "--cases", "run.json")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        touched = [c["id"] for c, name in zip(document["cases"], sorted(names)) if "sum" in name]
        self.assertEqual(shown.stdout.splitlines()[-3:], [
            "Cases that launch a changed kernel:", f"  {touched[0]}",
            "1 of 3 cases; for 1 the run does not record the launched kernels"])
        self.assertEqual(self.gate("diff", new, old, "--cases", "no.json").returncode, 74)
        self.refuse("--json cannot be combined with", new, old, "--cases", "run.json", "--json")

    def show_instructions(self, new, old):
        here = {"PATH": "", "CUDA_HOME": self.folder}  # no nvdisasm of this machine
        shown = self.gate("diff", new, old, "--arch", "90", **here)
        self.assertIn("Instructions: absent, nvdisasm is neither on PATH nor in " +
                      self.path("bin"), shown.stdout, shown.stderr)
        os.mkdir(self.path("bin"))
        write_file(self.path("bin/nvdisasm"), DISASSEMBLER % {"count": self.path("count")})
        os.chmod(self.path("bin/nvdisasm"), 0o755)
        shown = self.gate("diff", new, old, "--instructions", "--markdown", "--arch", "90",
                          **here).stdout
        self.assertIn("| instruction | count | what it does |\n|:--|--:|:--|\n"
                      "| FFMA | **1 -&gt; 0** | fp32 multiply-add, at sum.cu:12 |\n"
                      "| FMUL | **0 -&gt; 1** | at spill.cuh:34 |\n"
                      "| STL | **0 -&gt; 1** | stores a spilled register or a local array, at "
                      "spill.cuh:34 |\n"
                      "| LDG | 1 | loads from global memory |\n", shown)
        block = shown.split("```")[1].splitlines()
        self.assertEqual([line.split() for line in block[1:]],
                         ["FFMA R3, R2, R2, RZ | STL [R1], R2".split(),
                          "> FMUL R3, R2, R2".split()])
        os.remove(self.path("count"))
        kernels = json.loads(self.gate("diff", new, old, "--json", "--arch", "90",
                                       **here).stdout)["kernels"]
        changed, = (k for k in kernels if k["change"] == "changed")
        self.assertEqual(changed["new"]["instructions"],
                         {"BRA": 1, "FMUL": 1, "LDC": 1, "LDG": 1, "STL": 1})
        self.assertEqual(changed["old"]["instructions"]["FFMA"], 1)
        same, = (k for k in kernels if k["change"] == "same")
        self.assertNotIn("instructions", same["new"])
        kernels = json.loads(self.gate("diff", new, old, "--json", "--all", "--arch", "90",
                                       **here).stdout)["kernels"]
        told = [k["new"]["instructions"] for k in kernels]
        self.assertEqual([(i.get("EXIT"), i.get("BRA")) for i in told], [(None, 1), (1, None)])
        self.assertIn("| LDG | 1 | loads", self.gate("diff", new, old, "--all", "--markdown",
                                                    "--arch", "90", **here).stdout)
        with open(self.path("bin/nvdisasm"), "a", encoding="utf-8") as file:
            file.write("exit 3\n")
        kernels = json.loads(self.gate("diff", new, old, "--json", "--all", "--arch", "90",
                                       **here).stdout)["kernels"]
        for kernel in kernels:
            self.assertIn("nvdisasm ended with 3", kernel["no_instructions"])
            self.assertNotIn("instructions", kernel["new"])
        self.assertIn("absent: nvdisasm ended with 3",
                      self.gate("diff", new, old, "--arch", "90", **here).stdout)
        os.chmod(self.path("bin/nvdisasm"), 0o644)
        self.assertIn("neither on PATH", json.loads(self.gate(
            "diff", new, old, "--json", **here).stdout)["no_instructions"])
        os.chmod(self.path("bin/nvdisasm"), 0o755)
        nowhere = self.gate("diff", new, old, "--instructions", "--arch", "90",
                            TMPDIR=self.path("nowhere"), **here)
        self.assertIn(self.path("nowhere/gate-diff."), nowhere.stdout + nowhere.stderr)

    def refuse(self, why, *args, status=64):
        done = self.gate("diff", *args)
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        self.assertIn(why, done.stderr)

    def test_what_has_no_kernels(self):
        with open(HOST, "rb") as file:
            host = file.read()
        self.refuse("no machine code for a GPU", HOST, HOST)
        self.refuse("no machine code for a GPU", self.write("cut.so", host[:5000]), HOST)
        self.refuse("empty.so' is empty", self.write("empty.so", b""), HOST)
        with open(self.path("huge.so"), "wb") as file:
            file.truncate(6 << 30)
        self.refuse("'huge.so' is larger than the 256 MiB a library may have", "huge.so", HOST)
        self.refuse("neither a regular file nor a revision", "nothing.so", HOST)
        self.refuse("two libraries or commits", HOST)
        os.mkdir(self.path("baselines"))
        self.refuse("no baseline of case 'x'", "baseline:x", HOST)

    def test_nothing_is_built_while_the_other_one_is_unknown(self):
        for command in (["init", "-q"], ["commit", "-qm", "first", "--allow-empty"]):
            subprocess.run(["git", "-C", self.folder, "-c", "user.name=A", "-c",
                            "user.email=a@example", *command], check=True)
        os.mkdir(self.path("baselines"))
        build = ["--build", f"touch {self.path('built')}; false", "--built", "k.so"]
        self.refuse("'nope' is neither", "HEAD", "nope", *build)
        self.refuse("no baseline of case 'nope'", "HEAD", "baseline:nope", *build)
        self.assertFalse(os.path.exists(self.path("built")))
        self.refuse("cannot be built here", "HEAD", "HEAD", *build, status=4)
        self.assertTrue(os.path.exists(self.path("built")))


if __name__ == "__main__":
    unittest.main()
