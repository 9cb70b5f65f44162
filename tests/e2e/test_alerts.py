# SPDX-License-Identifier: Apache-2.0
"""Alerts over HTTP: what the server finds in a history, the steps that people take, the feed, the
badges, and the webhook against a receiver that does as it is told."""

import contextlib
import copy
import hashlib
import hmac
import http.server
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import uuid
import xml.etree.ElementTree as ElementTree
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import GEMV, GPU, PATIENCE, ROOT, SERVER, Server, seed, watched  # noqa: E402

ATOM = "{http://www.w3.org/2005/Atom}"
SVG = "{http://www.w3.org/2000/svg}"
STEP = "attention_fwd/fp16/b8-h16-s512-d64/causal"
FLAT = "linear_relu/fp16/b1024-i2048-o768"
RUNS, CASES = 120, 9
SECRET = b"a secret of the right length"


def token(db, scope):
    done = subprocess.run([SERVER, "token", "create", "--db", db, "--name", f"ada-{scope}",
                           "--scope", scope], check=True, stdout=subprocess.PIPE,
                          timeout=PATIENCE)
    return re.search(r"kg_\w+", done.stdout.decode()).group()


def documents(db):
    with contextlib.closing(sqlite3.connect(db)) as connection:
        rows = connection.execute("SELECT packed FROM document ORDER BY run_id DESC LIMIT 1")
        return json.loads(zlib.decompress(rows.fetchone()[0]))


class Case(unittest.TestCase):
    options = ()

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.db = os.path.join(cls.folder.name, "gate.db")
        seed(cls.db, RUNS, CASES, 1)
        cls.newest = documents(cls.db)
        cls.server = Server(cls.db, "--write-rate", "1000", *cls.options)
        cls.tokens = {scope: token(cls.db, scope) for scope in ("ingest", "admin")}
        watched(cls.db)

    @classmethod
    def tearDownClass(cls):
        status = cls.server.stop()
        cls.folder.cleanup()
        if status != 0:
            raise AssertionError(f"the server ended with {status}: {cls.server.log}")

    @classmethod
    def send(cls, path, body, scope="admin", server=None):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        if scope:
            headers["Authorization"] = f"Bearer {cls.tokens[scope]}"
        return (server or cls.server).get(path, "POST", headers, body)

    @classmethod
    def step(cls, number, state, reason=None, server=None):
        body = {"state": state} if reason is None else {"state": state, "reason": reason}
        return cls.send(f"/api/v1/alerts/{number}", body, server=server)

    @classmethod
    def runs_of_another_level(cls, case, factor, n, server, branch="main"):
        """Stores n runs more, in which a case takes so many times as long."""
        for i in range(n):
            run = copy.deepcopy(cls.newest)
            run["uuid"] = str(uuid.uuid4())
            run["git"]["branch"] = branch
            run["time_ms"] += (i + 1) * 60000
            for item in run["cases"]:
                if item["id"] == case:
                    timing, by = item["arms"][0]["timing"], factor * (1 + 0.001 * (i * 7 % 5 - 2))
                    for key in ("p50_ns", "p50_lo_ns", "p50_hi_ns", "p90_ns"):
                        timing[key] *= by
                    for key in ("value", "lo", "hi"):
                        item["ratio"][key] *= by
                    item["verdict"] = "regression" if item["ratio"]["lo"] > 1.02 else "pass"
            response = cls.send("/api/v1/runs", run, "ingest", server)
            if response.status != 201:
                raise AssertionError(response.bytes)
        cls.newest = run
        watched(cls.db)

    def alerts(self, query=""):
        return self.server.json(f"/api/v1/alerts{query}")

    def problem(self, response, status):
        self.assertEqual(response.status, status, response.bytes)
        self.assertEqual(response.getheader("Content-Type"), "application/problem+json")
        return json.loads(response.bytes)


