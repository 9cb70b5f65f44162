# SPDX-License-Identifier: Apache-2.0
"""What is done for a history now and then: check, backup, restore, thin."""

import contextlib
import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import tempfile
import threading
import unittest
import zlib

from harness import (PATIENCE, SERVER, Server, documents, renamed, seed, token, watched,
                     write_file)


def run(*arguments):
    return subprocess.run([SERVER, *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=PATIENCE)


class CareCase(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.db = os.path.join(self.folder.name, "gate.db")

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def check(self, *options):
        return run("check", "--db", self.db, *options)


class Check(CareCase):
    def test_a_good_one(self):
        seed(self.db, 6)
        os.chmod(self.db, 0o600)
        token(self.db, "--scope", "ingest", "--expires", "90d")
        done = self.check()
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertTrue(done.stdout.endswith("0 artifacts read\n0 faults, 0 warnings\n"),
                        done.stdout)
        self.assertFalse(os.path.exists(self.db + "-artifacts"))

    def test_settings(self):
        seed(self.db, 1)
        os.chmod(self.db, 0o600)
        key = self.path("key.pem")
        write_file(key, "key")
        os.chmod(key, 0o640)
        done = subprocess.run(["prlimit", "--nofile=1000", SERVER, "check", "--db", self.db,
                               "--listen", "0.0.0.0:80"], capture_output=True, text=True,
                              timeout=PATIENCE)
        for words in ("without TLS", "without --private", "none has the scope ingest",
                      "too few for 1024 connections"):
            self.assertIn(words, done.stdout)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.check("--tls-cert", key, "--tls-key", key, "--webhook", "http://x/?sig=key",
                          "--webhook-secret-file", self.path("none"))
        self.assertRegex(done.stdout, r"fault +\S+key.pem: others than its owner may read it")
        self.assertIn("webhook: http://x/ is not HTTPS", done.stdout)
        self.assertEqual(done.returncode, 74)
        os.chmod(self.db, 0o666)
        done = self.check()
        self.assertRegex(done.stdout, r"fault +\S+gate.db: everybody may write it")
        self.assertEqual(done.returncode, 74)

    def test_tokens(self):
        secret = token(self.db, "--scope", "admin")
        self.assertIn(f"token {secret[3:15]} (ci): may do all, for ever", self.check().stdout)
        run("token", "revoke", "--db", self.db, secret[3:15])
        self.assertNotIn("for ever", self.check().stdout)
        connection = sqlite3.connect(self.db)
        connection.execute("UPDATE token SET revoked_ms = NULL, created_ms = 1")
        connection.commit()
        connection.close()
        self.assertRegex(self.check().stdout, r"was not used for \d+ days")

    def test_branches(self):
        words = "no run is of the main branch"
        self.assertNotIn(words, self.check().stdout if run("token", "create", "--db", self.db,
                         "--name", "ci", "--scope", "ingest").returncode == 0 else words)
        seed(self.db, 6)
        self.assertNotIn(words, self.check().stdout)
        self.assertIn(f"{words} 'trunk'", self.check("--main-branch", "trunk").stdout)
        self.assertNotIn(words, self.check("--main-branch", "tune-tiles").stdout)

    def test_damage(self):
        seed(self.db, 6)
        connection = sqlite3.connect(self.db)
        connection.execute("UPDATE document SET packed = zeroblob(100) WHERE run_id = 3")
        connection.commit()
        connection.close()
        done = self.check()
        self.assertRegex(done.stdout, r"fault +database: ")
        self.assertEqual(done.returncode, 74)

    def test_a_document_that_is_none_is_an_error(self):
        seed(self.db, 6)
        text = b'{"schema": "gate-run/1"}'
        connection = sqlite3.connect(self.db)
        connection.execute("UPDATE document SET packed = ?, n_bytes = ?, sha256 = ?",
                           (zlib.compress(text), len(text), hashlib.sha256(text).digest()))
        connection.commit()
        connection.close()
        server = Server(self.db)
        uuid = json.loads(server.get("/api/v1/runs?limit=1").bytes)["runs"][0]["uuid"]
        for form in ("csv", "markdown", "brief"):
            response = server.get(f"/api/v1/runs/{uuid}?format={form}")
            self.assertEqual(response.status, 503)
            self.assertIn(b'"status"', response.bytes)

    def test_artifacts(self):
        server = Server(self.db)
        secret = token(self.db, "--scope", "artifact")
        names = []
        for body in (b"one", b"two", b"three"):
            names.append(hashlib.sha256(body).hexdigest())
            self.assertEqual(server.send(f"/api/v1/artifacts/{names[-1]}", body, secret, "PUT",
                                         "application/octet-stream").status, 201)
        # Beside the server, whose half written files are left alone.
        half = self.db + "-artifacts/incoming/half"
        with open(half, "wb") as file:
            file.write(b"half")
        self.assertIn("3 artifacts read\n0 faults", self.check().stdout)
        self.assertTrue(os.path.exists(half))
        with open(f"{self.db}-artifacts/{names[0][:2]}/{names[0]}", "ab") as file:
            file.write(b"x")
        shutil.move(f"{self.db}-artifacts/{names[1][:2]}/{names[1]}",
                    f"{self.db}-artifacts/{names[2][:2]}/{names[1]}")
        done = self.check()
        self.assertRegex(done.stdout, rf"fault +artifact {names[0]} has other bytes")
        self.assertRegex(done.stdout, rf"fault +artifact {names[1]} does not belong")
        self.assertEqual(done.returncode, 74)
        self.assertEqual(server.stop(), 0)
        self.assertEqual(Server(self.db).stop(), 0)
        self.assertFalse(os.path.exists(half))

    def test_usage(self):
        self.assertEqual(run("check").returncode, 64)
        self.assertEqual(self.check().returncode, 74)
        self.assertEqual(run("thin", "--db", self.db, "--older-than", "1d").returncode, 74)
        self.assertFalse(os.path.exists(self.db))
        for command in ("check", "backup", "restore", "thin"):
            done = run(command, "--help")
            self.assertEqual(done.returncode, 0)
            self.assertIn(f"Usage: gate-server {command}", done.stdout)


class Backup(CareCase):
    def test_round_trip_beside_a_server_that_writes(self):
        templates = documents(self.folder.name)
        secret = token(self.db, "--scope", "ingest")
        server = Server(self.db)
        stop = threading.Event()
        stored = []

        def send():
            while not stop.is_set():
                name, body = renamed(templates[0])
                if server.send("/api/v1/runs", body, secret).status == 201:
                    stored.append(name)

        thread = threading.Thread(target=send)
        thread.start()
        try:
            while len(stored) < 10:
                pass
            before = list(stored)
            done = run("backup", "--db", self.db, self.path("copy.db"))
        finally:
            stop.set()
            thread.join(PATIENCE)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(server.stop(), 0)
        done = run("restore", "--db", self.path("new.db"), self.path("copy.db"))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        server = Server(self.path("new.db"))
        there = {r["uuid"] for r in server.json("/api/v1/runs?limit=500")["runs"]}
        self.assertEqual(server.get("/api/v1/whoami", headers={
            "Authorization": f"Bearer {secret}"}).status, 200)
        self.assertEqual(server.stop(), 0)
        self.assertEqual(set(before) - there, set())
        self.assertEqual(there - set(stored), set())

    def test_nothing_is_written_over(self):
        seed(self.db, 2)
        other = self.path("other.db")
        with open(other, "wb") as file:
            file.write(b"other")
        self.assertEqual(run("backup", "--db", self.db, other).returncode, 74)
        self.assertEqual(run("restore", "--db", other, self.db).returncode, 74)
        with open(other, "rb") as file:
            self.assertEqual(file.read(), b"other")

    def test_one_that_does_not_fit_leaves_nothing(self):
        seed(self.db, 3)
        done = subprocess.run(["prlimit", "--fsize=100000", SERVER, "backup", "--db", self.db,
                               self.path("copy.db")], capture_output=True, text=True,
                              timeout=PATIENCE)
        self.assertEqual(done.returncode, 74)
        self.assertIn(f"cannot copy '{self.db}' to '{self.path('copy.db')}': ", done.stderr)
        self.assertEqual([n for n in os.listdir(self.folder.name) if n.startswith("copy")], [])

    def test_a_backup_on_a_read_only_medium(self):
        def read_only(*command):
            script = 'mount --bind . . && mount -o remount,bind,ro . && cd "$PWD" && exec "$@"'
            return subprocess.run(["unshare", "-rm", "sh", "-c", script, "-", *command],
                                  cwd=self.path("medium"), capture_output=True, timeout=PATIENCE)

        os.mkdir(self.path("medium"))
        if read_only("true").returncode != 0:
            self.skipTest("mounting is not allowed here")
        seed(self.db, 3)
        self.assertEqual(run("backup", "--db", self.db, self.path("medium/b.db")).returncode, 0)
        self.assertNotEqual(read_only("touch", "x").returncode, 0)
        done = read_only(SERVER, "check", "--db", "b.db")
        self.assertEqual(done.returncode, 0, done)
        done = read_only(SERVER, "restore", "--db", self.path("new.db"), "b.db")
        self.assertEqual(done.returncode, 0, done)
        self.assertEqual(len(Server(self.path("new.db")).json("/api/v1/runs")["runs"]), 3)

    def test_a_faulty_backup_is_not_restored(self):
        seed(self.db, 3)
        self.assertEqual(run("backup", "--db", self.db, self.path("copy.db")).returncode, 0)
        connection = sqlite3.connect(self.path("copy.db"))
        connection.execute("DELETE FROM document WHERE run_id = 2")
        connection.commit()
        connection.close()
        done = run("restore", "--db", self.path("new.db"), self.path("copy.db"))
        self.assertEqual(done.returncode, 74)
        self.assertRegex(done.stdout, "^fault ")
        self.assertFalse(os.path.exists(self.path("new.db")))
        self.assertEqual(run("backup", "--db", self.path("none.db"), self.path("x")).returncode, 74)

    def test_usage(self):
        self.assertEqual(run("backup", "--db", self.db).returncode, 64)
        self.assertEqual(run("backup", "x").returncode, 64)
        self.assertEqual(run("restore", "--db", self.db, "a", "b").returncode, 64)


class Thin(CareCase):
    def samples(self):
        connection = sqlite3.connect(self.db)
        row = connection.execute("SELECT count(*), sum(has_samples) FROM document").fetchone()
        connection.close()
        return row

    def test_by_command(self):
        seed(self.db, 50)
        n, with_samples = self.samples()
        self.assertEqual(n, 50)
        done = run("thin", "--db", self.db, "--older-than", "1000000d")
        self.assertEqual((done.returncode, done.stdout), (0, "0 runs thinned\n"))
        done = run("thin", "--db", self.db, "--older-than", "1d")
        self.assertEqual((done.returncode, done.stdout), (0, f"{with_samples} runs thinned\n"))
        self.assertEqual(self.samples(), (50, 0))
        self.assertIn("0 faults", self.check().stdout)
        self.assertEqual(run("thin", "--db", self.db).returncode, 64)
        self.assertEqual(run("thin", "--db", self.db, "--older-than", "1").returncode, 64)

    def test_by_the_server(self):
        seed(self.db, 20)
        self.assertNotEqual(self.samples()[1], 0)
        server = Server(self.db, "--keep-samples", "1d")
        until = threading.Event()
        for _ in range(PATIENCE * 20):
            if self.samples() == (20, 0):
                break
            until.wait(0.05)
        self.assertEqual(self.samples(), (20, 0))
        self.assertEqual(server.stop(), 0)

    def test_a_document_that_cannot_be_thinned_does_not_hold_up_the_watch(self):
        seed(self.db, 20)
        with contextlib.closing(sqlite3.connect(self.db)) as connection:
            connection.execute("UPDATE document SET packed = x'00' WHERE run_id ="
                               " (SELECT min(run_id) FROM document WHERE has_samples = 1)")
            connection.commit()
        server = Server(self.db, "--keep-samples", "1d")
        watched(self.db)
        self.assertEqual(server.stop(), 0)
        self.assertIn("cannot", server.log)


if __name__ == "__main__":
    unittest.main()
