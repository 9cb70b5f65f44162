# SPDX-License-Identifier: Apache-2.0
"""gate-server as a black box: addresses, errors, tags, hostile input, readers beside a writer.

sanitized: the server reads requests
"""

import ctypes
import errno
import http.client
import json
import os
import re
import signal
import socket
import struct
import subprocess
import tempfile
import time
import threading
import unittest

from harness import (GEMV, GPU, N_CASES, PATIENCE, SEED, SERVER, SeededCase, Server, seed, watched,
                     write_file)

OPENAT2 = 437


def refuse_openat2():
    """As a container does that does not know the call: a seccomp filter of this process."""
    load, jump_if_equal, answer = 0x20, 0x15, 0x06
    rules = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *rule) for rule in (
        (load, 0, 0, 0), (jump_if_equal, 0, 1, OPENAT2),
        (answer, 0, 0, 0x50000 | errno.EPERM), (answer, 0, 0, 0x7fff0000))))
    program = struct.pack("HxxxxxxP", 4, ctypes.addressof(rules))
    call = ctypes.CDLL(None).prctl
    if call(38, 1, 0, 0, 0) or call(22, 2, program, 0, 0):
        raise OSError("the filter is not taken")


class Endpoints(SeededCase):
    def test_runs_in_pages(self):
        seen, path = [], "/api/v1/runs?limit=7"
        while path:
            page = self.server.json(path)
            self.assertLessEqual(len(page["runs"]), 7)
            seen += page["runs"]
            path = page["next"] and f"/api/v1/runs?limit=7&after={page['next']}"
        self.assertEqual([r["uuid"] for r in seen], self.uuids[::-1])
        times = [r["time_ms"] for r in seen]
        self.assertEqual(times, sorted(times, reverse=True))
        for run in seen:
            self.assertEqual(sum(run["verdicts"].values()), run["cases"])

    def test_a_page_that_ends_the_list_has_no_next(self):
        self.assertIsNone(self.server.json(f"/api/v1/runs?limit={len(self.uuids)}")["next"])
        self.assertIsNotNone(self.server.json(f"/api/v1/runs?limit={len(self.uuids) - 1}")["next"])

    def test_run_document(self):
        for uuid in (self.uuids[0], self.uuids[-1]):
            document = self.server.json(f"/api/v1/runs/{uuid}")
            self.assertEqual(document["uuid"], uuid)
            self.assertEqual(document["schema"], "gate-run/1")
            self.assertEqual(len(document["cases"]), N_CASES)
        self.assertEqual(self.server.json(f"/api/v1/runs/{self.uuids[3][:8]}")["uuid"],
                         self.uuids[3])

    def test_health(self):
        response = self.server.get("/healthz")
        self.assertEqual((response.status, json.loads(response.bytes)), (200, {"status": "ok"}))

    def test_pages_run_their_own_scripts_alone(self):
        for path in ("/", "/none"):
            response = self.server.get(path)
            policy = response.getheader("Content-Security-Policy")
            for part in ("default-src 'none'", "script-src 'self'", "style-src 'self'",
                         "img-src 'self'", "connect-src 'self'", "base-uri 'none'",
                         "frame-ancestors 'none'"):
                self.assertIn(part, policy, path)
            self.assertNotIn("unsafe", policy)
            self.assertEqual(response.getheader("X-Content-Type-Options"), "nosniff")
            self.assertEqual(response.getheader("Referrer-Policy"), "no-referrer")
            self.assertEqual(response.getheader("Cross-Origin-Opener-Policy"), "same-origin")

    def test_data_runs_nothing(self):
        for path in ("/api/v1/runs", "/api/v1/none", "/healthz", "/api/v1/runs?x=1",
                     "/api/v1/leaderboard?format=csv"):
            response = self.server.get(path)
            self.assertEqual(response.getheader("Content-Security-Policy"),
                             "default-src 'none'; frame-ancestors 'none'", path)
            self.assertEqual(response.getheader("X-Content-Type-Options"), "nosniff")
            self.assertEqual(response.getheader("Cross-Origin-Resource-Policy"), "same-origin")


