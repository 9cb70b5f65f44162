# SPDX-License-Identifier: Apache-2.0
"""gate run: which instructions of a regression's kernels changed, by a fake nvdisasm."""
import os
import shutil
import subprocess
import sys

from harness import BUILD, FIRST, SECOND, FakeRuns, read_file, write_file

KERNELS = [{"name": name, "grid": "132 x 1 x 1", "block": "128 x 1 x 1", "launches": 1,
            "shared_bytes": 0, "registers": 96} for name in ("one", "two")]
RED = {"p50": {SECOND: 1100.0}, "timing": {"kernels": KERNELS}, "baseline_kernels": KERNELS,
       "greeting": {"device": {"capability": "9.0"}}}

# nvdisasm's format; which code it is, a word in the file tells. "one" is symbol 1, "two" is 2.
DISASSEMBLER = """#!/bin/sh
test "$1 $2" = "-c -fun" || exit 1
echo '        /*0000*/                   LDC R1, c[0x0][0x28] ;'
echo '.L_x_0:'
echo '        /*0010*/                   LDS R2, [R2] ;'
grep -q broken "$4" && exit 3
if test "$3" = 1 && grep -q slow "$4"; then
    echo '        /*0020*/                   LDS R3, [R2+0x100] ;'
    echo '        /*0030*/                   IMAD R3, R2, R2, RZ ;'
fi
echo '        /*0040*/                   FFMA R3, R2, R2, RZ ;'
echo '        /*0050*/              @!P0 BRA `(.L_x_0) ;'
echo '        /*0060*/                   EXIT ;'
"""


class Instructions(FakeRuns):

    def setUp(self):
        super().setUp()
        os.mkdir(self.path("bin"))
        write_file(self.path("bin/nvdisasm"), DISASSEMBLER)
        self.make_findable(True)
        before = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(before)))
        os.environ.update(PATH=self.path("bin") + ":" + os.environ["PATH"],
                          CUDA_HOME=self.path("nowhere"))
        code, _, errors = self.run_gate("--accept-new", "--library", self.library("quick"))
        self.assertEqual(code, 0, errors)

    def make_findable(self, yes):
        os.chmod(self.path("bin/nvdisasm"), 0o755 if yes else 0o644)

    def library(self, code):
        subprocess.run([os.path.join(BUILD, "tests/tools/put_cubin"), self.path(code + ".real.so"),
                        code], check=True)
        return self.path(code + ".real.so")

    def run_red(self, code, **fake):
        """What the case says, and the lines of the reports."""
        reports = {name: self.path("report." + name) for name in ("text", "markdown")}
        status, document, errors = self.run_gate(
            "--library", self.library(code), *(f"--report={n}={p}" for n, p in reports.items()),
            **dict(RED, **fake))
        self.assertEqual(status, 1, errors)
        self.assertNotIn("instructions", self.cases(document)[FIRST])
        said = []
        for path in reports.values():
            said.append(" ".join(read_file(path).replace("\\", "").replace("&gt;", ">").split()))
        return self.cases(document)[SECOND].get("instructions"), said

    def test_what_changed_stands_under_the_regression(self):
        found, said = self.run_red("slow")
        self.assertEqual(found, {"kernels": ["one", "two"], "changed": [
            {"kernel": 0, "loop": 0, "opcode": opcode, "candidate": n + 1, "baseline": n}
            for opcode, n in (("LDS", 1), ("IMAD", 0))]})
        for text in said:
            self.assertIn("instructions one: LDS 1 -> 2 (loads from shared memory), IMAD 0 -> 1",
                          text)

    def test_code_that_has_as_many_of_each(self):
        found, said = self.run_red("other")
        self.assertEqual(found["changed"], [])
        for text in said:
            self.assertIn("instructions as many of each", text)

    def test_what_cannot_be_had_is_said(self):
        found, said = self.run_red("broken")
        self.assertIn("nvdisasm ended with 3", found["message"])
        self.make_findable(False)
        os.symlink(sys.executable, self.path("bin/python3"))
        os.environ["PATH"] = ":".join(folder for folder in os.environ["PATH"].split(":")
                                      if not shutil.which("nvdisasm", path=folder))
        found, said = self.run_red("slow")
        self.assertEqual(found["changed"], [])
        for text in said:
            self.assertIn("instructions not known: nvdisasm is neither on PATH nor in", text)

    def test_code_that_is_not_in_the_file_is_left_out(self):
        kernels = [dict(k, name="x" + k["name"]) for k in KERNELS]
        found, _ = self.run_red("slow", timing={"kernels": kernels}, baseline_kernels=kernels)
        self.assertIsNone(found)
        found, _ = self.run_red("slow", greeting={"device": {"capability": "8.0"}})
        self.assertIsNone(found)
