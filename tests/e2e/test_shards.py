# SPDX-License-Identifier: Apache-2.0
"""A suite in parts: by several runners and gate merge, and by all GPUs of one host."""

import json
import os
import subprocess
import unittest

from harness import GATE, FakeRuns, read_file, write_file

SIZES = (2, 3, 4, 5, 6, 7, 8)
IDS = [f"gemm/fp32/m{n}-n{n}-k{n}" for n in SIZES]


class Shards(FakeRuns):
    def setUp_suite(self):
        self.write_suite(SIZES)

    def write_suite(self, sizes):
        write_file(self.suite, json.dumps({"schema": "gate-suite/1", "name": "seven", "cases": [
            {"op": "gemm", "dtype": "fp32", "m": n, "n": n, "k": n} for n in sizes]}))

    def part(self, i, n, *args, expect=None, **fake):
        """Measures one; the path of its report."""
        path = self.path(f"part{i}.json")
        code, _, errors = self.run_gate("--shard", f"{i}/{n}", "--report", "json=" + path, *args,
                                        **fake)
        self.assertIn(code, (0, 1, 2, 3) if expect is None else (expect,), errors)
        return path

    def merge(self, *paths, status=0):
        done = self.gate("merge", "--json", "--db", self.path("merged.db"), *paths)
        self.assertEqual(done.returncode, status, done.stderr)
        return json.loads(done.stdout) if done.stdout else done.stderr

    def edit(self, path, change):
        run = json.loads(read_file(path))
        change(run)
        other = path + ".other"
        write_file(other, json.dumps(run))
        return other

    def runs_in(self, db):
        done = self.gate("export", "--db", self.path(db))
        return [json.loads(line) for line in done.stdout.splitlines()]

    def verdicts(self, document):
        return [(c["id"], c["verdict"]) for c in document["cases"]]

    # ---- gate merge ----

    def test_the_parts_are_the_whole(self):
        self.accept()
        slow = {"log_ratio": {IDS[4]: [0.1]}, "p50": {IDS[4]: 1e6}, "baseline_p50": 900000.0}
        code, whole, _ = self.run_gate(**slow)
        self.assertEqual(code, 1)
        parts = [self.part(i, 3, **slow) for i in (1, 2, 3)]
        merged = self.merge(*parts[::-1], status=1)
        self.assertEqual(self.verdicts(merged), self.verdicts(whole))
        self.assertEqual([c["id"] for c in merged["cases"]], IDS)
        self.assertEqual((merged["verdict"], merged["exit_code"]), ("regression", 1))
        self.assertNotIn("shard", merged)
        sizes = []
        for path in parts:
            sizes.append(len(json.loads(read_file(path))["cases"]))
        self.assertEqual(sorted(sizes), [2, 2, 3])
        self.assertEqual(merged["uuid"], self.merge(*parts, status=1)["uuid"])
        self.assertEqual([r["uuid"] for r in self.runs_in("merged.db")], [merged["uuid"]])
        # A part is no run of the suite.
        self.assertEqual(len(self.runs_in("gate.db")), 2)

    def test_what_one_gpu_reaches_is_not_told_of_another(self):
        """Each case keeps its share, which is of the GPU that it ran on."""
        self.accept()
        reached = [{"ceilings": {"read_gbps": 4000, "fp32_tflops": rate}} for rate in (100, 50)]
        parts = [self.part(i + 1, 2, ceilings=reached[i]) for i in range(2)]
        together = self.merge(*parts)
        self.assertEqual(together["ceilings"], reached[0]["ceilings"])
        other = self.edit(parts[1], lambda run: run["device"].update(uuid="GPU-other"))
        apart = self.merge(parts[0], other)
        self.assertNotIn("ceilings", apart)
        shares = {case["arms"][0]["timing"]["measured_ceiling"] for case in apart["cases"]}
        self.assertEqual(shares, {1 / 100, 1 / 50})
        self.assertEqual([c["arms"] for c in apart["cases"]],
                         [c["arms"] for c in together["cases"]])

    def test_one_part_is_all_of_it(self):
        self.accept()
        self.assertEqual([c["id"] for c in self.merge(self.part(1, 1))["cases"]], IDS)

    def test_a_case_that_left_the_suite_is_missed_once(self):
        self.accept()
        self.write_suite(SIZES[:-1])
        merged = self.merge(*[self.part(i, 2) for i in (1, 2)], status=3)
        self.assertEqual([c["id"] for c in merged["cases"]], IDS)
        self.assertEqual(merged["cases"][-1]["verdict"], "no-verdict")

    def test_nothing_may_be_missing(self):
        self.accept()
        parts = [self.part(i, 3) for i in (1, 2, 3)]
        self.assertIn("2/3", self.merge(parts[0], parts[2], status=3))
        self.assertIn("twice", self.merge(*parts, parts[1], status=3))
        before = read_file(parts[0])
        self.assertIn("which is a part", self.merge(*parts, "--report", "json=" + parts[0],
                                                    status=64))
        self.assertEqual(read_file(parts[0]), before)

        early = self.path("early.json")
        with open(early, "w", encoding="utf-8") as file:
            json.dump({"schema": "gate-error/1", "exit_code": 4, "message": "no GPU"}, file)
        self.assertIn("early.json' ended early: no GPU", self.merge(parts[0], early, status=4))

        def lose_a_case(run):
            run["cases"].pop()

        def take_a_place(run):
            run["shard"]["positions"][0] = run["shard"]["positions"][1]

        def leave(run):
            run["shard"]["positions"][0] = 9000
        for change in (lose_a_case, take_a_place, leave):
            self.merge(parts[0], self.edit(parts[1], change), parts[2], status=3)
        self.assertFalse(os.path.exists(self.path("merged.db")))

    def test_parts_of_different_runs_are_none(self):
        self.accept()
        parts = [self.part(i, 2) for i in (1, 2)]
        for status, change in (
                (64, lambda r: r.pop("shard")),
                (64, lambda r: r["git"].update(commit="0" * 40)),
                (64, lambda r: r["libraries"][0].update(sha256="0" * 64)),
                (64, lambda r: r["policy"].update(threshold=0.5)),
                (64, lambda r: r["shard"].update(count=3)),
                (64, lambda r: r["shard"].update(suite_sha256="0" * 64)),
                (4, lambda r: r["device"].update(model="another")),
                (4, lambda r: r.update(epoch="another/1/0")),
                (4, lambda r: r.update(contract="another")),
                (74, lambda r: r["shard"].update(cases=1e15)),
                (74, lambda r: r["shard"].update(index=0))):
            self.merge(parts[0], self.edit(parts[1], change), status=status)
        self.write_suite(SIZES[1:] + (9,))
        self.merge(parts[0], self.part(2, 2), status=64)

    def test_usage(self):
        for bad in ("0/2", "3/2", "1", "1/0", "a/b", "1/2x", "-1/2", "1/1001"):
            self.assertEqual(self.run_gate("--shard", bad)[0], 64, bad)
        self.assertIn("--report json", self.run_gate("--shard", "1/2")[2])
        self.assertIn("8 parts", self.run_gate("--shard", "1/8", "--report",
                                               "json=" + self.path("x"))[2])
        self.assertEqual(self.gate("merge").returncode, 64)

    # ---- gate run --device all ----

    def run_all(self, n, *args, **fake):
        """On n GPUs; also which of them each worker was on, with its cases."""
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, range(n)))
        self.addCleanup(os.environ.pop, "CUDA_VISIBLE_DEVICES", None)
        return self.run_gate("--device", "all", *args, **fake)

    def test_each_gpu_takes_a_part(self):
        self.accept()
        slow = {"log_ratio": {IDS[1]: [0.1]}, "p50": {IDS[1]: 1e6}, "baseline_p50": 900000.0}
        _, whole, _ = self.run_gate(**slow)
        markdown = self.path("all.md")
        code, document, errors = self.run_all(3, "--report", "markdown=" + markdown, **slow)
        self.assertEqual(code, 1, errors)
        self.assertEqual(self.verdicts(document), self.verdicts(whole))
        self.assertEqual(document["device"]["uuid"], "")
        self.assertEqual(len(self.runs_in("gate.db")), 3)
        self.assertEqual(read_file(markdown).count("| `gemm/"), len(IDS))
        commands = {c["reason"].split("--device ")[1].split()[0] for c in document["cases"]
                    if "--device " in c["reason"]}
        self.assertNotIn("all", commands)

    def test_parts_sample_a_case_no_longer_than_the_whole_does(self):
        """Each case would take more than is left for all of them beyond their eight rounds."""
        self.accept()
        widths = {name: 0.05 for name in IDS}

        def later(run, *args):
            path = self.path("budgets")
            code, _, errors = run(*args, "--budget", "1000", widths=widths, budgets=path)
            self.assertEqual(code, 0, errors)
            budgets = [ms for _, ms in map(json.loads, read_file(path).splitlines()) if ms != 1000]
            os.unlink(path)
            return sum(budgets) / len(budgets)
        self.assertAlmostEqual(later(self.run_all, 3) / later(self.run_gate), 1, delta=0.02)

    def test_the_baselines_of_all_parts_are_kept(self):
        code, document, errors = self.run_all(3, "--accept-new", library="old")
        self.assertEqual(code, 0, errors)
        self.assertEqual(errors.count("has changed: commit it"), 1, errors)
        done = self.gate("baseline", "show", "--baselines", self.path("baselines"), "--json")
        self.assertEqual(sorted(b["case"] for b in json.loads(done.stdout)), sorted(IDS))
        self.assertEqual({v for _, v in self.verdicts(document)}, {"pass"})

    def test_a_gpu_that_is_busy_is_named(self):
        code, document, errors = self.run_all(2, starts=self.path("starts"), starts_max=0)
        self.assertEqual((code, document), (4, None), errors)
        self.assertIn("cuda:0", errors)
        self.assertIn("busy", errors)

    def test_no_gpu_is_used_without_a_case(self):
        self.accept()
        for args, cases in ((["--filter", IDS[2]], IDS[2:3]), ([], IDS)):
            code, document, errors = self.run_all(8, *args)
            self.assertEqual(code, 0, errors)
            self.assertIn(f"{len(cases)} of 8 GPUs are used, one for each case", errors)
            self.assertEqual([c["id"] for c in document["cases"]], cases)
        code, _, errors = self.run_all(7)
        self.assertEqual((code, "GPUs are used" in errors), (0, False), errors)
        code, _, errors = self.run_all(2, "--filter", "nothing")
        self.assertEqual(code, 64)
        self.assertIn("matches 'nothing'", errors)

    def test_without_a_gpu(self):
        for n in (0, 33):
            report = self.path("early.json")
            code, _, errors = self.run_all(n, "--report", "json=" + report)
            self.assertEqual(code, 4)
            self.assertIn(f"this machine has {n} GPUs", errors)
            self.assertEqual(json.loads(read_file(report))["exit_code"], 4)
        self.assertEqual(subprocess.run([GATE, "run", "--device", "all", "--shard", "1/2"],
                                        capture_output=True, check=False).returncode, 64)


if __name__ == "__main__":
    unittest.main()
