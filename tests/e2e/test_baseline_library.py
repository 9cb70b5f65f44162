# SPDX-License-Identifier: Apache-2.0
"""Libraries of stored baselines on the tracking server: push, gate baseline fetch, gate run."""

import glob
import gzip
import hashlib
import json
import os
import re
import shutil
import ssl
import subprocess
import unittest

from harness import PATIENCE, SERVER, WORKER, Server, write_file
from test_push import PushCase, problem, reset

OLD = hashlib.sha256(b"old").hexdigest()
NEW = hashlib.sha256(b"new").hexdigest()


class LibraryCase(PushCase):
    """A run of the library `old` is the baseline of one case; `new` is compared with it."""

    def setUp(self):
        super().setUp()
        self.env["GATE_DB"] = self.path("gate.db")
        suite = {"schema": "gate-suite/1", "name": "one",
                 "cases": [{"op": "gemm", "dtype": "fp32", "m": 2, "n": 2, "k": 2}]}
        write_file(self.path("suite.json"), json.dumps(suite))
        for name in ("old", "new"):
            with open(self.path(name + ".so"), "w", encoding="ascii") as file:
                file.write(name)
        self.run_suite("old", "--accept-new")

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def run_suite(self, library, *arguments, **options):
        return self.gate("run", "--json", "--suite", "suite.json", "--device", "cuda:0",
                         "--worker", WORKER, "--library", library + ".so", "--provider", "x.so",
                         "--pause", "0", "--timeout", "60", *arguments, **options)

    def cached(self):
        return sorted(os.path.basename(p)[:-3] for p in
                      glob.glob(self.path("cache/artifacts/*.so")))

    def empty_the_cache(self):
        shutil.rmtree(self.path("cache"))


class Push(LibraryCase):
    def test_a_baseline_takes_its_library_with_it(self):
        tracker = self.tracker()
        self.assert_counts(self.push(), created=1, libraries=1)
        self.assertEqual(tracker.artifacts, {OLD: b"old"})
        self.assertEqual(tracker.asked("HEAD"), [f"/api/v1/artifacts/{OLD}"])
        (headers,) = [h for m, _, h, _ in tracker.seen if m == "PUT"]
        self.assertEqual(headers["Content-Type"], "application/octet-stream")
        self.assertNotIn("Content-Encoding", headers)

    def test_a_library_is_sent_once(self):
        tracker = self.tracker()
        self.push()
        self.assert_counts(self.push(), existed=1, libraries=1)
        self.assertEqual(len(tracker.asked("PUT")), 1)

    def test_a_damaged_library_is_sent_again_and_runs_go_on(self):
        tracker = self.tracker()
        tracker.artifacts[OLD] = b"ol"
        self.assert_counts(self.push(), created=1, libraries=1)
        self.assertEqual(tracker.artifacts, {OLD: b"old"})

    def test_other_libraries_go_when_they_are_named(self):
        self.run_suite("new")
        tracker = self.tracker()
        done = self.push()
        self.assert_counts(done, created=1)
        self.assertEqual(done.err, "")
        self.assert_counts(self.push("--library", "new.so"), existed=1, libraries=1)
        self.assertEqual(tracker.artifacts, {NEW: b"new"})

    def test_a_regression_takes_its_library_with_it(self):
        """Somebody may accept it, and then others are to be compared with it."""
        self.env["FAKE"] = json.dumps({"log_ratio": {"gemm/fp32/m2-n2-k2": [0.05]}})
        self.run_suite("new", status=1)
        tracker = self.tracker()
        self.assert_counts(self.push(), created=1, libraries=1)
        self.assertEqual(tracker.artifacts, {NEW: b"new"})

    def test_a_first_measurement_takes_its_library_with_it(self):
        self.run_suite("new", "--baselines", "others", status=3)
        tracker = self.tracker()
        self.assert_counts(self.push(), created=1, libraries=1)
        self.assertEqual(tracker.artifacts, {NEW: b"new"})

    def test_a_library_that_may_be_wanted_and_is_not_at_hand_is_named(self):
        self.env["FAKE"] = json.dumps({"log_ratio": {"gemm/fp32/m2-n2-k2": [0.05]}})
        self.run_suite("new", status=1)
        self.empty_the_cache()
        self.tracker()
        done = self.push()
        self.assert_counts(done, created=1)
        self.assertIn("the library of a run that may be accepted cannot be sent", done.err)
        self.assertIn(NEW, done.err)

    def test_a_library_waits_like_a_run(self):
        tracker = self.tracker(reset)
        self.assert_counts(self.push("--retry-for", "0", status=74), left=2)
        self.assertEqual([kind for kind, in self.marks("kind")], ["run", "library"])
        self.assert_counts(self.push(), created=1, libraries=1)
        self.assertEqual(tracker.artifacts, {OLD: b"old"})

    def test_a_library_waits_once(self):
        self.tracker(reset, reset)
        for _ in range(2):
            done = self.push("--retry-for", "0", "--library", "old.so", status=74)
        self.assert_counts(done, left=2)

    def test_a_token_that_may_send_runs_only(self):
        def take_runs_only(handler):
            if handler.command == "PUT":
                handler.problem(403, "No.")
            else:
                handler.behave()

        self.tracker(*[take_runs_only] * 3)
        done = self.push(status=74)
        self.assert_counts(done, created=1, left=1)
        self.assertIn("scope 'artifact'", done.err)

    def test_that_a_token_may_not_send_libraries_is_said_whatever_else_fails(self):
        newest = json.loads(self.run_suite("new").out)["uuid"]

        def refuse(handler):
            if handler.command == "PUT":
                handler.problem(403, "No.")
            elif handler.command == "POST" and newest.encode() in gzip.decompress(handler.body):
                handler.problem(400, "No.")
            else:
                handler.behave()

        self.tracker(*[refuse] * 4)
        done = self.push("--all", status=74)
        self.assert_counts(done, created=1, left=1, refused=1)
        self.assertIn("may not send libraries (scope 'artifact')", done.err)
        self.assertIn("they wait for a token", done.err)

    def test_a_library_that_left_the_cache_is_no_reason_to_wait(self):
        self.tracker(reset)
        self.push("--retry-for", "0", status=74)
        self.empty_the_cache()
        done = self.push(status=74)
        self.assert_counts(done, created=1, refused=1)
        self.assertIn("name it with --library FILE", done.err)
        self.assertIn("'gate push --library FILE' sends a copy", done.err)
        self.assertNotIn("--against", done.err)


