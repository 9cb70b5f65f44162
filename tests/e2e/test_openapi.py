# SPDX-License-Identifier: Apache-2.0
"""openapi.json against the server: each address answers as it is documented.

sanitized: the server reads addresses and parameters
"""

import csv
import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import unittest
import urllib.parse

from harness import GEMV, GPU, HERE, N_CASES, PATIENCE, ROOT, SERVER, SeededCase, read_file, watched

try:
    import jsonschema
except ImportError:
    jsonschema = None


LIBRARY = b"a kernel library"
SHA256 = hashlib.sha256(LIBRARY).hexdigest()
BAD_VALUES = ("", "\u00e4", "-1", "x" * 401, "%27--", "no such thing", "99999999999999999999")
EXAMPLES = {"device": GPU, "case": GEMV, "provider": "ours", "branch": "main", "q": "gemv",
            "op": "gemv", "dtype": "fp16", "from": "0", "to": "9007199254740991",
            "columns": "time_ms,p50_ns"}
RUN_SCHEMA = os.path.join(os.path.dirname(os.path.dirname(HERE)), "gate", "formats",
                          "run.schema.json")


@unittest.skipUnless(jsonschema, "no jsonschema for this Python")
class Described(SeededCase):
    """One server and one history for all classes of this file."""

    runs = 120  # enough for alerts

    @classmethod
    def setUpClass(cls):
        if "server" not in vars(Described):
            Described.start()

    @classmethod
    def tearDownClass(cls):
        """See tearDownModule()."""

    @classmethod
    def end(cls):
        super().tearDownClass()

    @classmethod
    def start(cls):
        super().setUpClass()
        cls.document = cls.server.json("/api/v1/openapi.json")
        cls.tokens = {scope: cls.token(scope) for scope in ("read", "ingest", "artifact", "admin")}
        cls.server.send(f"/api/v1/artifacts/{SHA256}", LIBRARY, cls.tokens["artifact"], "PUT",
                        "application/octet-stream")
        watched(cls.db)
        run = cls.server.json(f"/api/v1/runs/{cls.uuids[-1]}")
        alerts = cls.server.json("/api/v1/alerts?state=new")["alerts"]
        cls.examples = dict(EXAMPLES, uuid=cls.uuids[-1], a=cls.uuids[0], b=cls.uuids[-1],
                            sha256=SHA256, commit=run["git"]["commit"], contract=run["contract"],
                            id=str(alerts[0]["id"]))

    @classmethod
    def token(cls, scope):
        done = subprocess.run([SERVER, "token", "create", "--db", cls.db, "--name", scope,
                               "--scope", scope], check=True, stdout=subprocess.PIPE,
                              timeout=PATIENCE)
        return re.search(r"kg_\w+", done.stdout.decode()).group()

    # ---- the document ----

    def resolve(self, value):
        while "$ref" in value:
            at = self.document
            for part in value["$ref"].removeprefix("#/").split("/"):
                at = at[part]
            value = at
        return value

    def operations(self, method):
        for path, item in self.document["paths"].items():
            if method in item:
                yield path, item[method]

    def parameters(self, operation):
        return [self.resolve(p) for p in operation.get("parameters", [])]

    def example(self, parameter):
        schema = self.resolve(parameter["schema"])
        if parameter["name"] in self.examples:
            return self.examples[parameter["name"]]
        if "enum" in schema:
            return str(schema["enum"][0])
        return str(schema["minimum"]) if "minimum" in schema else None

    def address(self, path, operation, **more):
        """The address with an example for each part and each parameter that is required."""
        query = {}
        for p in self.parameters(operation):
            if p["in"] == "path":
                path = path.replace("{%s}" % p["name"], self.example(p))
            elif p.get("required"):
                query[p["name"]] = self.example(p)
        query.update(more)
        names = {p["name"] for p in self.parameters(operation)}
        # Some go together only.
        if "case" in more and "device" in names:
            query.setdefault("device", self.examples["device"])
        if {"limit", "after"} & set(more) and "raw" in names:
            query.setdefault("raw", 1)
        quoted = urllib.parse.urlencode(query, quote_via=urllib.parse.quote)
        return path + ("?" + quoted if query else "")

    def validator(self, schema):
        # What the document names is looked for in the document.
        whole = {"$schema": "https://json-schema.org/draft/2020-12/schema",
                 "components": self.document["components"], **schema}
        return jsonschema.Draft202012Validator(whole)

    def check(self, operation, response, what, head=False):
        """The answer has a documented status, type and body; returns the body."""
        documented = operation["responses"].get(str(response.status))
        self.assertIsNotNone(documented, f"{what}: {response.status} {response.bytes[:300]}")
        documented = self.resolve(documented)
        for name in documented.get("headers", {}):
            self.assertIsNotNone(response.getheader(name), f"{what}: no {name}")
        content = documented.get("content")
        if not content:
            return None
        kind = response.getheader("Content-Type").split(";")[0]
        self.assertIn(kind, content, what)
        if not kind.endswith("json") or head:
            return response.bytes
        value = json.loads(response.bytes)
        if "schema" in content[kind]:
            faults = list(self.validator(content[kind]["schema"]).iter_errors(value))
            self.assertEqual([(f.json_path, self.cause(f)) for f in faults[:3]], [], what)
        return value

    def cause(self, fault):
        """Of a oneOf, what keeps its nearest branch from fitting."""
        best = jsonschema.exceptions.best_match([fault])
        return f"{best.json_path}: {best.message[:300]}"

    def ask(self, path, operation, method="GET", **options):
        return self.check(operation, self.server.get(path, method, **options), f"{method} {path}",
                          head=method == "HEAD")


