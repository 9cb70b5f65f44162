"""Run documents as `gate` writes them, against the published schema by an independent validator."""
import json
import os
import unittest

try:
    import jsonschema
except ImportError:
    jsonschema = None

from harness import FakeRuns, ROOT, SECOND

SCHEMA = os.path.join(ROOT, "gate", "formats", "run.schema.json")


@unittest.skipUnless(jsonschema, "no jsonschema for this Python")
class Written(FakeRuns):
    def assert_fits(self, document):
        with open(SCHEMA, encoding="utf-8") as file:
            schema = json.load(file)
        del schema["$id"]  # against which older versions would resolve "#/..."
        faults = jsonschema.Draft202012Validator(schema).iter_errors(document)
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


if __name__ == "__main__":
    unittest.main()
