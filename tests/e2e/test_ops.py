# SPDX-License-Identifier: Apache-2.0
"""gate-server as those who run it see it: hostile clients, health, metrics, logs."""

import gzip
import http.client
import json
import os
import re
import socket
import sqlite3
import subprocess
import tempfile
import time
import unittest

from harness import PATIENCE, SERVER, SeededCase, Server, seed, token, until


class Shapes(SeededCase):
    """What a proxy may read otherwise than libmicrohttpd does."""

    SMUGGLED = b"GET /healthz HTTP/1.1\r\nHost: 1\r\n\r\n"
    # What is to be answered ends the connection, which else stays open for its whole time.
    LAST = b"GET /healthz HTTP/1.1\r\nHost: 1\r\nConnection: close\r\n\r\n"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.secret = token(cls.db, "--scope", "ingest").encode()

    def refused(self, request, status=400):
        answer = self.server.raw(request + self.SMUGGLED)
        self.assertTrue(answer.startswith(b"HTTP/1.1 %d " % status), (request[:80], answer[:200]))
        # Counted by what only the second request gets: libmicrohttpd sends the head of its own
        # errors twice.
        self.assertNotIn(b"nosniff\r\n", answer.split(b"\r\n\r\n", 1)[1], (request, answer))
        self.assertNotIn(b'"status":"ok"', answer)

    def post(self, *headers, version=b"1.1", body=b"0\r\n\r\n"):
        return (b"POST /api/v1/runs HTTP/%s\r\nHost: 1\r\nContent-Type: application/json\r\n"
                b"Authorization: Bearer %s\r\n%s\r\n%s"
                % (version, self.secret, b"".join(h + b"\r\n" for h in headers), body))

    def test_lengths_and_encodings(self):
        for headers in ((b"Content-Length: 4", b"Transfer-Encoding: chunked"),
                        (b"Transfer-Encoding: chunked", b"Content-Length: 4"),
                        (b"Content-Length: 3", b"Content-Length: 0"),
                        (b"Content-Length: 5", b"Content-Length: 5"),
                        (b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked"),
                        (b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity"),
                        (b"Transfer-Encoding: xchunked",), (b"Transfer-Encoding: chunked, gzip",),
                        (b"Transfer-Encoding: gzip, chunked",), (b"Transfer-Encoding: identity",),
                        (b"Transfer-Encoding:",), (b"Transfer-Encoding: \"chunked\"",),
                        (b"Content-Length: -1",), (b"Content-Length: +5",),
                        (b"Content-Length: 0x5",), (b"Content-Length: 5, 5",),
                        (b"Content-Length: 5 5",), (b"Content-Length:",)):
            with self.subTest(headers):
                self.refused(self.post(*headers))
        self.refused(self.post(b"Transfer-Encoding: chunked", version=b"1.0"))
        # Malformed names and control bytes: a body that only a proxy sees, or only we do.
        hides = b"%d" % len(self.SMUGGLED)
        for headers in ((b"Content-Length : " + hides,), (b"Content-Length\t: " + hides,),
                        (b"Transfer-Encoding : chunked",), (b"Transfer-Encoding\t: chunked",),
                        (b" Content-Length: " + hides,), (b"\tTransfer-Encoding: chunked",),
                        (b"Content-Length: 0", b"Content-Length : " + hides),
                        (b"Content-Length: 0", b"Transfer-Encoding\v: chunked"),
                        (b"Content-Length: 0", b"Transfer-Encoding\0: chunked"),
                        (b"Content-Length: 0", b"Transfer\xadEncoding: chunked"),
                        (b"Content-Length: 0", b"X"),
                        (b"Content-Length: 0", b"X: a\rTransfer-Encoding: chunked"),
                        (b"Content-Length: 0", b"X: a\nTransfer-Encoding: chunked"),
                        (b"X: a\rContent-Length: 0",),
                        (b"Content-Length: 0", b"X: a\r"), (b"Content-Length: 0", b"X: \x01"),
                        (b"Content-Length: \v0",), (b"Content-Length: 0\x7f",)):
            with self.subTest(headers):
                self.refused(self.post(*headers, body=b""))
                self.refused(b"GET /healthz HTTP/1.1\r\nHost: 1\r\n%s\r\n"
                             % b"".join(h + b"\r\n" for h in headers))
        for before in (b" Content-Length: 5\r\n", b"\0", b"\r", b"\n"):
            with self.subTest(before):
                self.refused(b"GET /healthz HTTP/1.1\r\n%sHost: 1\r\n\r\n" % before)

    def test_headers_that_may_look_odd(self):
        for header in (b"X:", b"X: ", b"X:\t \ty ", b"X: a:b", b"X-1!#$%&'*+.^_`|~: \xc3\xa4",
                       b"Cookie: a=b; c=\"d\"", b"Connection: keep-alive", b"content-length: 0"):
            with self.subTest(header):
                answer = self.server.raw(
                    b"GET /healthz HTTP/1.1\r\n%s\r\nHost: 1\r\n%s\r\n\r\n" % (header, b"Y: 1")
                    + self.LAST)
                self.assertEqual(answer.count(b"HTTP/1.1 200 "), 2, answer)

    def test_headers_that_are_there_twice(self):
        for header in (b"Host: y", b"Content-Type: application/json",
                       b"Authorization: Bearer " + self.secret):
            with self.subTest(header):
                self.refused(self.post(b"Content-Length: 5", header))
        self.refused(self.post(b"Content-Length: 5", b"Content-Encoding: gzip",
                               b"Content-Encoding: gzip"))

    def test_host(self):
        self.refused(b"GET /healthz HTTP/1.1\r\n\r\n")
        self.refused(b"GET /healthz HTTP/1.1\r\nHost : x\r\n\r\n")
        for host in (b"a b", b"x, y", b"a/b", b"a@b", b"a\\b", b"<x>", b"\xc3\xa4"):
            self.refused(b"GET /healthz HTTP/1.1\r\nHost: %s\r\n\r\n" % host)
        for host in (b"", b"x", b"X-1.example:80", b"[::1]:8731", b"a_b"):
            answer = self.server.raw(
                b"GET /healthz HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % host)
            self.assertNotIn(b" 400 ", answer[:13], host)
        answer = self.server.raw(b"GET /healthz HTTP/1.0\r\n\r\n")
        self.assertRegex(answer, rb"^HTTP/1\.[01] 200 ")

    def test_bad_chunks(self):
        for body in (b"x\r\n\r\n", b"-1\r\na\r\n0\r\n\r\n", b"2\r\nabc\r\n0\r\n\r\n",
                     b"ffffffffffffffffff\r\n", b"1;" + b"a" * 70000 + b"\r\na\r\n0\r\n\r\n"):
            with self.subTest(body[:20]):
                try:
                    answer = self.server.raw(self.post(b"Transfer-Encoding: chunked", body=body))
                except OSError:
                    continue  # closed before all of it was sent
                self.assertNotIn(b" 20", answer[:13])
        self.assertEqual(self.server.get("/healthz").status, 200)

    def test_nothing_is_read_behind_chunks(self):
        # A bare LF ends a line between chunks, or does not: "2;", "{}" and an end, or an extension.
        for body in (b"2\r\n{}\r\n0\r\n\r\n", b"2;\n{}\r\n0\r\n\r\n", b"2\n{}\n0\n\n",
                     b"2;a=\"\n{}\r\n0\r\n\r\n", b"2\r\n{}\r\n0\r\nContent-Length: 9\r\n\r\n"):
            with self.subTest(body):
                self.refused(self.post(b"Transfer-Encoding: chunked", body=body))

    def test_zero_bytes(self):
        for target in (b"/%00", b"/healthz%00", b"/api/v1/runs?limit=1%00", b"/api/v1/runs/%00x"):
            self.refused(b"GET %s HTTP/1.1\r\nHost: 1\r\n\r\n" % target)

    def test_huge(self):
        for request in (b"GET / HTTP/1.1\r\nHost: 1\r\n" + b"X: y\r\n" * 20000 + b"\r\n",
                        b"GET /" + b"a" * 200000 + b" HTTP/1.1\r\nHost: 1\r\n\r\n",
                        b"GET / HTTP/1.1\r\nHost: 1\r\nX: " + b"a" * 200000 + b"\r\n\r\n",
                        b"G" * 200000):
            try:
                answer = self.server.raw(request)
            except OSError:
                continue  # closed before all of it was sent
            self.assertNotIn(b" 200 ", answer[:20])
        self.assertEqual(self.server.get("/healthz").status, 200)

    def test_requests_in_a_row(self):
        answer = self.server.raw(self.SMUGGLED * 20)
        self.assertEqual(answer.count(b"HTTP/1.1 200 "), 20)


class Slow(unittest.TestCase):
    """Deadlines are absolute: a byte now and then does not keep a connection."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.db = os.path.join(self.folder.name, "gate.db")
        self.secret = token(self.db, "--scope", "ingest")
        self.server = Server(self.db, "--timeout", "1")

    def tearDown(self):
        self.assertEqual(self.server.stop(), 0, self.server.log)

    def drip(self, beginning):
        """Sends a byte every 0.2 s until the server has had enough."""
        with socket.create_connection(("127.0.0.1", self.server.port), PATIENCE) as s:
            s.sendall(beginning)
            s.settimeout(0.2)
            until = time.monotonic() + PATIENCE
            while time.monotonic() < until:
                try:
                    if s.recv(1000) == b"":
                        return
                except TimeoutError:
                    pass
                except ConnectionError:
                    return
                try:
                    s.sendall(b"a")
                except OSError:
                    return
        self.fail("the connection was kept")

    def deadlines(self):
        text = self.server.get("/metrics").bytes.decode()
        return int(re.search(r"^gate_http_deadlines_total (\d+)", text, re.M).group(1))

    def test_first_line(self):
        self.drip(b"GET /")
        self.assertEqual(self.deadlines(), 1)

    def test_headers(self):
        self.drip(b"GET / HTTP/1.1\r\nHost: 1\r\nX-Slow: ")
        self.assertEqual(self.deadlines(), 1)

    def test_body(self):
        self.drip(b"POST /api/v1/runs HTTP/1.1\r\nHost: 1\r\nContent-Type: application/json\r\n"
                  b"Authorization: Bearer %s\r\nContent-Length: 1000000\r\n\r\n"
                  % self.secret.encode())
        self.assertEqual(self.deadlines(), 1)

    def test_silence(self):
        with socket.create_connection(("127.0.0.1", self.server.port), PATIENCE) as s:
            s.sendall(b"GET / HTTP/1.1\r\n")
            self.assertEqual(s.recv(1000).count(b" 200 "), 0)


class Connections(unittest.TestCase):
    def test_of_one_address(self):
        with tempfile.TemporaryDirectory() as folder:
            db = os.path.join(folder, "gate.db")
            server = Server(db, "--max-per-address", "4")
            held = []
            for _ in range(4):
                s = socket.create_connection(("127.0.0.1", server.port), PATIENCE)
                s.sendall(b"GET /healthz HTTP/1.1\r\nHost: 1\r\n\r\n")
                self.assertIn(b" 200 ", s.recv(4096))
                held.append(s)
            fifth = socket.create_connection(("127.0.0.1", server.port), PATIENCE)
            try:
                fifth.sendall(b"GET /healthz HTTP/1.1\r\nHost: 1\r\n\r\n")
                self.assertEqual(fifth.recv(4096), b"")
            except ConnectionError:
                pass
            fifth.close()
            # From another address there is room.
            other = socket.create_connection(("127.0.0.1", server.port), PATIENCE,
                                             source_address=("127.0.0.2", 0))
            other.sendall(b"GET /healthz HTTP/1.1\r\nHost: 1\r\n\r\n")
            self.assertIn(b" 200 ", other.recv(4096))
            other.close()
            # Who knocks on and on does not fill the log.
            n_knocks = 300
            for _ in range(n_knocks):
                with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as s:
                    try:
                        self.assertEqual(s.recv(1), b"")
                    except ConnectionError:
                        pass
            for s in held:
                s.close()
            self.assertEqual(server.stop(), 0, server.log)
            self.assertLess(server.log.count("\n"), n_knocks / 2, server.log)
            self.assertTrue(server.log, "the first ones are told")


class Answers(SeededCase):
    def test_gzip(self):
        for path in ("/api/v1/cases", "/api/v1/runs"):
            plain = self.server.get(path)
            self.assertIsNone(plain.getheader("Content-Encoding"))
            self.assertEqual(plain.getheader("Vary"), "Accept-Encoding")
            small = self.server.get(path, headers={"Accept-Encoding": "br, gzip"})
            self.assertEqual(small.getheader("Content-Encoding"), "gzip")
            self.assertEqual(small.getheader("Vary"), "Accept-Encoding")
            self.assertEqual(gzip.decompress(small.bytes), plain.bytes)
            self.assertEqual(int(small.getheader("Content-Length")), len(small.bytes))
            self.assertLess(len(small.bytes), len(plain.bytes) / 3)
            # Other bytes have another tag; either is good for a 304.
            self.assertNotEqual(small.getheader("ETag"), plain.getheader("ETag"))
            for tag in (small.getheader("ETag"), plain.getheader("ETag"), "*"):
                for accept in ("gzip", "identity"):
                    again = self.server.get(path, headers={"If-None-Match": tag,
                                                           "Accept-Encoding": accept})
                    self.assertEqual((again.status, again.bytes), (304, b""))
                    if tag != "*":
                        self.assertEqual(again.getheader("Vary"), "Accept-Encoding")
        short = self.server.get("/healthz", headers={"Accept-Encoding": "gzip"})
        self.assertIsNone(short.getheader("Content-Encoding"))
        refused = self.server.get("/api/v1/cases", headers={"Accept-Encoding": "gzip;q=0"})
        self.assertIsNone(refused.getheader("Content-Encoding"))

    def test_idle_readers_let_the_log_go(self):
        """A reader holds no state between requests: the log can be moved into the file."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "gate.db")
            seed(path, 2, 1, 1)
            server = Server(path)
            self.assertEqual(server.get("/api/v1/runs").status, 200)
            seed(path, 1, 1, 1, number=99)  # by another process
            db = sqlite3.connect(path, timeout=PATIENCE)
            busy, _, _ = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            db.close()
            self.assertEqual(server.stop(), 0)
            self.assertEqual(busy, 0)


class Health(SeededCase):
    def test_ready(self):
        response = self.server.get("/readyz")
        answer = json.loads(response.bytes)
        self.assertEqual((response.status, answer["status"]), (200, "ready"))
        self.assertTrue(answer["database"] and answer["writer"])
        self.assertGreater(answer["disk_free_bytes"], 0)
        self.assertEqual(response.getheader("Cache-Control"), "no-store")

    def parse(self, text):
        """Prometheus' text: families in one piece, each with its type, samples that fit it."""
        families, name, kind, samples = {}, None, None, set()
        for line in text.splitlines():
            if line == "# EOF":
                self.assertTrue(text.endswith("# EOF\n"))
                break
            if line.startswith("# "):
                word, family, rest = line[2:].split(" ", 2)
                if word == "HELP":
                    self.assertNotIn(family, families)
                    name, families[family] = family, []
                else:
                    self.assertEqual((word, family), ("TYPE", name))
                    kind = rest
                    self.assertIn(kind, ("counter", "gauge", "histogram"))
                continue
            sample = re.fullmatch(r"(\w+)(\{\w+=\"[^\"\\\n]*\"\})? (\S+)", line)
            self.assertTrue(sample, line)
            self.assertTrue(sample.group(1).startswith(name), line)
            self.assertNotIn(sample.group(1, 2), samples)
            samples.add(sample.group(1, 2))
            self.assertGreaterEqual(float(sample.group(3)), 0)
            families[name].append((sample.group(1), sample.group(2), float(sample.group(3))))
            if kind == "counter":
                self.assertTrue(sample.group(1).endswith("_total"))
        self.assertTrue(all(families.values()))
        return families

    def test_metrics(self):
        for _ in range(3):
            self.server.get("/api/v1/runs?limit=2")
        # An answer is counted when it has been sent, perhaps after the client has it.
        counted = re.compile(rb'gate_http_requests_total\{code="200"\} ([3-9]|\d\d)')
        until(lambda: counted.search(self.server.get("/metrics").bytes), "the count")
        response = self.server.get("/metrics")
        self.assertEqual(response.getheader("Content-Type"),
                         "text/plain; version=0.0.4; charset=utf-8")
        families = self.parse(response.bytes.decode())
        codes = {labels: value for _, labels, value in families["gate_http_requests_total"]}
        self.assertGreaterEqual(codes['{code="200"}'], 3)
        buckets = [s for s in families["gate_http_request_seconds"] if s[0].endswith("_bucket")]
        counts = [value for _, _, value in buckets]
        self.assertEqual(counts, sorted(counts))
        self.assertEqual(buckets[-1][1], '{le="+Inf"}')
        self.assertEqual(counts[-1], families["gate_http_request_seconds"][-1][2])
        self.assertGreater(families["process_resident_memory_bytes"][0][2], 1e6)

    def test_openmetrics(self):
        response = self.server.get("/metrics", headers={
            "Accept": "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"})
        self.assertEqual(response.getheader("Content-Type"),
                         "application/openmetrics-text; version=1.0.0; charset=utf-8")
        self.assertIn("gate_http_requests", self.parse(response.bytes.decode()))
        self.assertTrue(response.bytes.endswith(b"# EOF\n"))


class Logs(unittest.TestCase):
    def run_with(self, *options):
        with tempfile.TemporaryDirectory() as folder:
            server = Server(os.path.join(folder, "gate.db"), *options)
            server.get("/api/v1/runs?limit=1")
            server.get('/none"x')
            self.assertEqual(server.stop(), 0)
            return server.log

    def test_requests(self):
        # A line is written when its answer has been sent, perhaps after the next has come.
        lines = sorted((line for line in self.run_with("--log", "request").splitlines()
                        if " request " in line), key=lambda line: " status=404 " in line)
        self.assertEqual(len(lines), 2)
        self.assertRegex(lines[0], r"^gate-server: request time_ms=\d+ address=127\.0\.0\.1 "
                                   r'method="GET" status=200 bytes=\d+ us=\d+ token=- '
                                   r'target="/api/v1/runs\?limit=1"$')
        self.assertIn(r'status=404', lines[1])
        self.assertIn(r'target="/none\"x"', lines[1])

    def test_a_method_is_the_clients_text(self):
        with tempfile.TemporaryDirectory() as folder:
            server = Server(os.path.join(folder, "gate.db"), "--log", "request")
            server.raw(b"X\x1b[31m\"" + b"a" * 300 + b" / HTTP/1.1\r\nHost: 1\r\n"
                       b"Connection: close\r\n\r\n")
            self.assertEqual(server.stop(), 0)
        self.assertIn(r'method="X\u001b[31m\"' + "a" * 13 + '" ', server.log)
        self.assertNotIn("\x1b", server.log)

    def test_json(self):
        # The first line is what the test waits for, so it is JSON too.
        with tempfile.TemporaryDirectory() as folder:
            process = subprocess.Popen(
                [SERVER, "--db", os.path.join(folder, "gate.db"), "--listen", "127.0.0.1:0",
                 "--log", "request", "--log-json"], stderr=subprocess.PIPE, text=True)
            first = json.loads(process.stderr.readline())
            self.assertEqual(first["level"], "info")
            port = int(re.search(r":(\d+)/", first["message"]).group(1))
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
            connection.request("GET", "/healthz")
            connection.getresponse().read()
            connection.close()
            line = json.loads(process.stderr.readline())
            self.assertEqual((line["level"], line["method"], line["target"], line["status"]),
                             ("request", "GET", "/healthz", 200))
            process.terminate()
            process.communicate(timeout=PATIENCE)
            self.assertEqual(process.returncode, 0)

    def test_not_on_request(self):
        said = [line.split(" on ")[0] for line in self.run_with().splitlines()]
        self.assertEqual(said, ["gate-server: listening", "gate-server: stopped"])

    def test_the_first_line_says_what_is_served(self):
        self.assertRegex(self.run_with("--private", "--main-branch", "trunk"),
                         r"/ with the history '.*gate\.db': version \S+, reading takes a token, "
                         r"alerts are of branch 'trunk'\n")


if __name__ == "__main__":
    unittest.main()
