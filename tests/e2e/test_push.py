# SPDX-License-Identifier: Apache-2.0
"""gate push as a black box: nothing is lost, nothing is sent twice in vain, no token gets out.

sanitized: gate reads a server's answers
"""

import contextlib
import gzip
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
import threading
import unittest

from fake_tracker import TOKEN, Tracker
from harness import GATE, HOST, PATIENCE, SEED


def problem(status, detail="No.", **more):
    return lambda handler: handler.problem(status, detail, **more)


def reset(handler):
    handler.reset()


def half_an_answer(handler):
    """The run is stored, and the receipt is cut."""
    handler.server.tracker.runs[json.loads(gzip.decompress(handler.body))["uuid"]] = \
        gzip.decompress(handler.body)
    handler.respond(201, b'{"uuid":', promise=100)


def piecemeal(handler):
    """A good answer, byte by byte."""
    uuid = json.loads(gzip.decompress(handler.body))["uuid"]
    body = json.dumps({"uuid": uuid, "created": True}).encode()
    handler.send_response(201)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    for i in range(len(body)):
        handler.wfile.write(body[i:i + 1])
        handler.wfile.flush()


class PushCase(unittest.TestCase):
    n_runs = 3

    @classmethod
    def setUpClass(cls):
        cls.shared = tempfile.TemporaryDirectory()
        cls.db = os.path.join(cls.shared.name, "gate.db")
        done = subprocess.run([SEED, cls.db, str(cls.n_runs), "4", "1"], check=True,
                              stdout=subprocess.PIPE, timeout=PATIENCE)
        cls.uuids = done.stdout.decode().split()

    @classmethod
    def tearDownClass(cls):
        cls.shared.cleanup()

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        db = shutil.copy(self.db, os.path.join(self.folder.name, "runs.db"))
        self.env = {k: v for k, v in os.environ.items()
                    if not k.lower().endswith("_proxy") and not k.startswith("GATE_")}
        self.env.update(GATE_TOKEN=TOKEN, GATE_DB=db,
                        GATE_LOCKS=self.folder.name,
                        GATE_CACHE=os.path.join(self.folder.name, "cache"),
                        GATE_BASELINES=os.path.join(self.folder.name, "baselines"))

    def tracker(self, *plan, **options):
        tracker = Tracker(**options)
        self.addCleanup(tracker.stop)
        tracker.plan = list(plan)
        self.env["GATE_SERVER"] = tracker.url
        return tracker

    def gate(self, *arguments, status=0):
        done = subprocess.run([GATE, *arguments], env=self.env, cwd=self.folder.name,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=PATIENCE)
        done.out, done.err = done.stdout.decode(), done.stderr.decode()
        self.assertEqual(done.returncode, status, done.err)
        self.assertNotIn(TOKEN, done.out + done.err)
        return done

    def push(self, *arguments, status=0):
        done = self.gate("push", "--json", *arguments, status=status)
        done.counts = json.loads(done.out) if done.out else None
        done.page = done.counts.pop("page") if done.counts else None
        return done

    def assert_counts(self, done, **counts):
        expected = dict.fromkeys(("created", "existed", "libraries", "refused", "left"), 0)
        self.assertEqual(done.counts, {**expected, **counts}, done.err)

    def marks(self, columns="id", state="waiting"):
        with contextlib.closing(sqlite3.connect(self.env["GATE_DB"])) as db:
            return db.execute(f"SELECT {columns} FROM outbox WHERE state = ? "
                              "ORDER BY server, time_ms, kind DESC", [state]).fetchall()