class Found(Case):
    """What is found in the history that tests/tools/sample_story.h tells."""

    def test_each_step_is_one_alert(self):
        found = {(a["case"], a["kind"], a["state"], round(a["change"], 2))
                 for a in self.alerts()["alerts"]}
        self.assertEqual(found, {
            (STEP, "regression", "new", 0.06),
            ("attention_fwd/fp16/b4-h16-s4096-d128/causal", "improvement", "new", -0.07),
            ("gemm/bf16/m8192-n1024-k8192", "regression", "fixed", 0.05),
            (GEMV, "regression", "accepted", 0.04),
            # a run whose verdict was a confirmed regression, and what crept below the threshold
            ("gemm/tf32/m2048-n2048-k2048", "regression", "fixed", 0.02),
            ("gemv/fp32/m2048-k2048", "regression", "new", 0.01),
        })
        confirmed = {a["case"]: a["evidence"] for a in self.alerts()["alerts"] if a["confirmed"]}
        self.assertIn("gemm/tf32/m2048-n2048-k2048", confirmed)
        self.assertNotIn("gemv/fp32/m2048-k2048", confirmed)
        self.assertTrue(all(confirmed.values()), confirmed)

    def test_filters_and_counts(self):
        self.assertEqual(self.alerts()["counts"],
                         {"new": 3, "acknowledged": 0, "accepted": 1, "fixed": 2, "ignored": 0})
        metrics = self.server.get("/metrics").bytes.decode()
        self.assertIn("\ngate_alerts_new 3\n", metrics)
        self.assertIn("\ngate_alerts_acknowledged 0\n", metrics)
        of_case = self.alerts(f"?case={STEP}&device={GPU}&kind=regression&state=new")
        self.assertEqual([a["case"] for a in of_case["alerts"]], [STEP])
        # The state that is asked for does not change the counts, other filters do.
        self.assertEqual(of_case["counts"], {"new": 1, "acknowledged": 0, "accepted": 0,
                                             "fixed": 0, "ignored": 0})
        self.assertEqual(self.alerts("?device=no-such")["alerts"], [])
        for bad in ("state=open", "kind=x", "limit=0", "after=0", "after=x", "device=A", "x=1"):
            self.problem(self.server.get(f"/api/v1/alerts?{bad}"), 400)

    def test_pages(self):
        whole, pages, query = self.alerts()["alerts"], [], "?limit=1"
        while query:
            page = self.alerts(query)
            pages += page["alerts"]
            query = page["next"] and f"?limit=1&after={page['next']}"
        self.assertEqual(pages, whole)
        self.assertEqual([a["id"] for a in whole], sorted((a["id"] for a in whole), reverse=True))

    def test_trends_and_cases_name_them(self):
        alert = self.alerts(f"?case={STEP}")["alerts"][0]
        trend = self.server.json(f"/api/v1/trends?case={STEP}&device={GPU}")
        self.assertEqual([{k: point[k] for k in ("id", "time_ms", "run", "commit", "kind")}
                          for point in trend["change_points"]],
                         [{k: alert[k] for k in ("id", "time_ms", "run", "commit", "kind")}])
        cases = {c["id"]: c["alert"] for c in self.server.json("/api/v1/cases")["cases"]}
        self.assertEqual(cases[STEP], alert["id"])
        self.assertIsNone(cases[FLAT])
        # The return of a level is a change point, though no alert.
        back = self.server.json(
            f"/api/v1/trends?case=gemm/bf16/m8192-n1024-k8192&device={GPU}")["change_points"]
        self.assertEqual([p["kind"] for p in back], ["regression", "improvement"])

    def test_rows_and_csv(self):
        rows = self.alerts("?format=rows")
        self.assertEqual(rows, self.alerts()["alerts"])
        lines = self.server.get("/api/v1/alerts?format=csv").bytes.decode().split("\r\n")
        self.assertEqual(lines[0].split(",")[:3], ["id", "case", "device"])
        self.assertEqual(len(lines), len(rows) + 2)


class Grafana(Case):
    """The panels of docs/server.md: Infinity takes named members out of an array of rows."""

    TYPES = {"Time (UNIX ms)": int, "Number": (int, float), "String": str}

    def panels(self):
        """(address, [(selector, type)]) of each."""
        with open(os.path.join(ROOT, "docs", "server.md"), encoding="utf-8") as file:
            section = file.read().split("\n## Grafana\n")[1].split("\n## ")[0]
        for part in section.split("\n    /api/v1/")[1:]:
            yield (part.split("\n")[0],
                   re.findall(r"^\| `(\w+)` \| \w+ \| (.+) \|$", part, re.MULTILINE))

    def test_what_is_documented_is_there(self):
        panels = list(self.panels())
        self.assertEqual([len(columns) for _, columns in panels], [4, 4])
        for address, columns in panels:
            address = address.replace("${__from}", "1600000000000").replace("${__to}",
                                                                            "1900000000000")
            self.assertNotIn("$", address)
            rows = self.server.json("/api/v1/" + address)
            self.assertIsInstance(rows, list)
            self.assertTrue(rows, address)
            for row in rows:
                for selector, kind in columns:
                    self.assertIsInstance(row[selector], self.TYPES[kind], selector)
                    if kind.startswith("Time"):
                        self.assertGreater(row[selector], 1600000000000)


