# SPDX-License-Identifier: Apache-2.0
"""GitHub and GitLab for tests of what comments there: as much of their interfaces as that needs,
with their limits. What is asked for that they do not have ends in `strange`."""

import json
import os
import re
import tempfile
import threading
import unittest
import urllib.parse

from fake_tracker import Handler, QuietServer

TOKEN = "ghs_16C7e42F292c6912E7.710c838347Ae178B4a"
HEAD = "00112233445566778899aabbccddeeff00112233"
PER_PAGE_MAX = 100


class InJob(unittest.TestCase):
    """A folder, and an environment without the variables of the CI that runs the test."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.env = {name: os.environ[name] for name in ("PATH", "HOME", "GATE_LOCKS")
                    if name in os.environ}

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self, service):
        self.addCleanup(service.stop)
        return service


class ServiceHandler(Handler):
    def json(self, status, body):
        self.respond(status, json.dumps(body).encode(), [("Content-Type", "application/json")])

    def behave(self):
        service = self.server.tracker
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.json(401, {"message": "Bad credentials"})
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query, strict_parsing=bool(url.query)))
        for method, pattern, answer in service.routes:
            match = re.fullmatch(pattern, url.path)
            if match and method == self.command:
                body = json.loads(self.body) if self.body else None
                with service.lock:
                    return self.json(*answer(service, *match.groups(), query=query, body=body))
        service.strange.append((self.command, self.path))
        return self.json(404, {"message": "Not Found"})

    do_PATCH = Handler.answer


class Service:
    """`comments` are those of change 12 of the one project, `head` is its newest commit; `plan` as
    of a Tracker."""

    prefix = ""

    def __init__(self, head):
        self.head = head
        self.lock = threading.Lock()
        self.plan, self.seen, self.strange, self.comments = [], [], [], []
        self.server = QuietServer(("127.0.0.1", 0), ServiceHandler)
        self.server.tracker = self
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}{self.prefix}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def written(self):
        return [(method, path) for method, path, _, _ in self.seen if method != "GET"]

    def add(self, body, author):
        self.comments.append(self.comment(len(self.comments) + 1, body, author))
        return self.comments[-1]

    def page(self, query):
        size = min(int(query["per_page"]), PER_PAGE_MAX)
        start = (int(query["page"]) - 1) * size
        return 200, self.comments[start:start + size]

    def create(self, query, body):
        if len(body["body"]) > self.longest:
            return 422, {"message": "body is too long"}
        return 201, self.add(body["body"], self.me)

    def update(self, number, query, body):
        if len(body["body"]) > self.longest:
            return 422, {"message": "body is too long"}
        found = [c for c in self.comments if c["id"] == int(number)]
        if not found:
            return 404, {"message": "Not Found"}
        found[0]["body"] = body["body"]
        return 200, found[0]


class GitHub(Service):
    """Of team/kernels; `pulls` are its open pull requests, `me` is whose the token is."""

    longest = 65536
    comments_of_12 = r"/repos/team/kernels/issues/12/comments"
    routes = (
        ("GET", "/user", lambda s, **_: s.user()),
        ("GET", "/repos/team/kernels/pulls", lambda s, query, **_: s.find(query)),
        ("GET", "/repos/team/kernels/pulls/12", lambda s, **_: (200, {"head": {"sha": s.head}})),
        ("GET", comments_of_12, lambda s, query, **_: s.page(query)),
        ("POST", comments_of_12, lambda s, **more: s.create(**more)),
        ("PATCH", r"/repos/team/kernels/issues/comments/(\d+)",
         lambda s, number, **more: s.update(number, **more)),
    )

    def __init__(self, head):
        super().__init__(head)
        self.me = {"login": "github-actions[bot]", "type": "Bot"}
        self.pulls = []

    def variables(self):
        """Of a job of the project; what the job is about is in its event."""
        return {"GITHUB_ACTIONS": "true", "GITHUB_API_URL": self.url, "GITHUB_TOKEN": TOKEN,
                "GITHUB_REPOSITORY": "team/kernels"}

    def comment(self, number, body, author):
        return {"id": number, "body": body, "user": author,
                "html_url": f"https://github.com/team/kernels/pull/12#issuecomment-{number}"}

    def user(self):
        if self.me["type"] == "Bot":
            return 403, {"message": "Resource not accessible by integration"}
        return 200, self.me

    def open_pull(self, number, sha, branch="faster", owner="alice"):
        self.pulls.append({"number": number, "head": {
            "sha": sha, "ref": branch, "repo": {"full_name": f"{owner}/kernels"}}})

    def find(self, query):
        owner, branch = query["head"].split(":", 1)
        return 200, [p for p in self.pulls if p["head"]["ref"] == branch and
                     p["head"]["repo"]["full_name"].split("/")[0] == owner]


class GitLab(Service):
    """Of project 7 or team/kernels."""

    longest = 1000000
    prefix = "/api/v4"
    change_12 = r"/api/v4/projects/(?:7|team%2Fkernels)/merge_requests/12"
    notes_of_12 = change_12 + "/notes"
    routes = (
        ("GET", "/api/v4/user", lambda s, **_: (200, s.me)),
        ("GET", change_12, lambda s, **_: (200, {"sha": s.head})),
        ("GET", notes_of_12, lambda s, query, **_: s.page(query)),
        ("POST", notes_of_12, lambda s, **more: s.create(**more)),
        ("PUT", notes_of_12 + r"/(\d+)", lambda s, number, **more: s.update(number, **more)),
    )
    me = {"id": 41, "username": "project_7_bot"}

    def variables(self):
        """Of a job of merge request 12."""
        return {"GITLAB_CI": "true", "CI_API_V4_URL": self.url, "CI_PROJECT_ID": "7",
                "CI_MERGE_REQUEST_IID": "12", "CI_COMMIT_SHA": self.head, "GITLAB_TOKEN": TOKEN,
                "CI_MERGE_REQUEST_PROJECT_PATH": "team/kernels",
                "CI_MERGE_REQUEST_SOURCE_PROJECT_PATH": "team/kernels"}

    def comment(self, number, body, author):
        return {"id": number, "body": body, "author": author}