class Tags(SeededCase):
    def test_gzip_has_a_tag_of_its_own(self):
        forms = {value: self.server.get("/api/v1/cases", headers={"Accept-Encoding": value})
                 for value in ("identity", "gzip")}
        self.assertEqual(forms["gzip"].getheader("Content-Encoding"), "gzip")
        tags = [form.getheader("ETag") for form in forms.values()]
        self.assertEqual(len(set(tags)), 2)
        for value, tag in zip(forms, tags):
            again = self.server.get("/api/v1/cases", headers={"Accept-Encoding": value,
                                                              "If-None-Match": tag})
            self.assertEqual(again.status, 304, value)

    def test_304_without_a_body(self):
        for path in (*self.pages(), "/feed.atom", "/api/v1/runs", f"/api/v1/cases?device={GPU}",
                     f"/api/v1/runs/{self.uuids[0]}"):
            first = self.server.get(path)
            tag = first.getheader("ETag")
            self.assertRegex(tag, r'^"[0-9a-f]{16}"$')
            self.assertEqual(first.getheader("Cache-Control"), "no-cache")
            for value in (tag, f'"other", W/{tag}'):
                again = self.server.get(path, headers={"If-None-Match": value})
                self.assertEqual((again.status, again.bytes), (304, b""), path)
                self.assertEqual(again.getheader("ETag"), tag)
            other = self.server.get(path, headers={"If-None-Match": '"0000000000000000"'})
            self.assertEqual((other.status, other.bytes), (200, first.bytes))

    def test_each_address_has_a_tag_of_its_own(self):
        paths = ("/api/v1/runs", "/api/v1/runs?limit=3", "/api/v1/cases", "/api/v1/devices")
        self.assertEqual(len({self.server.get(p).getheader("ETag") for p in paths}), len(paths))

    def test_bad_requests_have_no_304(self):
        for path in ("/api/v1/runs?limit=0", "/api/v1/runs/ffff", "/none"):
            self.assertIn(self.server.get(path, headers={"If-None-Match": "*"}).status, (400, 404))

    def test_tags_over_restarts_and_new_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            db = os.path.join(folder, "gate.db")
            seed(db, 4)
            server = Server(db)
            watched(db)
            tag = server.get("/api/v1/runs").getheader("ETag")
            self.assertEqual(server.stop(), 0)
            server = Server(db)
            self.assertEqual(server.get("/api/v1/runs", headers={"If-None-Match": tag}).status, 304)
            seed(db, 1, number=2)  # another process adds a run
            response = server.changed("/api/v1/runs", tag)
            self.assertEqual(response.status, 200)
            self.assertEqual(len(json.loads(response.bytes)["runs"]), 5)
            self.assertEqual(server.stop(), 0)
            # A new file with the same runs is another history.
            os.remove(db)
            seed(db, 4)
            server = Server(db)
            self.assertEqual(server.get("/api/v1/runs", headers={"If-None-Match": tag}).status, 200)
            self.assertEqual(server.stop(), 0)


class Many(SeededCase):
    """Requests on one connection, whose answers nobody reads yet."""

    runs = 80
    path = "/api/v1/runs?limit=200"

    def test_a_client_that_reads_slowly(self):
        whole = self.server.get(self.path)
        self.assertEqual(whole.status, 200)
        self.server.get(self.path)
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(("127.0.0.1", self.server.port))
            connection.settimeout(PATIENCE)
            request = f"GET {self.path} HTTP/1.1\r\nHost: 1\r\n\r\n".encode()
            # More than the sockets hold, while a newer state comes up.
            n = 200
            connection.sendall(request * n)
            answers = connection.makefile("rb")

            def read_answer():
                head = b""
                while not head.endswith(b"\r\n\r\n"):
                    head += answers.readline()
                return answers.read(int(re.search(rb"Content-Length: (\d+)", head).group(1)))

            bodies = {read_answer()}  # or it might have begun with none of them yet
            seed(self.db, 1, number=3)
            self.server.get(self.path)
            self.server.get(self.path)
            # Of the old state, or the new one; each of them whole.
            bodies.update(read_answer() for _ in range(n - 1))
        self.assertIn(whole.bytes, bodies)
        self.assertLessEqual(bodies, {whole.bytes, self.server.get(self.path).bytes})


