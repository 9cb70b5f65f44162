# SPDX-License-Identifier: Apache-2.0
"""Which machine a run was on, and what the runs of a machine say of it."""

import copy
import json
import math
import re
import subprocess
import unittest
import uuid
from urllib.parse import quote

from api_history import History
from harness import GPU, PATIENCE, SERVER

HOST = "pod-\u00fc 7"


class Machines(History):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        done = subprocess.run([SERVER, "token", "create", "--db", cls.db, "--name", "ci",
                               "--scope", "ingest"], check=True, stdout=subprocess.PIPE,
                              timeout=PATIENCE)
        cls.token = re.search(r"kg_\w+", done.stdout.decode()).group()
        runs = cls.server.json(f"/api/v1/runs?device={GPU}&limit=1")["runs"]
        cls.newest = cls.server.json(f"/api/v1/runs/{runs[0]['uuid']}")
        cls.newest["cases"] = [c for c in cls.newest["cases"] if c["verdict"] == "pass"
                               and c.get("ratio") and c["ratio"]["hi"] < 1.02]
        cls.newest.pop("calibration", None)
        cls.newest["verdict"], cls.newest["exit_code"] = "pass", 0
        # Three more GPUs with four runs each; the control of the third takes 5 % longer.
        for gpu in range(3):
            for i in range(4):
                cls.post(f"GPU-{gpu}", f"ci@{HOST}-{gpu}-{i}", i, 1.05 if gpu == 2 else 1)

    @classmethod
    def post(cls, gpu, who, index, factor, model=GPU):
        run = copy.deepcopy(cls.newest)
        run["uuid"], run["who"], run["device"]["uuid"] = str(uuid.uuid4()), who, gpu
        run["device"]["model"] = model
        run["time_ms"] += (index + 1) * 60000
        run["control_drift"] = 0.001 * max(index, 0)
        for case in run["cases"]:
            for process in case["processes"]:
                process["control_ns"] *= factor
        body = json.dumps(run).encode()
        response = cls.server.send("/api/v1/runs", body, cls.token)
        if response.status != 201:
            raise AssertionError(response.bytes)

    def test_a_run_knows_its_machine(self):
        runs = self.get("runs?machine=GPU-2")["runs"]
        self.assertEqual([(r["gpu"], r["machine"], r["host"]) for r in runs],
                         [("GPU-2", "GPU-2", f"{HOST}-2-{i}") for i in (3, 2, 1, 0)])
        self.assertEqual([r["control_drift"] for r in runs], [0.003, 0.002, 0.001, 0])
        # By the host, too; and beside other filters.
        self.assertEqual(self.get(f"runs?machine={quote(HOST + '-2-3')}")["runs"], runs[:1])
        self.assertEqual(self.get(f"runs?machine=GPU-2&device={GPU}&limit=2")["runs"], runs[:2])
        self.assertEqual(self.get("runs?machine=GPU-2&device=none")["runs"], [])
        self.assertEqual(self.get("runs?machine=none")["runs"], [])
        self.assertEqual(self.pages("runs?machine=GPU-2", "runs", 2), runs)
        for bad in ("", "x" * 401):
            for path in ("runs", "calibrations"):
                self.assert_problem(self.server.get(f"/api/v1/{path}?machine={bad}"), 400)

    def test_the_means_of_a_run_are_those_of_its_cases(self):
        run = self.get("runs?machine=GPU-0")["runs"][0]
        cases = [c for c in self.pages(f"cases?device={GPU}", "cases", 100)
                 if c["peer_ratio"] and c["id"] in {c["id"] for c in self.newest["cases"]}]
        self.assertTrue(cases)
        self.assertEqual(run["vendor_cases"], len(cases))
        self.assertAlmostEqual(run["vendor_ratio"], math.exp(
            sum(math.log(c["peer_ratio"]) for c in cases) / len(cases)), 6)
        slow = self.get("runs?machine=GPU-2")["runs"][0]
        self.assertAlmostEqual(slow["control_ns"] / run["control_ns"], 1.05, 6)

    def test_a_device_that_is_silent_is_told_everywhere(self):
        for i in range(6):
            self.post("", f"ci@{HOST}", i - 100000, 1, "silent-before")
        silences = self.get("silences")["silences"]
        told = {(s["kind"], s["device"]): s for s in silences}
        runs = [r for r in self.get("runs?branch=main&limit=500")["runs"] if r["device"] != GPU]
        silent = told["device", runs[0]["device"]]
        self.assertEqual((silent["run"], silent["commit"]), (runs[0]["uuid"], runs[0]["commit"]))
        self.assertGreaterEqual(silent["runs"], 12)
        self.assertNotIn(("device", GPU), told)
        feed = self.server.get("/feed.atom").bytes.decode()
        self.assertIn(f"No data of {silent['device']} since commit {silent['commit'][:12]}", feed)
        self.assertEqual(feed.count('term="silence"'), len(silences))
        self.assertIn(f"\ngate_silences {len(silences)}\n",
                      self.server.get("/metrics").bytes.decode())
        self.assertEqual(self.rows("silences"), silences)
        self.assertEqual(silences[-1]["device"], "silent-before")
        self.assertEqual(self.pages("silences", "silences", 1), silences)

    def test_of_runs_with_the_same_time_the_first_leads_alone(self):
        for case in self.newest["cases"]:
            for arm in case["arms"]:
                for name, value in arm["timing"].items():
                    if name.endswith("_ns") and isinstance(value, (int, float)):
                        arm["timing"][name] = value / 2
        for index in (10, 10, 20):
            self.post("GPU-0", f"ci@{HOST}", index, 1)
        leaders = self.get("leaderboard")["leaders"]
        self.assertEqual(max(row["time_ms"] for row in leaders if row["device"] == GPU),
                         self.newest["time_ms"] + 11 * 60000)
        names = [(row["case"], row["device"], row["provider"]) for row in leaders]
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(self.pages("leaderboard", "leaders", 3), leaders)

    def test_machines(self):
        machines = {m["machine"]: m for m in self.get(f"machines?device={GPU}")["machines"]}
        self.assertLessEqual({"GPU-0", "GPU-1", "GPU-2"}, set(machines))
        self.assertEqual([m for m in machines if machines[m]["is_off"]], ["GPU-2"])
        self.assertAlmostEqual(machines["GPU-2"]["off"], 0.05, 2)
        self.assertEqual((machines["GPU-2"]["runs"], machines["GPU-2"]["host"]),
                         (4, f"{HOST}-2-3"))
        self.assertAlmostEqual(machines["GPU-0"]["control_drift"], 0.0015)
        counts = {"no-verdict": 0, "pass": 0}
        for run in self.get("runs?machine=GPU-0")["runs"]:
            for name in counts:
                counts[name] += run["verdicts"][name]
        self.assertEqual(machines["GPU-0"]["no_verdict_rate"],
                         counts["no-verdict"] / machines["GPU-0"]["cases"])
        self.assertEqual(self.rows("machines?device=none"), [])
        self.assertEqual(len(self.rows("machines")), len(self.get("machines")["machines"]))

    def test_calibrations_of_a_machine(self):
        every = self.pages("calibrations", "calibrations", 5)
        self.assertTrue(every)
        names = {c["machine"] for c in every}
        self.assertNotIn(None, names)
        machines = {(m["device"], m["machine"]): m for m in self.get("machines")["machines"]}
        for name in names:
            of = self.get(f"calibrations?machine={quote(name)}")["calibrations"]
            self.assertEqual(of, [c for c in every if c["machine"] == name])
            newest = machines[of[0]["device"], name]
            self.assertEqual((newest["calibration"], newest["calibrated_ms"]),
                             (of[0]["run"], of[0]["time_ms"]))
            self.assertEqual(newest["resolved"], sum(c["resolved"] for c in of[0]["cases"]))
            self.assertEqual(newest["mde"], max(c["mde"] for c in of[0]["cases"]))


if __name__ == "__main__":
    unittest.main()
