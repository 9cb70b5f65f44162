# SPDX-License-Identifier: Apache-2.0
"""Who may write, and who may read from a server that runs with --private.

sanitized: the server reads tokens
"""

import contextlib
import json
import os
import re
import sqlite3
import subprocess
import tempfile
import unittest

from harness import PATIENCE, SERVER, Server, documents, renamed, seed, token, until


def run(*arguments):
    return subprocess.run([SERVER, "token", *arguments], stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=PATIENCE)


class AuthCase(unittest.TestCase):
    options = ()

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.db = os.path.join(self.folder.name, "gate.db")
        self.documents = documents(self.folder.name, 1)
        self.server = None
        self.start(*self.options)
        self.addCleanup(lambda: self.server.stop())

    def start(self, *options):
        if self.server:
            self.assertEqual(self.server.stop(), 0, self.server.log)
        self.server = Server(self.db, *options)

    def get(self, path, secret=None, method="GET", **headers):
        if secret:
            headers["Authorization"] = f"Bearer {secret}"
        return self.server.get(path, method, headers)

    def post(self, secret):
        return self.server.send("/api/v1/runs", renamed(self.documents[0])[1], secret)


class Writing(AuthCase):
    def test_scopes(self):
        for scope, status in (("ingest", 201), ("admin", 201), ("ingest,artifact", 201),
                              ("artifact", 403), ("read", 403)):
            self.assertEqual(self.post(token(self.db, "--scope", scope)).status, status, scope)
        response = self.post(None)
        self.assertEqual(response.status, 401)
        self.assertTrue(response.getheader("WWW-Authenticate").startswith("Bearer"))
        self.assertEqual(response.getheader("Connection"), "close")

    def test_what_is_no_token(self):
        good = token(self.db, "--scope", "ingest")
        for bad in (good[:-1], good + "0", good.upper(), "kg__", good[:-1] + "x",
                    good[:20] + "0" * 60, "kg_000000000000_" + good[16:]):
            response = self.post(bad)
            self.assertEqual(response.status, 401, bad)
            self.assertNotIn(bad, response.bytes.decode())
        others = (good[:i] + ("1" if good[i] == "0" else "0") + good[i + 1:]
                  for i in range(len(good)))
        for value in (f"Bearer  {good}", "Bearer", "bearer x", f"Bearer {good} x",
                      *(f"Bearer {other}" for other in others)):
            response = self.get("/api/v1/whoami", Authorization=value)
            self.assertEqual(response.status, 401, value)
        self.assertEqual(self.post(good).status, 201)
        # The name of the scheme has no case.
        response = self.get("/api/v1/whoami", Authorization=f"bearer {good}")
        self.assertEqual(json.loads(response.bytes)["scopes"], ["read", "ingest"])

    def test_another_scheme_is_a_proxys_matter(self):
        good = token(self.db, "--scope", "ingest")
        for value in (good, f"Basic {good}", "Bearerx", "Negotiate"):
            response = self.get("/api/v1/whoami", Authorization=value)
            self.assertEqual(response.status, 200, value)
            self.assertEqual(json.loads(response.bytes), {"scopes": ["read"], "name": None})
            response = self.get("/api/v1/runs", method="POST", Authorization=value,
                                Content_Length="0")
            self.assertEqual(response.status, 401, value)
        for value in ("Basic dTpw", "Bearer x", f"Bearer {good}"):
            for path in ("/healthz", "/readyz", "/"):
                self.assertEqual(self.get(path, Authorization=value).status,
                                 self.get(path).status, (path, value))

    def test_it_takes_effect_without_a_restart(self):
        secret = token(self.db, "--scope", "ingest")
        self.assertEqual(self.post(secret).status, 201)
        self.assertEqual(run("revoke", "--db", self.db, secret[3:15]).returncode, 0)
        self.assertEqual(self.post(secret).status, 401)
        self.assertEqual(self.get("/api/v1/whoami", secret).status, 401)
        again = run("revoke", "--db", self.db, secret[3:15])
        self.assertEqual(again.returncode, 64)
        self.assertIn(b"no valid token", again.stderr)

    def test_expiry(self):
        secret = token(self.db, "--scope", "ingest", "--expires", "1s")
        until(lambda: self.get("/api/v1/whoami", secret).status == 401, "it has expired")
        self.assertEqual(self.post(secret).status, 401)
        self.assertIn(" expired ", run("list", "--db", self.db).stdout.decode())

    def test_last_use_is_written(self):
        # Of each: also of one that is used once, and at the time of others.
        secrets = [token(self.db, "--scope", "ingest") for _ in range(3)]
        self.assertEqual(len({part for s in secrets for part in (s[:15], s[16:])}), 6)
        self.assertIn("used never", run("list", "--db", self.db).stdout.decode())

        def are_written():
            for secret in secrets:
                self.assertEqual(self.get("/api/v1/whoami", secret).status, 200)
            return "used never" not in run("list", "--db", self.db).stdout.decode()

        def last_use(change=""):
            with contextlib.closing(sqlite3.connect(self.db)) as connection, connection:
                connection.execute(f"UPDATE token SET last_used_ms = last_used_ms {change}")
                return connection.execute("SELECT last_used_ms FROM token").fetchall()

        until(are_written, "each use is written down")  # one beside another write is not
        written = last_use()
        self.assertTrue(are_written())
        self.assertEqual(last_use("- 60000"), [(ms - 60000,) for ms, in written])
        until(lambda: are_written() and min(last_use()) >= min(written), "once in a minute")
        ahead = last_use("+ 3600000")  # the clock was ahead, and was set back
        self.assertTrue(are_written())
        self.assertEqual(last_use(), ahead)

    def test_whoami(self):
        answer = json.loads(self.get("/api/v1/whoami").bytes)
        self.assertEqual(answer, {"scopes": ["read"], "name": None})
        secret = token(self.db, "--scope", "admin")
        response = self.get("/api/v1/whoami", secret)
        self.assertEqual(json.loads(response.bytes), {"scopes": ["read", "admin"], "name": "ci"})
        self.assertEqual(response.getheader("Cache-Control"), "no-store")
        self.assertEqual(self.get("/api/v1/whoami?x=1").status, 400)