class Refusals(SeededCase):
    def test_head(self):
        for path in (*self.pages(), "/api/v1/runs", f"/api/v1/runs/{self.uuids[0]}", "/healthz"):
            head, get = self.server.get(path, "HEAD"), self.server.get(path)
            self.assertEqual((head.status, head.bytes), (200, b""))
            self.assertEqual(head.getheader("Content-Length"), str(len(get.bytes)))
            self.assertEqual(head.getheader("ETag"), get.getheader("ETag"))
        self.assertEqual(self.server.get("/api/v1/none", "HEAD").status, 404)

    def test_other_methods(self):
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "get"):
            response = self.server.get("/api/v1/cases", method)
            self.assert_problem(response, 405)
            self.assertEqual(response.getheader("Allow"), "GET, HEAD")
        for path, methods in (("/api/v1/runs", "GET, HEAD, POST"),
                              ("/api/v1/artifacts/x", "GET, HEAD, PUT"), ("/", "GET, HEAD")):
            response = self.server.get(path, "DELETE")
            self.assert_problem(response, 405)
            self.assertEqual(response.getheader("Allow"), methods)
        response = self.server.get("/api/v1/cases", "POST", {"Content-Length": "4"}, b"{}\r\n")
        self.assert_problem(response, 405)

    def test_unknown_addresses(self):
        for path in ("/api", "/api/", "/api/v1", "/api/v1/", "/api/v2/runs", "/api/v1/run",
                     "/api/v1/runsx", "/api/v1/runs/x/y", "/api/v1/runs/", "/api/v1/runs/abc",
                     "/api/v1/runs/%2e%2e", "/api/v1/runs/" + "0" * 36, "/api/v1/RUNS"):
            self.assert_problem(self.server.get(path), 404)
        for path in ("/none", "/index.htm", "/index.html/", "//", "/healthz/", "/api.html"):
            response = self.server.get(path)
            self.assertEqual(response.status, 404, path)
            self.assertEqual(response.getheader("Content-Type"), "text/plain; charset=utf-8")

    def test_parameters_are_strict(self):
        trend = f"/api/v1/trends?case={GEMV}&device={GPU}"
        for path in ("/api/v1/runs?x=1", "/api/v1/runs?Limit=1", "/api/v1/runs?limit=",
                     "/api/v1/runs?limit=0", "/api/v1/runs?limit=-1", "/api/v1/runs?limit=501",
                     "/api/v1/runs?limit=1e2", "/api/v1/runs?limit=%201", "/api/v1/runs?limit=1x",
                     "/api/v1/runs?limit=99999999999999999999", "/api/v1/runs?limit",
                     "/api/v1/runs?limit=1&limit=1", "/api/v1/runs?limit=1&%6cimit=2",
                     "/api/v1/runs?=1", "/api/v1/runs?&", "/api/v1/runs?after=1",
                     "/api/v1/runs?after=x,y", f"/api/v1/runs?after=-1,{self.uuids[0]}",
                     f"/api/v1/runs/{self.uuids[0]}?limit=1", "/api/v1/devices?device=a",
                     "/api/v1/cases?device=", "/api/v1/cases?device=A",
                     "/api/v1/cases?device=" + "a" * 65, "/api/v1/cases?device=a'b",
                     "/api/v1/trends", f"/api/v1/trends?case={GEMV}",
                     f"/api/v1/trends?device={GPU}", trend + "&limit=10001",
                     trend + "&provider=a/b", trend + "&provider=", trend + "&case=x",
                     "/api/v1/runs?" + "&".join(f"p{i}=1" for i in range(40))):
            with self.subTest(path):
                self.assert_problem(self.server.get(path), 400)

    def test_hostile_addresses(self):
        for path in ("/api/v1/runs%00", "/api/v1/runs?limit=1%00", "/%00", "/app.js%00.html",
                     "/%", "/%g0", "/%1", "/api/v1/runs?limit=%", "/%ff", "/%c0%af", "/%ed%a0%80",
                     "/%0a", "/%7f", "/api/v1/cases?device=%0d%0aSet-Cookie:x"):
            with self.subTest(path):
                self.assert_problem(self.server.get(path), 400)
        for path in ("/../server/main.c", "/..%2f..%2fetc/passwd", "/./app.js", "/web/../app.js",
                     "/%2e%2e/%2e%2e/etc/passwd", "/.git/config", "/app.js/..", "/etc/passwd",
                     "/\\..\\x.js", "/" + "a/" * 900 + "x.js"):
            with self.subTest(path):
                self.assertEqual(self.server.get(path).status, 404)

    def test_sizes(self):
        self.assert_problem(self.server.get("/api/v1/runs?x=" + "a" * 4200), 414)
        self.assert_problem(self.server.get("/api/v1/runs?x=" + "a" * 4200, "POST"), 414)
        self.assert_problem(self.server.get("/%zz", "PUT"), 400)
        self.assertEqual(self.server.get("/" + "a" * 2000).status, 404)
        self.assertIn(self.server.get("/" + "a" * 60000).status, (414, 431))
        response = self.server.get("/healthz", headers={"X-Large": "a" * 60000})
        self.assertEqual(response.status, 431)

    def test_bodies_are_not_let_in(self):
        smuggled = b"GET /healthz HTTP/1.1\r\nHost: 1\r\n\r\n"
        for head in (b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
                     b"Content-Length: 3\r\nContent-Length: 0\r\n",
                     b"Transfer-Encoding: xchunked\r\n",
                     b"Transfer-Encoding: chunked\r\n",
                     b"Content-Length: 5\r\n"):
            with self.subTest(head):
                answer = self.server.raw(b"GET /healthz HTTP/1.1\r\nHost: 1\r\n" + head +
                                         b"\r\n0\r\n\r\n" + smuggled)
                self.assertTrue(answer.startswith(b"HTTP/1.1 400 "), answer)
                self.assertEqual(answer.count(b"HTTP/1.1 "), 1, answer)

    def test_what_is_not_http(self):
        for request in (b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n",
                        b"GET / HTTP/9.9\r\nHost: 1\r\n\r\n", b"\x16\x03\x01\x02\x00" * 40,
                        b"GET http://other/ HTTP/1.1\r\nHost: 1\r\n\r\n",
                        b"GET * HTTP/1.1\r\nHost: 1\r\n\r\n",
                        b"GET / HTTP/1.1\r\nHost : x\r\n\r\n"):
            with self.subTest(request):
                answer = self.server.raw(request)
                self.assertNotIn(b" 200 ", answer.split(b"\r\n")[0])
        self.assertEqual(self.server.get("/healthz").status, 200)

    def test_one_connection_serves_many(self):
        connection = self.server.connect()
        for i in range(50):
            connection.request("GET", "/api/v1/runs?limit=1" if i % 2 else "/none")
            response = connection.getresponse()
            response.read()
            self.assertEqual(response.status, 200 if i % 2 else 404)
        connection.close()