class Sending(PushCase):
    def test_the_newest_run_is_sent(self):
        tracker = self.tracker()
        self.assert_counts(self.push(), created=1)
        (method, path, headers, body), = tracker.seen
        self.assertEqual((method, path), ("POST", "/api/v1/runs"))
        self.assertEqual(headers["Authorization"], f"Bearer {TOKEN}")
        self.assertEqual(headers["Content-Type"], "application/json")
        self.assertEqual(headers["Content-Encoding"], "gzip")
        self.assertEqual(json.loads(gzip.decompress(body))["uuid"], self.uuids[-1])
        self.assertEqual(self.marks("server, kind, id", "sent"),
                         [(tracker.url, "run", self.uuids[-1])])

    def test_it_says_where_the_run_is(self):
        self.tracker()
        url = self.env["GATE_SERVER"].rstrip("/")
        self.assertEqual(self.push(*self.uuids[:2]).page, f"{url}/#/run/{self.uuids[1]}")
        self.assertEqual(self.push(self.uuids[0]).page, f"{url}/#/run/{self.uuids[0]}")
        words = self.gate("push", self.uuids[0]).out.splitlines()[-1]
        self.assertEqual(words, f"the run: {url}/#/run/{self.uuids[0]}")

    def test_the_bytes_of_a_document_are_not_touched(self):
        document = json.loads(self.gate("export", "--run", self.uuids[0]).stdout)
        text = json.dumps(document, indent=3, sort_keys=True).encode() + b"\n \n"
        path = os.path.join(self.folder.name, "run.json")
        with open(path, "wb") as file:
            file.write(text)
        self.env["GATE_DB"] = os.path.join(self.folder.name, "other.db")
        self.gate("import", path)
        tracker = self.tracker()
        self.assert_counts(self.push(), created=1)
        self.assertEqual(tracker.runs[self.uuids[0]].strip(), text.strip())

    def test_a_run_that_is_there_is_no_failure(self):
        tracker = self.tracker()
        self.push(self.uuids[0])
        self.assert_counts(self.push(self.uuids[0][:8]), existed=1)
        self.assertEqual(len(tracker.runs), 1)

    def test_all_runs_that_were_not_sent_oldest_first(self):
        tracker = self.tracker()
        self.push(self.uuids[1])
        self.assert_counts(self.push("--all"), created=self.n_runs - 1)
        sent = [json.loads(gzip.decompress(body))["uuid"] for _, _, _, body in tracker.seen]
        self.assertEqual(sent, [self.uuids[1], self.uuids[0], self.uuids[2]])
        self.assert_counts(self.push("--all"))
        self.assertEqual(len(tracker.seen), self.n_runs)

    def test_an_address_with_a_path(self):
        tracker = self.tracker(lambda h: h.take_run(h.server.tracker))
        self.env["GATE_SERVER"] += "/kernels/gate/"
        self.assert_counts(self.push(), created=1)
        self.assertEqual(tracker.asked("POST"), ["/kernels/gate/api/v1/runs"])

    def test_a_slow_answer_is_an_answer(self):
        self.tracker(piecemeal)
        self.assert_counts(self.push(), created=1)

    def test_the_token_of_a_file(self):
        tracker = self.tracker()
        path = os.path.join(self.folder.name, "token")
        with open(path, "w", encoding="ascii") as file:
            file.write(TOKEN + "\n")
        self.env["GATE_TOKEN"] = "kg_another_one"
        self.assert_counts(self.push("--token-file", path), created=1)
        del self.env["GATE_TOKEN"]
        self.env["GATE_TOKEN_FILE"] = path
        self.assert_counts(self.push(), existed=1)
        self.assertEqual(len(tracker.runs), 1)

    def test_a_token_file_that_others_can_read_is_told_of(self):
        self.tracker()
        path = os.path.join(self.folder.name, "token")
        with open(path, "w", encoding="ascii") as file:
            file.write(TOKEN + "\n")
        os.chmod(path, 0o600)
        self.assertNotIn("chmod", self.push("--token-file", path).err)
        for mode in 0o644, 0o640, 0o604:
            os.chmod(path, mode)
            done = self.push("--token-file", path)
            self.assertIn(f"token file (mode {mode:o}): chmod 600 '{path}'", done.err)
            self.assert_counts(done, existed=1)


