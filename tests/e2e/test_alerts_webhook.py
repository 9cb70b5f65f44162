# SPDX-License-Identifier: Apache-2.0
"""The webhook of alerts, against a receiver that does as it is told."""

import contextlib
import copy
import hashlib
import hmac
import http.server
import json
import os
import signal
import sqlite3
import subprocess
import threading
import time
import unittest
import uuid

import test_alerts
from harness import PATIENCE, SERVER, Server
from test_alerts import FLAT, STEP

SECRET = b"a secret of the right length"
LONG_SECRET = b"and one that is hashed first, as it has more bytes than a block of SHA-256 has"


class Receiver:
    """Takes POSTs; `plan` has the answers to the next ones, a status, headers and perhaps a body;
    then all are 204."""

    def __init__(self, plan=()):
        self.plan, self.seen, self.changed = list(plan), [], threading.Condition()
        self.paths = []
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with receiver.changed:
                    answer = receiver.plan.pop(0) if receiver.plan else (204, {})
                    receiver.seen.append((answer[0], dict(self.headers), body))
                    receiver.paths.append(self.path)
                    receiver.changed.notify_all()
                if answer[0] is None:
                    return  # no answer at all
                self.send_response(answer[0])
                for name, value in answer[1].items():
                    self.send_header(name, value)
                said = answer[2] if len(answer) > 2 else b""
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                with contextlib.suppress(OSError):  # it need not be read
                    self.wfile.write(said)

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/hook/Of-Gate"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()

    def wait(self, n, taken=True):
        """The first n that were taken (or came), as they came."""
        def enough():
            return [s for s in self.seen if not taken or s[0] == 204]
        with self.changed:
            if not self.changed.wait_for(lambda: len(enough()) >= n, PATIENCE):
                raise AssertionError(f"{len(enough())} of {n} came")
            return enough()


class Hooked(test_alerts.Case):
    def setUp(self):
        self.secret = os.path.join(self.folder.name, "secret")
        with open(self.secret, "wb") as file:
            file.write(SECRET + b"\n")

    @contextlib.contextmanager
    def hooked(self, receiver, how=signal.SIGTERM):
        """Another server on the same database, that tells the receiver."""
        server = Server(self.db, "--webhook", receiver.url,
                        "--webhook-secret-file", self.secret)
        try:
            yield server
        finally:
            status = server.stop(how)
        if how == signal.SIGTERM:
            self.assertEqual(status, 0, server.log)

    def receiver(self, plan=()):
        receiver = Receiver(plan)
        self.addCleanup(receiver.close)
        return receiver

    def new_alert(self):
        """The number of an alert that is new."""
        alert = self.alerts(f"?case={STEP}")["alerts"][0]
        for state in {"new": (), "acknowledged": ("fixed", "new")}.get(alert["state"], ("new",)):
            self.assertEqual(self.step(alert["id"], state).status, 200)
        return alert["id"]


class Silences(Hooked):
    def store(self, branch, day):
        run = copy.deepcopy(self.newest)
        run.update(uuid=str(uuid.uuid4()), time_ms=run["time_ms"] + day * 86400000)
        run["git"].update(branch=branch, change="")
        self.assertEqual(self.send("/api/v1/runs", run, "ingest").status, 201)

    def test_each_is_told_once(self):
        """A branch of no merge request that was measured for weeks, and then no more."""
        def silences():
            bodies = [json.loads(body) for _, _, body in receiver.seen]
            return [body["silence"] for body in bodies if "silence" in body]
        receiver = self.receiver()
        with self.hooked(receiver):
            for day in range(20):
                self.store("release", day)
            for day in range(35, 45):
                self.store("main", day)
            while not silences():
                receiver.wait(len(receiver.seen) + 1)
        listed = self.server.json("/api/v1/silences")["silences"]
        self.assertEqual([s["branch"] for s in listed], ["release"])
        self.assertEqual(silences(), listed)
        with self.hooked(receiver) as server:
            self.store("main", 46)
            number, before = self.new_alert(), len(receiver.seen)
            self.step(number, "acknowledged", server=server)
            receiver.wait(before + 1)
        self.assertEqual(silences(), listed)


