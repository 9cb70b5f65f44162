# SPDX-License-Identifier: Apache-2.0
"""Is the reason for a slowdown among the first three statements under a regression?

Each case of tests/mutants/cuda_pathologies_sm90.cu is slow for one reason, and is compared with the
same library without it. At least nine of ten reasons must be named. So must they in this
repository's own kernels, where $WORSE is a folder that pathologies.py filled.
"""
import json
import os
import re
import subprocess
import tempfile
import unittest

import pathologies

BUILD = os.environ["KERNEL_GATE_BUILD"]
GATE = os.path.join(BUILD, "bin", "gate")
OURS = os.path.join(BUILD, "lib", "kernel-gate", "libours.so")
WORSE_FOLDER = os.environ.get("WORSE")
FIRST, WANTED = 3, 9


def product(m, n, k):
    return {"op": "gemm", "dtype": "fp32", "m": m, "n": n, "k": k}


def vector(m, k):
    return {"op": "gemv", "dtype": "fp32", "m": m, "k": k}


# What is done, to which case, and the statement that names it.
REASONS = [
    ("bank conflicts", product(1024, 1024, 1024), r"^counter bank conflicts "),
    ("uncoalesced loads", vector(4096, 4096), r"^counter sectors a load "),
    ("low occupancy", vector(8192, 4096), r"^counter occupancy |shared bytes 0 -> 204800"),
    ("spills", product(1024, 1024, 512), r"^counter local memory |bytes of local stores 0 -> \d+"),
    ("an extra launch", product(256, 256, 256), r"nothing\w*: the baseline does not launch it"),
    ("a barrier too many", product(1024, 512, 1024), r"^counter waiting at barriers "),
    ("a serial batch", {"op": "attention_fwd", "dtype": "fp16", "b": 8, "h": 4, "sq": 256,
                        "s": 256, "d": 64, "causal": False},
     r"grid 32 x 4 x 8 -> 32 x 4 x 1"),
    ("lost multicast", product(1024, 1024, 768), r"^counter bytes of the L2 "),
    ("a smaller tile", product(2048, 1024, 512), r"grid 16 x 32 x 1 -> 32 x 64 x 1"),
    ("disabled overlap", product(512, 1024, 2048),
     r"^counter waiting for memory |shared bytes 16896 -> 8448"),
]


def case_id(c):
    if c["op"] == "attention_fwd":
        sizes = "-".join(f"{name}{c[name]}" for name in "bhsd")
        return f"attention_fwd/{c['dtype']}/{sizes}/full"
    sizes = "-".join(f"{name}{value}" for name, value in c.items() if name in "mnk")
    return f"{c['op']}/{c['dtype']}/{sizes}"


def mutant(name):
    return os.path.join(BUILD, "tests", "mutants", name + ".so")


def statements(report):
    """What a Markdown report says of each regression's kernels and counters, in its order."""
    said, at = {}, None
    for line in report.replace("\\", "").replace("&gt;", ">").splitlines():
        about = re.match(r"- .*`([a-z_]+/[^` ]+)`", line)
        at = about.group(1) if about else at
        if re.match(r"  - (kernel|counter) ", line):
            said.setdefault(at, []).append(line[4:])
    return said


def named(reasons, said):
    """Prints what was said of each (reason, case, pattern); how many are among the first."""
    found = 0
    for name, case, pattern in reasons:
        first = said.get(case_id(case), [])[:FIRST]
        is_named = any(re.search(pattern, line) for line in first)
        found += is_named
        print(f"# {'named' if is_named else 'MISSED'}: {name}")
        for line in first:
            print(f"#     {line}")
    print(f"# {found} of {len(reasons)} reasons are among the first {FIRST} statements")
    return found


class Diagnosis(unittest.TestCase):
    def diagnose(self, reasons, library, against):
        """What a run says of each case of these reasons, which must be red."""
        with tempfile.TemporaryDirectory() as folder:
            suite, report = os.path.join(folder, "suite.json"), os.path.join(folder, "report.md")
            with open(suite, "w", encoding="utf-8") as file:
                json.dump({"schema": "gate-suite/1", "name": "pathologies",
                           "cases": [case for _, case, _ in reasons]}, file)
            done = subprocess.run(
                [GATE, "run", "--device", "cuda:0", "--suite", suite, "--pause", "0", "--counters",
                 "--library", library, "--against", against, "--report", f"markdown={report}",
                 "--budget", "60", "--threshold", "1%"],  # the least of them is 2.2 %
                cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                env=dict(os.environ, GATE_CACHE=os.path.join(folder, "cache")))
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            with open(report, encoding="utf-8") as file:
                said = statements(file.read())
        if any("Nsight Compute" in line for lines in said.values() for line in lines):
            self.skipTest("there is no Nsight Compute here")
        return said

    def test_the_reason_is_among_the_first_statements(self):
        said = self.diagnose(REASONS, mutant("cuda_pathologies_sm90"),
                             mutant("cuda_pathologies_plain_sm90"))
        self.assertGreaterEqual(named(REASONS, said), WANTED)

    @unittest.skipUnless(WORSE_FOLDER, "$WORSE has no libraries of pathologies.py")
    def test_so_it_is_in_the_kernels_of_this_repository(self):
        found = 0
        for i in pathologies.LIBRARIES:
            reasons = [(name, case, pattern)
                       for library, name, case, pattern, _ in pathologies.WORSE if library == i]
            said = self.diagnose(reasons, os.path.join(WORSE_FOLDER, f"worse-{i}.so"), OURS)
            found += named(reasons, said)
        self.assertGreaterEqual(10 * found, 9 * len(pathologies.WORSE))


if __name__ == "__main__":
    unittest.main()
