# SPDX-License-Identifier: Apache-2.0
"""Alerts over HTTP: what the server finds in a history, the steps that people take, the feed and
the badges."""

import contextlib
import copy
import json
import os
import re
import sqlite3
import subprocess
import unittest
import uuid
import xml.etree.ElementTree as ElementTree
import zlib

from harness import GEMV, GPU, PATIENCE, ROOT, SERVER, SeededCase, Server, read_file, seed, watched

ATOM = "{http://www.w3.org/2005/Atom}"
SVG = "{http://www.w3.org/2000/svg}"
STEP = "attention_fwd/fp16/b8-h16-s512-d64/causal"
FLAT = "linear_relu/fp16/b1024-i2048-o768"
RUNS, CASES = 120, 9


def token(db, scope):
    done = subprocess.run([SERVER, "token", "create", "--db", db, "--name", f"ada-{scope}",
                           "--scope", scope], check=True, stdout=subprocess.PIPE,
                          timeout=PATIENCE)
    return re.search(r"kg_\w+", done.stdout.decode()).group()


def documents(db):
    with contextlib.closing(sqlite3.connect(db)) as connection:
        rows = connection.execute("SELECT packed FROM document ORDER BY run_id DESC LIMIT 1")
        return json.loads(zlib.decompress(rows.fetchone()[0]))


class Case(SeededCase):
    @classmethod
    def prepare(cls):
        seed(cls.db, RUNS, CASES, 1)
        cls.newest = documents(cls.db)
        cls.tokens = {scope: token(cls.db, scope) for scope in ("ingest", "admin")}

    @classmethod
    def send(cls, path, body, scope="admin", server=None):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        return (server or cls.server).send(path, body, scope and cls.tokens[scope])

    @classmethod
    def step(cls, number, state, reason=None, server=None):
        body = {"state": state} if reason is None else {"state": state, "reason": reason}
        return cls.send(f"/api/v1/alerts/{number}", body, server=server)

    @classmethod
    def runs_of_another_level(cls, case, factor, n, server, branch="main",
                              dirty=False):
        """Stores n runs more, in which a case takes so many times as long."""
        for i in range(n):
            run = copy.deepcopy(cls.newest)
            run["uuid"] = str(uuid.uuid4())
            run["git"] |= {"branch": branch, "dirty": dirty}
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


