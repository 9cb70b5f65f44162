# SPDX-License-Identifier: Apache-2.0
"""A tracking server for tests of what talks to one: it does as it is told, good or bad."""

import gzip
import hashlib
import http.server
import json
import socket
import struct
import threading

TOKEN = "kg_test_0123456789abcdefghijklmnopqrstuv"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each answer waits for the client's delayed ACK

    def log_message(self, *_):
        pass

    def respond(self, status, body=b"", headers=(), promise=None):
        """`promise`: the Content-Length that is announced, where it is not that of the body."""
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if promise is None else promise))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        if promise is not None and promise != len(body) and self.command != "HEAD":
            self.close_connection = True

    def problem(self, status, detail, headers=(), errors=None):
        body = {"type": "about:blank", "title": "no", "status": status, "detail": detail}
        if errors:
            body["errors"] = errors
        self.respond(status, json.dumps(body).encode(),
                     [("Content-Type", "application/problem+json"), *headers])

    def reset(self):
        """Ends the connection so that the other side sees a reset."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True

    def answer(self):
        tracker = self.server.tracker
        length = int(self.headers.get("Content-Length") or 0)
        self.body = self.rfile.read(length)
        with tracker.lock:
            tracker.seen.append((self.command, self.path, dict(self.headers), self.body))
            trick = tracker.plan.pop(0) if tracker.plan else None
        if trick:
            trick(self)
        else:
            self.behave()

    do_GET = do_HEAD = do_POST = do_PUT = answer

    # What a good server does.

    def behave(self):
        tracker = self.server.tracker
        writes = self.command in ("POST", "PUT")
        if writes and self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.problem(401, "There is no such token.")
        if self.path == "/api/v1/runs" and self.command == "POST":
            return self.take_run(tracker)
        if self.path.startswith("/api/v1/artifacts/"):
            return self.artifact(tracker, self.path.rsplit("/", 1)[1])
        return self.problem(404, "There is no such address.")

    def take_run(self, tracker):
        text = gzip.decompress(self.body) if self.headers.get("Content-Encoding") else self.body
        uuid = json.loads(text)["uuid"]
        with tracker.lock:
            created = uuid not in tracker.runs
            if not created and tracker.runs[uuid] != text:
                return self.problem(409, "This uuid is another run's.")
            tracker.runs[uuid] = text
        body = json.dumps({"uuid": uuid, "created": created}).encode()
        return self.respond(201 if created else 200, body, [("Content-Type", "application/json")])

    def artifact(self, tracker, sha256):
        if self.command == "PUT":
            if hashlib.sha256(self.body).hexdigest() != sha256:
                return self.problem(422, "The bytes have another hash.")
            created = sha256 not in tracker.artifacts
            tracker.artifacts[sha256] = self.body
            return self.respond(201 if created else 200)
        if sha256 not in tracker.artifacts:
            return self.problem(404, "There is no such artifact.")
        return self.respond(200, tracker.artifacts[sha256],
                            [("Content-Type", "application/octet-stream")])


class QuietServer(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """A client that goes away is what some tests are about."""


class Tracker:
    """`plan` holds what the next requests get, functions of the handler; then it is a good one.
    `seen` holds what was asked: method, path, headers, body."""

    def __init__(self, port=0, context=None):
        self.lock = threading.Lock()
        self.plan, self.seen = [], []
        self.runs, self.artifacts = {}, {}
        self.server = QuietServer(("127.0.0.1", port), Handler)
        self.server.tracker = self
        self.scheme = "http"
        if context:
            self.scheme = "https"
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    @property
    def url(self):
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def asked(self, method):
        return [path for m, path, _, _ in self.seen if m == method]

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