class TryingAgain(PushCase):
    def test_what_may_pass_is_tried_again(self):
        tracker = self.tracker(reset, problem(503, headers=[("Retry-After", "1")]), problem(429))
        done = self.push()
        self.assert_counts(done, created=1)
        self.assertEqual(len(tracker.seen), 4)
        self.assertEqual(done.err.count("trying again"), 3)

    def test_half_a_receipt_is_none(self):
        tracker = self.tracker(half_an_answer)
        self.assert_counts(self.push(), existed=1)
        self.assertEqual(len(tracker.seen), 2)

    def test_a_retry_after_beyond_the_patience_ends_it_at_once(self):
        tracker = self.tracker(problem(429, headers=[("Retry-After", "86400")]))
        self.assert_counts(self.push("--all", status=74), left=self.n_runs)
        self.assertEqual(len(tracker.seen), 1)
        self.assert_counts(self.push(self.uuids[0]), created=self.n_runs)

    def test_patience_is_renewed_by_what_is_sent(self):
        wait = problem(429, headers=[("Retry-After", "2")])
        good = lambda handler: handler.behave()
        tracker = self.tracker(wait, good, wait, good, wait, good)
        self.assert_counts(self.push("--all", "--retry-for", "5"), created=self.n_runs)
        self.assertEqual(len(tracker.seen), 6)

    def test_without_patience_there_is_one_try(self):
        tracker = self.tracker(reset)
        done = self.push("--retry-for", "0", status=74)
        self.assert_counts(done, left=1)
        self.assertEqual(len(tracker.seen), 1)
        self.assertNotIn("trying again", done.err)

    def test_a_500_of_one_run_does_not_keep_the_others(self):
        tracker = self.tracker(problem(500), problem(500), problem(503), problem(500))
        self.assert_counts(self.push("--all", status=74), created=self.n_runs - 1, left=1)
        self.assertNotIn(self.uuids[0], tracker.runs)
        self.assert_counts(self.push(self.uuids[0]), created=1)

    def test_while_the_server_is_away_runs_wait(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
            self.env["GATE_SERVER"] = f"http://127.0.0.1:{port}"
            for n, uuid in enumerate(reversed(self.uuids), 1):
                done = self.push("--retry-for", "0", uuid, status=74)
                self.assert_counts(done, left=n)
                self.assertIn("cannot be reached", done.err)
        tracker = self.tracker(port=port)
        self.assert_counts(self.push(self.uuids[0]), created=self.n_runs)
        sent = [json.loads(gzip.decompress(body))["uuid"] for _, _, _, body in tracker.seen]
        self.assertEqual(sent, self.uuids)
        self.assertEqual(self.marks(), [])

    def test_a_push_that_is_killed_loses_nothing(self):
        arrived, released = threading.Event(), threading.Event()

        def hold(handler):
            arrived.set()
            released.wait(PATIENCE)
            handler.reset()

        tracker = self.tracker(hold)
        process = subprocess.Popen([GATE, "push"], env=self.env, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        self.assertTrue(arrived.wait(PATIENCE))
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE)
        released.set()
        self.assertEqual(self.marks(), [(self.uuids[-1],)])
        self.assert_counts(self.push(), created=1)
        self.assertEqual(list(tracker.runs), [self.uuids[-1]])


class Refused(PushCase):
    def refused(self, status):
        tracker = self.tracker(problem(status, "The document is bad.", errors=[
            {"path": "/cases/0/p50_ns", "message": "must be over 0"}]))
        done = self.push("--all", status=74)
        self.assert_counts(done, created=self.n_runs - 1, refused=1)
        self.assertIn(f"{status}: The document is bad.", done.err)
        (uuid, reason), = self.marks("id, reason", "refused")
        self.assertEqual(uuid, self.uuids[0])
        self.assertIn("/cases/0/p50_ns: must be over 0", reason)
        tracker.seen.clear()
        self.assert_counts(self.push("--all"))
        self.assertEqual(tracker.seen, [])
        self.assert_counts(self.push(uuid), created=1)

    def test_by_400(self):
        self.refused(400)

    def test_a_reason_is_said_once(self):
        self.tracker(problem(400, "/cases/0/p50_ns: must be over 0.", errors=[
            {"path": "/cases/0/p50_ns", "message": "must be over 0"}]))
        done = self.push("--all", status=74)
        refusal, = [line for line in done.err.splitlines() if "waits no longer" in line]
        self.assertEqual(refusal.count("must be over 0"), 1)

    def test_by_409(self):
        self.refused(409)

    def test_by_413(self):
        self.refused(413)

    def test_another_run_of_the_same_uuid(self):
        tracker = self.tracker()
        tracker.runs[self.uuids[0]] = b"{}"
        self.assert_counts(self.push(self.uuids[0], status=74), refused=1)

    def test_a_bad_token_is_not_the_documents_fault(self):
        tracker = self.tracker()
        self.env["GATE_TOKEN"] = "kg_wrong_one"
        done = self.push("--all", status=74)
        self.assert_counts(done, left=self.n_runs)
        self.assertEqual(len(tracker.seen), 1)
        self.assertIn("does not know the token", done.err)

    def test_a_scope_that_is_missing(self):
        tracker = self.tracker(problem(403))
        done = self.push("--all", status=74)
        self.assert_counts(done, left=self.n_runs)
        self.assertEqual(len(tracker.seen), 1)
        self.assertIn("scope 'ingest'", done.err)

    def test_what_does_not_name_the_run_is_no_receipt(self):
        other = json.dumps({"uuid": self.uuids[0], "created": True}).encode()
        for body in (b"<html>Please log in</html>", b"{}", b"", other):
            self.tracker(lambda h, body=body: h.respond(200, body))
            done = self.push(status=74)
            self.assert_counts(done, left=1)
            self.assertIn("no gate-server", done.err)

    def test_a_redirect_is_not_followed(self):
        other = self.tracker()
        tracker = self.tracker(
            lambda h: h.respond(307, b"", [("Location", other.url + "/api/v1/runs")]))
        done = self.push(status=74)
        self.assert_counts(done, left=1)
        self.assertIn("redirects are not followed", done.err)
        self.assertEqual((len(tracker.seen), len(other.seen)), (1, 0))

    def test_an_endless_answer(self):
        self.tracker(lambda h: h.respond(201, b" " * (1 << 20)))
        self.assert_counts(self.push(status=4), left=1)


class Usage(PushCase):
    def test_nothing_is_sent_in_the_clear(self):
        for address in ("http://192.0.2.1", "http://127.0.0.1.example.org", "http://localhost.x",
                        "http://[::2]:80", "http://127.0.0.1.5", "http://128.0.0.1:8731"):
            self.env["GATE_SERVER"] = address
            self.assertIn("in the clear", self.push(status=64).err, address)
        self.assertEqual(self.marks(), [])

    def test_bad_addresses(self):
        for address in ("gate.example.org", "ftp://x", "https://", "https://user@host",
                        "https://host:0", "https://host:65536", "https://host?x", "https://HOST",
                        "https://host/a b", "https://host/../x", "http://[::1", "file:///etc",
                        "https://" + "a" * 300):
            self.env["GATE_SERVER"] = address
            self.assertIn("not the address of a server", self.push(status=64).err, address)

    def test_bad_tokens(self):
        self.tracker()
        for token in ("two words", "a\r\nX-Header: 1", "x" * 1001, "\u00e4"):
            self.env["GATE_TOKEN"] = token
            err = self.gate("push", status=64).err
            self.assertIn("holds no token", err)
            self.assertNotIn(token, err)
        del self.env["GATE_TOKEN"]
        self.assertIn("no token", self.push(status=64).err)

    def test_without_a_token_the_run_waits(self):
        tracker = self.tracker()
        del self.env["GATE_TOKEN"]
        self.assert_counts(self.push(status=64), left=1)
        self.assertEqual(tracker.seen, [])
        self.env["GATE_TOKEN"] = TOKEN
        self.assert_counts(self.push(self.uuids[0]), created=2)

    def test_a_line_break_in_the_path_of_certificates_is_no_option_of_curl(self):
        self.env["GATE_SERVER"] = "https://gate.example.org"
        self.assertIn("line break", self.push("--ca-file", "a\nurl = x", status=64).err)

    def test_no_server(self):
        self.assertIn("no server is named", self.push(status=64).err)

    def test_no_such_run(self):
        self.tracker()
        self.push("0123456789", status=64)

    def test_a_proxy_never_sees_what_is_for_this_machine(self):
        proxy = self.tracker()
        tracker = self.tracker()
        self.env.update(http_proxy=proxy.url, all_proxy=proxy.url, HTTP_PROXY=proxy.url)
        self.assert_counts(self.push(), created=1)
        self.assertEqual((len(tracker.seen), len(proxy.seen)), (1, 0))


class Waiting(PushCase):
    def test_what_is_left_is_counted_by_its_kind(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            self.env["GATE_SERVER"] = f"http://127.0.0.1:{taken.getsockname()[1]}"
            library = ("push", "--retry-for", "0", "--library", HOST)
            self.assertRegex(self.gate(*library, status=74).out,
                             "waiting in '.*runs.db': 1 run, 1 library\n")
            del self.env["GATE_TOKEN"]
            said = self.gate(*library, "--all", status=64).out
            self.assertRegex(said, f"waiting in '.*': {self.n_runs} runs, 1 library\n")

    def test_without_curl_runs_wait_and_the_remedy_is_named(self):
        tracker = self.tracker()
        path = self.env.get("PATH", os.environ["PATH"])
        self.env["PATH"] = self.folder.name
        done = self.push(status=74)
        self.assert_counts(done, left=1)
        self.assertIn("apt-get install curl", done.err)
        doctor = self.gate("doctor", "--device", "host", "--json")
        self.assertIsNone(json.loads(doctor.out)["curl"])
        self.assertIn("absent", self.gate("doctor", "--device", "host").out)
        self.env["PATH"] = path
        self.assert_counts(self.push(), created=1)
        self.assertEqual(len(tracker.runs), 1)

    def test_several_at_once(self):
        tracker = self.tracker(reset)
        self.push("--retry-for", "0", self.uuids[0], status=74)
        together = [subprocess.Popen([GATE, "push", uuid], env=self.env, stderr=subprocess.PIPE,
                                     stdout=subprocess.DEVNULL) for uuid in self.uuids * 3]
        for process in together:
            _, err = process.communicate(timeout=PATIENCE)
            self.assertEqual(process.returncode, 0, err)
        self.assertEqual(len(tracker.runs), self.n_runs)
        self.assertEqual(self.marks(), [])

    def test_each_server_has_marks_of_its_own(self):
        first = self.tracker(reset)
        self.push("--retry-for", "0", self.uuids[0], status=74)
        second = self.tracker()
        self.assert_counts(self.push(self.uuids[1]), created=1)
        self.assertEqual(list(second.runs), [self.uuids[1]])
        self.env["GATE_SERVER"] = first.url
        self.push(self.uuids[0])
        self.assertEqual(list(first.runs), [self.uuids[0]])

    def test_a_run_that_left_the_database_is_no_reason_to_wait(self):
        self.tracker(reset)
        self.push("--retry-for", "0", self.uuids[0], status=74)
        with contextlib.closing(sqlite3.connect(self.env["GATE_DB"])) as db, db:
            db.execute("UPDATE outbox SET id = '00000000-0000-4000-8000-000000000000'")
        self.assert_counts(self.push(status=74), created=1, refused=1)

    def test_the_token_is_no_argument_of_curl(self):
        self.tracker()
        seen = os.path.join(self.folder.name, "arguments")
        curl = os.path.join(self.folder.name, "curl")
        with open(curl, "w", encoding="ascii") as file:
            file.write(f'#!/bin/sh\necho "$@" >>{seen}\nenv >>{seen}\n'
                       f'exec {shutil.which("curl")} "$@"\n')
        os.chmod(curl, 0o755)
        path = os.path.join(self.folder.name, "token")
        with open(path, "w", encoding="ascii") as file:
            file.write(self.env.pop("GATE_TOKEN"))
        self.env["PATH"] = f"{self.folder.name}:{os.environ['PATH']}"
        self.assert_counts(self.push("--token-file", path), created=1)
        with open(seen, encoding="utf-8") as file:
            words = file.read()
        self.assertIn("--config", words)
        self.assertNotIn(TOKEN, words)


if __name__ == "__main__":
    unittest.main()