class Accept(LibraryCase):
    CASE = "gemm/fp32/m2-n2-k2"

    def test_a_run_that_passed_keeps_its_library_too(self):
        self.run_suite("new")
        os.remove(self.path("new.so"))
        self.gate("baseline", "accept", self.CASE, "--reason", "r")
        case, = json.loads(self.run_suite("old").out)["cases"]
        self.assertEqual((case["mode"], case["baseline"]["library_sha256"]), ("paired", NEW))


class Fetch(LibraryCase):
    def setUp(self):
        super().setUp()
        self.empty_the_cache()

    def fetch(self, *arguments, status=0):
        done = self.gate("baseline", "fetch", "--json", *arguments, status=status)
        done.rows = json.loads(done.out)
        return done

    def states(self, *arguments, **options):
        return [(row["library_sha256"], row["cases"], row["state"])
                for row in self.fetch(*arguments, **options).rows]

    def test_what_is_not_in_the_cache_is_fetched(self):
        tracker = self.tracker()
        tracker.artifacts[OLD] = b"old"
        self.assertEqual(self.states(), [(OLD, 1, "fetched")])
        self.assertEqual(self.cached(), [OLD])
        self.assertEqual(self.states(), [(OLD, 1, "cached")])
        self.assertEqual(len(tracker.seen), 1)
        self.assertIn("cached", self.gate("baseline", "fetch").out)

    def test_what_is_cached_needs_no_server(self):
        self.run_suite("old", "--baselines", "others", "--accept-new")
        self.assertEqual(self.states(), [(OLD, 1, "cached")])

    def test_what_the_server_does_not_have(self):
        self.tracker()
        self.assertEqual(self.states(status=3), [(OLD, 1, "absent")])

    def test_bytes_of_another_hash_are_refused(self):
        tracker = self.tracker()
        tracker.artifacts[OLD] = b"evil"
        done = self.fetch(status=4)
        self.assertIn("refused", done.err)
        self.assertEqual(self.cached(), [])

    def test_a_private_server_wants_a_token(self):
        self.tracker(problem(401))
        del self.env["GATE_TOKEN"]
        self.assertIn("wants a token", self.fetch(status=74).err)

    def test_half_a_library_is_asked_for_again(self):
        tracker = self.tracker(lambda h: h.respond(200, b"ol", promise=3))
        tracker.artifacts[OLD] = b"old"
        self.assertEqual(self.states(), [(OLD, 1, "fetched")])
        self.assertEqual(len(tracker.seen), 2)

    def test_of_one_device_model(self):
        self.assertEqual(self.states("--device-model", "another"), [])

    def test_other_actions_do_not_take_a_server(self):
        self.gate("baseline", "show", "--server", "http://127.0.0.1:1", status=64)

    def mode(self, **options):
        done = self.run_suite("new", **options)
        case, = json.loads(done.out)["cases"]
        return case["mode"], done.err

    def test_a_run_fetches_the_library_of_its_baseline(self):
        tracker = self.tracker()
        tracker.artifacts[OLD] = b"old"
        self.assertEqual(self.mode()[0], "paired")
        self.assertIn(OLD, self.cached())
        self.assertEqual(self.mode()[0], "paired")
        self.assertEqual(len(tracker.seen), 1)

    def test_a_run_without_the_library_says_why(self):
        tracker = self.tracker()
        mode, err = self.mode(status=3)
        self.assertEqual(mode, "number")
        self.assertIn(f"{tracker.url} has no library {OLD[:16]}", err)

    def test_a_run_never_loads_what_it_did_not_ask_for(self):
        tracker = self.tracker()
        tracker.artifacts[OLD] = b"evil"
        mode, err = self.mode(status=3)
        self.assertEqual(mode, "number")
        self.assertIn("refused", err)
        self.assertNotIn(OLD, self.cached())

    def test_a_run_without_a_server_does_not_speak_of_one(self):
        mode, err = self.mode(status=3)
        self.assertEqual((mode, err), ("number", ""))


