# SPDX-License-Identifier: Apache-2.0
"""The gate against its own suite of broken and unusual kernels, on the host device.

also runs long: those that are not in the sample, which is judged else
"""
import os
import unittest
from unittest import mock

from harness import BUILD, DRAW, SANITIZED
from mutants import suite

LONG = "KERNEL_GATE_LONG" in os.environ
os.environ.pop("LD_PRELOAD", None)  # tests/run's smaller cache, in which not every fault shows


class Beside(unittest.TestCase):
    """Rows that are judged beside each other, by a judge that is made up."""

    def looks(self, *outcomes, device="cuda:0", name="own_leak"):
        def judge(row, _):
            looks.append(row["name"])
            outcome = outcomes[len(looks) - 1]
            return suite.Judgement(row, outcome, "", outcome == row["must"])
        looks = []
        with mock.patch.object(suite, "judge", judge):
            (found,) = suite.judge_all(BUILD, device, names=[name], jobs=2,
                                       untimed=device != "host")
        return found.outcome, len(looks)

    def test_what_another_row_disturbed_is_judged_again(self):
        self.assertEqual(self.looks("environment", "wrong"), ("wrong", 2))
        self.assertEqual(self.looks("environment", "environment"), ("environment", 2))
        self.assertEqual(self.looks("pass"), ("pass", 1))
        for name, timed in (("coarse", True), ("k_strides_for_q", False)):
            of = {"device": "host", "name": name}
            self.assertEqual(self.looks("improvement", "wrong", **of),
                             ("wrong", 2) if timed else ("improvement", 1))
            self.assertEqual(self.looks("wrong", **of), ("wrong", 1))


class Mutants(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # A sanitizer keeps what was freed, so that a leak cannot be told.
        part = suite.rest if LONG else suite.sample
        cls.judgements = [j for j in suite.judge_all(BUILD, "host", DRAW, of=part)
                          if not (SANITIZED and j.row["name"] in ("leak", "own_leak"))]
        for line in suite.summary(suite.outcomes_of(cls.judgements)):
            print("#", line, flush=True)

    def test_there_are_as_many_as_promised(self):
        rows = suite.rows("host") + suite.rows("cuda")
        self.assertGreaterEqual(sum(row["must"] == "wrong" for row in rows), 60)
        self.assertGreaterEqual(sum(row["like"][:1] == "C" for row in suite.rows("host")), 10)
        keys = [(row.get("device"), suite.key(row)) for row in rows]
        self.assertEqual(len(keys), len(set(keys)))

    def test_no_row_of_the_survey_is_forgotten(self):
        survey = [f"{kind}{i:02}" for kind, n in (("W", 33), ("R", 20), ("T", 15), ("C", 10))
                  for i in range(1, n + 1)]
        survey += [f"P{i:02}" for i in range(15)]
        for device in ("host", "cuda"):
            there = [row["like"] for row in suite.rows(device)]
            without = suite.absent(device)
            self.assertEqual([row for row in survey if row not in there + without], [], device)
            self.assertEqual([row for row in without if row in there], [], device)

    def test_every_fault_is_found(self):
        missed = [f"{suite.title(j.row)} on {j.row['case']}: {j.outcome}" for j in self.judgements
                  if j.row["must"] != "pass" and j.outcome != j.row["must"]]
        self.assertEqual(missed, [])

    def test_no_right_kernel_is_called_wrong(self):
        alarms = [f"{suite.title(j.row)} on {j.row['case']}: {j.message}" for j in self.judgements
                  if j.row["must"] == "pass" and j.outcome != "pass"]
        self.assertEqual(alarms, [])

    @unittest.skipIf(SANITIZED, "a sanitizer finds some faults before the gate does")
    def test_the_messages_name_the_fault(self):
        silent = [f"{suite.title(j.row)}: {j.message}" for j in self.judgements
                  if not j.right and j.outcome == j.row["must"]]
        self.assertEqual(silent, [])

    @unittest.skipIf(SANITIZED, "a sanitizer finds some faults before the gate does")
    def test_a_wrong_result_says_where_and_under_which_probe(self):
        for j in self.judgements:
            if "first bad element" in j.message:
                self.assertRegex(j.message, r"^(probe '[a-zA-Z0-9 \[\],)]+' on |"
                                            r"right when verified, wrong when timed: )")
                self.assertRegex(j.message, r"\[[0-9, ]+\], in row \d+ and tile \(\d+, \d+\): "
                                            r"expected \S+, got [^\s;]+(;|$)")

    def test_the_table_is_what_this_program_writes(self):
        """Where each row has the outcome that the tests above ask for."""
        self.assertEqual(suite.table_in_readme(),
                         suite.table([(row, row["must"]) for row in suite.rows("host")]),
                         "write tests/mutants/README.md anew: tests/mutants/suite.py --write")


if __name__ == "__main__":
    unittest.main()