class Branches(Case):
    options = ("--main-branch", "next")

    def test_only_runs_of_the_main_branch_raise_alerts(self):
        for branch, factor, n in (("next", 1, 0), ("main", 1.3, 0), ("next", 1, 1)):
            self.runs_of_another_level(FLAT, factor, 12, self.server, branch)
            found = [a for a in self.alerts()["alerts"] if a["case"] == FLAT]
            self.assertEqual(len(found), n)
        self.assertEqual(found[0]["kind"], "regression")
        branches = {self.server.json(f"/api/v1/runs/{a['run']}")["git"]["branch"]
                    for a in self.alerts()["alerts"]}
        self.assertEqual(branches, {"next"})


class Steps(Case):
    def test_who_may(self):
        path = "/api/v1/alerts/1"
        self.problem(self.send(path, {"state": "new"}, None), 401)
        self.problem(self.send(path, {"state": "new"}, "ingest"), 403)
        self.assertEqual(self.server.get(path, "PUT").status, 405)

    def test_a_life(self):
        number = self.alerts(f"?case={STEP}")["alerts"][0]["id"]
        path = f"/api/v1/alerts/{number}"
        before = self.server.get(path)
        for state, reason, status in (
                ("acknowledged", None, 200), ("acknowledged", None, 409), ("new", "x", 409),
                ("accepted", None, 400), ("ignored", "  \n", 400), ("accepted", "wanted", 200),
                ("fixed", "x", 409), ("new", "not so", 200), ("fixed", "", 200),
                ("new", None, 200)):
            response = self.step(number, state, reason)
            self.assertEqual(response.status, status, (state, reason, response.bytes))
            if status == 200:
                alert = json.loads(response.bytes)
                self.assertEqual((alert["state"], alert["who"], alert["reason"]),
                                 (state, "ada-admin", reason or ""))
                self.assertEqual(alert["closed_ms"] is None, state in ("new", "acknowledged"))
        after = self.server.get(path, headers={"If-None-Match": before.getheader("ETag")})
        self.assertEqual(after.status, 200)
        log = json.loads(after.bytes)["log"]
        self.assertEqual([(e["from"], e["to"]) for e in log],
                         [(None, "new"), ("new", "acknowledged"), ("acknowledged", "accepted"),
                          ("accepted", "new"), ("new", "fixed"), ("fixed", "new")])
        self.assertEqual([e["who"] for e in log], ["gate-server"] + ["ada-admin"] * 5)
        self.assertEqual(log[2]["reason"], "wanted")

    def test_what_is_no_step(self):
        for bad in (b"", b"{", b"[]", b"null", b'"new"', {}, {"state": 1}, {"state": "open"},
                    {"state": "new", "more": 1}, {"state": "new", "reason": 1},
                    {"state": "fixed", "reason": "x" * 501}, b'{"state":"fixed","state":"new"}',
                    b'{"state":"fixed","reason":"\xff"}'):
            self.problem(self.send("/api/v1/alerts/1", bad), 400)
        self.problem(self.send("/api/v1/alerts/1", b" " * 20000), 413)
        for path in ("0", "-1", "x", "1x", "1/", "", "99999", "9" * 30):
            response = self.send(f"/api/v1/alerts/{path}", {"state": "new"})
            self.assertIn(response.status, (400, 404), path)
            self.assertIn(self.server.get(f"/api/v1/alerts/{path}").status, (400, 404), path)


    def test_an_assignee(self):
        number = self.alerts("?state=new")["alerts"][0]["id"]
        path = f"/api/v1/alerts/{number}"
        self.assertIsNone(self.server.json(path)["assignee"])
        for assignee, logged in (("Grace \u00fc", "assigned to Grace \u00fc: it is hers"),
                                 (None, "assigned to nobody: it is hers")):
            answer = json.loads(
                self.send(path, {"assignee": assignee, "reason": "it is hers"}).bytes)
            self.assertEqual((answer["assignee"], answer["state"]), (assignee, "new"))
            self.assertEqual([(e["from"], e["to"], e["who"], e["reason"])
                              for e in answer["log"][-1:]], [("new", "new", "ada-admin", logged)])
        self.assertEqual(len(json.loads(self.send(path, {"assignee": None}).bytes)["log"]),
                         len(answer["log"]))
        for bad in (1, [], "", " x", "x" * 65):
            self.problem(self.send(path, {"assignee": bad}), 400)

    def test_a_selection(self):
        path = "/api/v1/alerts"
        ids = [a["id"] for a in self.alerts()["alerts"] if a["state"] == "accepted"]
        ids += [a["id"] for a in self.alerts()["alerts"] if a["state"] == "fixed"]
        self.assertGreater(len(ids), 2)
        before = self.alerts()["alerts"]
        for bad in ({"ids": ids}, {"state": "new"}, {"ids": [], "state": "new"},
                    {"ids": [0], "state": "new"}, {"ids": [1.5], "state": "new"},
                    {"ids": ["1"], "state": "new"}, {"ids": ids, "state": "ignored"},
                    {"ids": ids, "state": "new", "more": 1},
                    {"ids": list(range(1, 1002)), "state": "new"}):
            self.problem(self.send(path, bad), 400)
        self.problem(self.send(path, {"ids": ids, "state": "new"}, None), 401)
        self.problem(self.send(path, {"ids": ids, "state": "new"}, "ingest"), 403)
        # Nothing happens to any when one cannot.
        self.assertIn(b" 99999;", self.send(path, {"ids": [*ids, 99999], "state": "new"}).bytes)
        self.problem(self.send(path, {"ids": [*ids, 99999], "state": "new"}), 404)
        self.problem(self.send(path, {"ids": ids, "state": "acknowledged"}), 409)
        self.assertEqual(self.alerts()["alerts"], before)
        answer = self.send(path, {"ids": ids, "state": "new", "reason": "look again",
                                  "assignee": "ada"})
        self.assertEqual(answer.status, 200, answer.bytes)
        alerts = json.loads(answer.bytes)["alerts"]
        self.assertEqual([(a["id"], a["state"], a["reason"], a["assignee"]) for a in alerts],
                         [(i, "new", "look again", "ada") for i in ids])

    def test_the_commit_has_subject_and_author(self):
        runs = {run["uuid"]: run for run in self.server.json("/api/v1/runs?limit=500")["runs"]}
        for alert in self.alerts()["alerts"]:
            run = runs[alert["run"]]
            self.assertTrue(alert["author"])
            self.assertEqual((alert["subject"], alert["author"]), (run["subject"], run["author"]))

    def test_a_page_of_groups_has_whole_ones(self):
        def ids(alerts):
            groups = {}
            for alert in alerts:
                groups.setdefault(alert["group"], []).append(alert["id"])
            return groups

        for of in ("", "&kind=regression", f"&device={GPU}&state=new", f"&case={STEP}"):
            whole, pages = ids(self.alerts(f"?limit=1000{of}")["alerts"]), {}
            self.assertTrue(whole)
            query = f"?groups=1&limit=1{of}"
            while query:
                page = self.alerts(query)
                found = ids(page["alerts"])
                self.assertEqual(len(found), 1)
                self.assertFalse(found.keys() & pages.keys())
                pages |= found
                query = page["next"] and f"?groups=1&limit=1{of}&after={page['next']}"
            self.assertEqual(pages, whole)
            self.assertEqual(list(pages), list(whole))
        self.problem(self.server.get("/api/v1/alerts?groups=2"), 400)

    def test_groups_are_ranges_of_commits(self):
        for alert in self.alerts()["alerts"]:
            self.assertEqual(alert["group"],
                             f"{alert['before_commit'] or ''}..{alert['commit']}")


