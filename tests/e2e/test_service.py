# SPDX-License-Identifier: Apache-2.0
"""gate-server as a service: systemd's sockets, readiness and watchdog, TLS, the end."""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import unittest
import warnings

from harness import (PATIENCE, ROOT, SERVER, Server, documents, read_file, renamed, token, until,
                     write_file)

class Systemd(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.db = os.path.join(self.folder.name, "gate.db")

    def start(self, environment, sockets=(), options=()):
        """Starts it as systemd does: sockets from 3 up, LISTEN_PID its own."""
        def prepare():
            for i, s in enumerate(sockets):
                os.dup2(s, 40 + i)
            for i in range(len(sockets)):
                os.dup2(40 + i, 3 + i)
                os.set_inheritable(3 + i, True)
            os.environ["LISTEN_PID"] = str(os.getpid())

        # exec keeps the pid, so a shell can say it.
        script = 'LISTEN_PID=$$ exec "$0" "$@"'
        return subprocess.Popen(
            ["/bin/sh", "-c", script, SERVER, "--db", self.db, *options],
            env={**os.environ, **environment}, stderr=subprocess.PIPE, text=True,
            close_fds=False, preexec_fn=prepare)

    def test_socket_activation(self):
        with socket.create_server(("127.0.0.1", 0)) as listening:
            port = listening.getsockname()[1]
            process = self.start({"LISTEN_FDS": "1"}, [listening.fileno()])
            self.assertIn(f"listening on http://127.0.0.1:{port}/", process.stderr.readline())
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
            connection.request("GET", "/healthz")
            self.assertEqual(connection.getresponse().status, 200)
            connection.close()
            process.terminate()
            self.assertEqual(process.wait(PATIENCE), 0)
            process.stderr.close()
            # The socket is systemd's and goes on listening: who comes now waits for the next.
            waiting = socket.create_connection(("127.0.0.1", port), PATIENCE)
            process = self.start({"LISTEN_FDS": "1"}, [listening.fileno()])
            waiting.sendall(b"GET /healthz HTTP/1.1\r\nHost: 1\r\nConnection: close\r\n\r\n")
            self.assertIn(b" 200 ", waiting.recv(4096))
            waiting.close()
            process.terminate()
            self.assertEqual(process.wait(PATIENCE), 0)
            process.stderr.close()

    def test_sockets_that_cannot_be_used(self):
        plain = socket.socket()
        unix = socket.socket(socket.AF_UNIX)
        unix.bind(os.path.join(self.folder.name, "s"))
        unix.listen()
        listening = socket.create_server(("127.0.0.1", 0))
        for sockets, words in (([plain], "not a listening TCP socket"),
                               ([unix], "not a listening TCP socket"),
                               ([listening, listening], "2 sockets were passed")):
            process = self.start({"LISTEN_FDS": str(len(sockets))},
                                 [s.fileno() for s in sockets])
            self.assertIn(words, process.communicate(timeout=PATIENCE)[1])
            self.assertEqual(process.returncode, 64)
        for s in (plain, unix, listening):
            s.close()

    def test_sockets_of_another_process_are_left(self):
        server = subprocess.Popen(
            [SERVER, "--db", self.db, "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE,
            text=True, env={**os.environ, "LISTEN_FDS": "1", "LISTEN_PID": "1"})
        self.assertIn("listening on", server.stderr.readline())
        server.terminate()
        server.communicate(timeout=PATIENCE)

    def test_it_says_how_it_is(self):
        path = os.path.join(self.folder.name, "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
            told.bind(path)
            told.settimeout(PATIENCE)
            process = self.start({"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "200000"},
                                 options=("--listen", "127.0.0.1:0"))
            self.assertEqual(told.recv(100), b"READY=1")
            for _ in range(3):
                self.assertEqual(told.recv(100), b"WATCHDOG=1")
            process.terminate()
            message = told.recv(100)
            while message == b"WATCHDOG=1":
                message = told.recv(100)
            self.assertEqual(message, b"STOPPING=1")
            self.assertEqual(process.wait(PATIENCE), 0)
            process.stderr.close()

    def test_unit_files(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("no systemd-analyze")
        for name in ("gate-server.service", "gate-server.socket"):
            text = read_file(os.path.join(ROOT, "ci", name))
            write_file(os.path.join(self.folder.name, name),
                       text.replace("/usr/local/bin/gate-server", SERVER))
        done = subprocess.run(["systemd-analyze", "verify", "--man=no",
                               *(os.path.join(self.folder.name, n) for n in
                                 ("gate-server.service", "gate-server.socket"))],
                              capture_output=True, text=True, timeout=PATIENCE)
        ours = [line for line in done.stderr.splitlines() if "gate-server" in line]
        self.assertEqual((done.returncode, ours), (0, []))
        done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=20",
                               os.path.join(self.folder.name, "gate-server.service")],
                              capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stdout[-300:])


class Tls(unittest.TestCase):
    def setUp(self):
        if not shutil.which("openssl"):
            self.skipTest("no openssl")
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.db = os.path.join(self.folder.name, "gate.db")
        self.cert = os.path.join(self.folder.name, "cert.pem")
        self.key = os.path.join(self.folder.name, "key.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", self.key, "-out",
                        self.cert, "-days", "2", "-subj", "/CN=localhost", "-addext",
                        "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)

    def test_https(self):
        process = subprocess.Popen(
            [SERVER, "--db", self.db, "--listen", "127.0.0.1:0", "--tls-cert", self.cert,
             "--tls-key", self.key], stderr=subprocess.PIPE, text=True)
        port = int(re.search(r"listening on https://127\.0\.0\.1:(\d+)/",
                             process.stderr.readline()).group(1))
        secret = token(self.db, "--scope", "ingest")
        context = ssl.create_default_context(cafile=self.cert)
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=PATIENCE,
                                                 context=context)
        for document in documents(self.folder.name, 3, 60):
            name, body = renamed(document)
            connection.request("POST", "/api/v1/runs", body,
                               {"Authorization": f"Bearer {secret}",
                                "Content-Type": "application/json"})
            response = connection.getresponse()
            self.assertEqual((response.status, json.loads(response.read())["uuid"]), (201, name))
            connection.request("GET", f"/api/v1/runs/{name}")
            self.assertEqual(connection.getresponse().read(), body)
        self.assertIn(connection.sock.version(), ("TLSv1.2", "TLSv1.3"))
        connection.close()
        old = ssl.create_default_context(cafile=self.cert)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            old.minimum_version = ssl.TLSVersion.TLSv1
            old.maximum_version = ssl.TLSVersion.TLSv1_1
        with self.assertRaises(OSError):
            http.client.HTTPSConnection("127.0.0.1", port, timeout=PATIENCE,
                                        context=old).request("GET", "/")
        process.terminate()
        rest = process.communicate(timeout=PATIENCE)[1]
        self.assertEqual(process.returncode, 0, rest)

    def test_tokens_that_would_be_sent_in_the_clear_are_warned_of(self):
        tls = ("--tls-cert", self.cert, "--tls-key", self.key)
        for listen, options, warned in (("0.0.0.0:0", (), True), ("0.0.0.0:0", tls, False),
                                        ("127.0.0.1:0", (), False)):
            process = subprocess.Popen([SERVER, "--db", self.db, "--listen", listen, *options],
                                       stderr=subprocess.PIPE, text=True)
            said = [process.stderr.readline()]
            while "listening on" not in said[-1] and said[-1]:
                said.append(process.stderr.readline())
            process.terminate()
            said += process.communicate(timeout=PATIENCE)[1].splitlines()
            self.assertEqual(process.returncode, 0, said)
            clear = [line for line in said if "in the clear" in line]
            self.assertEqual(len(clear), warned, said)
            self.assertIn("gate-server: stopped", said)

    def test_addresses_that_do_not_fit(self):
        for option, words, urls in (
                ("--public-url", "--public-url is",
                 ("gate.example", "javascript:x", "https://gate.example/#/")),
                ("--commit-url", "where the commit stands",
                 ("https://forge.example/", "javascript:%s", "https://forge.example/%s/%s"))):
            for url in urls:
                done = subprocess.run([SERVER, "--db", self.db, "--listen", "127.0.0.1:0", option,
                                       url], capture_output=True, text=True, timeout=PATIENCE)
                self.assertEqual(done.returncode, 64, done.stderr)
                self.assertIn(words, done.stderr)

    def test_files_that_do_not_fit(self):
        for options, status, words in (
                (("--tls-cert", self.cert), 64, "belong together"),
                (("--tls-cert", self.cert, "--tls-key", "/none"), 74, "/none"),
                (("--tls-cert", self.key, "--tls-key", self.cert), 74, "cannot start")):
            done = subprocess.run([SERVER, "--db", self.db, "--listen", "127.0.0.1:0", *options],
                                  capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(words, done.stderr)


class Stop(unittest.TestCase):
    def test_what_was_taken_is_stored(self):
        """SIGTERM while runs come in: each gets its answer, or its connection was closed."""
        with tempfile.TemporaryDirectory() as folder:
            db = os.path.join(folder, "gate.db")
            templates = documents(folder)
            secret = token(db, "--scope", "ingest")
            server = Server(db)
            answered, faults = [], []
            some = threading.Semaphore(0)

            def send(number):
                connection = server.connect()
                try:
                    while True:
                        name, body = renamed(templates[number % 3])
                        connection.request("POST", "/api/v1/runs", body,
                                           {"Authorization": f"Bearer {secret}",
                                            "Content-Type": "application/json"})
                        response = connection.getresponse()
                        response.read()
                        if response.status == 201:
                            answered.append(name)
                            some.release()
                        elif response.status != 503:
                            faults.append(response.status)
                except (OSError, http.client.HTTPException):
                    return
                finally:
                    connection.close()

            threads = [threading.Thread(target=send, args=(i,)) for i in range(8)]
            for thread in threads:
                thread.start()
            for _ in range(30):
                self.assertTrue(some.acquire(timeout=PATIENCE))
            self.assertEqual(server.stop(), 0, server.log)
            for thread in threads:
                thread.join(PATIENCE)
            self.assertEqual(faults, [])
            server = Server(db)
            stored = {r["uuid"] for r in server.json("/api/v1/runs?limit=500")["runs"]}
            self.assertEqual(set(answered[:500]) - stored, set())
            self.assertEqual(server.stop(signal.SIGINT), 0)

    def test_a_database_that_is_busy(self):
        """Another process has the turn to write: a run is turned away, reading goes on."""
        with tempfile.TemporaryDirectory() as folder:
            db = os.path.join(folder, "gate.db")
            _, body = renamed(documents(folder, 1)[0])
            secret = token(db, "--scope", "ingest")
            server = Server(db)
            lock = subprocess.Popen(["flock", db + "-lock", "sh", "-c", "echo held; read x"],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self.assertEqual(lock.stdout.readline(), b"held\n")
            for _ in range(2):
                response = server.send("/api/v1/runs", body, secret, patient=False)
                self.assertEqual(response.status, 503)
                self.assertGreater(int(response.getheader("Retry-After")), 0)
                self.assertEqual(server.get("/api/v1/runs").status, 200)
                self.assertEqual(server.get("/readyz").status, 200)
            lock.communicate(b"\n", timeout=PATIENCE)
            until(lambda: server.send("/api/v1/runs", body, secret).status == 201, "it is stored")
            self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    unittest.main()
