# SPDX-License-Identifier: Apache-2.0
"""Runs and artifacts that are sent to gate-server: what is stored, what is refused, and that what
was answered with 201 is there after a kill.

also runs long: more kills
sanitized: the server reads what clients send
"""

import concurrent.futures
import copy
import gzip
import hashlib
import http.client
import json
import os
import random
import re
import resource
import signal
import sqlite3
import subprocess
import tempfile
import threading
import time
import unittest
import uuid
import zlib

from harness import (PATIENCE, ROOT, SANITIZED, ServedCase, Server, documents, read_file, renamed,
                     seed, token, until)

KILLS = int(os.environ.get("KERNEL_GATE_KILLS", "25" if "KERNEL_GATE_LONG" in os.environ else "3"))


class IngestCase(ServedCase):
    @classmethod
    def prepare(cls):
        cls.documents = documents(cls.folder.name)
        cls.token = token(cls.db, "--scope", "ingest,artifact")

    def send(self, path, body, method="POST", **headers):
        named = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json",
                 "Content-Length": str(len(body))}
        for name, value in headers.items():
            named[name.replace("_", "-")] = value
        return self.server.get(path, method, {k: v for k, v in named.items() if v is not None},
                               body)

    def post(self, body, **headers):
        return self.send("/api/v1/runs", body, **headers)