class Feed(Case):
    def feed(self, query=""):
        response = self.server.get(f"/feed.atom{query}")
        self.assertEqual(response.status, 200)
        self.assertEqual(response.getheader("Content-Type"), "application/atom+xml; charset=utf-8")
        return ElementTree.fromstring(response.bytes)

    def links(self, feed):
        return [e.get("href") for e in feed.iterfind(f"{ATOM}entry/{ATOM}link")]

    def test_links_begin_with_the_public_url(self):
        tags = {self.server.get("/feed.atom").getheader("ETag")}
        for url in "https://gate.example.org/a&b", "https://gate.example.org/a&b/":
            server = Server(self.db, "--public-url", url)
            try:
                response = server.get("/feed.atom")
            finally:
                server.stop()
            feed = ElementTree.fromstring(response.bytes)
            tags.add(response.getheader("ETag"))
            self.assertTrue(self.links(feed))
            for link in self.links(feed):
                self.assertRegex(link, r"^https://gate\.example\.org/a&b/#/alerts/\d+$")
            own = [e.get("href") for e in feed.findall(ATOM + "link")]
            self.assertEqual(own, ["https://gate.example.org/a&b/" + rest
                                   for rest in ("feed.atom", "#/alerts")])
        self.assertEqual(len(tags), 3)

    def test_it_is_atom(self):
        feed = self.feed(f"?device={GPU}")
        self.assertEqual(feed.tag, ATOM + "feed")
        stamp = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
        ids = []
        for element in (feed, *feed.findall(ATOM + "entry")):
            for name in ("id", "title", "updated"):
                self.assertEqual(len(element.findall(ATOM + name)), 1, name)
            ids.append(element.find(ATOM + "id").text)
            self.assertEqual(uuid.UUID(ids[-1]).version, 8)
            self.assertRegex(element.find(ATOM + "updated").text, stamp)
            self.assertIsNotNone(element.find(ATOM + "link"))
        self.assertEqual(len(set(ids)), 7)
        self.assertEqual(ids, [i.text for i in self.feed(f"?device={GPU}").iter(ATOM + "id")])
        self.assertEqual(feed.find(f"{ATOM}author/{ATOM}name").text, "gate-server")
        own = [e.get("href") for e in feed.findall(ATOM + "link") if e.get("rel") == "self"]
        self.assertEqual(own, [f"./feed.atom?device={GPU}"])
        alerts = self.server.json(f"/api/v1/alerts?device={GPU}")["alerts"]
        self.assertEqual(self.links(feed), [f"./#/alerts/{a['id']}" for a in alerts])
        for entry, alert in zip(feed.findall(ATOM + "entry"), alerts):
            self.assertIn(f"since commit {alert['commit'][:12]} ({alert['subject']}, by "
                          f"{alert['author']})", entry.find(ATOM + "content").text)
        newest = max(e.find(ATOM + "updated").text for e in feed.findall(ATOM + "entry"))
        self.assertEqual(feed.find(ATOM + "updated").text, newest)

    def test_filters(self):
        self.assertEqual(len(self.feed(f"?case={GEMV}").findall(ATOM + "entry")), 1)
        self.assertEqual(len(self.feed("?device=no-such").findall(ATOM + "entry")), 0)
        for bad in ("?x=1", "?device=A", "?case=%3C", "?limit=1"):
            self.problem(self.server.get(f"/feed.atom{bad}"), 400)

    def test_what_people_write_is_text(self):
        reason = "</content><x a='1'>&amp; \"quoted\" \x01\ufffe \U0001f600"
        number = self.alerts("?state=new&kind=regression")["alerts"][0]["id"]
        tag = self.server.get("/feed.atom").getheader("ETag")
        self.assertEqual(self.server.get("/feed.atom", headers={"If-None-Match": tag}).status, 304)
        self.assertEqual(self.step(number, "ignored", reason).status, 200)
        self.assertEqual(self.server.get("/feed.atom", headers={"If-None-Match": tag}).status, 200)
        texts = [e.text for e in self.feed().iter(ATOM + "content")]
        shown = reason.replace("\x01", "\ufffd").replace("\ufffe", "\ufffd")
        self.assertTrue(any(text.endswith(shown) for text in texts), texts)