def tearDownModule():
    if "server" in vars(Described):
        Described.end()


class Document(Described):
    def test_it_describes_the_routes_and_so_does_the_readme(self):
        table = subprocess.run([SERVER, "routes"], check=True, capture_output=True,
                               text=True).stdout
        self.assertIn("\n\n" + table + "\n", read_file(os.path.join(ROOT, "docs", "server.md")))
        of_run = next(line for line in table.splitlines() if "GET | `/api/v1/runs/UUID`" in line)
        for name in "csv", "markdown":
            self.assertIn(f"format={name} its", of_run)
        served = {tuple(re.match(r"\| (\w+) \| `([^`]+)` \| (\w+) \|", line).groups())
                  for line in table.splitlines()[2:]}
        served.remove(("GET", "/FILE", "none"))
        served.remove(("GET", "/badge/DEVICE[/CASE].svg", "read"))
        names = {"{uuid}": "UUID", "{id}": "ID", "{sha256}": "SHA256"}
        described = set()
        for path, item in self.document["paths"].items():
            if path.startswith("/badge/"):
                continue
            for method in item.keys() & {"get", "post", "put"}:
                scopes = [s for way in item[method].get("security", []) for s in
                          way.get("token", [])]
                for variable, name in names.items():
                    path = path.replace(variable, name)
                described.add((method.upper(), path, scopes[0] if scopes else "none"))
        self.assertEqual(described, served)

    def test_its_references_lead_somewhere(self):
        def walk(value):
            if isinstance(value, dict):
                if "$ref" in value:
                    self.resolve(value)
                for inner in value.values():
                    walk(inner)
            elif isinstance(value, list):
                for inner in value:
                    walk(inner)
        walk(self.document)

    def test_nothing_in_it_is_of_no_use(self):
        text = json.dumps(self.document["paths"]) + json.dumps(self.document["components"])
        for kind in ("parameters", "responses", "schemas"):
            for name in self.document["components"][kind]:
                self.assertIn(f'"#/components/{kind}/{name}"', text)

    def test_operations_are_named_once_and_tagged(self):
        tags = {t["name"] for t in self.document["tags"]}
        ids = []
        for path, item in self.document["paths"].items():
            for method, operation in item.items():
                ids.append(operation["operationId"])
                self.assertLessEqual(set(operation["tags"]), tags, (path, method))
                named = {p["name"] for p in self.parameters(operation) if p["in"] == "path"}
                self.assertEqual(named, set(re.findall(r"\{(\w+)\}", path)), path)
        self.assertEqual(len(ids), len(set(ids)))

    def test_its_schemas_are_schemas(self):
        for name, schema in self.document["components"]["schemas"].items():
            jsonschema.Draft202012Validator.check_schema(schema)
            if schema.get("type") == "object" and name != "RunDocument":
                self.assertIs(schema["additionalProperties"], False, name)


