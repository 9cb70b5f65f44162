# SPDX-License-Identifier: Apache-2.0
"""What the gate's own kernels reach on the device, measured after the verdicts of a run."""
import json
import unittest

from harness import FIRST, SECOND, FakeRuns, read_file

RATES = {"read_gbps": 4000, "copy_gbps": 3500, "fp16_tflops": 800, "bf16_tflops": 810,
         "tf32_tflops": 400, "fp32_tflops": 60}
HERE = "here read 4000, copy 3500 GB/s; fp16 800, bf16 810, TF32 400, fp32 60 TFLOP/s"


class Ceilings(FakeRuns):

    def run_reports(self, *args, **fake):
        """Run document, and its text and Markdown with single spaces."""
        reports = {name: self.path("report." + name) for name in ("text", "markdown")}
        code, document, errors = self.run_gate(
            *args, *(f"--report={n}={p}" for n, p in reports.items()), **fake)
        self.assertEqual(code, 0, errors)
        said = []
        for path in reports.values():
            said.append(" ".join(read_file(path).replace("\\", "").replace("*", "").split()))
        return document, said

    def shares(self, document):
        return {name: [arm["timing"].get("measured_ceiling") for arm in case["arms"]]
                for name, case in self.cases(document).items()}

    def test_each_case_has_its_share_of_what_is_reached_here(self):
        """At the borders: half of the memory's, and a little more than the arithmetic's."""
        self.accept()
        told = {**RATES, "measured_in": "01234567-89ab-cdef-0123-456789abcdef"}  # it was this run
        document, (text, markdown) = self.run_reports(
            ceilings={"ceilings": told}, only=SECOND,
            timing={"tflops": 133.6, "gbps": 2000, "ceiling": 0.9})
        self.assertEqual(document["ceilings"], RATES)
        arithmetic = 133.6 / (400 / 3)  # fp32 may be made of three TF32 products
        shares = self.shares(document)
        self.assertAlmostEqual(shares[SECOND][0], arithmetic)
        self.assertAlmostEqual(shares[FIRST][0], 1 / (400 / 3))
        self.assertEqual(shares[SECOND][1], shares[FIRST][1], "the baseline has its own")
        self.assertIn(HERE, text)
        self.assertIn("rate ceiling here", text)
        self.assertIn("90.0 % 100.2 %", text)
        self.assertIn(HERE.replace("here", "here:", 1), markdown)
        self.assertIn("| 90.0 % / 100.2 % |", markdown)
        self.assertIn("| - / 0.8 % |", markdown)

    def test_what_keeps_them_from_being_measured_is_said(self):
        self.accept()
        for answer, why in (({"refuse": "environment", "message": "the read kernel is wrong"},
                             "the read kernel is wrong"),
                            ({"hello": "gate-worker/2"}, "the worker does not measure it"),
                            ({"ceilings": dict(RATES, read_gbps=-1)},
                             "the worker does not measure it"),
                            ({"ceilings": dict(RATES, read_gbps="fast")},
                             "the worker does not measure it")):
            document, said = self.run_reports(ceilings=answer)
            self.assertEqual(document["ceilings"], {"message": why})
            self.assertEqual(self.shares(document)[FIRST], [None, None])
            for text in said:
                self.assertIn(f"not measured here: {why}", text)
                self.assertNotIn("GB/s;", text)

    def test_a_worker_that_dies_of_it_costs_no_verdict(self):
        self.accept()
        document, _ = self.run_reports(ceilings="die")
        self.assertEqual(document["verdict"], "pass")
        self.assertRegex(document["ceilings"]["message"], "^the worker died: .*last words")

    def test_it_is_left_out_where_it_is_not_wanted_or_nothing_was_timed(self):
        self.accept()
        document, (text, _) = self.run_reports("--no-ceilings", ceilings={"ceilings": RATES})
        self.assertNotIn("ceilings", document)
        self.assertNotIn("here", text.split())
        _, document, _ = self.run_gate(ceilings={"ceilings": RATES}, act="die")
        self.assertEqual(document["verdict"], "wrong")
        self.assertNotIn("ceilings", document)

    def test_the_history_keeps_them(self):
        self.accept()
        self.run_reports(ceilings={"ceilings": RATES})
        done = self.gate("export", "--format", "ndjson", "--db", self.path("gate.db"))
        kept = [json.loads(line).get("ceilings", {}) for line in done.stdout.splitlines()]
        self.assertIn(RATES, kept)


if __name__ == "__main__":
    unittest.main()