class Badges(Case):
    def test_pictures(self):
        with open(os.path.join(ROOT, "web", "style.css"), encoding="utf-8") as file:
            style = file.read()
        for path, words in ((GPU, "regression, 2 alerts"), (f"{GPU}/{GEMV}", "pass, "),
                            (f"{GPU}/no/such", "unknown"), ("no-such", "unknown")):
            response = self.server.get(f"/badge/{path}.svg")
            self.assertEqual(response.status, 200)
            self.assertEqual(response.getheader("Content-Type"), "image/svg+xml")
            # Pages of other sites may show it.
            self.assertEqual(response.getheader("Cross-Origin-Resource-Policy"), "cross-origin")
            picture = ElementTree.fromstring(response.bytes)
            self.assertEqual(picture.tag, SVG + "svg")
            texts = [t.text for t in picture.iter(SVG + "text")]
            self.assertTrue(texts[1].startswith(words), texts)
            self.assertEqual(picture.find(SVG + "title").text, ": ".join(texts))
            shield = self.server.json(f"/badge/{path}.json")
            self.assertEqual(shield["schemaVersion"], 1)
            self.assertEqual([shield["label"], shield["message"]], texts)
            verdict = words.split(",")[0].replace("unknown", "no-verdict")
            self.assertIn(f"--{verdict}: {shield['color']};", style[:style.index("@media")])

    def test_tags(self):
        tag = self.server.get(f"/badge/{GPU}.svg").getheader("ETag")
        again = self.server.get(f"/badge/{GPU}.svg", headers={"If-None-Match": tag})
        self.assertEqual(again.status, 304)
        # What it says replaces what the first answer said.
        self.assertIn(again.getheader("Cross-Origin-Resource-Policy"), (None, "cross-origin"))

    def test_other_addresses(self):
        for path in ("", ".svg", "x", "x.png", f"{GPU}/.svg", f"{GPU}//x.svg", "A.svg",
                     "x" * 70 + ".svg", f"{GPU}/" + "x" * 170 + ".json", "%3Csvg.svg"):
            self.assertEqual(self.server.get(f"/badge/{path}").status, 404, path)
        self.problem(self.server.get(f"/badge/{GPU}.svg?style=flat"), 400)


