# SPDX-License-Identifier: Apache-2.0
"""Is the node named that makes a launch of several slower?

Each product of tests/mutants/cuda_nodes.cu is slow by a known node, and is compared with the same
library without it.
"""
import json
import os
import subprocess
import tempfile
import unittest

BUILD = os.environ["KERNEL_GATE_BUILD"]
GATE = os.path.join(BUILD, "bin", "gate")

# By depth: nodes, the slow one, its name, and the least and most that it may be said to carry.
SLOW = {
    32: (2, 1, "product", 0.03, 0.08),
    40: (2, 2, "epilogue", 0.03, 0.08),
    48: (2, 1, "product", 0.14, 0.28),
    56: (2, 2, "epilogue", 0.14, 0.28),
    64: (3, 2, "negate", 0.03, 0.08),
}
# What cannot be taken apart, and why.
REASONS = {
    72: "do not correspond",
    80: "memory of its library's own",
    88: "gives a wrong result",
    96: "unequal numbers of arguments",
}


def mutant(name):
    return os.path.join(BUILD, "tests", "mutants", name + ".so")


def run(folder):
    """Exit code, what was written, the cases by depth, and the Markdown report."""
    suite, report, document = (os.path.join(folder, name)
                               for name in ("suite.json", "report.md", "run.json"))
    with open(suite, "w", encoding="utf-8") as file:
        json.dump({"schema": "gate-suite/1", "name": "nodes", "cases": [
            {"op": "gemm", "dtype": "fp32", "m": 128, "n": 128, "k": k}
            for k in [*SLOW, *REASONS]]}, file)
    done = subprocess.run(
        [GATE, "run", "--device", "cuda:0", "--suite", suite, "--pause", "0", "--budget", "60",
         "--library", mutant("cuda_nodes"), "--against", mutant("cuda_nodes_plain"),
         "--report", f"markdown={report}", "--report", f"json={document}"],
        cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        env=dict(os.environ, GATE_CACHE=os.path.join(folder, "cache")))
    with open(document, encoding="utf-8") as file:
        cases = {int(case["id"].rpartition("-k")[2]): case for case in json.load(file)["cases"]}
    with open(report, encoding="utf-8") as file:
        return done.returncode, done.stdout + done.stderr, cases, file.read()


class Transplant(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            cls.code, cls.said, cls.cases, cls.report = run(folder)
        print("\n".join("# " + line for line in cls.said.splitlines()))

    def test_the_slow_node_is_named(self):
        for depth, (n, slow, name, least, most) in SLOW.items():
            with self.subTest(depth):
                case = self.cases[depth]
                self.assertEqual(case["verdict"], "regression", self.said)
                nodes = case["blame"]["nodes"]
                self.assertEqual(len(nodes), n, case["blame"])
                shares = [node["carries"]["value"] - 1 for node in nodes]
                self.assertEqual(max(range(n), key=lambda i: shares[i]), slow - 1, shares)
                self.assertIn(name, nodes[slow - 1]["name"])
                self.assertTrue(least < shares[slow - 1] < most, shares)
                whole = case["blame"]["slowdown"]["value"] - 1
                self.assertLess(abs(shares[slow - 1] - whole), 0.25 * whole, case["blame"])
                for i, node in enumerate(nodes):
                    if i != slow - 1:
                        self.assertLess(abs(shares[i]), 0.25 * whole, node)
                self.assertIn(f"node {slow} of {n}, ", self.report)

    def test_what_cannot_be_taken_apart_says_why(self):
        for depth, reason in REASONS.items():
            with self.subTest(depth):
                case = self.cases[depth]
                self.assertEqual(case["verdict"], "regression", self.said)
                blame = case["blame"]
                told = [blame.get("message", "")] + [n.get("message", "") for n in blame["nodes"]]
                self.assertIn(reason, " ".join(told))
                self.assertIn(reason, self.report)
        names = self.cases[72]["blame"]
        self.assertEqual((len(names["nodes"]), len(names["baseline"])), (3, 2))


if __name__ == "__main__":
    unittest.main()
