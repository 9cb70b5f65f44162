# SPDX-License-Identifier: Apache-2.0
"""What the server's log says of what arrives: runs, groups of alerts, and what was refused."""

import copy
import json
import os
import re
import tempfile
import unittest

from harness import Server, documents, renamed, seed, token, watched

SENTENCE = "The token is not known, has expired or was revoked."


def identity(secret):
    return secret.split("_")[1]


class LogCase(unittest.TestCase):
    options = ()

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.db = os.path.join(self.folder.name, "gate.db")
        self.start()

    def start(self):
        self.server = Server(self.db, *self.options)
        self.addCleanup(self.server.stop)

    def send(self, path, body, secret):
        return self.server.send(path, body, secret).status

    def said(self):
        """What was logged between the first line and the last, without times."""
        self.assertEqual(self.server.stop(), 0, self.server.log)
        lines = [re.sub(r" time_ms=\d+", "", line) for line in self.server.log.splitlines()]
        self.assertTrue(lines[0].startswith("gate-server: listening on "), lines)
        self.assertEqual(lines[-1], "gate-server: stopped")
        return lines[1:-1]


class Runs(LogCase):
    def test_each_run_that_is_stored_has_a_line(self):
        secret = token(self.db, "--scope", "ingest")
        name, document = renamed(documents(self.folder.name, 1)[0])
        run = json.loads(document)
        run["git"]["branch"] = 'odd"\n\x1b[31m' + secret
        body = json.dumps(run).encode()
        self.assertEqual([self.send("/api/v1/runs", body, secret) for _ in range(2)], [201, 200])
        self.assertEqual(self.said(), [
            f'gate-server: run id={name} branch="odd\\"\\n\\u001b[31mkg_..." '
            f'commit={run["git"]["commit"][:12]} verdict={run["verdict"]} '
            f'cases={len(run["cases"])} device="{run["device"]["model"]}" '
            f'token={identity(secret)}'])

    def test_a_run_of_no_commit(self):
        secret = token(self.db, "--scope", "ingest")
        _, document = renamed(documents(self.folder.name, 1)[0])
        run = json.loads(document)
        run["git"].update(commit="", parent="")
        self.assertEqual(self.send("/api/v1/runs", json.dumps(run).encode(), secret), 201)
        self.assertIn(" commit=- ", self.said()[0])


class Json(LogCase):
    options = ("--log-json",)

    def test_lines_are_objects(self):
        secret = token(self.db, "--scope", "ingest")
        name, body = renamed(documents(self.folder.name, 1)[0])
        self.assertEqual(self.send("/api/v1/runs", body, secret), 201)
        self.assertEqual(self.send("/api/v1/runs", b"{}", secret), 400)
        self.assertEqual(self.server.stop(), 0)
        lines = [json.loads(line) for line in self.server.log.splitlines()]
        events = {line["event"]: line for line in lines if "event" in line}
        self.assertEqual((events["run"]["id"], events["run"]["level"]), (name, "info"))
        self.assertEqual((events["refused"]["status"], events["refused"]["token"]),
                         (400, identity(secret)))


class Refusals(LogCase):
    def line(self, method, status, who, target, why):
        return (f'gate-server: refused address=127.0.0.1 method="{method}" status={status} '
                f'token={who} target="{target}" why="{why}"')

    def test_tokens_and_writes(self):
        good, reader = (token(self.db, "--scope", scope) for scope in ("ingest", "read"))
        bad = good[:-1] + ("0" if good[-1] != "0" else "1")
        self.assertEqual(self.send("/api/v1/runs", b"{}", bad), 401)
        self.assertEqual(self.server.get("/api/v1/runs", headers={
            "Authorization": f"Bearer {bad}"}).status, 401)
        self.assertEqual(self.send("/api/v1/runs", b"{}", reader), 403)
        self.assertEqual(self.send("/api/v1/runs", b"{", good), 400)
        self.assertEqual(self.server.get("/api/v1/runs?limit=x").status, 400)
        self.assertEqual(self.server.get("/api/v1/nothing").status, 404)
        lines = self.said()
        for secret in (good, bad, reader):
            self.assertNotIn(secret.split("_")[2], self.server.log)
        self.assertEqual(len(lines), 4, lines)
        runs = "/api/v1/runs"
        self.assertIn(self.line("POST", 401, "-", runs, SENTENCE), lines)
        self.assertIn(self.line("GET", 401, "-", runs, SENTENCE), lines)
        self.assertIn(self.line("POST", 403, identity(reader), runs, "The token 'ci' may not do "
                                "this: it needs the scope 'ingest'."), lines)
        self.assertTrue(any(line.startswith(self.line("POST", 400, identity(good), runs, "")[:-1])
                            and "line 1, column 2: " in line for line in lines), lines)

    def test_nobody_fills_the_disk(self):
        n = 300
        for _ in range(n):
            self.assertEqual(self.send("/api/v1/runs", b"{}", "x"), 401)
        lines = self.said()
        self.assertLess(len(lines), n / 2)
        self.assertTrue(lines)