class RealServer(LibraryCase):
    """The whole way: from a run to gate-server and, for its library, back to another machine."""

    def setUp(self):
        super().setUp()
        self.history = self.path("server.db")
        done = subprocess.run([SERVER, "token", "create", "--db", self.history, "--name", "ci",
                               "--scope", "ingest,artifact"], check=True, stdout=subprocess.PIPE,
                              timeout=PATIENCE)
        self.env["GATE_TOKEN"] = re.search(r"kg_\w+", done.stdout.decode()).group()

    def serve(self, port=0):
        server = Server(self.history, "--listen", f"127.0.0.1:{port}")
        self.addCleanup(server.stop)
        self.env["GATE_SERVER"] = f"http://127.0.0.1:{server.port}"
        return server

    def stored(self, server):
        return [run["uuid"] for run in server.json("/api/v1/runs")["runs"]]

    def test_from_a_run_to_the_server_and_back(self):
        server = self.serve()
        self.assert_counts(self.push(), created=1, libraries=1)
        self.assert_counts(self.push(), existed=1, libraries=1)
        uuid, = self.stored(server)
        self.assertEqual(server.get(f"/api/v1/runs/{uuid}").bytes,
                         self.gate("export", "--run", uuid).stdout)
        self.empty_the_cache()
        case, = json.loads(self.run_suite("new").out)["cases"]
        self.assertEqual(case["mode"], "paired")
        self.assertIn(OLD, self.cached())

    def test_while_it_is_away_and_after_it_restarts(self):
        server = self.serve()
        self.push()
        self.assertEqual(server.stop(), 0)
        self.run_suite("new")
        self.assert_counts(self.push("--retry-for", "0", status=74), left=1)
        again = self.serve(server.port)
        self.assertEqual(len(self.stored(again)), 1)
        self.run_suite("new")
        self.assert_counts(self.push(), created=2)
        self.assertEqual(len(self.stored(again)), 3)
        self.assertEqual(self.marks(), [])

    def test_a_token_that_was_revoked(self):
        self.serve()
        token = self.env["GATE_TOKEN"].split("_")[1]
        subprocess.run([SERVER, "token", "revoke", "--db", self.history, token], check=True,
                       stdout=subprocess.DEVNULL, timeout=PATIENCE)
        self.assert_counts(self.push(status=74), left=2)


@unittest.skipUnless(shutil.which("openssl"), "no openssl to make a certificate with")
class Tls(PushCase):
    def setUp(self):
        super().setUp()
        self.cert = self.certificate("good", "IP:127.0.0.1")

    def certificate(self, name, subject):
        path = os.path.join(self.folder.name, name)
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
             "-nodes", "-keyout", path + ".key", "-out", path + ".pem", "-days", "1",
             "-subj", "/CN=test", "-addext", f"subjectAltName={subject}"],
            check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, timeout=PATIENCE)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path + ".pem", path + ".key")
        return context

    def pem(self, name):
        return os.path.join(self.folder.name, name + ".pem")

    def test_a_certificate_that_is_believed(self):
        tracker = self.tracker(context=self.cert)
        self.assert_counts(self.push("--ca-file", self.pem("good")), created=1)
        self.env["GATE_CA_FILE"] = self.pem("good")
        self.assert_counts(self.push(), existed=1)
        self.assertEqual(len(tracker.seen), 2)

    def test_a_certificate_that_nobody_signed(self):
        tracker = self.tracker(context=self.cert)
        done = self.push(status=4)
        self.assert_counts(done, left=1)
        self.assertIn("--ca-file", done.err)
        self.assertEqual(tracker.seen, [])

    def test_a_certificate_of_another_host(self):
        tracker = self.tracker(context=self.certificate("other", "DNS:gate.example.org"))
        done = self.push("--ca-file", self.pem("other"), status=4)
        self.assertIn("cannot be verified", done.err)
        self.assertEqual(tracker.seen, [])


if __name__ == "__main__":
    unittest.main()
