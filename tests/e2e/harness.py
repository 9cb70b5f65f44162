# SPDX-License-Identifier: Apache-2.0
"""What the tests here share: gate and gate-server as black boxes, and data for them."""

import contextlib
import http.client
import json
import os
import re
import resource
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
import time
import unittest
import uuid
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.environ.get("KERNEL_GATE_ROOT", os.path.dirname(os.path.dirname(HERE)))
BUILD = os.environ.get("KERNEL_GATE_BUILD", os.path.join(ROOT, "build"))
GATE = os.path.join(BUILD, "bin", "gate")
SERVER = os.path.join(BUILD, "bin", "gate-server")
SEED = os.path.join(BUILD, "tests", "tools", "seed_store")
HOST = os.path.join(BUILD, "lib", "kernel-gate", "libhost.so")
WORKER = os.path.join(HERE, "fake_worker.py")
SANITIZED = os.path.basename(BUILD) in ("asan", "tsan")
os.environ.setdefault("GATE_LOCKS", tempfile.gettempdir())
os.environ.pop("CI", None)  # in which a run is more strict: a test that is of this sets it
PATIENCE = 300  # seconds that nothing should ever take
# The seed of inputs, the same in all runs: that a draw misses a fault, or calls a right kernel
# wrong, says nothing of the change that is tested. ci/nightly.sh draws another.
DRAW = os.environ.get("KERNEL_GATE_DRAW", "1d5eed")

GPU = "nvidia-h200"
GEMV = "gemv/fp16/m8192-k8192"
N_CASES = 12
FIRST, SECOND = "gemm/fp32/m2-n2-k2", "gemm/fp32/m3-n3-k3"
SUITE = {"schema": "gate-suite/1", "name": "two",
         "cases": [{"op": "gemm", "dtype": "fp32", "m": n, "n": n, "k": n} for n in (2, 3)]}


def write_file(path, text):
    """Makes its folders too; returns the path."""
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def read_file(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def read_bytes(path):
    with open(path, "rb") as file:
        return file.read()


def mutant(name):
    return os.path.join(BUILD, "tests", "mutants", name + ".so")


def skip_if_starved(test, cases):
    """A worker that got no processor, since other programs have it, is environment, and rightly."""
    starved = [c for c in cases if "starved: " in c.get("reason", c.get("message"))]
    test.assertLessEqual({c.get("verdict", c.get("outcome")) for c in starved}, {"environment"})
    if starved:
        test.skipTest("other programs took the processor")


class Gate(unittest.TestCase):
    """Runs gate in a folder of its own, with its own cache of libraries."""

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def gate(self, *args, path=None, addresses=None, **env):
        """`path` comes before $PATH; `addresses`: bytes of address space that its processes
        have."""
        if args[0] in ("run", "verify") and "--seed" not in args:
            args += ("--seed", DRAW)
        env = dict(os.environ, GATE_MUTANT_OF=HOST, GATE_CACHE=self.path("cache"), **env)
        if path:
            env["PATH"] = path + ":" + env["PATH"]
        return subprocess.run([GATE, *args], env=env, cwd=self.folder, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False,
                              preexec_fn=addresses and (lambda: resource.setrlimit(
                                  resource.RLIMIT_AS, (addresses, addresses))))


class Smoke(Gate):
    """Runs of the smoke suite on the host device."""

    # Small enough for a sanitizer build; the suite's size is not what is tested.
    def run_smoke(self, *args, cases="gemm/fp32/*", **env):
        done = self.gate("run", "--device", "host", "--suite", "smoke", "--filter", cases, "--json",
                         "--budget", "20", "--pause", "0", *args, **env)
        return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr


class FakeRuns(Gate):
    """Runs of two cases with a worker that measures what it is told to (fake_worker.py)."""
    accepted = {}  # the folder after accept(), by the files that were there before

    def setUp(self):
        super().setUp()
        self.suite = self.path("suite.json")
        self.setUp_suite()

    def setUp_suite(self):
        write_file(self.suite, json.dumps(SUITE))

    def run_gate(self, *args, library="new", **fake):
        """Runs the suite with a fake worker; returns exit code, run document and diagnostics."""
        file = write_file(self.path(library + ".so"), library)
        done = self.gate(
            "run", "--json", "--suite", self.suite, "--device", "cuda:0", "--worker", WORKER,
             "--library", file, "--provider", "x.so", "--db", self.path("gate.db"), "--pause", "0",
             "--baselines", self.path("baselines"), "--timeout", "60", *args,
            FAKE=json.dumps(fake))
        document = json.loads(done.stdout) if done.stdout else None
        return done.returncode, document, done.stderr

    def cases(self, document):
        return {c["id"]: c for c in document["cases"]}

    def accept(self):
        """Stores baselines. Where the folder is as it was for an earlier test, it gets what that
        one got."""
        before = self.files()
        if before not in self.accepted:
            code, _, errors = self.run_gate("--accept-new", library="old")
            self.assertEqual(code, 0, errors)
            kept = tempfile.mkdtemp()
            unittest.addModuleCleanup(shutil.rmtree, kept, ignore_errors=True)
            self.accepted[before] = shutil.copytree(self.folder, kept, dirs_exist_ok=True)
        shutil.copytree(self.accepted[before], self.folder, dirs_exist_ok=True)

    def files(self):
        names = [os.path.join(folder, name) for folder, _, some in os.walk(self.folder)
                 for name in some]
        return tuple(sorted((os.path.relpath(n, self.folder), read_bytes(n)) for n in names))


def seed(path, runs=20, cases=N_CASES, devices=2, number=1):
    """Fills a database and returns the uuids, oldest first."""
    done = subprocess.run([SEED, path, str(runs), str(cases), str(devices), str(number)],
                          check=True, stdout=subprocess.PIPE, timeout=PATIENCE)
    return done.stdout.decode().split()


class Server:
    """A server on a free port. Its log is a file: a pipe that nobody reads would stop it."""

    def __init__(self, db, *options):
        # pylint: disable-next=consider-using-with
        self.file = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [SERVER, "--db", db, "--listen", "127.0.0.1:0", *options],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.file)
        ready = until(lambda: self.process.poll() is not None or
                      re.search(r"listening on http://127\.0\.0\.1:(\d+)/", self.log),
                      "the server listens")
        if ready is True:
            raise AssertionError(f"the server did not start: {self.log}")
        self.port = int(ready.group(1))

    @property
    def log(self):
        """What it wrote so far."""
        return os.pread(self.file.fileno(), os.fstat(self.file.fileno()).st_size, 0).decode()

    def stop(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self.process.wait(PATIENCE)

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def get(self, path, method="GET", headers=None, body=None, patient=True):
        """What is turned away since others are writing is sent again, as a client does."""
        turned_away = b"Others are writing: send this again."
        end = time.monotonic() + PATIENCE
        response = self.get_once(path, method, headers, body)
        while patient and turned_away in response.bytes and time.monotonic() < end:
            response = self.get_once(path, method, headers, body)
        return response

    def get_once(self, path, method, headers, body):
        connection = self.connect()
        try:
            connection.putrequest(method, path, skip_accept_encoding=True)
            for name, value in (headers or {}).items():
                connection.putheader(name, value)
            connection.endheaders(body)
            response = connection.getresponse()
            response.bytes = response.read()
            return response
        finally:
            connection.close()

    def send(self, path, body, secret=None, method="POST", kind="application/json",
             patient=True):
        """Sends a body with a token, if there is one."""
        headers = {"Content-Type": kind, "Content-Length": str(len(body))}
        if secret:
            headers["Authorization"] = f"Bearer {secret}"
        return self.get(path, method, headers, body, patient)

    def changed(self, path, tag):
        """The answer that is no longer the one of this tag. What another process wrote may be
        missing from tags for 10 ms."""
        until = time.monotonic() + PATIENCE
        response = self.get(path, headers={"If-None-Match": tag})
        while response.status == 304 and time.monotonic() < until:
            response = self.get(path, headers={"If-None-Match": tag})
        return response

    def json(self, path):
        response = self.get(path)
        if response.status != 200:
            raise AssertionError(f"{path}: {response.status} {response.bytes!r}")
        return json.loads(response.bytes)

    def raw(self, request):
        """Sends bytes and returns all that comes back until the server closes."""
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE) as connection:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            answer = b""
            while True:
                piece = connection.recv(65536)
                if not piece:
                    return answer
                answer += piece


