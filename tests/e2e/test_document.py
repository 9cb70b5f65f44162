# SPDX-License-Identifier: Apache-2.0
"""The published schemas, by an independent validator: run documents as `gate` writes them fit, and
the gate's readers take what the schemas allow and nothing else."""
import copy
import itertools
import json
import os
import subprocess
import unittest

try:
    import jsonschema
except ImportError:
    jsonschema = None

from harness import BUILD, ROOT, SECOND, FakeRuns, read_file



def validator(name):
    path = os.path.join(ROOT, "gate", "formats", f"{name}.schema.json")
    schema = json.loads(read_file(path))
    del schema["$id"]  # against which older versions would resolve "#/..."
    return jsonschema.Draft202012Validator(schema)


@unittest.skipUnless(jsonschema, "no jsonschema for this Python")
class Written(FakeRuns):
    def assert_fits(self, document):
        faults = validator("run").iter_errors(document)
        self.assertEqual([f"{list(fault.path)}: {fault.message}" for fault in faults], [])

    def test_runs(self):
        """Without a baseline, passed, suspected and confirmed, by the number alone, and wrong."""
        runs = [self.run_gate(library="old")[1], self.run_gate("--accept-new", library="old")[1],
                self.run_gate()[1], self.run_gate(p50={SECOND: 1100.0})[1],
                self.run_gate(act="die", only=SECOND)[1]]
        os.rename(self.path("cache"), self.path("gone"))
        runs.append(self.run_gate()[1])
        for document in runs:
            self.assert_fits(document)
        self.assertEqual([document["verdict"] for document in runs],
                         ["no-verdict", "pass", "pass", "regression", "wrong", "no-verdict"])

    def test_what_is_no_document(self):
        """The validator can say no."""
        document = self.run_gate()[1]
        document["cases"][0]["arms"][0]["timing"]["p50_ns"] = 0
        with self.assertRaises(AssertionError):
            self.assert_fits(document)


COMMIT, SHA256 = "0123456789" * 4, "0123456789abcdef" * 4
UUID = "01234567-89ab-cdef-0123-456789abcdef"

OTHERS = (None, True, -1, 0.5, 2e9, 1e16, 1e-9, "", "X y", [1], {}, COMMIT, "no-verdict", "a@b")


def full_run():
    """A run that has every member that there is."""
    run = json.loads(read_file(os.path.join(ROOT, "tests", "data", "run-h200.json")))
    run["cases"] = [run["cases"][2]]
    case = run["cases"][0]
    case["processes"] = case["processes"][:1]
    case["arms"] = case["arms"][1:2]
    arm = case["arms"][0]
    run["git"].update(base="main", change="7", job="https://ci.example/1")
    run.update(thinned_ms=5, users_checked=True, launch_order_checked=False,
               absent=[{"provider": "cudnn", "reason": "not here"}],
               calibration={"processes": 5, "cases": [{
                   "id": "gemm/a", "mde": 0.01, "resolved": True, "injected": [{
                       "share": 0.01, "log_ratio": [0.1, -0.2], "red": 1, "pass": 2,
                       "no_verdict": 3, "decisions": 6}]}],
                            "incomplete": [{"id": "gemm/b", "processes": 1, "wanted": 5,
                                            "verdict": "wrong", "reason": "it hung"}]})
    case.update(op_sha256=SHA256, threshold=0.05, error_ratio=1.1, same_code=False)
    case["baseline"].update(made_by="trend", again_ns=1000.5, off=False, library_sha256=SHA256)
    case["processes"][0].update(half_width=0.001, log_ratio_calls=0.25, log_ratio_fresh=0)
    case["ratio_calls"] = {"value": 1.28, "lo": 1.2, "hi": 1.3}
    run["policy"].update(host_threshold=0.2, base="main")
    arm["verify"].update(outputs={"dx": 1e-4, "dw": None, "db": 0}, checks=3, skipped=10, refused=1,
                         not_served=2, not_guarded=3, too_large=4, why_not_guarded="no memory",
                         not_declared="values", own_shape_only=True, vendor="cublas",
                         vendor_ratio=1.5)
    arm["timing"].update(power_w={"before": 1, "after": None}, temperature_c=None, same_code=True,
                         samples_ns="AAAA", spread=0.001, processes=5, p10_ns=1.5, registers=1,
                         shared_bytes=0, spill_bytes=0, code_sha256=SHA256, ratio_cycles=1.1,
                         ratio_p90=0.9, throttled_power_ns=0, throttled_thermal_ns=1,
                         call_ns=2500.5, ratio_calls=1.28, ratio_fresh=1.01)
    return run


SUITE = {"schema": "gate-suite/1", "name": "s", "description": "of all keys", "cases": [
    {"op": "gemm", "dtype": "fp16", "m": 1, "n": 2, "k": 3, "b": 4, "h": 5, "kv_heads": 6, "s": 7,
     "sq": 8, "d": 9, "causal": True, "scale": 0.5, "threshold": 0.02,
     "inputs": {"a": [1, 0.5]}, "expect": {"c": [-1]}}]}

