# SPDX-License-Identifier: Apache-2.0
"""gate baseline: accept, show and log, on stored runs.

sanitized: gate rewrites baselines
"""

import json
import math
import os
import statistics
import unittest

from test_records import CASE, FAST, SLOW, Records, document


class Baseline(Records):
    def accept(self, *arguments, **options):
        return self.gate("baseline", "accept", CASE, *arguments, **options)

    def test_accept_show_log(self):
        self.import_runs(document(1, FAST))
        # The pairs of the run, whatever the baselines held before.
        self.assertIn(" on nvidia-h200: 23.98 us, run 5a3b1e00 (+9.30 % beside its baseline), in ",
                      self.accept("--reason", "first look", "--baselines", "baselines"))
        run = document(2, commit="2" * 40)
        measured = next(c for c in run["cases"] if c["id"] == CASE)["arms"][0]
        measured["verify"]["outputs"] = {"o": 1e-4, "lse": None}
        self.import_runs(run)
        out = json.loads(self.accept("--reason", "a new driver | costs this", "--json"))
        self.assertEqual((out["from_ns"], out["to_ns"]), (FAST, SLOW))

        baseline = json.loads(self.read("baselines/nvidia-h200.json"))
        self.assertEqual(baseline["cases"][CASE]["p50_ns"], SLOW)
        self.assertEqual(baseline["cases"][CASE]["commit"], "2" * 40)
        self.assertEqual(baseline["cases"][CASE]["library_sha256"], "a1" * 32)
        for name in ("rel_fro", "outputs"):
            self.assertEqual(baseline["cases"][CASE][name], measured["verify"][name])
        self.assertEqual(baseline["cases"][CASE]["epoch"], "580.159/13.0/700 W")
        self.assertAlmostEqual(baseline["cases"][CASE]["control_ns"] / 1002300, 1, places=3)
        self.assertGreater(baseline["cases"][CASE]["spread"], 0.0001)
        self.assertLess(baseline["cases"][CASE]["spread"], 0.001)
        self.assertEqual([x["reason"] for x in baseline["log"]],
                         ["first look", "a new driver | costs this"])
        self.assertTrue(baseline["log"][0]["author"])

        self.assertIn("26.21 us", self.gate("baseline", "show"))
        shown = json.loads(self.gate("baseline", "show", "--json", "--device-model", "nvidia-h200"))
        self.assertEqual([x["case"] for x in shown], [CASE])
        log = json.loads(self.gate("baseline", "log", "--json"))
        self.assertEqual([(x["from_ns"], x["to_ns"]) for x in log], [(None, FAST), (FAST, SLOW)])
        self.assertIn("+9.30 %", self.gate("baseline", "log"))

    def test_what_no_baseline_was_beside_has_no_change(self):
        run = document(1, FAST)
        next(c for c in run["cases"] if c["id"] == CASE)["mode"] = "number"
        self.import_runs(run)
        self.assertIn(": 23.98 us, run 5a3b1e00, in ", self.accept("--reason", "first look"))

    def test_p90_is_of_the_processes_of_p50(self):
        """A median of all processes may be below the p50 of those that confirmed."""
        run = document(1)
        case = next(c for c in run["cases"] if c["id"] == CASE)
        timing = case["arms"][0]["timing"]
        for process in case["processes"]:
            process["p50_ns"] = 1.01 * timing["p90_ns"]
        self.import_runs(run)
        self.accept("--reason", "r")
        entry = json.loads(self.read("baselines/nvidia-h200.json"))["cases"][CASE]
        self.assertGreater(entry["p50_ns"], timing["p90_ns"])
        self.assertAlmostEqual(entry["p90_ns"] / entry["p50_ns"],
                               timing["p90_ns"] / timing["p50_ns"], places=4)

    def test_the_log_fits_a_terminal(self):
        self.write(".gitconfig", "[user]\n\tname = A\n\temail = a@example\n")
        self.import_runs(document(1, FAST))
        reason = "a new layout of the cache costs this; " * 6 + "\x1b[31m"
        self.accept("--reason", reason)
        self.env["COLUMNS"] = "80"
        lines = self.gate("baseline", "log").splitlines()
        self.assertLessEqual(max(map(len, lines)), 80)
        self.assertIn(f"  {CASE} on nvidia-h200", lines[0])
        self.assertIn("accept: none -> 23.98 us, by ", lines[1])
        said = " ".join(line.strip() for line in lines[2:])
        self.assertEqual(said, reason.replace("\x1b", "\ufffd"))

    def test_without_git_s_user_the_author_is_the_job(self):
        self.import_runs(document(1))
        self.env.update(GITHUB_ACTIONS="", GITLAB_CI="true", CI_JOB_URL="https://gitlab.example/1")
        self.accept("--reason", "r")
        self.assertEqual(json.loads(self.gate("baseline", "log", "--json"))[0]["author"],
                         "https://gitlab.example/1")

    def test_author_is_git_s(self):
        self.write(".gitconfig", "[user]\n\tname = A. Uthor\n\temail = a@example\n")
        self.import_runs(document(1))
        self.accept("--reason", "r")
        self.assertEqual(json.loads(self.gate("baseline", "log", "--json"))[0]["author"],
                         "A. Uthor <a@example>")

    def test_refused(self):
        self.import_runs(document(1))
        for reason in ([], ["--reason", ""], ["--reason", " \t "]):
            self.assertIn("--reason", self.accept(*reason, expect=64))
        wrong = "linear_relu/tf32/m1024-n2048-k784"
        self.assertIn("no verified measurement",
                      self.gate("baseline", "accept", wrong, "--reason", "r", expect=64))
        self.gate("baseline", "accept", "gemm/none", "--reason", "r", expect=64)
        self.gate("baseline", "accept", "--reason", "r", expect=64)
        self.accept("--reason", "r" * 1001, expect=64)
        for arguments in ([], ["forget"], ["show", "x"], ["show", "--reason", "r"]):
            self.gate("baseline", *arguments, expect=64)
        self.assertEqual(os.listdir(self.path("baselines")), [])

    def test_a_baseline_is_what_the_confirmation_measured(self):
        run = document(1)
        case = next(c for c in run["cases"] if c["id"] == CASE)
        for process, p50_ns in zip(case["processes"], (5, 1, 2, 3, 4, 50, 20, 30, 10, 40)):
            process["p50_ns"] = p50_ns * 1000
            process["control_ns"] = 7000 if process["stage"] == "first" else 8000
        self.import_runs(run)
        self.accept("--reason", "r")
        baseline = json.loads(self.read("baselines/nvidia-h200.json"))["cases"][CASE]
        self.assertEqual((baseline["p50_ns"], baseline["p50_lo_ns"], baseline["p50_hi_ns"]),
                         (30000, 10000, 50000))
        self.assertEqual(baseline["control_ns"], 8000)

        case["processes"] = case["processes"][:5]
        run["uuid"] = document(2)["uuid"]
        run["time_ms"] += 1
        self.import_runs(run)
        self.accept("--reason", "r")
        baseline = json.loads(self.read("baselines/nvidia-h200.json"))["cases"][CASE]
        self.assertEqual((baseline["p50_ns"], baseline["control_ns"]), (3000, 7000))

    def test_a_baseline_tells_how_well_its_time_is_known(self):
        """As `gate run` keeps it: what a process knows its p50 within counts where it is more than
        the processes differ by."""
        for number, half_widths in enumerate(((0.04, 0.07, 0.05, 0.06, 0.03), (1e-9,) * 5)):
            run = document(number)
            case = next(c for c in run["cases"] if c["id"] == CASE)
            case["processes"] = case["processes"][:5]
            for process, half_width in zip(case["processes"], half_widths):
                process["half_width"] = half_width
            self.import_runs(run)
            self.accept("--reason", "r")
            spread = json.loads(self.read("baselines/nvidia-h200.json"))["cases"][CASE]["spread"]
            logs = [math.log(p["p50_ns"] / p["control_ns"]) for p in case["processes"]]
            known = max(statistics.stdev(logs), sorted(half_widths)[2])
            self.assertAlmostEqual(spread, known, places=6)

    def test_without_the_control_there_is_no_baseline(self):
        for number, faulty in enumerate((None, [], 0)):
            run = document(number)
            case = next(c for c in run["cases"] if c["id"] == CASE)
            if faulty is None:
                del case["processes"]
            elif faulty == 0:
                case["processes"][-1]["control_ns"] = 0
            else:
                case["processes"] = faulty
            self.import_runs(run)
            self.assertIn("no time of the control", self.accept("--reason", "r", expect=74))
        self.assertFalse(os.path.exists(self.path("baselines")))

    def test_measurements_that_do_not_count(self):
        """An older one is not taken in silence: somebody says that it is meant."""
        good = document(1, FAST)
        self.import_runs(good)
        for number, verdict in ((2, "wrong"), (3, "environment")):
            run = document(number)
            next(c for c in run["cases"] if c["id"] == CASE)["verdict"] = verdict
            self.import_runs(run)
            refused = self.accept("--reason", "r", expect=64)
            self.assertIn(f"'{verdict}'", refused)
            self.assertIn("--run UUID", refused)
        named = self.accept("--reason", "r", "--json", "--run", good["uuid"])
        self.assertEqual(json.loads(named)["to_ns"], FAST)
        self.assertIn("first `gate import`", self.accept("--reason", "r", "--run", "ffffffff",
                                                         expect=64))

    def test_a_run_of_another_machine_is_imported_first(self):
        """As the comment on a pull request names it in a clone that has not measured it."""
        run, advice = document(1, FAST), "first `gate import` its JSON report (gate-run.json"
        named = ("--reason", "r", "--run", run["uuid"])
        missing = self.accept(*named, expect=74)
        self.assertIn("no database", missing)
        self.assertIn(advice, missing)
        self.assertNotIn(advice, self.accept("--reason", "r", expect=74))
        self.import_runs(document(2))
        for case in (CASE, CASE.split("/", maxsplit=1)[0] + "/*"):
            self.assertIn(advice, self.gate("baseline", "accept", case, *named, expect=64))
        self.assertNotIn(advice, self.gate("baseline", "accept", "gemm/none", "--reason", "r",
                                           expect=64))
        self.import_runs(run)
        self.accept(*named)

    def test_a_newest_run_without_a_measurement(self):
        """It counts on its own device model, and however long ago it was."""
        good = document(1, FAST)
        self.import_runs(good)
        for number, verdict in ((2, "wrong"), (3, "environment"), (4, "no-verdict")):
            run = document(number)
            case = next(c for c in run["cases"] if c["id"] == CASE)
            case.update(verdict=verdict, arms=[], processes=[], ratio=None)
            other = document(number + 10, model="nvidia-a100")
            without = document(number + 20)
            without["cases"] = [c for c in without["cases"] if c["id"] != CASE]
            self.import_runs(run, other, without)
            refused = self.accept("--reason", "r", "--device-model", "nvidia-h200", expect=64)
            self.assertIn(f"run {run['uuid'][:8]} has no verified measurement of '{CASE}' that "
                          f"counts (its verdict is '{verdict}')", refused)
        self.accept("--reason", "r", "--device-model", "nvidia-a100")
        self.assertIn("23.98 us", self.accept("--reason", "r", "--run", good["uuid"],
                                              "--device-model", "nvidia-h200"))

    def test_a_pattern_of_cases(self):
        """All that one run measured, or nothing."""
        run = document(1, FAST)
        wrong = [c["id"] for c in run["cases"] if c["verdict"] == "wrong"]
        os.makedirs(self.path("baselines"))
        accept = ("baseline", "accept", "--reason", "r")
        self.import_runs(document(0), run)
        refused = self.gate(*accept, "*", expect=64)
        self.assertIn(f"'{wrong[0]}' that counts (its verdict is 'wrong')", refused)
        self.assertEqual(os.listdir(self.path("baselines")), [])

        self.assertIn("no verified measurement", self.gate(*accept, "conv/*", expect=64))
        op = CASE.split("/")[0]
        kept = {c["id"] for c in run["cases"] if c["id"].startswith(op)}
        self.assertEqual((len(kept), kept & set(wrong)), (5, set()))
        taken = json.loads(self.gate(*accept, f"{op}/*", "--json"))
        self.assertEqual({x["case"] for x in taken}, kept)
        self.assertEqual({x["run_uuid"] for x in taken}, {run["uuid"]})
        baseline = json.loads(self.read("baselines/nvidia-h200.json"))
        self.assertEqual(set(baseline["cases"]), kept)
        self.assertEqual(baseline["cases"][CASE]["p50_ns"], FAST)
        older = self.gate(*accept, CASE[:-1] + "*", "--run", document(0)["uuid"])
        self.assertIn(": 26.21 us, run 5a3b1e00 (+9.30 % beside its baseline), in ", older)

        self.import_runs(document(2, model="nvidia-a100"))
        for other in (["--run", run["uuid"]], []):
            self.gate(*accept, f"{op}/*", "--device-model",
                      "nvidia-a100" if other else "nvidia-t4", *other, expect=64)
        self.gate(*accept, f"{op}/*", "--device-model", "nvidia-h200")
        self.assertEqual(os.listdir(self.path("baselines")), ["nvidia-h200.json"])

    def test_a_run_of_a_changed_tree(self):
        run = document(1)
        run["git"]["dirty"] = True
        self.import_runs(run)
        self.assertIn("uncommitted changes", self.accept("--reason", "r", expect=64))
        self.accept("--reason", "r", "--allow-dirty")
        self.assertIn(run["git"]["commit"][:12] + "+", self.gate("baseline", "show"))
        self.assertIn(run["git"]["commit"][:12] + "+", self.gate("history", CASE))
        self.assertIn(run["git"]["commit"][:12] + "+", self.gate("leaderboard"))

    def test_several_device_models(self):
        self.import_runs(document(1), document(2, model="nvidia-a100"))
        self.assertIn("--device-model", self.accept("--reason", "r", expect=64))
        self.accept("--reason", "r", "--device-model", "nvidia-a100")
        self.assertEqual(os.listdir(self.path("baselines")), ["nvidia-a100.json"])

    def test_another_contract_is_refused(self):
        self.import_runs(document(1))
        self.accept("--reason", "r")
        before = self.read("baselines/nvidia-h200.json")
        other = document(2)
        other["contract"] = "graph-replay-v2"
        self.import_runs(other)
        self.assertIn("of contract 'graph-replay-v1'", self.accept("--reason", "r", expect=64))
        self.assertEqual(self.read("baselines/nvidia-h200.json"), before)

    def test_broken_file(self):
        self.import_runs(document(1))
        self.accept("--reason", "r")
        text = self.read("baselines/nvidia-h200.json")
        self.write("baselines/nvidia-h200.json", text[:len(text) // 2])
        for arguments in (["show"], ["log"], ["accept", CASE, "--reason", "r"]):
            self.assertIn("baselines/nvidia-h200.json:6:",
                          self.gate("baseline", *arguments, expect=74))
        self.write("baselines/nvidia-h200.json", text.replace("nvidia-h200", "nvidia-a100"))
        self.assertIn("these baselines are of 'nvidia-a100'",
                      self.gate("baseline", "show", expect=4))

    def test_an_empty_folder(self):
        os.mkdir(self.path("baselines"))
        for command in ("show", "log"):
            self.assertEqual(self.gate("baseline", command),
                             "no baseline is stored; gate run --accept-new stores the first\n")
            self.assertEqual(self.gate("baseline", command, "--json"), "[]\n")
        self.assertIn("no baseline of device model nvidia-a100 is stored",
                      self.gate("baseline", "show", "--device-model", "nvidia-a100"))

    def test_no_folder(self):
        self.import_runs(document(1))
        self.assertIn("--accept-new makes it", self.gate("baseline", "show", expect=74))
        self.gate("baseline", "accept", CASE, "--reason", "r", "--baselines", "no/such", expect=74)
        self.accept("--reason", "r")
        self.assertIn(CASE, self.gate("baseline", "show"))


if __name__ == "__main__":
    unittest.main()