class Webhook(Hooked):
    def test_steps_are_told_in_their_order_and_signed(self):
        receiver = self.receiver()
        number = self.new_alert()
        with self.hooked(receiver) as server:
            for state in ("acknowledged", "fixed", "new"):
                self.assertEqual(self.step(number, state, "x & y", server).status, 200)
            told = receiver.wait(3)
        bodies = [json.loads(body) for _, _, body in told]
        self.assertEqual([b["event"]["to"] for b in bodies], ["acknowledged", "fixed", "new"])
        ids = [b["event"]["id"] for b in bodies]
        self.assertEqual(ids, sorted(set(ids)))
        self.assertEqual(bodies[0]["event"]["reason"], "x & y")
        self.assertEqual(bodies[0]["event"]["who"], "ada-admin")
        listed = self.server.json(f"/api/v1/alerts/{number}")
        self.assertEqual(set(bodies[2]["alert"]), set(listed) - {"log"})
        self.assertEqual(bodies[2]["alert"]["case"], STEP)
        self.assert_signed(told, SECRET)
        for _, headers, _ in told:
            self.assertLess(abs(time.time() - int(headers["X-Gate-Timestamp"])), PATIENCE)
            self.assertEqual(headers["Content-Type"], "application/json")
            self.assertNotIn("Authorization", headers)

    def assert_signed(self, told, secret):
        for _, headers, body in told:
            text = headers["X-Gate-Timestamp"].encode() + b"." + body
            mac = hmac.new(secret, text, hashlib.sha256).hexdigest()
            self.assertEqual(headers["X-Gate-Signature"], f"sha256={mac}")

    def test_what_the_watch_finds_is_told(self):
        receiver = self.receiver()
        with self.hooked(receiver) as server:
            self.runs_of_another_level(FLAT, 1.08, 8, server)
            told = [json.loads(body) for _, _, body in receiver.wait(2)]
        self.assertIn("wrong", [body["alert"]["kind"] for body in told])
        body = next(body for body in told if body["alert"]["case"] == FLAT)
        self.assertEqual((body["alert"]["kind"], body["alert"]["confirmed"]), ("regression", True))
        self.assertEqual((body["event"]["from"], body["event"]["to"], body["event"]["who"]),
                         (None, "new", "gate-server"))

    def test_failures_are_tried_again(self):
        receiver = self.receiver([(500, {}), (None, {}), (429, {"Retry-After": "1"}), (404, {})])
        number = self.new_alert()
        with open(self.secret, "wb") as file:
            file.write(LONG_SECRET)
        with self.hooked(receiver) as server:
            self.step(number, "acknowledged", server=server)
            self.step(number, "fixed", server=server)
            told = receiver.wait(2)
            # Nothing waits for the webhook meanwhile.
            self.assertEqual(server.get("/healthz").status, 200)
        self.assertEqual([json.loads(b)["event"]["to"] for _, _, b in told],
                         ["acknowledged", "fixed"])
        self.assertEqual([s for s, _, _ in receiver.seen], [500, None, 429, 404, 204, 204])
        self.assertIn("webhook: ", server.log)
        self.assertNotIn(LONG_SECRET.decode(), server.log)
        self.assert_signed(told, LONG_SECRET)

    def test_an_address_may_have_a_query_that_no_log_has(self):
        query = "?api-version=2016-06-01&sp=%2Ftriggers%2Frun&sv=1.0&sig=Z3-key_of.it~1"
        receiver = self.receiver([(500, {}), (301, {"Location": "/"}), (None, {})])
        for end in ("", "/"):
            receiver.paths.clear()
            receiver.seen.clear()
            plain = receiver.url
            receiver.url = plain + end + query
            with self.hooked(receiver) as server:
                self.step(self.new_alert(), "acknowledged", server=server)
                receiver.wait(1)
            receiver.url = plain
            self.assertEqual(set(receiver.paths), {"/hook/Of-Gate" + end + query})
            if not end:
                self.assertIn("answers 500", server.log)
            self.assertNotIn("key_of", server.log)

    def test_a_receiver_may_say_much(self):
        receiver = self.receiver([(200, {}, b"x" * 100000)])
        number = self.new_alert()
        with self.hooked(receiver) as server:
            self.step(number, "acknowledged", server=server)
            self.step(number, "fixed", server=server)
            receiver.wait(1)
        self.assertEqual([(s, json.loads(b)["event"]["to"]) for s, _, b in receiver.seen],
                         [(200, "acknowledged"), (204, "fixed")])

    def test_redirects_are_not_followed(self):
        other = self.receiver()
        receiver = self.receiver([(301, {"Location": other.url}), (307, {"Location": other.url})])
        with self.hooked(receiver) as server:
            self.step(self.new_alert(), "acknowledged", server=server)
            receiver.wait(1)
        self.assertEqual([s for s, _, _ in receiver.seen], [301, 307, 204])
        self.assertEqual(other.seen, [])

    def test_nothing_is_lost_when_the_server_dies(self):
        receiver = self.receiver([(503, {})] * 1000)
        number, expected = self.new_alert(), []
        for state in ("acknowledged", "fixed", "new", "ignored"):
            with self.hooked(receiver, signal.SIGKILL) as server:
                self.assertEqual(self.step(number, state, "r", server).status, 200)
                receiver.wait(len(receiver.seen) + 1, taken=False)
            expected.append(state)
        with receiver.changed:
            receiver.plan.clear()
            receiver.seen.clear()
        with self.hooked(receiver):
            told = receiver.wait(4)
        self.assertEqual([json.loads(b)["event"]["to"] for _, _, b in told][:4], expected)
        # And what was taken is not told again.
        with self.hooked(receiver) as server:
            self.step(number, "new", server=server)
            told = receiver.wait(5)
        self.assertEqual([json.loads(b)["event"]["to"] for _, _, b in told], [*expected, "new"])

    def test_a_new_receiver_is_known_before_anything_can_happen(self):
        """Else a server that dies before its first delivery would not tell what it had stored."""
        def marks():
            with contextlib.closing(sqlite3.connect(self.db)) as db:
                return db.execute(
                    "SELECT count(*) FROM meta WHERE key LIKE 'webhook %'").fetchone()[0]
        before = marks()
        with self.hooked(self.receiver(), signal.SIGKILL):
            self.assertEqual(marks(), before + 1)

    def test_a_receiver_that_hangs_does_not_keep_the_server_from_ending(self):
        receiver = self.receiver()
        with receiver.changed:
            with self.hooked(receiver) as server:
                self.step(self.new_alert(), "acknowledged", server=server)

    def test_settings(self):
        def refused(*options):
            done = subprocess.run([SERVER, "--db", self.db, "--listen", "127.0.0.1:0", *options],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, timeout=PATIENCE)
            return done.returncode, done.stderr.decode()
        short = os.path.join(self.folder.name, "short")
        with open(short, "wb") as file:
            file.write(b"fifteen bytes..")
        url = "http://127.0.0.1:1/"
        for status, options in ((64, ("--webhook", url)),
                                (64, ("--webhook-secret-file", self.secret)),
                                (64, ("--webhook", url, "--webhook-secret-file", short)),
                                (74, ("--webhook", url, "--webhook-secret-file", short + "x")),
                                (64, ("--webhook", "ftp://x", "--webhook-secret-file",
                                      self.secret)),
                                (64, ("--webhook", "http://u:p@x/?sig=key_of",
                                      "--webhook-secret-file", self.secret)),
                                (64, ("--webhook", url + "?sig=key_of it", "--webhook-secret-file",
                                      self.secret)),
                                (64, ("--webhook", url + "?sig=key_of#1", "--webhook-secret-file",
                                      self.secret)),
                                (64, ("--webhook", url + "?key_of=" + "a" * 700,
                                      "--webhook-secret-file", self.secret))):
            got = refused(*options)
            self.assertEqual(got[0], status, got)
            self.assertNotIn("key_of", got[1])


if __name__ == "__main__":
    unittest.main()
