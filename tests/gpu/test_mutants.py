# SPDX-License-Identifier: Apache-2.0
"""The gate against its own suite of broken and unusual kernels, on a GPU."""
import os
import unittest

from mutants import suite

BUILD = os.environ["KERNEL_GATE_BUILD"]


class Mutants(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.judgements = suite.judge_all(BUILD, "cuda:0")
        for line in suite.summary(suite.outcomes_of(cls.judgements)):
            print("#", line, flush=True)

    def test_every_fault_is_found(self):
        missed = [f"{suite.title(j.row)} on {j.row['case']}: {j.outcome}" for j in self.judgements
                  if j.row["must"] != "pass" and j.outcome != j.row["must"]]
        self.assertEqual(missed, [])

    def test_no_right_kernel_is_called_wrong(self):
        alarms = [f"{suite.title(j.row)} on {j.row['case']}: {j.message}" for j in self.judgements
                  if j.row["must"] == "pass" and j.outcome != "pass"]
        self.assertEqual(alarms, [])

    def test_the_messages_name_the_fault(self):
        silent = [f"{suite.title(j.row)}: {j.message}" for j in self.judgements
                  if not j.right and j.outcome == j.row["must"]]
        self.assertEqual(silent, [], "\n".join(silent))


if __name__ == "__main__":
    unittest.main()