class Concurrency(unittest.TestCase):
    def test_readers_beside_a_writer(self):
        with tempfile.TemporaryDirectory() as folder:
            db = os.path.join(folder, "gate.db")
            seed(db, 2)
            server = Server(db)
            writer = subprocess.Popen([SEED, db, "120", "12", "2", "5"], stdout=subprocess.PIPE)
            faults, counts, written, done = [], [], [], threading.Event()

            def read(paths):
                connection = server.connect()
                last = 0
                try:
                    until = time.monotonic() + PATIENCE
                    while not done.is_set() or (last < 2 + len(written) and
                                                time.monotonic() < until):
                        for path in paths:
                            connection.request("GET", path)
                            response = connection.getresponse()
                            body = json.loads(response.read())
                            if response.status != 200:
                                faults.append((path, response.status, body))
                            if path.startswith("/api/v1/runs"):
                                runs = body["runs"]
                                if len(runs) < last:
                                    faults.append(("fewer runs than before", last, len(runs)))
                                last = len(runs)
                                for run in runs:
                                    if sum(run["verdicts"].values()) != run["cases"]:
                                        faults.append(("half a run", run))
                    counts.append(last)
                except Exception as error:  # shown by the assertion below
                    faults.append(error)
                finally:
                    connection.close()

            runs = "/api/v1/runs?limit=500&columns=verdicts,cases"  # short: no share is full
            trends = f"/api/v1/trends?case={GEMV}&device={GPU}"
            threads = [threading.Thread(target=read, args=(paths,)) for paths in
                       ([runs], [runs, trends], ["/api/v1/cases", runs],
                        ["/api/v1/leaderboard", runs], ["/api/v1/devices", runs, "/healthz"])]
            for thread in threads:
                thread.start()
            written += writer.communicate(timeout=PATIENCE)[0].split()
            done.set()
            for thread in threads:
                thread.join(PATIENCE)
            self.assertEqual(writer.returncode, 0)
            self.assertEqual(server.stop(), 0)
            self.assertEqual(faults, [])
            self.assertEqual(counts, [2 + len(written)] * len(threads))

    def test_more_connections_than_there_is_room_for(self):
        with tempfile.TemporaryDirectory() as folder:
            db = os.path.join(folder, "gate.db")
            seed(db, 2)
            server = Server(db)
            sockets = [socket.create_connection(("127.0.0.1", server.port), PATIENCE)
                       for _ in range(300)]
            for s in sockets:
                s.close()
            # There is room again when the server has seen that they are gone.
            until = time.monotonic() + PATIENCE
            while True:
                try:
                    self.assertEqual(server.get("/healthz").status, 200)
                    break
                except ConnectionError:
                    self.assertLess(time.monotonic(), until, "there is no room any more")
            self.assertEqual(server.stop(), 0)


