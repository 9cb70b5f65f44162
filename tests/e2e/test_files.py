# SPDX-License-Identifier: Apache-2.0
"""Files that belong to a kernel library (KG_FILE of kernel.h): hashed, kept and found with it."""
import glob
import json
import os
import shutil
import unittest

import harness
from harness import mutant, read_file, write_file


class Files(harness.Gate):
    def library(self, word):
        """A library in a folder of its own, with its files beside it."""
        folder = os.path.dirname(write_file(self.path(f"{word}/filed.txt"), word))
        write_file(os.path.join(folder, "other-file.bin"), "other")
        return shutil.copy(mutant("filed"), folder)

    def run_gate(self, library, *args):
        return self.gate("run", "--device", "host", "--suite", "smoke", "--filter",
                         "gemm/fp32/m4-*", "--partial", "--budget", "20", "--pause", "0", "--db",
                         "gate.db", "--baselines", "baselines", "--library", library, *args)

    def test_a_library_is_what_its_files_make_of_it(self):
        right = self.library("right")
        done = self.run_gate(right, "--accept-new")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with self.subTest("another file is another library, which nothing is remembered of"):
            done = self.run_gate(self.library("wrong"))
            self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        with self.subTest("a library that was kept has its files"):
            shutil.rmtree(os.path.dirname(right))
            (baselines,) = glob.glob(self.path("baselines/*.json"))
            (case,) = json.loads(read_file(baselines))["cases"].values()
            kept = case["library_sha256"]
            done = self.gate("verify", "--device", "host", "--suite", "smoke", "--filter",
                             "gemm/fp32/m4-*", "--library", f"cache/artifacts/{kept}.so")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            done = self.run_gate(self.library("right"))
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("same code", done.stdout)

    def test_a_file_that_is_not_there(self):
        library = self.library("right")
        os.remove(self.path("right/other-file.bin"))
        done = self.run_gate(library)
        self.assertEqual(done.returncode, 74, done.stdout + done.stderr)
        self.assertIn("of the file 'other-file.bin', which belongs to it:", done.stderr)

    def test_what_was_not_opened_is_not_closed(self):
        done = self.run_gate(self.library("right"), "--provider", self.library("wrong"))
        self.assertEqual(done.returncode, 64, done.stdout + done.stderr)
        self.assertIn("both of provider 'mutant'", done.stderr)


if __name__ == "__main__":
    unittest.main()