class Private(AuthCase):
    options = ("--private",)

    def test_a_revoked_token_reads_no_more(self):
        """Though the readers go on with the state that they have read."""
        secret = token(self.db, "--scope", "read")
        for limit in range(1, 9):
            self.assertEqual(self.get(f"/api/v1/runs?limit={limit}", secret).status, 200)
        self.assertEqual(run("revoke", "--db", self.db, secret[3:15]).returncode, 0)
        for limit in range(1, 9):
            self.assertEqual(self.get(f"/api/v1/runs?limit={limit}", secret).status, 401)

    def test_another_scheme_is_no_token(self):
        self.assertEqual(self.get("/api/v1/runs", Authorization="Basic dTpw").status, 401)
        self.assertEqual(self.get("/healthz", Authorization="Basic dTpw").status, 200)

    def test_reading_takes_a_token(self):
        secret = token(self.db, "--scope", "artifact")  # of whatever scope
        for path in ("/api/v1/runs", "/api/v1/whoami", "/feed.atom", "/metrics",
                     "/api/v1/artifacts/" + "0" * 64):
            response = self.get(path)
            self.assertEqual(response.status, 401, path)
            self.assertTrue(response.getheader("WWW-Authenticate"))
            self.assertNotEqual(self.get(path, secret).status, 401, path)
        for path in ("/healthz", "/readyz"):
            self.assertEqual(self.get(path).status, 200, path)

    def test_the_page_can_be_loaded(self):
        page = self.get("/")
        if "app.js" not in page.bytes.decode():
            self.skipTest("built with WEB=0")
        self.assertEqual(page.status, 200)
        for name in re.findall(rb'src="([^"]+)"', page.bytes):
            self.assertEqual(self.get("/" + name.decode()).status, 200, name)

    def test_nobody_else_may_keep_it(self):
        secret = token(self.db, "--scope", "read")
        response = self.get("/api/v1/runs", secret)
        self.assertIn("private", response.getheader("Cache-Control"))
        self.assertIn("Authorization", response.getheader("Vary"))
        tag = response.getheader("ETag")
        self.assertEqual(self.get("/api/v1/runs", **{"If-None-Match": tag}).status, 401)
        self.assertEqual(self.get("/api/v1/runs", secret, **{"If-None-Match": tag}).status, 304)


class Command(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.db = os.path.join(self.folder.name, "gate.db")

    def test_usage(self):
        create = ("create", "--db", self.db)
        for words, arguments in (
                ("an action is missing", ()), ("nothing to do", ("make", "--db", self.db)),
                ("--db FILE is missing", ("list",)), ("'token create' needs --name", create),
                ("'token create' needs --scope", (*create, "--name", "a")),
                ("--name belongs to 'token create', not to 'token list'",
                 ("list", "--db", self.db, "--name", "a")),
                *(("expected scopes: read, ingest", (*create, "--name", "a", "--scope", scopes))
                  for scopes in ("write", ",", "ingest,", ",ingest", "Ingest", "ing", "ingestx")),
                ("expected 1 to 64 of a-z", (*create, "--name", "a b", "--scope", "read")),
                ("expected 1 to 64 of a-z", (*create, "--name", "a" * 65, "--scope", "read")),
                ("expected a time", (*create, "--name", "a", "--scope", "read", "--expires", "9")),
                ("'token revoke' needs the ID", ("revoke", "--db", self.db)),
                ("takes nothing more, and got 'x'", ("list", "--db", self.db, "x")),
                ("unexpected argument 'y'", ("revoke", "--db", self.db, "x", "y"))):
            with self.subTest(arguments):
                done = run(*arguments)
                self.assertEqual((done.returncode, done.stdout), (64, b""), done.stderr)
                self.assertIn(words, done.stderr.decode())
        for arguments in (("list",), ("revoke", "x")):
            self.assertEqual(run(*arguments, "--db", self.db).returncode, 74)
        self.assertFalse(os.path.exists(self.db))
        self.assertEqual(run("--help").returncode, 0)

    def test_list(self):
        seed(self.db, 1)
        secret = token(self.db, "--scope", "ingest,admin", "--expires", "90d")
        self.assertRegex(secret, r"^kg_[0-9a-f]{12}_[0-9a-f]{64}$")
        line = run("list", "--db", self.db).stdout.decode()
        self.assertRegex(line, rf"^{secret[3:15]}  valid    ci +ingest,admin  created 20\S+  "
                               r"expires 20\S+  used never\n$")
        self.assertNotIn(secret[16:], line)
        with open(self.db, "rb") as file:
            self.assertNotIn(secret[16:].encode(), file.read())


if __name__ == "__main__":
    unittest.main()
