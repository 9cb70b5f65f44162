# SPDX-License-Identifier: Apache-2.0
"""gate run: which node of a launch carries a regression."""
import unittest

from harness import FIRST, SECOND, FakeRuns, read_file, skip_if_starved


def kernel(name, **figures):
    return dict({"name": name, "grid": "132 x 1 x 1", "block": "128 x 1 x 1", "launches": 1,
                 "shared_bytes": 0, "registers": 96}, **figures)


def ratio(value, half=0.003):
    return {"value": value, "lo": value - half, "hi": value + half}


TWO = [kernel("main"), kernel("epilogue")]
RED = {"p50": {SECOND: 1100.0}, "only": SECOND, "timing": {"kernels": TWO},
       "baseline_kernels": TWO}
FOUND = {"slowdown": ratio(1.1),
         "nodes": [{"name": "main", "carries": ratio(1.004)}, {"name": "fill", "message": "it is "
                   "no kernel"}, {"name": "epilogue", "carries": ratio(1.096, 0.002)}]}


class Blame(FakeRuns):

    def setUp(self):
        super().setUp()
        self.accept()

    def run_red(self, *args, **fake):
        """The case, and what the reports say of it."""
        reports = {name: self.path("report." + name) for name in ("text", "markdown")}
        code, document, errors = self.run_gate(
            *args, *(f"--report={n}={p}" for n, p in reports.items()), **dict(RED, **fake))
        skip_if_starved(self, document["cases"])
        self.assertEqual(code, 1, errors)
        self.assertNotIn("blame", self.cases(document)[FIRST])
        said = []
        for path in reports.values():
            said.append(" ".join(read_file(path).replace("\\", "").split()))
        case = self.cases(document)[SECOND]
        self.assertEqual(case["verdict"], "regression")
        return case, said

    def test_the_node_is_named_before_the_others(self):
        case, said = self.run_red(blame=FOUND)
        self.assertEqual(case["blame"], FOUND)
        for text in said:
            lines = ["blame node 3 of 3, epilogue carries 9.60 % ± 0.20 % of 10.00 %",
                     "blame node 1 of 3, main: 0.40 % ± 0.30 %",
                     "blame node 2 of 3, fill: not known: it is no kernel"]
            places = [text.index(line) for line in lines]
            self.assertEqual(places, sorted(places))

    def test_no_node_is_named_that_does_not_carry_most_of_it(self):
        nodes = [{"name": "main", "carries": ratio(1.04)}, {"name": "epilogue",
                                                            "carries": ratio(1.045)}]
        unsure = [{"name": "main", "carries": ratio(1.06, 0.07)}]
        for found, says in (
                ({"slowdown": ratio(1.1), "nodes": nodes},
                 "blame no node is known to carry most of it: 10.00 % ± 0.30 %"),
                ({"slowdown": ratio(1.1), "nodes": unsure}, "blame no node is known to carry most"),
                ({"slowdown": ratio(1.002), "nodes": nodes},
                 "blame none: it was not slower in the process that looked for the node: "
                 "0.20 % ± 0.30 %")):
            _, said = self.run_red(blame=found)
            for text in said:
                self.assertIn(says, text)
                self.assertIn("node 1 of", text)
                self.assertNotIn("carries", text)

    def test_nodes_that_do_not_correspond_are_listed(self):
        found = {"message": "the nodes of the two launches do not correspond",
                 "nodes": [{"name": "main"}, {"name": "extra\x1b[1m"}], "baseline": ["main"]}
        case, said = self.run_red(blame=found)
        self.assertEqual(case["blame"], found)
        for text in said:
            self.assertIn("blame none: the nodes of the two launches do not correspond; the "
                          "candidate's are main, extra??1m; the baseline's are main", text)

    def test_a_worker_that_fails_changes_no_verdict(self):
        for act, says in (("die", "died: the worker process was killed by signal"),
                          ("silence", "hung: no sign of life for 1 s")):
            with self.subTest(act):
                case, said = self.run_red("--timeout", "1", act=act, act_when="transplant")
                self.assertIn(says, case["blame"]["message"])
                self.assertEqual(case["blame"]["nodes"], [])
                for text in said:
                    self.assertIn("blame none: the worker: ", text)

    def test_no_further_regression_is_taken_apart_when_the_time_is_up(self):
        """The first one hangs for as long as a worker may, which is as long as all may take."""
        both = {key: RED[key] for key in RED if key != "only"}
        code, document, errors = self.run_gate(
            "--timeout", "1", act="silence", act_when="transplant", marker=self.path("hung"),
            **dict(both, p50={FIRST: 1100.0, SECOND: 1100.0}, blame=FOUND))
        skip_if_starved(self, document["cases"])
        self.assertEqual(code, 1, errors)
        first, second = (self.cases(document)[name]["blame"] for name in (FIRST, SECOND))
        self.assertIn("hung: no sign of life for 1 s", first["message"])
        self.assertEqual(second, {"nodes": [], "message":
                         "the regressions before it took the 1 s that a run has for this"})

    def test_a_worker_that_does_not_tell_or_lies(self):
        case, _ = self.run_red()
        self.assertEqual(case["blame"]["message"], "this worker does not report it")
        case, _ = self.run_red(blame={"nodes": [{"name": 7}]})
        self.assertIn("talked nonsense: /blame/nodes/0/name", case["blame"]["message"])

    def test_nobody_is_asked_of_one_kernel_or_of_what_is_not_slower(self):
        one = [kernel("main")]
        case, _ = self.run_red(blame=FOUND, timing={"kernels": one}, baseline_kernels=one)
        self.assertNotIn("blame", case)
        _, document, _ = self.run_gate(**dict(RED, p50={}, blame=FOUND))
        for case in document["cases"]:
            self.assertNotIn("blame", case)
        twice = [kernel("main", launches=2)]
        case, _ = self.run_red(blame=FOUND, timing={"kernels": one}, baseline_kernels=twice)
        self.assertEqual(case["blame"], FOUND)

    def test_the_one_who_was_asked_does_nothing_else(self):
        """Each process counts its first task; the last one is of the transplants alone."""
        self.run_red(blame=FOUND, count=self.path("count"))
        n = len(read_file(self.path("count")))
        self.assertEqual(n, 11)  # five, five to confirm, and one


if __name__ == "__main__":
    unittest.main()