class Reading(Described):
    def test_every_address_answers_as_documented(self):
        for path, operation in self.operations("get"):
            with self.subTest(path):
                address = self.address(path, operation)
                response = self.server.get(address)
                self.assertEqual(response.status, 200, response.bytes[:300])
                self.check(operation, response, address)

    def test_head_is_get_without_a_body(self):
        for path, operation in self.operations("get"):
            with self.subTest(path):
                response = self.server.get(self.address(path, operation), "HEAD")
                self.assertEqual((response.status, response.bytes), (200, b""))
                self.check(operation, response, path, head=True)

    def test_tags_hold(self):
        for path, operation in self.operations("get"):
            if "304" not in operation["responses"]:
                continue
            with self.subTest(path):
                address = self.address(path, operation)
                tag = self.server.get(address).getheader("ETag")
                again = self.server.get(address, headers={"If-None-Match": tag})
                self.assertEqual((again.status, again.bytes), (304, b""))

    def test_documented_values_are_taken(self):
        for path, operation in self.operations("get"):
            for p in self.parameters(operation):
                if p["in"] != "query":
                    continue
                schema = self.resolve(p["schema"])
                values = schema.get("enum") or [schema[k] for k in ("minimum", "maximum", "default")
                                                if k in schema] or [self.example(p)]
                for value in values:
                    if value is None:
                        continue  # `after` is tried with pages
                    with self.subTest(path, **{p["name"]: value}):
                        address = self.address(path, operation, **{p["name"]: value})
                        response = self.server.get(address)
                        self.assertEqual(response.status, 200, response.bytes[:300])
                        self.check(operation, response, address)

    def test_other_values_are_refused(self):
        for path, operation in self.operations("get"):
            for p in self.parameters(operation):
                schema = self.resolve(p["schema"])
                bounds = [str(schema[k] + d) for k, d in (("minimum", -1), ("maximum", 1))
                          if k in schema and "pattern" not in schema]
                for value in (*BAD_VALUES, *bounds) if p["in"] == "query" else ():
                    if self.fits(value, schema):
                        continue
                    with self.subTest(path, **{p["name"]: value}):
                        address = self.address(path, operation, **{p["name"]: value})
                        response = self.server.get(address)
                        self.assertEqual(response.status, 400, response.bytes[:300])
                        self.check(operation, response, address)

    def fits(self, value, schema):
        if schema.get("type") == "integer" or isinstance(schema.get("enum", [""])[0], int):
            value = int(value) if re.fullmatch(r"-?\d+", value) else value
        return self.validator(schema).is_valid(value)

    def test_unknown_parameters_are_refused(self):
        for path, operation in self.operations("get"):
            if path in ("/healthz", "/readyz"):  # they look at no parameters
                continue
            with self.subTest(path):
                address = self.address(path, operation, no_such="1")
                response = self.server.get(address)
                self.assertEqual(response.status, 400, response.bytes[:300])
                self.check(operation, response, address)

    def test_what_is_missing_is_404(self):
        missing = dict(uuid="ffffffff-0000-4000-8000-000000000000", sha256="0" * 64, id="999999",
                       device="NO-NAME")
        for path, operation in self.operations("get"):
            if "404" not in operation["responses"] or "{" not in path:
                continue
            with self.subTest(path):
                kept, self.examples = self.examples, {**self.examples, **missing}
                address = self.address(path, operation)
                self.examples = kept
                response = self.server.get(address)
                self.assertEqual(response.status, 404, response.bytes[:300])
                self.check(operation, response, address)

    def test_rows_and_csv_have_what_json_has(self):
        for path, operation in self.operations("get"):
            formats = [p for p in self.parameters(operation) if p["name"] == "format"]
            if not formats or "rows" not in formats[0]["schema"]["enum"]:
                continue
            with self.subTest(path):
                whole = self.ask(self.address(path, operation), operation)
                rows = self.ask(self.address(path, operation, format="rows"), operation)
                text = self.ask(self.address(path, operation, format="csv"), operation)
                self.assertIsInstance(whole, dict)
                self.assertIsInstance(rows, list)
                if path == "/api/v1/silences":
                    continue  # the sample has none; test_api_machines.py has some
                self.assertGreater(len(rows), 0)
                table = list(csv.reader(io.StringIO(text.decode(), newline="")))
                self.assertEqual(len(table), len(rows) + 1)
                self.assertEqual({len(line) for line in table}, {len(table[0])})
                plain = [k for k, v in rows[0].items() if not isinstance(v, (dict, list))]
                self.assertLessEqual(set(plain), set(table[0]))

    def test_pages_lead_to_the_end(self):
        for path, operation in self.operations("get"):
            names = {p["name"] for p in self.parameters(operation)}
            if not {"limit", "after"} <= names:
                continue
            with self.subTest(path):
                page = self.ask(self.address(path, operation, limit=1), operation)
                n = 1
                while page["next"] is not None and n < 5:
                    page = self.ask(self.address(path, operation, limit=1, after=page["next"]),
                                    operation)
                    n += 1
                # A list with one row has one page: only runs and cases are known to be long.
                if path.endswith(("runs", "cases")):
                    self.assertEqual(n, 5)

    def test_documents_fit_the_schema_of_runs(self):
        schema = json.loads(read_file(RUN_SCHEMA))
        del schema["$id"]  # against which older versions would resolve "#/..."
        validator = jsonschema.Draft202012Validator(schema)
        operation = self.document["paths"]["/api/v1/runs/{uuid}"]["get"]
        for uuid in self.uuids[::3]:
            document = self.ask(f"/api/v1/runs/{uuid}", operation)
            self.assertEqual(list(validator.iter_errors(document)), [])
        text = self.ask(f"/api/v1/runs/{self.uuids[0]}?format=csv", operation)
        cases = {row["case"] for row in csv.DictReader(io.StringIO(text.decode()))}
        self.assertEqual(len(cases), N_CASES)