class Runs(IngestCase):
    def test_a_run_is_stored_once(self):
        name, body = renamed(self.documents[0])
        response = self.post(body)
        self.assertEqual((response.status, json.loads(response.bytes)),
                         (201, {"uuid": name, "created": True}))
        self.assertEqual(self.server.get(f"/api/v1/runs/{name}").bytes, body)
        for headers in ({}, {"Content_Encoding": "gzip"}):
            again = self.post(gzip.compress(body) if headers else body, **headers)
            self.assertEqual((again.status, json.loads(again.bytes)),
                             (200, {"uuid": name, "created": False}))
        other = json.loads(body)
        # By another way it comes with other spaces, and its keys in another order.
        for text in (json.dumps(other, indent=1, sort_keys=True), json.dumps(other)):
            again = self.post(text.encode())
            self.assertEqual((again.status, json.loads(again.bytes)),
                             (200, {"uuid": name, "created": False}))
        other["suite"] = "other"
        problem = self.assert_problem(self.post(json.dumps(other).encode()), 409)
        self.assertEqual(problem["errors"][0]["path"], "/uuid")
        self.assertEqual(self.server.get(f"/api/v1/runs/{name}").bytes, body)

    def test_what_the_sensors_said(self):
        run = json.loads(renamed(self.documents[0])[1])
        run["cases"][0]["arms"][0]["timing"].update(power_w={"before": 118.2, "after": 640.5},
                                                    temperature_c=None)
        body = json.dumps(run).encode()
        self.assertEqual(self.post(body).status, 201)
        self.assertEqual(self.server.get(f"/api/v1/runs/{run['uuid']}").bytes, body)

    def test_gzip(self):
        name, body = renamed(self.documents[0])
        self.assertEqual(self.post(gzip.compress(body), Content_Encoding="gzip").status, 201)
        self.assertEqual(self.server.get(f"/api/v1/runs/{name}").bytes, body)

    def test_chunked(self):
        name, body = renamed(self.documents[0])
        connection = self.server.connect()
        connection.request("POST", "/api/v1/runs", iter([body[:10], body[10:5000], body[5000:]]),
                           {"Authorization": f"Bearer {self.token}",
                            "Content-Type": "application/json; charset=utf-8"},
                           encode_chunked=True)
        self.assertEqual(connection.getresponse().status, 201)
        connection.close()
        self.assertEqual(self.server.get(f"/api/v1/runs/{name}").bytes, body)

    def test_the_fault_is_named(self):
        run = json.loads(self.documents[0])

        def broken(change, last):
            other = copy.deepcopy(run)
            change(other)
            other[last] = other.pop(last)
            return json.dumps(other).encode()

        def negative(r):
            r["cases"][1]["arms"][0]["timing"]["p50_ns"] = -1

        def misspelt(r):
            r["cases"][2]["verdikt"] = "pass"

        for change, path in ((negative, "/cases/1/arms/0/timing/p50_ns"),
                             (misspelt, "/cases/2/verdikt"), (lambda r: r.pop("uuid"), ""),
                             (lambda r: r.update(uuid="x"), "/uuid"),
                             (lambda r: r.update(schema="gate-run/2"), "/schema")):
            problems = [self.assert_problem(self.post(broken(change, last)), 400)
                        for last in ("cases", "policy")]
            self.assertEqual(problems[0], problems[1])
            self.assertEqual([e["path"] for e in problems[0]["errors"]], [path])
            self.assertTrue(problems[0]["errors"][0]["message"])

    def test_members_may_have_any_order(self):
        def of_run(name):
            return json.loads(self.server.get(f"/api/v1/compare?a={name}&b={name}").bytes)

        run = json.loads(self.documents[0])
        answers = []
        for last in ("cases", "policy"):
            run[last] = run.pop(last)
            run["uuid"] = name = str(uuid.uuid4())
            self.assertEqual(self.post(json.dumps(run).encode()).status, 201)
            answers.append(json.dumps(of_run(name)).replace(name, "-"))
        self.assertEqual(answers[0], answers[1])
        self.assertIn(run["cases"][0]["id"], answers[0])

    def test_too_many_cases(self):
        run = json.loads(self.documents[0])
        run["cases"] = [{**run["cases"][0], "id": f"gemm/fp16/m{i}-n8-k8", "arms": []}
                        for i in range(1, 10002)]
        problem = self.assert_problem(self.post(gzip.compress(json.dumps(run).encode(), 1),
                                         Content_Encoding="gzip"), 400)
        self.assertEqual(problem["errors"][0]["path"], "/cases")

    def test_a_document_must_agree_with_itself(self):
        run = json.loads(self.documents[0])
        name = run["uuid"] = str(uuid.uuid4())
        run["exit_code"] = 1
        problem = self.assert_problem(self.post(json.dumps(run).encode()), 400)
        self.assertEqual(problem["errors"][0]["path"], "/exit_code")
        run["exit_code"] = 0
        run["time_ms"] = 4102444800000
        # A clock may be wrong.
        problem = self.assert_problem(self.post(json.dumps(run).encode()), 503)
        self.assertEqual(problem["errors"][0]["path"], "/time_ms")
        self.assertEqual(self.server.get(f"/api/v1/runs/{name}").status, 404)

    def test_what_is_no_document(self):
        body = self.documents[0]
        for bad in (b"", b"{", b"[]", b"null", body + b"x", body[:-20], b"\xff" + body,
                    b'{"a":1,"a":2}', b"[" * 100000, body.replace(b'"uuid"', b'"uu\\u0000id"', 1)):
            self.assert_problem(self.post(bad), 400)
        twice = json.loads(body)
        twice["uuid"] = str(uuid.uuid4())
        twice["cases"].append(twice["cases"][0])
        problem = self.assert_problem(self.post(json.dumps(twice).encode()), 400)
        self.assertIn(twice["cases"][0]["id"], problem["detail"])
        self.assertEqual(self.server.get(f"/api/v1/runs/{twice['uuid']}").status, 404)

    def test_a_number_that_no_table_takes(self):
        run = json.loads(renamed(self.documents[0])[1])
        case = next(c for c in run["cases"] if c["verdict"] == "pass")
        for arm in case["arms"]:
            if arm["role"] == "provider":  # over which ours is infinite
                arm["timing"].update(p50_ns=5e-324, p50_lo_ns=5e-324, ratio_to_candidate=None)
        problem = self.assert_problem(self.post(json.dumps(run).encode()), 400)
        self.assertEqual(problem["detail"], f"run {run['uuid']}, case '{case['id']}': a number is "
                         "out of range.")
        self.assertEqual(self.server.get(f"/api/v1/runs/{run['uuid']}").status, 404)

    def test_what_is_no_gzip(self):
        body = gzip.compress(self.documents[0])
        damaged = bytearray(body)
        damaged[len(body) // 2] ^= 0xff
        for bad in (b"", b"\x1f\x8b", body[:-1], body + b"x", body + body, bytes(damaged),
                    self.documents[0]):
            self.assert_problem(self.post(bad, Content_Encoding="gzip"), 400)

    def test_bombs(self):
        bomb = gzip.compress(b" " * (65 << 20), 9)
        self.assertLess(len(bomb), 100000)
        self.assert_problem(self.post(bomb, Content_Encoding="gzip"), 413)
        many = gzip.compress(b"[" + b"1," * (3 << 20) + b"1]", 9)
        problem = self.assert_problem(self.post(many, Content_Encoding="gzip"), 400)
        self.assertIn("too many values", problem["detail"])

    def test_a_run_of_5000_cases(self):
        run = json.loads(read_file(os.path.join(ROOT, "tests", "data", "run-h200.json")))
        case = max((c for c in run["cases"] if c["verdict"] == "pass"),
                   key=lambda c: len(json.dumps(c)))
        schema = json.loads(read_file(os.path.join(ROOT, "gate", "formats", "run.schema.json")))
        classes = schema["$defs"]["covered"]["properties"]
        # As a run has it that needed twenty processes, and whose verification had all there is.
        case["processes"] = (case["processes"] * 20)[:20]
        case["arms"][0]["verify"]["covered"] = {
            of: {name: 1000 for name in names["properties"]} for of, names in classes.items()}
        cases = [{**case, "id": f"gemm/fp16/m{i}-n8-k8", "op": "gemm"} for i in range(1, 5001)]
        run.update(uuid=str(uuid.uuid4()), verdict="pass", exit_code=0, cases=cases)
        body = json.dumps(run).encode()
        self.assertLess(len(body), 64 << 20)
        response = self.post(gzip.compress(body, 1), Content_Encoding="gzip")
        self.assertEqual(response.status, 201, response.bytes)

    @unittest.skipIf(SANITIZED, "a sanitizer keeps what was freed")
    def test_memory_of_what_is_refused_is_given_back(self):
        def resident():
            with open(f"/proc/{self.server.process.pid}/statm", encoding="ascii") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        before = resident()
        values = gzip.compress(b"[" + b"1," * ((2 << 20) - 9) + b"1]", 9)
        self.assert_problem(self.post(values, Content_Encoding="gzip"), 400)
        until = time.monotonic() + PATIENCE
        while resident() > before + (16 << 20):
            self.assertLess(time.monotonic(), until, (before, resident()))
            time.sleep(0.01)

    def test_types_and_encodings(self):
        body = self.documents[0]
        for kind in (None, "text/plain", "application/jsonp", "application/x-www-form-urlencoded"):
            self.assert_problem(self.post(body, Content_Type=kind), 415)
        for encoding in ("br", "deflate", "gzip, gzip", "x-gzip"):
            problem = self.assert_problem(self.post(body, Content_Encoding=encoding), 415)
            self.assertIn("as gzip, or as they are", problem["detail"])

    def test_too_long(self):
        # The answer comes before the body is sent.
        limit = 32 << 20
        for length in (limit + 1, 10 ** 18, 2 ** 64, 10 ** 40):
            answer = self.server.raw(
                b"POST /api/v1/runs HTTP/1.1\r\nHost: 1\r\nContent-Type: application/json\r\n"
                b"Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n"
                % (self.token.encode(), length))
            self.assertRegex(answer, rb"^HTTP/1.1 4(13|00) ")
        connection = self.server.connect()
        piece = b" " * (1 << 20)
        connection.request("POST", "/api/v1/runs", iter([piece] * 34),
                           {"Authorization": f"Bearer {self.token}",
                            "Content-Type": "application/json"}, encode_chunked=True)
        self.assertEqual(connection.getresponse().status, 413)
        connection.close()

    def test_continue_is_asked_for(self):
        head = (b"POST /api/v1/runs HTTP/1.1\r\nHost: 1\r\nContent-Type: application/json\r\n"
                b"Expect: 100-continue\r\nContent-Length: %d\r\n" % (33 << 20))
        answer = self.server.raw(head + b"\r\n")
        self.assertTrue(answer.startswith(b"HTTP/1.1 401 "), answer)
        answer = self.server.raw(head + b"Authorization: Bearer %s\r\n\r\n" % self.token.encode())
        self.assertTrue(answer.startswith(b"HTTP/1.1 413 "), answer)

    def test_parameters_are_refused(self):
        self.assert_problem(self.send("/api/v1/runs?x=1", self.documents[0]), 400)

    def test_one_connection_serves_many(self):
        connection = self.server.connect()
        for i in range(20):
            name, body = renamed(self.documents[i % 3])
            connection.request("POST", "/api/v1/runs", body,
                               {"Authorization": f"Bearer {self.token}",
                                "Content-Type": "application/json"})
            response = connection.getresponse()
            self.assertEqual((response.status, json.loads(response.read())["uuid"]), (201, name))
        connection.close()

    def test_many_at_once(self):
        bodies = [renamed(self.documents[i % 3]) for i in range(120)]

        def send(item):
            while True:
                response = self.post(item[1])
                if response.status != 503:
                    return response.status
                self.assertGreater(int(response.getheader("Retry-After")), 0)

        with concurrent.futures.ThreadPoolExecutor(24) as pool:
            self.assertEqual(set(pool.map(send, bodies)), {201})
        for name, body in bodies:
            self.assertEqual(self.server.get(f"/api/v1/runs/{name}").bytes, body)

    def test_the_same_run_at_once_is_created_once(self):
        _, body = renamed(self.documents[0])
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            answers = [r.status for r in pool.map(lambda _: self.post(body), range(16))]
        self.assertEqual(sorted(answers), [200] * 15 + [201])

    def test_clients_that_leave(self):
        """Half a body stores nothing; a whole one whose sender has gone is stored or not."""
        connections = []
        names = []
        for i in range(30):
            name, body = renamed(self.documents[0])
            names.append(name)
            connection = self.server.connect()
            connection.connect()
            head = (f"POST /api/v1/runs HTTP/1.1\r\nHost: 1\r\nContent-Type: application/json\r\n"
                    f"Authorization: Bearer {self.token}\r\nContent-Length: {len(body)}\r\n\r\n")
            connection.sock.sendall(head.encode() + (body if i % 2 else body[:-1]))
            connections.append(connection)
        for connection in connections:
            connection.close()
        self.assertEqual(self.post(renamed(self.documents[0])[1]).status, 201)
        for name in names[::2]:
            self.assertEqual(self.server.get(f"/api/v1/runs/{name}").status, 404)

    def test_a_writer_beside_it(self):
        """`gate run --db` writes the same file in its turn."""
        before = len(self.server.json("/api/v1/runs?limit=500")["runs"])
        errors = []

        def send():
            for _ in range(20):
                status = self.post(renamed(self.documents[0])[1]).status
                if status != 201:
                    errors.append(status)

        thread = threading.Thread(target=send)
        thread.start()
        seed(self.db, 20, 4, 1, number=77)
        thread.join(PATIENCE)
        self.assertEqual(errors, [])
        self.assertEqual(len(self.server.json("/api/v1/runs?limit=500")["runs"]), before + 40)


class Full(unittest.TestCase):
    def test_many_who_cannot_write(self):
        """Another process has the turn: all are told to come again, and nothing is stored."""
        with tempfile.TemporaryDirectory() as folder:
            db = os.path.join(folder, "gate.db")
            template = documents(folder, 1)[0]
            secret = token(db, "--scope", "ingest")
            server = Server(db, "--max-per-address", "200")
            lock = subprocess.Popen(["flock", db + "-lock", "sh", "-c", "echo held; read x"],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self.assertEqual(lock.stdout.readline(), b"held\n")

            def send(_):
                response = server.send("/api/v1/runs", renamed(template)[1], secret,
                                       patient=False)
                return response.status, int(response.getheader("Retry-After")) > 0

            with concurrent.futures.ThreadPoolExecutor(40) as pool:
                self.assertEqual(set(pool.map(send, range(40))), {(503, True)})
            lock.communicate(b"\n", timeout=PATIENCE)
            self.assertEqual(server.json("/api/v1/runs")["runs"], [])
            until(lambda: server.send("/api/v1/runs", renamed(template)[1], secret).status == 201,
                  "the next one is stored")
            self.assertEqual(server.stop(), 0)


class Artifacts(IngestCase):
    def put(self, name, body, **headers):
        headers.setdefault("Content_Type", "application/octet-stream")
        return self.send(f"/api/v1/artifacts/{name}", body, "PUT", **headers)

    def test_round_trip(self):
        body = random.Random(1).randbytes(3_000_000)
        name = hashlib.sha256(body).hexdigest()
        path = f"/api/v1/artifacts/{name}"
        self.assertEqual(self.server.get(path).status, 404)
        self.assertEqual(self.server.get(path, "HEAD").status, 404)
        self.assertEqual(self.put(name, body).status, 201)
        self.assertEqual(self.put(name, body).status, 200)
        response = self.server.get(path, headers={"Accept-Encoding": "gzip"})
        self.assertEqual(response.bytes, body)
        self.assertIn("immutable", response.getheader("Cache-Control"))
        self.assertEqual(response.getheader("Content-Type"), "application/octet-stream")
        head = self.server.get(path, "HEAD")
        self.assertEqual((head.status, head.getheader("Content-Length")), (200, str(len(body))))
        tag = response.getheader("ETag")
        self.assertEqual(self.server.get(path, headers={"If-None-Match": tag}).status, 304)
        self.assertEqual(self.put(hashlib.sha256(b"").hexdigest(), b"").status, 201)

    def test_what_is_damaged_is_mended(self):
        body = b"mended" * 1000
        name = hashlib.sha256(body).hexdigest()
        self.assertEqual(self.put(name, body).status, 201)
        path = os.path.join(self.db + "-artifacts", name[:2], name)
        for damaged in (body[:-1], b"", body + b"x", b"M" + body[1:]):
            with open(path, "wb") as file:
                file.write(damaged)
            # Neither sent nor said to be there: who has it sends it again.
            self.assert_problem(self.server.get(f"/api/v1/artifacts/{name}"), 404)
            head = self.server.get(f"/api/v1/artifacts/{name}", method="HEAD")
            self.assertEqual(head.status, 404)
            self.assert_problem(self.put(name, damaged), 422)
            self.assertEqual(self.put(name, body).status, 200)
            for _ in range(2):
                self.assertEqual(self.server.get(f"/api/v1/artifacts/{name}").bytes, body)

    def test_other_bytes(self):
        name = hashlib.sha256(b"a").hexdigest()
        self.assert_problem(self.put(name, b"b"), 422)
        self.assert_problem(self.put(name, b""), 422)
        self.assertEqual(self.server.get(f"/api/v1/artifacts/{name}").status, 404)
        # That of a client that has just left may be there for a moment more.
        until = time.monotonic() + PATIENCE
        while os.listdir(self.db + "-artifacts/incoming") and time.monotonic() < until:
            time.sleep(0.01)
        self.assertEqual(os.listdir(self.db + "-artifacts/incoming"), [])

    def test_names(self):
        good = hashlib.sha256(b"n").hexdigest()
        for name in ("x", good[:-1], good + "0", good.upper(), "../" + good, "%2e%2e%2f" + good,
                     "", good + "/", good[:2] + "/" + good):
            self.assert_problem(self.put(name, b"n"), 404)
            self.assert_problem(self.server.get(f"/api/v1/artifacts/{name}"), 404)

    def test_refusals(self):
        name = hashlib.sha256(b"r").hexdigest()
        self.assert_problem(self.put(name, b"r", Content_Type="application/json"), 415)
        self.assert_problem(self.put(name, b"r", Content_Encoding="gzip"), 415)
        self.assert_problem(self.put(name, b"r", Content_Length=str((256 << 20) + 1)), 413)
        self.assert_problem(self.put(name, b"r", Authorization=None), 401)
        self.assertEqual(self.server.get(f"/api/v1/artifacts/{name}").status, 404)

    def test_a_client_that_leaves(self):
        body = b"l" * 100000
        name = hashlib.sha256(body).hexdigest()
        connection = self.server.connect()
        connection.connect()
        connection.sock.sendall(
            f"PUT /api/v1/artifacts/{name} HTTP/1.1\r\nHost: 1\r\n"
            f"Authorization: Bearer {self.token}\r\nContent-Type: application/octet-stream\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode() + body[:50000])
        connection.close()
        self.assertEqual(self.put(name, body).status, 201)

    def test_links_are_not_followed(self):
        body = b"link"
        name = hashlib.sha256(body).hexdigest()
        self.assertEqual(self.put(name, body).status, 201)
        path = os.path.join(self.db + "-artifacts", name[:2], name)
        os.unlink(path)
        os.symlink("/etc/hostname", path)
        self.assertEqual(self.server.get(f"/api/v1/artifacts/{name}").status, 404)


class FullDisk(IngestCase):
    def count(self, name):
        text = self.server.get("/metrics").bytes.decode()
        return int(re.search(rf"^{name} (\d+)$", text, re.M).group(1))

    def test_what_was_not_committed_is_not_counted(self):
        _, first = renamed(self.documents[0])
        _, second = renamed(self.documents[1])
        self.assertEqual(self.post(first).status, 201)
        self.assertEqual(self.count("gate_runs_stored_total"), 1)
        pid, free = self.server.process.pid, resource.RLIM_INFINITY
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (4096, free))
        self.assert_problem(self.post(second), 503)
        self.assertEqual(self.count("gate_runs_stored_total"), 1)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (free, free))
        self.assertEqual(self.post(second).status, 201)
        self.assertEqual(self.count("gate_runs_stored_total"), 2)


class Kill(unittest.TestCase):
    """The server is killed at some moment, again and again, while runs come in."""

    def test_what_was_answered_is_there(self):
        with tempfile.TemporaryDirectory() as folder:
            db = os.path.join(folder, "gate.db")
            templates = documents(folder)
            choice = random.Random(5)
            secret = token(db, "--scope", "ingest")
            answered, sent = {}, set()
            for _ in range(KILLS):
                server = Server(db)
                kill_after = choice.randrange(0, 40)
                count = threading.Semaphore(0)

                def send(seed_of_thread):
                    connection = server.connect()
                    try:
                        while True:
                            name, body = renamed(templates[seed_of_thread % 3])
                            sent.add(name)
                            headers = {"Authorization": f"Bearer {secret}",
                                       "Content-Type": "application/json"}
                            if seed_of_thread % 2:
                                headers["Content-Encoding"] = "gzip"
                            connection.request(
                                "POST", "/api/v1/runs",
                                gzip.compress(body) if seed_of_thread % 2 else body, headers)
                            response = connection.getresponse()
                            response.read()
                            if response.status == 201:
                                answered[name] = body
                                count.release()
                    except (OSError, http.client.HTTPException):
                        return
                    finally:
                        connection.close()

                threads = [threading.Thread(target=send, args=(i,)) for i in range(6)]
                for thread in threads:
                    thread.start()
                for _ in range(kill_after):
                    self.assertTrue(count.acquire(timeout=PATIENCE))
                server.stop(signal.SIGKILL)
                for thread in threads:
                    thread.join(PATIENCE)
            server = Server(db)  # recovers
            self.assertEqual(server.stop(), 0)
            self.look(db, answered, sent)

    def look(self, db, answered, sent):
        connection = sqlite3.connect(db)
        self.assertEqual(connection.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
        self.assertEqual(connection.execute("PRAGMA foreign_key_check").fetchall(), [])
        rows = connection.execute(
            "SELECT r.uuid, d.packed, r.n_cases,"
            " (SELECT count(*) FROM result v WHERE v.run_id = r.id AND v.arm = 0)"
            " FROM run r LEFT JOIN document d ON d.run_id = r.id").fetchall()
        connection.close()
        stored = {row[0]: row for row in rows}
        self.assertGreater(len(answered), KILLS)
        self.assertEqual(set(answered) - set(stored), set())
        self.assertEqual(set(stored) - sent, set())
        for name, packed, n_cases, n_results in rows:
            self.assertEqual(n_cases, n_results, name)
            if name in answered:
                self.assertEqual(zlib.decompress(packed), answered[name])


if __name__ == "__main__":
    unittest.main()
