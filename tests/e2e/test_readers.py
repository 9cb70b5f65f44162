# SPDX-License-Identifier: Apache-2.0
"""What an anonymous reader can cost: memory of answers that nobody reads, names that lead here."""

import copy
import hashlib
import json
import os
import re
import socket
import sqlite3
import tempfile
import unittest
import uuid

from harness import PATIENCE, SANITIZED, SeededCase, Server, documents, token, until

READERS = 64
MOST_KIB = 200 << 10
IDLE, IDLE_KIB = 250, 70 << 10
CASES = 700
SAMPLES = 1500 * CASES  # bytes of them in a run


def resident_kib(server):
    with open(f"/proc/{server.process.pid}/status", encoding="ascii") as status:
        return int(re.search(r"VmHWM:\s+(\d+)", status.read()).group(1))


def bytes_read(server):
    """Of files, by all of its threads that there were."""
    with open(f"/proc/{server.process.pid}/io", encoding="ascii") as file:
        return int(re.search(r"rchar: (\d+)", file.read()).group(1))


def ingest_token(db):
    return token(db, "--scope", "ingest")


def status_of(server, host):
    answer = server.raw(f"GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
                        .encode())
    return int(answer.split()[1])


def newest(folder):
    """A run that the history does not have."""
    run = json.loads(documents(tempfile.mkdtemp(dir=folder), cases=9)[-1])
    run["uuid"] = str(uuid.uuid4())
    run["time_ms"] += 1000
    return run


COUNTS_READS = unittest.skipUnless(os.path.exists("/proc/self/io"), "the kernel counts no reads")