class BadgesOfBranches(Case):
    def test_a_merge_request_is_not_the_projects_state(self):
        paths = [f"/badge/{GPU}{case}.json" for case in ("", f"/{FLAT}")]
        before = [self.server.json(path) for path in paths]
        run = copy.deepcopy(self.newest)
        run |= {"uuid": str(uuid.uuid4()), "time_ms": run["time_ms"] + 1,
                "verdict": "environment", "exit_code": 4}
        run["git"]["branch"] = "mr/1"
        for item in run["cases"]:
            item["verdict"] = "environment"
        answer = self.send("/api/v1/runs", run, "ingest")
        self.assertEqual(answer.status, 201, answer.bytes)
        self.assertEqual([self.server.json(path) for path in paths], before)
        tag = self.server.get(paths[0]).getheader("ETag")
        # Another setting is another badge, also for whom has the old one.
        other = Server(self.db, "--main-branch", "mr/1")
        try:
            for path in paths:
                self.assertTrue(other.json(path)["message"].startswith("environment"), path)
            self.assertEqual(other.get(paths[0], headers={"If-None-Match": tag}).status, 200)
        finally:
            other.stop()


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


class Webhook(Case):
    def setUp(self):
        self.secret = os.path.join(self.folder.name, "secret")
        with open(self.secret, "wb") as file:
            file.write(SECRET + b"\n")

    @contextlib.contextmanager
    def hooked(self, receiver, how=signal.SIGTERM):
        """Another server on the same database, that tells the receiver."""
        server = Server(self.db, "--write-rate", "1000", "--webhook", receiver.url,
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
        for _, headers, body in told:
            stamp = headers["X-Gate-Timestamp"]
            self.assertLess(abs(time.time() - int(stamp)), PATIENCE)
            mac = hmac.new(SECRET, stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
            self.assertEqual(headers["X-Gate-Signature"], f"sha256={mac}")
            self.assertEqual(headers["Content-Type"], "application/json")
            self.assertNotIn("Authorization", headers)

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
        self.assertNotIn(SECRET.decode(), server.log)

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
                return db.execute("SELECT count(*) FROM webhook").fetchone()[0]
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