class Alerts(LogCase):
    """The history that tests/tools/sample_story.h tells, which the server finds at its start."""

    def start(self):
        seed(self.db, 120, 9, 1)
        super().start()
        watched(self.db)

    def test_groups_open_and_close_once(self):
        alerts = self.server.json("/api/v1/alerts")["alerts"]
        new = next(a for a in alerts if a["state"] == "new")
        step = json.dumps({"state": "ignored", "reason": 'a "new" driver'}).encode()
        admin = token(self.db, "--scope", "admin")
        self.assertEqual(self.send(f"/api/v1/alerts/{new['id']}", step, admin), 200)
        lines = self.said()
        self.assertEqual(
            lines[-1], f'gate-server: alerts state=closed group="{new["group"]}" alerts=1 '
            f'kind={new["kind"]} case="{new["case"]}" device="{new["device"]}" as=ignored '
            f'who="ci" reason="a \\"new\\" driver" text="{new["text"]}"')
        self.assertIn(f"{new['case']} on {new['device']} is ", new["text"])
        for alert in alerts:
            of_alert = [line for line in lines
                        if f'kind={alert["kind"]} case="{alert["case"]}" ' in line]
            states = [re.search("alerts state=([a-z]+) ", line).group(1) for line in of_alert]
            is_open = alert["state"] == "new" and alert != new
            self.assertEqual(states, ["opened"] if is_open else ["opened", "closed"], of_alert)


class Groups(LogCase):
    def test_a_group_has_one_line(self):
        """Two cases turn wrong in one run, one of them is right in the next, then the other."""
        secret = token(self.db, "--scope", "ingest")
        runs = [json.loads(text) for text in documents(self.folder.name, 40, 9)]
        broken = next(c for c in runs[-1]["cases"] if c["verdict"] == "wrong")
        good = next(run for run in runs if run["git"]["branch"] == "main" and
                    [c["verdict"] for c in run["cases"]].count("pass") >= 2 and
                    "calibration" not in run)
        good["cases"] = [c for c in good["cases"] if c["verdict"] == "pass"][:2]
        for i, wrong in enumerate(((0, 1), (1,), ())):
            run = copy.deepcopy(good)
            run.update(uuid=f"00000000-0000-4000-8000-{i:012}", time_ms=good["time_ms"] + i,
                       verdict="wrong" if wrong else "pass", exit_code=2 if wrong else 0)
            for k in wrong:
                run["cases"][k] = dict(broken, **{name: run["cases"][k][name]
                                                  for name in ("id", "op", "dtype")})
            self.assertEqual(self.send("/api/v1/runs", json.dumps(run).encode(), secret), 201,
                             self.server.log)
            watched(self.db)
        lines = [line for line in self.said() if line.startswith("gate-server: alerts ")]
        self.assertEqual([re.search("state=([a-z]+) .* alerts=([0-9]+) ", line).groups()
                          for line in lines], [("opened", "2"), ("closed", "1")], lines)
        self.assertIn(' as=fixed who="gate-server" reason="the result is right again" text="',
                      lines[1])


if __name__ == "__main__":
    unittest.main()