BASELINE = {"schema": "gate-baseline/1", "device_model": "host", "contract": "c", "cases": {
    "gemm/a": {
        "p50_ns": 1, "p50_lo_ns": 1, "p50_hi_ns": 1, "p90_ns": 1, "control_ns": 1, "spread": 0,
        "kernel": "k", "commit": "", "run_uuid": UUID, "time_ms": 1, "epoch": "",
        "library_sha256": SHA256, "code_sha256": SHA256,
        "op_sha256": SHA256, "dirty": True, "rel_fro": 0,
        "outputs": {"dx": 0, "dw": 1, "db": 2}, "vendor": "cublas", "vendor_ratio": 1}},
    "trends": {"gemm/a": [{"time_ms": 1, "run_uuid": UUID, "commit": COMMIT, "ratio": 0.99,
                           "lo": 0.98, "hi": 1, "again": None}]},
    "log": [{"time_ms": 1, "case": "gemm/a", "action": "accept", "from_ns": None, "to_ns": 1,
             "reason": "r", "author": "a", "commit": "", "run_uuid": UUID}]}

CONFIG = {"schema": "gate-config/1", "library": "l.so", "build": "make", "suite": "s.json",
          "baselines": "b", "providers": ["p.so"], "main": "main", "database": "gate.db",
          "host_threshold": "20%"}

OP = {"schema": "gate-op/1", "name": "a", "description": "d", "reference": "r.so",
      "sizes": [{"name": "n", "kind": "length", "least": 1, "most": 9},
                {"name": "d", "kind": "given", "values": [64, 128]}],
      "constraints": ["n % 2 == 0"],
      "parameter": {"name": "eps", "usual": 1, "least": 0, "most": 2},
      "flag": {"name": "f", "yes": "y", "no": "n"},
      "tensors": [{"name": "x", "role": "in", "axes": ["n"], "dtype": "fp32", "fill": "uniform",
                   "least": 0, "most": 1, "value": 3},
                  {"name": "y", "role": "out", "axes": ["n"], "whole": ["n"]}],
      "flops": "n", "id": ["n", "d"], "multilinear": False, "variants": {"v": {"y": "bf16"}},
      "error_limits": {"fp16": 0.1, "bf16": 0.1, "fp32": 0.1, "tf32": 0.1}}


BUNDLE = {"schema": "gate-bundle/1", "provider": "p", "version": "1", "kernels": [
    {"op": "a", "name": "b", "dtypes": ["fp16"], "when": ["n > 1"], "workspace": "1",
     "nondeterministic": True, "launches": [
         {"code": "a", "entry": "b", "grid": ["n"], "cluster": ["1"], "block": ["1"],
          "shared": "0", "arguments": [{"type": "pointer", "value": "0"}]}]}]}


def places(value):
    """Each container in a document with each of its keys."""
    keys = value if isinstance(value, dict) else ()
    if isinstance(value, list):
        keys = range(len(value))
    for key in keys:
        yield value, key
        yield from places(value[key])


def mutants(document, step):
    """With another value in each place (every step-th of them, by turns); and with each member
    away, or under another key, or under many."""
    for i, (parent, key) in enumerate(list(places(document))):
        own = parent[key]
        for other in OTHERS[i % step::step]:
            parent[key] = other
            yield document
        parent[key] = own
        if isinstance(parent, dict):
            members = dict(parent)
            del parent[key]
            yield document
            for keys in (["Misspelt"], ["m" * 65], [f"m{i}" for i in range(13)]):
                parent.update(dict.fromkeys(keys, own))
                yield document
                for other in keys:
                    del parent[other]
            parent.clear()
            parent.update(members)


@unittest.skipUnless(jsonschema, "no jsonschema for this Python")
class Read(unittest.TestCase):
    def assert_agrees(self, name, document, least, step=1):
        check = validator(name)
        self.assertEqual([str(e) for e in check.iter_errors(document)], [])
        texts, faults = [], []
        for mutant in itertools.chain([document], mutants(document, step)):
            texts.append(json.dumps(mutant))
            faults.append([list(map(str, e.absolute_path)) for e in check.iter_errors(mutant)])
        said = subprocess.run([os.path.join(BUILD, "tests", "tools", "check_file"), name],
                              input="\n".join(texts) + "\n", capture_output=True, text=True,
                              check=True).stdout.splitlines()
        self.assertEqual(len(said), len(texts))
        self.assertEqual(said[0], "ok")
        for text, paths, answer in zip(texts, faults, said):
            if not paths or answer == "ok":
                self.assertEqual((paths, answer), ([], "ok"), text)
                continue
            at = [part.replace("~1", "/").replace("~0", "~")
                  for part in answer.split(" ")[0].split("/")[1:] if part]
            self.assertTrue(any(at[:len(path)] == path for path in paths), (answer, paths, text))
        self.assertGreater(sum(answer == "ok" for answer in said), least)
        self.assertGreater(len(said), 5 * least)

    def test_runs(self):
        self.assert_agrees("run", full_run(), 80, step=4)

    def test_suites(self):
        self.assert_agrees("suite", copy.deepcopy(SUITE), 20)

    def test_baselines(self):
        self.assert_agrees("baseline", copy.deepcopy(BASELINE), 30)

    def test_ops(self):
        self.assert_agrees("op", copy.deepcopy(OP), 20)

    def test_bundles(self):
        self.assert_agrees("bundle", copy.deepcopy(BUNDLE), 20)

    def test_configurations(self):
        self.assert_agrees("config", copy.deepcopy(CONFIG), 10)


if __name__ == "__main__":
    unittest.main()