class ServedCase(unittest.TestCase):
    """One server for all tests of the class, on what prepare() makes."""

    options = ()

    @classmethod
    def prepare(cls):
        """Of a class that has a history."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.db = os.path.join(cls.folder.name, "gate.db")
        cls.prepare()
        cls.server = Server(cls.db, *cls.options)

    @classmethod
    def tearDownClass(cls):
        status = cls.server.stop()
        cls.folder.cleanup()
        if status != 0:
            raise AssertionError(f"the server ended with {status}: {cls.server.log}")

    def pages(self):
        """None where the build has no page."""
        return () if b"(WEB=0)" in self.server.get("/").bytes else ("/",)

    def assert_problem(self, response, status):
        self.assertEqual(response.status, status)
        self.assertEqual(response.getheader("Content-Type"), "application/problem+json")
        problem = json.loads(response.bytes)
        self.assertEqual(problem["status"], status)
        self.assertTrue(problem["detail"].endswith("."), problem)
        self.assertIsNone(response.getheader("ETag"))
        self.assertEqual(response.getheader("Cache-Control"), "no-store")
        return problem


class SeededCase(ServedCase):
    """On one history, at which the server has looked."""

    runs = 20

    @classmethod
    def prepare(cls):
        cls.uuids = seed(cls.db, cls.runs)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        watched(cls.db)


def token(db, *options):
    done = subprocess.run([SERVER, "token", "create", "--db", db, "--name", "ci", *options],
                          check=True, stdout=subprocess.PIPE, timeout=PATIENCE)
    return done.stdout.decode().strip()


def documents(folder, n=3, cases=4):
    path = os.path.join(folder, "seed.db")
    seed(path, n, cases, 1)
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT packed FROM document ORDER BY run_id").fetchall()
    connection.close()
    return [json.dumps(json.loads(zlib.decompress(row[0]))).encode() for row in rows]


def sample_run(commit):
    """Of 4 cases, measured at this commit."""
    with tempfile.TemporaryDirectory() as folder:
        run = json.loads(documents(folder, n=1)[0])
    run["git"]["commit"] = commit
    return run


def renamed(document, name=None):
    """The same run under another uuid."""
    run = json.loads(document)
    run["uuid"] = name or str(uuid.uuid4())
    return run["uuid"], json.dumps(run).encode()


def until(what, said):
    """Asks again until the answer is true: for what the server does when it has the time."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        answer = what()
        if answer:
            return answer
        time.sleep(0.02)
    raise AssertionError(f"never: {said}")


def watched(db):
    """Waits until a server has looked at the newest run."""
    with contextlib.closing(sqlite3.connect(db)) as connection:
        until(lambda: connection.execute(
            "SELECT r.value = (SELECT max(id) FROM run) AND t.value >= (SELECT max(track_id)"
            " FROM result e WHERE e.run_id = r.value) FROM meta r, meta t"
            " WHERE r.key = 'watch_run' AND t.key = 'watch_track'").fetchone()[0],
            "all is watched")
