# SPDX-License-Identifier: Apache-2.0
"""gate run --counters: what Nsight Compute counted of both sides of a regression."""
import json
import os
import tempfile
import unittest

from harness import FIRST, ROOT, SECOND, FakeRuns, Server, read_file, skip_if_starved

CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"
INSTRUCTIONS = "smsp__inst_executed.sum"
OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
DRAM = "dram__bytes_read.sum"
L2 = "lts__t_bytes.sum"
BARRIERS = "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio"
TENSOR = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"
SLOW = {"p50": {SECOND: 1100.0}}


class Counters(FakeRuns):

    def setUp(self):
        super().setUp()
        os.mkdir(self.path("bin"))
        os.symlink(os.path.join(ROOT, "tests", "e2e", "fake_ncu.py"), self.path("bin/ncu"))
        self.accept()

    def run_counters(self, *args, ncu, **fake):
        """Of the regression; and what the reports say of it."""
        reports = {name: self.path("report." + name) for name in ("text", "markdown")}
        before = dict(os.environ)
        os.environ.update(FAKE_NCU=json.dumps(ncu),
                          PATH=self.path("bin") + ":" + os.environ["PATH"])
        try:
            code, document, errors = self.run_gate(
                "--counters", *args, *(f"--report={n}={p}" for n, p in reports.items()),
                **(fake or SLOW))
        finally:
            os.environ.clear()
            os.environ.update(before)
        skip_if_starved(self, document["cases"])
        self.assertEqual(code, 1, errors)
        said = []
        for path in reports.values():
            said.append(" ".join(read_file(path).replace("\\", "").replace("&gt;", ">").split()))
        red = {name for name, case in self.cases(document).items() if "counters" in case}
        self.assertEqual(red, set((fake or SLOW)["p50"]))
        return self.cases(document)[SECOND]["counters"], said

    def test_what_moved_most_comes_first_with_its_meaning(self):
        old = {CONFLICTS: "0", INSTRUCTIONS: "1,000,000", OCCUPANCY: "60.5", DRAM: "50,000,000"}
        new = dict(old, **{CONFLICTS: "12,600,000", OCCUPANCY: "40.25", DRAM: "51,000,000"})
        found, said = self.run_counters(ncu={"kernels": {"new": [["k", new]], "old": [["k", old]]}})
        self.assertEqual(found["kernels"], ["k"])
        first, second, third = found["moved"][:3]
        self.assertEqual((first["counter"], first["candidate"], first["baseline"]),
                         ("bank_conflicts", 12600000, 0))
        self.assertEqual((second["counter"], second["candidate"], second["baseline"]),
                         ("occupancy", 40.25, 60.5))
        self.assertEqual((third["counter"], third["candidate"]), ("dram_bytes", 51000001))
        for text in said:
            self.assertIn("counter bank conflicts 0 -> 12.6 million: extra turns of shared memory",
                          text)
            self.assertLess(text.index("bank conflicts"), text.index("occupancy 60.5 % -> 40.2 %"))
            self.assertNotIn("bytes of memory", text)  # 2 % is nothing

    def test_what_became_better_comes_after_what_became_worse(self):
        """As where a kernel lost its multicast, on an H200: it waits for its loads, and therefore
        less at barriers."""
        old = {BARRIERS: "1.87", L2: "47,120,000", TENSOR: "49.86", OCCUPANCY: "13.44"}
        new = {BARRIERS: "0.7", L2: "64,150,000", TENSOR: "42.96", OCCUPANCY: "19.9"}
        found, said = self.run_counters(ncu={"kernels": {"new": [["k", new]], "old": [["k", old]]}})
        names = [m["counter"] for m in found["moved"] if m["moved"] > 0.05]
        self.assertEqual(names, ["l2_bytes", "tensor", "stall_barrier", "occupancy"])
        for text in said:
            self.assertLess(text.index("bytes of the L2"), text.index("waiting at barriers"))

    def test_kernels_are_compared_with_those_of_their_name(self):
        found, said = self.run_counters(ncu={"kernels": {
            "new": [["twice", {CONFLICTS: 5}], ["extra", {}], ["twice", {CONFLICTS: 900}]],
            "old": [["twice", {CONFLICTS: 5}], ["twice", {CONFLICTS: 7}], ["gone", {}]]}})
        self.assertEqual(found["kernels"], ["twice", "twice"])
        self.assertEqual([found["moved"][0][k] for k in ("kernel", "candidate", "baseline")],
                         [1, 900, 7])
        for text in said:
            self.assertIn("bank conflicts 7 -> 900 in twice:", text)

    def test_each_case_has_the_counters_of_its_own_launches(self):
        mark = ["_Z23kernel_gate_case_beginsv", {}]
        kernels = {"new": [["k", {CONFLICTS: 70}], mark, ["k", {CONFLICTS: 900}]],
                   "old": [["k", {CONFLICTS: 5}], mark, ["k", {CONFLICTS: 6}]]}
        found, _ = self.run_counters(ncu={"kernels": kernels}, p50={FIRST: 1100.0, SECOND: 1100.0})
        self.assertEqual([found["moved"][0][k] for k in ("candidate", "baseline")], [900, 6])

    def test_a_case_without_a_kernel_says_so(self):
        found, _ = self.run_counters(ncu={"kernels": {"new": [["k", {}]], "old": []}})
        self.assertIn("ncu saw no kernel of it", found["message"])

    def test_a_case_that_kills_its_process_does_not_cost_the_others_theirs(self):
        kernels = {"new": [["k", {CONFLICTS: 70}]], "old": [["k", {CONFLICTS: 5}]]}
        found, _ = self.run_counters(ncu={"kernels": kernels}, act="die", only=FIRST,
                                     act_when="profile", p50={FIRST: 1100.0, SECOND: 1100.0})
        self.assertEqual([found["moved"][0][k] for k in ("candidate", "baseline")], [70, 5])

    def test_what_cannot_be_had_is_said(self):
        kernels = {"new": [["k", {}]], "old": [["k", {}]]}
        for act, says in (("forbidden", "only an administrator"),
                          ("error", "ncu failed: Failed to find metric"),
                          ("silent", "ncu wrote no table"), ("rubbish", "bytes that are not text"),
                          ("cut", "cannot be read, number 2"), ("flood", "larger than"),
                          ("dies", "the worker died"), ("hang", "ncu wrote no table")):
            with self.subTest(act):
                found, said = self.run_counters("--timeout", "2",
                                                ncu={"act": act, "kernels": kernels})
                self.assertIn(says, found["message"])
                self.assertEqual((found["kernels"], found["moved"]), ([], []))
                for text in said:
                    self.assertIn("counter none: ", text)
                    self.assertNotIn("\x1b", text)

    def test_without_ncu(self):
        os.remove(self.path("bin/ncu"))
        found, _ = self.run_counters(ncu={})
        if "message" not in found or "neither on PATH" not in found["message"]:
            self.skipTest("an ncu is installed here")

    def test_a_number_in_a_wrong_unit_is_not_known(self):
        found, _ = self.run_counters(ncu={
            "units": {OCCUPANCY: "warp", DRAM: "Mbyte", INSTRUCTIONS: "%"},
            "kernels": {"new": [["k", {DRAM: "2.5"}]], "old": [["k", {DRAM: "n/a"}]]}})
        self.assertEqual({"occupancy", "dram_bytes", "instructions"} &
                         {m["counter"] for m in found["moved"]}, set())
        found, _ = self.run_counters(ncu={
            "units": {DRAM: "Mbyte"},
            "kernels": {"new": [["k", {DRAM: "2.5"}]], "old": [["k", {DRAM: "1"}]]}})
        moved = {m["counter"]: m for m in found["moved"]}
        self.assertEqual(moved["dram_bytes"]["candidate"], 2500001)

    def test_nobody_is_profiled_who_is_not_red_or_was_not_asked_for(self):
        ncu = json.dumps({"act": "dies"})
        with_ncu = self.path("bin") + ":" + os.environ["PATH"]
        before = dict(os.environ)
        os.environ.update(FAKE_NCU=ncu, PATH=with_ncu)
        try:
            _, document, _ = self.run_gate("--counters")
            _, red, _ = self.run_gate(**SLOW)
        finally:
            os.environ.clear()
            os.environ.update(before)
        for case in document["cases"] + red["cases"]:
            self.assertNotIn("counters", case)


class Words(unittest.TestCase):

    def test_the_server_tells_what_each_counter_means(self):
        schema = json.loads(read_file(os.path.join(ROOT, "gate", "formats", "run.schema.json")))
        with tempfile.TemporaryDirectory() as folder:
            server = Server(os.path.join(folder, "gate.db"))
            try:
                counters = server.json("/api/v1/counters")["counters"]
            finally:
                server.stop()
        self.assertEqual([c["name"] for c in counters],
                         schema["$defs"]["counter"]["properties"]["counter"]["enum"])
        by_name = {c["name"]: c for c in counters}
        self.assertEqual(by_name["l2_bytes"]["unit"], "bytes")
        self.assertEqual(by_name["bank_conflicts"], {
            "name": "bank_conflicts", "label": "bank conflicts", "unit": "count", "meaning":
            "extra turns of shared memory, since threads of a warp want one bank at once"})
        self.assertTrue(all(c["label"] and c["meaning"] for c in counters))


if __name__ == "__main__":
    unittest.main()