class Found(Case):
    """What is found in the history that tests/tools/sample_story.h tells."""

    def test_each_step_is_one_alert(self):
        found = {(a["case"], a["kind"], a["state"], round(a["change"], 2))
                 for a in self.alerts()["alerts"]}
        self.assertEqual(found, {
            (STEP, "regression", "new", 0.06),
            ("attention_fwd/fp16/b4-h16-s4096-d128/causal", "improvement", "accepted", -0.07),
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
                         {"new": 2, "acknowledged": 0, "accepted": 2, "fixed": 2, "ignored": 0})
        metrics = self.server.get("/metrics").bytes.decode()
        self.assertIn("\ngate_alerts_new 2\n", metrics)
        self.assertIn("\ngate_alerts_acknowledged 0\n", metrics)
        of_case = self.alerts(f"?case={STEP}&device={GPU}&kind=regression&state=new")
        self.assertEqual([a["case"] for a in of_case["alerts"]], [STEP])
        # The state that is asked for does not change the counts, other filters do.
        self.assertEqual(of_case["counts"], {"new": 1, "acknowledged": 0, "accepted": 0,
                                             "fixed": 0, "ignored": 0})
        self.assertEqual(self.alerts("?device=no-such")["alerts"], [])
        for bad in ("state=open", "kind=x", "limit=0", "after=-1", "after=x", "device=A", "x=1"):
            self.assert_problem(self.server.get(f"/api/v1/alerts?{bad}"), 400)

    def test_one_count_of_open_causes(self):
        """What the page's head and wall, the badge and the feed say is one number."""
        self.assertEqual(self.alerts("?state=fixed&limit=1")["causes"], 2)
        self.assertEqual(self.alerts(f"?case={STEP}")["causes"], 1)
        self.assertEqual(self.alerts("?device=no-such")["causes"], 0)
        for query, said in (("", "2 open causes"), (f"?case={STEP}", "1 open cause")):
            feed = ElementTree.fromstring(self.server.get(f"/feed.atom{query}").bytes)
            self.assertEqual(feed.findtext(f"{ATOM}subtitle"), said)
        self.assertIn(">regression, 2 open causes<",
                      self.server.get(f"/badge/{GPU}.svg").bytes.decode())

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
        same = ("id", "time_ms", "run", "commit", "kind", "parent", "before_commit",
                "before_subject", "before_author")
        self.assertEqual([{k: point[k] for k in same} for point in trend["change_points"]],
                         [{k: alert[k] for k in same}])
        self.assertIsNotNone(alert["before_commit"])
        cases = {c["id"]: c["alert"] for c in self.server.json("/api/v1/cases")["cases"]}
        self.assertEqual(cases[STEP], alert["id"])
        self.assertIsNone(cases[FLAT])
        # The return of a level is a change point, though no alert.
        back = self.server.json(
            f"/api/v1/trends?case=gemm/bf16/m8192-n1024-k8192&device={GPU}")["change_points"]
        self.assertEqual([p["kind"] for p in back], ["regression", "improvement"])
        self.assertEqual([p["before_commit"] is None for p in back], [False, True])

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
        page = read_file(os.path.join(ROOT, "docs", "server.md"))
        section = page.split("\n## Grafana\n")[1].split("\n## ")[0]
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
            self.runs_of_another_level(FLAT, factor, 12, self.server, branch, dirty=n == 1)
            found = [a for a in self.alerts()["alerts"] if a["case"] == FLAT]
            self.assertEqual(len(found), n)
        self.assertEqual(found[0]["kind"], "regression")
        # The commit's author did not make changes that the commit does not have.
        self.assertIn(" with uncommitted changes", found[0]["text"])
        self.assertIs(found[0]["dirty"], True)
        branches = {self.server.json(f"/api/v1/runs/{a['run']}")["git"]["branch"]
                    for a in self.alerts()["alerts"]}
        self.assertEqual(branches, {"next"})


class Steps(Case):
    def test_who_may(self):
        path = "/api/v1/alerts/1"
        self.assert_problem(self.send(path, {"state": "new"}, None), 401)
        self.assert_problem(self.send(path, {"state": "new"}, "ingest"), 403)
        self.assertEqual(self.server.get(path, "PUT").status, 405)

    def test_a_life(self):
        number = self.alerts(f"?case={STEP}")["alerts"][0]["id"]
        path = f"/api/v1/alerts/{number}"
        before = self.server.get(path)
        for state, reason, status in (
                ("acknowledged", None, 200), ("acknowledged", None, 409),
                ("new", "undone", 200), ("new", "x", 409), ("acknowledged", None, 200),
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
                         [(None, "new"), ("new", "acknowledged"), ("acknowledged", "new"),
                          ("new", "acknowledged"), ("acknowledged", "accepted"),
                          ("accepted", "new"), ("new", "fixed"), ("fixed", "new")])
        self.assertEqual([e["who"] for e in log], ["gate-server"] + ["ada-admin"] * 7)
        self.assertEqual(log[4]["reason"], "wanted")

    def test_what_is_no_step(self):
        for bad in (b"", b"{", b"[]", b"null", b'"new"', {}, {"state": 1}, {"state": "open"},
                    {"state": "new", "more": 1}, {"state": "new", "reason": 1},
                    {"state": "fixed", "reason": "x" * 501}, b'{"state":"fixed","state":"new"}',
                    b'{"state":"fixed","reason":"\xff"}'):
            self.assert_problem(self.send("/api/v1/alerts/1", bad), 400)
        self.assert_problem(self.send("/api/v1/alerts/1", b" " * 20000), 413)
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
        why = "it's \"noise\"; DROP TABLE alert"
        answer = json.loads(
            self.send(path, {"state": "ignored", "assignee": "Ada", "reason": why}).bytes)
        self.assertEqual([(e["from"], e["to"], e["reason"]) for e in answer["log"][-2:]],
                         [("new", "ignored", why), ("ignored", "ignored", "assigned to Ada")])
        self.send(path, {"state": "new", "assignee": None})
        for bad in (1, [], "", " x", "x" * 65):
            self.assert_problem(self.send(path, {"assignee": bad}), 400)

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
            self.assert_problem(self.send(path, bad), 400)
        self.assert_problem(self.send(path, {"ids": ids, "state": "new"}, None), 401)
        self.assert_problem(self.send(path, {"ids": ids, "state": "new"}, "ingest"), 403)
        # Nothing happens to any when one cannot; the first is named.
        self.assertIn(b" 99999;",
                      self.send(path, {"ids": [*ids, 99999, 99998], "state": "new"}).bytes)
        self.assert_problem(self.send(path, {"ids": [*ids, 99999], "state": "new"}), 404)
        self.assert_problem(self.send(path, {"ids": [2**53 - 1] * 1000, "state": "new"}), 404)
        self.assert_problem(self.send(path, {"ids": ids, "state": "acknowledged"}), 409)
        self.assertEqual(self.alerts()["alerts"], before)
        answer = self.send(path, {"ids": [*ids, ids[0]], "state": "new", "reason": "look again",
                                  "assignee": "ada"})
        self.assertEqual(answer.status, 200, answer.bytes)
        alerts = json.loads(answer.bytes)["alerts"]
        self.assertEqual([(a["id"], a["state"], a["reason"], a["assignee"]) for a in alerts],
                         [(i, "new", "look again", "ada") for i in [*ids, ids[0]]])
        # In this order, and an alert that is there twice has its step once.
        with contextlib.closing(sqlite3.connect(self.db)) as db:
            log = list(db.execute("SELECT alert_id, reason FROM alert_event ORDER BY id"))
        self.assertEqual(log[-2 * len(ids):], [(i, "look again") for i in ids]
                         + [(i, "assigned to ada") for i in ids])

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
        self.assert_problem(self.server.get("/api/v1/alerts?groups=2"), 400)

    def test_groups_are_ranges_of_commits(self):
        runs = self.server.json("/api/v1/runs?limit=500")["runs"]
        parents = {run["commit"]: run["parent"] for run in runs}
        for alert in self.alerts()["alerts"]:
            self.assertEqual(alert["parent"], parents[alert["commit"]])
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
            self.assertEqual(entry.find(ATOM + "title").text, f"{alert['text']} ({alert['state']})")
            whose = f" ({alert['subject']}, by {alert['author']})"
            self.assertIn(f"since commit {alert['commit'][:12]}" + (
                " with uncommitted changes, before" if alert["dirty"] else whose),
                entry.find(ATOM + "content").text)
        newest = max(e.find(ATOM + "updated").text for e in feed.findall(ATOM + "entry"))
        self.assertEqual(feed.find(ATOM + "updated").text, newest)

    def test_filters(self):
        self.assertEqual(len(self.feed(f"?case={GEMV}").findall(ATOM + "entry")), 1)
        self.assertEqual(len(self.feed("?device=no-such").findall(ATOM + "entry")), 0)
        for bad in ("?x=1", "?device=A", "?case=%3C", "?limit=1"):
            self.assert_problem(self.server.get(f"/feed.atom{bad}"), 400)

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
        style = read_file(os.path.join(ROOT, "web", "style.css"))
        for path, words in ((GPU, "regression, 2 open causes"), (f"{GPU}/{GEMV}", "pass, "),
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
        self.assert_problem(self.server.get(f"/badge/{GPU}.svg?style=flat"), 400)


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


if __name__ == "__main__":
    unittest.main()