class Life(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.db = os.path.join(self.folder.name, "gate.db")

    def fails(self, status, words, *arguments):
        done = subprocess.run([SERVER, *arguments], stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stdout, b"")
        self.assertRegex(done.stderr.decode(), words)
        self.assertTrue(done.stderr.startswith(b"gate-server: "), done.stderr)

    def test_usage(self):
        self.fails(64, "--db FILE is missing")
        self.fails(64, "option '--db' needs a value", "--db")
        self.fails(64, "unknown or unexpected option '--nonsense'", "--nonsense")
        self.fails(64, "unexpected argument 'more'", "--db", self.db, "more")
        seed(self.db, 1)
        self.fails(64, "--listen is ''", "--db", self.db, "--listen", "")
        for address in ("8731", "127.0.0.1", "127.0.0.1:", ":1", "127.0.0.1:65536",
                        "127.0.0.1:-1", "127.0.0.1:1x", "localhost:0", "::1:0", "[::1:0",
                        "1.2.3.4.5:0", "a" * 300 + ":1"):
            self.fails(64, "is not an address to listen on", "--db", self.db, "--listen", address)
        self.fails(74, "cannot open the folder", "--db", self.db, "--listen", "127.0.0.1:0",
                   "--web-root", os.path.join(self.folder.name, "none"))

    def test_help_and_version(self):
        for option, words in (("--help", "Usage: gate-server"), ("--version", "gate-server "),
                              ("-h", "Usage: gate-server"), ("-V", "gate-server ")):
            done = subprocess.run([SERVER, option], capture_output=True, timeout=PATIENCE)
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            self.assertIn(words, done.stdout.decode())

    def test_databases_that_cannot_be_served(self):
        listen = ("--listen", "127.0.0.1:0")
        for content, words in ((b"text\n", "not a database"),
                               (b"SQLite format 3\0" + b"\0" * 2000, "not a database|damaged")):
            with open(self.db, "wb") as file:
                file.write(content)
            self.fails(74, words, "--db", self.db, *listen)
            with open(self.db, "rb") as file:
                self.assertEqual(file.read(), content)
        self.fails(74, "not a regular file", "--db", self.folder.name, *listen)
        self.fails(74, "cannot open", "--db", os.path.join(self.folder.name, "no", "gate.db"),
                   *listen)

    def test_a_database_is_made(self):
        server = Server(self.db)
        self.assertEqual(server.json("/api/v1/runs")["runs"], [])
        self.assertEqual(server.stop(), 0)
        with open(self.db, "rb") as file:
            self.assertEqual(file.read(16), b"SQLite format 3\0")
        self.assertEqual(Server(self.db).stop(), 0)
        # Nothing is left over: all was moved into the file.
        self.assertEqual(sorted(os.listdir(self.folder.name)), ["gate.db", "gate.db-lock"])

    def test_port_that_is_taken(self):
        seed(self.db, 1)
        server = Server(self.db)
        self.fails(74, "name another port with --listen", "--db", self.db, "--listen",
                   f"127.0.0.1:{server.port}")
        self.assertEqual(server.stop(), 0)

    def test_empty_history(self):
        seed(self.db, 0)
        server = Server(self.db)
        self.assertEqual(server.json("/api/v1/runs"), {"runs": [], "next": None})
        self.assertEqual(server.json("/api/v1/devices"), {"devices": []})
        for name, key in (("leaderboard", "leaders"), ("baselines", "baselines"),
                          ("calibrations", "calibrations")):
            self.assertEqual(server.json(f"/api/v1/{name}"), {key: [], "next": None})
        self.assertEqual(server.stop(), 0)

    def test_signals_end_it(self):
        seed(self.db, 2)
        for number in (signal.SIGTERM, signal.SIGINT):
            server = Server(self.db)
            idle = server.connect()  # a connection that is kept open does not keep it running
            idle.request("GET", "/healthz")
            idle.getresponse().read()
            self.assertEqual(server.stop(number), 0)
            idle.close()
            with self.assertRaises(OSError):
                socket.create_connection(("127.0.0.1", server.port), PATIENCE)

    def test_ipv6(self):
        seed(self.db, 1)
        try:
            socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        except OSError as error:
            self.skipTest(f"no IPv6 loopback: {error}")
        process = subprocess.Popen([SERVER, "--db", self.db, "--listen", "[::1]:0"],
                                   stderr=subprocess.PIPE)
        line = process.stderr.readline().decode()
        port = re.search(r"listening on http://\[::1\]:(\d+)/", line)
        self.assertTrue(port, line)
        connection = http.client.HTTPConnection("::1", int(port.group(1)), timeout=PATIENCE)
        connection.request("GET", "/healthz")
        self.assertEqual(connection.getresponse().status, 200)
        connection.close()
        process.terminate()
        process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 0)

    def test_web_root(self):
        seed(self.db, 1)
        root = os.path.join(self.folder.name, "web")
        outside = os.path.join(self.folder.name, "outside")
        os.makedirs(os.path.join(root, "sub"))
        os.makedirs(outside)

        def write(path, text):
            write_file(os.path.join(self.folder.name, path), text)

        write("outside/secret.js", "secret")
        write("web/index.html", "one")
        write("web/sub/a.js", "a")
        write("web/.hidden.js", "hidden")
        write("web/key.pem", "key")
        os.symlink(os.path.join(outside, "secret.js"), os.path.join(root, "link.js"))
        os.symlink(outside, os.path.join(root, "dir"))
        os.symlink("a.js", os.path.join(root, "sub", "again.js"))
        os.mkfifo(os.path.join(root, "pipe.js"))
        os.mkdir(os.path.join(root, "folder.js"))
        server = Server(self.db, "--web-root", root)
        self.assertEqual(server.get("/").bytes, b"one")
        self.assertEqual(server.get("/sub/a.js").bytes, b"a")
        for path in ("/link.js", "/sub/again.js", "/dir/secret.js", "/../outside/secret.js",
                     "/.hidden.js", "/key.pem", "/pipe.js", "/folder.js", "/sub", "/sub/",
                     "/sub//a.js", "/sub/../index.html", "/%2e%2e/outside/secret.js", "/app.js"):
            self.assertEqual(server.get(path).status, 404, path)
        tag = server.get("/").getheader("ETag")
        self.assertEqual(server.get("/", headers={"If-None-Match": tag}).status, 304)
        write("web/index.html", "two")
        response = server.get("/", headers={"If-None-Match": tag})
        self.assertEqual((response.status, response.bytes), (200, b"two"))
        self.assertEqual(server.stop(), 0)

    def test_web_root_without_openat2(self):
        """A page of which no file can be opened would be one that is not there."""
        done = subprocess.run([SERVER, "--db", self.db, "--web-root", self.folder.name],
                              preexec_fn=refuse_openat2, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 74, done.stderr)
        self.assertIn(b"openat2", done.stderr)


if __name__ == "__main__":
    unittest.main()