class Writing(Described):
    """Each documented refusal of a write, and what good ones are answered."""

    def write(self, method, path, scope, body, kind="application/json", **headers):
        operation = next(
            o for p, o in self.operations(method.lower())
            if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", p), path))
        token = self.tokens.get(scope, scope)
        headers = {"Content-Type": kind, "Content-Length": str(len(body)),
                   **({"Authorization": f"Bearer {token}"} if token else {}), **headers}
        response = self.server.get(path, method, body=body, headers=headers)
        self.check(operation, response, f"{method} {path}")
        return response.status

    def run_document(self, **changes):
        text = self.server.get(f"/api/v1/runs/{self.uuids[0]}").bytes
        return json.dumps({**json.loads(text), **changes}).encode()

    def test_a_run(self):
        uuid = "00000000-0000-4000-8000-0000000000aa"
        run = self.run_document(uuid=uuid)
        post = lambda scope, body, **more: self.write("POST", "/api/v1/runs", scope, body, **more)
        self.assertEqual(post("ingest", run), 201)
        self.assertEqual(post("ingest", gzip.compress(run), **{"Content-Encoding": "gzip"}), 200)
        self.assertEqual(post("admin", run), 200)
        self.assertEqual(post("ingest", self.run_document(uuid=uuid, who="somebody")), 409)
        self.assertEqual(post("ingest", self.run_document(uuid="x")), 400)
        self.assertEqual(post("ingest", b"{"), 400)
        self.assertEqual(post(None, run), 401)
        self.assertEqual(post("kg_wrong_one", run), 401)
        self.assertEqual(post("artifact", run), 403)
        self.assertEqual(post("ingest", run, kind="text/plain"), 415)
        self.assertEqual(post("ingest", b"", **{"Content-Length": str(1 << 30)}), 413)

    def test_an_artifact(self):
        body = b"another library"
        path = "/api/v1/artifacts/" + hashlib.sha256(body).hexdigest()
        put = lambda scope, bytes_, **more: self.write(
            "PUT", path, scope, bytes_, kind="application/octet-stream", **more)
        self.assertEqual(put(None, body), 401)
        self.assertEqual(put("ingest", body), 403)
        self.assertEqual(put("artifact", b"other bytes"), 422)
        self.assertEqual(put("artifact", body), 201)
        self.assertEqual(put("artifact", body), 200)
        self.assertEqual(self.server.get(path).bytes, body)

    def test_the_state_of_an_alert(self):
        path = "/api/v1/alerts/" + self.examples["id"]
        post = lambda scope, **body: self.write("POST", path, scope, json.dumps(body).encode())
        self.assertEqual(post(None, state="acknowledged"), 401)
        self.assertEqual(post("ingest", state="acknowledged"), 403)
        self.assertEqual(post("admin", state="no-such"), 400)
        self.assertEqual(post("admin", state="accepted"), 400)
        self.assertEqual(post("admin", state="acknowledged"), 200)
        self.assertEqual(post("admin", state="accepted", reason="it buys accuracy"), 200)
        self.assertEqual(post("admin", state="fixed"), 409)
        self.assertEqual(self.write("POST", "/api/v1/alerts/999999", "admin",
                                    b'{"state":"acknowledged"}'), 404)

    def test_the_state_of_several_alerts(self):
        ids = [int(self.examples["id"])]
        post = lambda scope, **body: self.write("POST", "/api/v1/alerts", scope,
                                                json.dumps(body).encode())
        self.assertEqual(post(None, ids=ids, assignee="ada"), 401)
        self.assertEqual(post("ingest", ids=ids, assignee="ada"), 403)
        self.assertEqual(post("admin", ids=ids), 400)
        self.assertEqual(post("admin", ids=ids, assignee="ada"), 200)
        self.assertEqual(post("admin", ids=[999999], assignee="ada"), 404)

    def test_methods_that_are_not_documented(self):
        for path, item in self.document["paths"].items():
            address = self.address(path, item["get"]).split("?")[0]
            for method in ("POST", "PUT", "DELETE", "PATCH"):
                if method.lower() not in item:
                    with self.subTest(path, method=method):
                        self.assertEqual(self.server.get(address, method).status, 405)


if __name__ == "__main__":
    unittest.main()