class Readers(SeededCase):
    def large_run(self, n_cases=CASES):
        """The newest run with many cases, each with samples that do not pack."""
        run = newest(self.folder.name)
        base = run["cases"][0]
        run["cases"] = [copy.deepcopy(base) for _ in range(n_cases)]
        run["verdict"], run["exit_code"] = base["verdict"], {"pass": 0, "regression": 1}.get(
            base["verdict"], 2)
        for i, case in enumerate(run["cases"]):
            case["id"] = f"{base['id']}/x{i}"
            for arm in case["arms"]:
                if isinstance(arm.get("timing", {}).get("samples_ns"), str):
                    arm["timing"]["samples_ns"] = os.urandom(SAMPLES // n_cases).hex()
        body = json.dumps(run).encode()
        response = self.server.send("/api/v1/runs", body, ingest_token(self.db))
        self.assertEqual(response.status, 201, response.bytes[:300])
        return run["uuid"], body

    @unittest.skipIf(SANITIZED, "a sanitizer keeps what was freed")
    def test_slow_readers_share_a_budget(self):
        name, body = self.large_run()
        path = f"/api/v1/runs/{name}"
        self.assertEqual(self.server.get(path).bytes, body)
        readers = []
        for i in range(READERS - 4):
            reader = socket.socket()
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            reader.connect(("127.0.0.1", self.server.port))
            reader.settimeout(PATIENCE)
            ask = path + ("", "?format=csv")[i % 2]
            reader.sendall(f"GET {ask} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            readers.append(reader)
        for reader in readers:
            self.assertTrue(reader.recv(16).startswith(b"HTTP/1.1 "))
        self.assertEqual(self.server.get("/healthz").status, 200)
        self.assertLess(resident_kib(self.server), MOST_KIB)
        for reader in readers:
            reader.close()

    def ask(self, path, source):
        """A connection on which the beginning of an answer has come, of which no more is read."""
        reader = socket.socket()
        self.addCleanup(reader.close)
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.bind((source, 0))
        reader.connect(("127.0.0.1", self.server.port))
        reader.settimeout(PATIENCE)
        reader.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        head = reader.recv(12)
        return reader, int(head.split()[1])

    def test_an_address_has_a_share_of_long_answers(self):
        path = f"/api/v1/runs/{self.large_run(500)[0]}?format=csv"
        self.assertGreater(len(self.server.get(path).bytes), 2 << 20)  # more than sockets hold
        held = [self.ask(path, "127.0.0.1") for _ in range(4)]
        self.assertEqual([status for _, status in held], [200] * 4)
        fifth = self.server.get(path)
        self.assert_problem(fifth, 429)
        self.assertGreater(int(fifth.getheader("Retry-After")), 0)
        # What is short, another address and a token have their own.
        self.assertEqual(self.server.get("/api/v1/cases?limit=1").status, 200)
        self.assertEqual(self.ask(path, "127.0.0.2")[1], 200)
        secret = ingest_token(self.db)
        self.assertEqual(
            self.server.get(path, headers={"Authorization": f"Bearer {secret}"}).status, 200)
        for reader, _ in held:
            reader.close()
        until(lambda: self.server.get(path).status == 200, "there is room again")
        # Their memory is a share, too: two of these take most of it.
        path = f"/api/v1/runs/{self.large_run(1400)[0]}?format=csv"
        held = [self.ask(path, "127.0.0.1")[1] for _ in range(3)]
        self.assertEqual(held, [200, 200, 429])

    @unittest.skipIf(SANITIZED, "a sanitizer takes more")
    def test_idle_connections_take_little(self):
        server = Server(self.db, "--max-per-address", "1024")
        idle = []
        for _ in range(IDLE):
            idle.append(socket.create_connection(("127.0.0.1", server.port), PATIENCE))
        for connection in idle:
            connection.sendall(b"GET /api/v1/cases?limit=1 HTTP/1.1\r\nHost: 1\r\n\r\n")
        for connection in idle:
            connection.settimeout(PATIENCE)
            self.assertIn(b" 200 ", connection.recv(4096))
        self.assertLess(resident_kib(server), IDLE_KIB)
        for connection in idle:
            connection.close()
        self.assertEqual(server.stop(), 0)

    def test_other_names_are_not_served(self):
        for host in ("localhost", "LOCALHOST:80", "127.0.0.1:8731", "[::1]:8731"):
            self.assertEqual(status_of(self.server, host), 200, host)
        for host in ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example"):
            self.assertEqual(status_of(self.server, host), 421, host)
        server = Server(self.db, "--allow-host", "a.example,b.example")
        for host, status in (("a.example", 200), ("B.example:80", 200), ("localhost", 200),
                             ("example", 421), ("a.example,b.example", 421)):
            self.assertEqual(status_of(server, host), status, host)
        self.assertEqual(server.stop(), 0)

    def test_a_branch_of_many_bytes_can_be_asked_for(self):
        self.assertEqual(self.server.get(f"/api/v1/runs?branch={'%E6%9E%9D' * 200}").status, 200)


class Told(SeededCase):
    def test_a_token_in_an_address_is_not_logged(self):
        server = Server(self.db, "--log", "request")
        server.get("/api/v1/runs?token=kg_abcdef012345_SECRET0123456789")
        server.stop()
        self.assertIn("token=kg_...", server.log)
        self.assertNotIn("SECRET", server.log)

    @COUNTS_READS
    def test_artifacts_are_read_once(self):
        n = 1 << 20
        pair = [b"18".ljust(n, b"x"), b"19".ljust(n, b"x")]
        names = [hashlib.sha256(body).hexdigest() for body in pair]
        self.assertEqual(names[0][:2], names[1][:2])  # what little is kept of each may not collide
        secret = token(self.db, "--scope", "artifact")
        for name, body in zip(names, pair):
            self.assertEqual(self.server.send(f"/api/v1/artifacts/{name}", body, secret, "PUT",
                                              "application/octet-stream").status, 201)
        before = bytes_read(self.server)
        for name in names * 3:
            self.assertEqual(self.server.get(f"/api/v1/artifacts/{name}", "HEAD").status, 200)
        self.assertLess(bytes_read(self.server) - before, n)
        for name in names:  # as if they had been changed
            before = bytes_read(self.server)
            os.utime(os.path.join(self.db + "-artifacts", name[:2], name))
            for _ in range(3):
                self.server.get(f"/api/v1/artifacts/{name}", "HEAD")
            self.assertIn((bytes_read(self.server) - before) // n, (1,))

    def test_numbers_at_the_ends_of_their_range_are_stored(self):
        for number in (1e-307, 1e-4, 9e14):
            run = newest(self.folder.name)
            for key in ("p50_ns", "p50_lo_ns", "p50_hi_ns", "p90_ns"):
                run["cases"][0]["arms"][0]["timing"][key] = number
            response = self.server.send("/api/v1/runs", json.dumps(run).encode(),
                                        ingest_token(self.db))
            self.assertEqual(response.status, 201, response.bytes)

    def test_what_the_tables_refuse_is_named_without_paths(self):
        run = newest(self.folder.name)
        with sqlite3.connect(self.db) as connection:  # a rule that they do not have
            connection.execute("CREATE UNIQUE INDEX other ON result (kernel)"
                               " WHERE track_id < 0 OR kernel = 'twice'")
        for case in run["cases"][:2]:
            case["arms"][0]["kernel"] = "twice"
        response = self.server.send("/api/v1/runs", json.dumps(run).encode(), ingest_token(self.db))
        with sqlite3.connect(self.db) as connection:
            connection.execute("DROP INDEX other")
        self.assertEqual(response.status, 400, response.bytes)
        text = response.bytes.decode()
        self.assertIn(run["cases"][1]["id"], text)
        for word in (self.db, "constraint", "CREATE"):
            self.assertNotIn(word, text)

    def test_a_run_ahead_of_the_servers_clock_may_come_again(self):
        run = newest(self.folder.name)
        run["time_ms"] += 20 * 365 * 86400 * 1000
        body = json.dumps(run).encode()
        response = self.server.send("/api/v1/runs", body, ingest_token(self.db))
        self.assertEqual(response.status, 503, response.bytes)

    def test_a_database_that_was_removed_takes_no_runs(self):
        path = os.path.join(self.folder.name, "other.db")
        with sqlite3.connect(self.db) as connection:
            connection.execute("VACUUM INTO ?", (path,))
        server = Server(path)
        self.assertEqual(server.get("/readyz").status, 200)
        os.rename(path, path + ".gone")
        until(lambda: server.get("/readyz").status == 503, "the server is not ready")
        os.rename(path + ".gone", path)
        until(lambda: server.get("/readyz").status == 200, "the server is ready again")
        server.stop()


if __name__ == "__main__":
    unittest.main()
