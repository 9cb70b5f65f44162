# SPDX-License-Identifier: Apache-2.0
"""What the trends of the history answer over HTTP."""

import contextlib
import os
import re
import sqlite3
import statistics
import sys
import unittest
import uuid
from urllib.parse import quote

from harness import BUILD, GEMV, GPU, ROOT, ServedCase, Server, read_file, seed
from api_history import ACCEPTED, History

sys.path.insert(0, os.path.join(ROOT, "tests", "bench"))
from fill_history import fill  # pylint: disable=wrong-import-position

ATTENTION = "attention_fwd/fp16/b8-h16-s512-d64/causal"  # a step that stays
IMPROVED = "attention_fwd/fp16/b4-h16-s4096-d128/causal"  # whose baseline was lowered
COLUMNS = ("time_ms n p50_ns min_ns max_ns p50_lo_ns p50_hi_ns p10_ns p90_ns control_ns "
           "baseline_p50_ns rel_err vendor_ratio sm_clock_mhz registers shared_bytes spill_bytes "
           "tflops gbps run commit branch verdict kernel").split()


class Trends(History):
    def test_columns(self):
        trend = self.trend()
        self.assertEqual({k: trend[k] for k in ("case", "device", "order", "bucketed",
                                                "threshold", "next")},
                         {"case": GEMV, "device": GPU, "order": "time", "bucketed": False,
                          "threshold": 0.02, "next": None})
        self.assertEqual([(s["provider"], s["role"]) for s in trend["series"]],
                         [("cublas", "provider"), ("ours", "candidate"), ("torch", "provider")])
        self.assertEqual(trend["total"], sum(s["total"] for s in trend["series"]))
        for series in trend["series"]:
            columns = series["columns"]
            self.assertEqual(list(columns), COLUMNS)
            self.assertEqual({len(c) for c in columns.values()}, {series["total"]})
            self.assertEqual(columns["time_ms"], sorted(columns["time_ms"]))
            self.assertEqual(set(columns["n"]), {1})
            self.assertEqual(columns["min_ns"], columns["p50_ns"])
            self.assertEqual(columns["max_ns"], columns["p50_ns"])
            for lo, p50, hi in zip(columns["p50_lo_ns"], columns["p50_ns"],
                                   columns["p50_hi_ns"]):
                self.assertTrue(lo < p50 < hi)

    def test_a_row_says_what_the_document_says(self):
        columns = self.ours(self.trend())
        uuid = columns["run"][-1]
        document = self.get(f"runs/{uuid}")
        case = next(c for c in document["cases"] if c["id"] == GEMV)
        arm = next(a for a in case["arms"] if a["role"] == "candidate")
        timing = arm["timing"]
        row = {name: columns[name][-1] for name in COLUMNS}
        for name in ("p50_ns", "p50_lo_ns", "p50_hi_ns", "p10_ns", "p90_ns", "sm_clock_mhz"):
            self.assertAlmostEqual(row[name], timing[name], delta=0.00051)
        for name in ("tflops", "gbps"):
            self.assertAlmostEqual(row[name], timing[name], delta=timing[name] * 1e-6)
        for name in ("registers", "shared_bytes", "spill_bytes"):
            self.assertEqual(row[name], timing[name])
        baseline = next(a for a in case["arms"] if a["role"] == "baseline")["timing"]["p50_ns"]
        self.assertAlmostEqual(row["baseline_p50_ns"], baseline, delta=0.00051)
        self.assertAlmostEqual(
            row["control_ns"], statistics.median(p["control_ns"] for p in case["processes"]),
            delta=0.00051)
        self.assertAlmostEqual(row["rel_err"], arm["verify"]["rel_fro"], delta=1e-12)
        self.assertAlmostEqual(row["vendor_ratio"], arm["verify"]["vendor_ratio"], delta=5.1e-7)
        self.assertEqual((row["time_ms"], row["commit"], row["verdict"], row["kernel"]),
                         (document["time_ms"], document["git"]["commit"], case["verdict"],
                          arm["kernel"]))

    def test_filters(self):
        self.assertEqual([s["provider"] for s in self.trend(provider="torch")["series"]],
                         ["torch"])
        self.assertEqual(self.trend(contract="other")["series"], [])
        whole = self.ours(self.trend())["time_ms"]
        part = self.ours(self.trend(**{"from": whole[3], "to": whole[7]}))["time_ms"]
        self.assertEqual(part, whole[3:8])
        empty = self.trend(case="none")
        self.assertEqual((empty["total"], empty["series"], empty["baseline"]), (0, [], None))
        self.assertEqual(self.trend(device="none")["series"], [])

    def buckets(self, raw, points, first, last, place=None):
        """Of equal width, reckoned here."""
        width = (last - first) // points + 1
        buckets = {}
        for i in range(len(raw["time_ms"])):
            x = place[i] if place else raw["time_ms"][i]
            buckets.setdefault((x - first) // width, []).append(i)
        return list(buckets.values())

    def test_buckets(self):
        raw, trend = self.trend(), self.trend(points=7)
        self.assertTrue(trend["bucketed"])
        times = [t for s in raw["series"] for t in s["columns"]["time_ms"]]
        for whole, cut in zip(raw["series"], trend["series"]):
            self.assertEqual(whole["total"], cut["total"])
            whole, cut = whole["columns"], cut["columns"]
            buckets = self.buckets(whole, 7, min(times), max(times))
            self.assertLessEqual(len(buckets), 7)
            self.assertEqual(cut["n"], [len(b) for b in buckets])
            for i, bucket in enumerate(buckets):
                p50 = [whole["p50_ns"][k] for k in bucket]
                self.assertAlmostEqual(cut["p50_ns"][i], statistics.median(p50), delta=0.00101)
                self.assertEqual((cut["min_ns"][i], cut["max_ns"][i]), (min(p50), max(p50)))
                for name in set(COLUMNS) - {"n", "p50_ns", "min_ns", "max_ns", "tflops", "gbps"}:
                    self.assertEqual(cut[name][i], whole[name][bucket[-1]], name)

    def test_as_many_points_as_rows_are_not_bucketed(self):
        total = self.trend()["series"][0]["total"]
        self.assertFalse(self.trend(points=total, provider="torch")["bucketed"])
        self.assertTrue(self.trend(points=total - 1, provider="torch")["bucketed"])

    def test_order_of_commits(self):
        runs = self.pages("runs?device=" + GPU, "runs", 50)
        first = {}
        for run in sorted(self.pages("runs", "runs", 50), key=lambda r: r["time_ms"]):
            first.setdefault(run["commit"], len(first))
        columns = self.ours(self.trend(order="commit"))
        self.assertEqual(len(columns["commit"]), len(runs))
        places = [first[c] for c in columns["commit"]]
        self.assertEqual(places, sorted(places))
        self.assertEqual(sorted(columns["run"]), sorted(self.ours(self.trend())["run"]))
        cut = self.ours(self.trend(order="commit", points=5))
        self.assertLessEqual(len(cut["n"]), 5)
        self.assertEqual(sum(cut["n"]), len(places))
        self.assertEqual([first[c] for c in cut["commit"]],
                         sorted(first[c] for c in cut["commit"]))

    def test_raw_pages(self):
        whole = [(s["provider"], r) for s in self.trend()["series"] for r in s["columns"]["run"]]
        seen, after = [], {}
        while True:
            page = self.trend(raw=1, limit=17, **after)
            self.assertFalse(page["bucketed"])
            rows = [(s["provider"], r) for s in page["series"] for r in s["columns"]["run"]]
            self.assertLessEqual(len(rows), 17)
            seen += rows
            if page["next"] is None:
                break
            after = {"after": page["next"]}
        self.assertEqual(seen, whole)

    def test_rows_and_csv(self):
        path = f"trends?case={GEMV}&device={GPU}"
        rows = self.rows(path)
        self.assertEqual(len(rows), self.trend()["total"])
        self.assertEqual(list(rows[0]), ["provider", "role", "contract"] + COLUMNS)
        columns = self.ours(self.trend())
        ours = [r for r in rows if r["role"] == "candidate"]
        for name in COLUMNS:
            for row, value in zip(ours, columns[name]):
                if isinstance(value, float):
                    self.assertAlmostEqual(row[name], value, delta=abs(value) * 1e-8)
                else:
                    self.assertEqual(row[name], value)
        self.assertEqual(len(self.rows(path + "&points=3&provider=ours")), 3)

    def test_only_some_columns(self):
        whole = self.trend()
        # Each alone, because what nobody asks for may not be read; and some together.
        for names in (*([name] for name in COLUMNS), ["p50_ns", "time_ms"], COLUMNS[::-1],
                      ["time_ms", "p50_ns", "p50_lo_ns", "p50_hi_ns", "baseline_p50_ns"]):
            for more in ("", "&raw=1", "&order=commit", "&points=3", "&points=3&order=commit"):
                path = f"trends?case={GEMV}&device={GPU}{more}"
                every = self.get(path)
                some = self.get(path + "&columns=" + ",".join(names))
                self.assertEqual([list(s["columns"]) for s in some["series"]],
                                 [[c for c in COLUMNS if c in names]] * len(whole["series"]))
                for series in every["series"]:
                    series["columns"] = {n: series["columns"][n] for n in names}
                self.assertEqual(some, every, names)
        rows = self.rows(f"trends?case={GEMV}&device={GPU}&columns=commit,p50_ns")
        self.assertEqual(list(rows[0]), ["provider", "role", "contract", "p50_ns", "commit"])
        for bad in ("", "p50", "p50_ns,", ",p50_ns", "p50_ns,p50_ns", "p50_ns p90_ns", "P50_NS",
                    "p50_n", "p50_nss", "provider"):
            self.assert_problem(self.server.get(
                f"/api/v1/trends?case={GEMV}&device={GPU}&columns={quote(bad)}"), 400)

    def test_context(self):
        trend = self.trend(case=ACCEPTED)
        self.assertEqual([e["epoch"] for e in trend["epochs"]][:2],
                         ["580.159/13.0/700000", "590.44/13.0/700000"])
        self.assertEqual(trend["epochs"],
                         next(d for d in self.get("devices")["devices"]
                              if d["model"] == GPU)["epochs"])
        kinds = [e["kind"] for e in trend["events"]]
        self.assertEqual(kinds[0], "baseline")
        self.assertIn("accepted", kinds)
        accepted = next(e for e in trend["events"] if e["kind"] == "accepted")
        self.assertEqual(accepted["text"], "accepted: baseline 4.00 % slower")
        self.assertEqual(trend["events"],
                         sorted(trend["events"], key=lambda e: e["time_ms"]))
        stored = self.get(f"baselines?device={GPU}")["baselines"]
        baseline = next(b for b in stored if b["case"] == ACCEPTED)
        self.assertEqual(trend["baseline"], {k: baseline[k] for k in
                                             ("p50_ns", "commit", "time_ms")})
        self.assertEqual(trend["baseline"]["commit"], accepted["commit"])

    def test_a_commit_has_its_subject_and_author_wherever_it_stands(self):
        runs = self.pages("runs", "runs", 500)
        known = {r["commit"]: (r["subject"], r["author"]) for r in runs}
        self.assertGreater(len(set(known.values())), 3)
        wrong = next(c["id"] for c in self.get(f"cases?device={GPU}&verdict=wrong")["cases"])
        trends = [self.trend(case=c, columns="commit,subject,author", points=points)
                  for c in (ACCEPTED, IMPROVED, ATTENTION, wrong) for points in (1000, 3)]
        listed = {"change points": [p for t in trends for p in t["change_points"]],
                  "leaders": self.get("leaderboard")["leaders"],
                  "baselines": self.get("baselines")["baselines"],
                  "log": self.get("baselines/log")["log"],
                  "calibrations": self.get("calibrations")["calibrations"],
                  "alerts": self.get("alerts")["alerts"],
                  "before": [dict(commit=a["before_commit"], subject=a["before_subject"],
                                  author=a["before_author"])
                             for a in self.get("alerts")["alerts"] if a["before_commit"]]}
        for kind in ("accepted", "baseline", "wrong"):
            listed[kind] = [e for t in trends for e in t["events"] if e["kind"] == kind]
        for order in ("time", "commit"):
            series = self.trend(columns="commit,subject,author", order=order)["series"]
            listed[order] = [dict(zip(("commit", "subject", "author"), row)) for s in series
                             for row in zip(*s["columns"].values())]
        listed["rows"] = self.rows(f"trends?case={GEMV}&device={GPU}&points=3"
                                   "&columns=commit,subject,author")
        for name, rows in listed.items():
            self.assertTrue(any(row["commit"] in known for row in rows), name)
            for row in rows:  # the first baseline's commit has no run
                self.assertEqual((row["subject"], row["author"]),
                                 known.get(row["commit"], (None, None)), name)

    def test_a_wrong_result_is_in_no_trend(self):
        wrong = next(c for c in self.get(f"cases?device={GPU}&verdict=wrong")["cases"])
        trend = self.trend(case=wrong["id"])
        self.assertNotIn(wrong["run"], self.ours(trend)["run"])
        for series in trend["series"]:
            if series["role"] == "provider":
                self.assertIn(wrong["run"], series["columns"]["run"])
        event = trend["events"][-1]
        self.assertEqual((event["kind"], event["run"], event["text"], event["time_ms"]),
                         ("wrong", wrong["run"], wrong["reason"], wrong["time_ms"]))

    def of(self, whole, wanted):
        """The rows of a trend's series whose run is wanted, as {series: [(run, p50)]}."""
        return {s["provider"]: [(run, p50) for run, p50 in zip(s["columns"]["run"],
                                                               s["columns"]["p50_ns"])
                                if run in wanted] for s in whole["series"]}

    def test_one_branch(self):
        runs = self.pages("runs", "runs", 50)
        whole = self.trend(case=ATTENTION)
        for branch in ("main", "tune-tiles"):
            wanted = {r["uuid"] for r in runs if r["branch"] == branch}
            rows = self.of(whole, wanted)
            n = sum(map(len, rows.values()))
            trend = self.trend(case=ATTENTION, branch=branch)
            self.assertEqual(self.of(trend, wanted), rows)
            self.assertEqual(trend["total"], n)
            by_commit = self.trend(case=ATTENTION, branch=branch, order="commit")
            self.assertEqual({k: sorted(v) for k, v in self.of(by_commit, wanted).items()},
                             {k: sorted(v) for k, v in rows.items()})
            self.assertEqual(by_commit["total"], n)
            pages = []
            for page in self.raw_pages(f"&branch={branch}", 7):
                self.assertEqual(page["total"], n)
                pages += [row for s in self.of(page, wanted).values() for row in s]
            self.assertEqual(pages, [row for s in rows.values() for row in s])
            for more in ({}, {"order": "commit"}, {"columns": "n,min_ns,max_ns"}):
                trend = self.trend(case=ATTENTION, branch=branch, points=3, **more)
                self.assertTrue(trend["bucketed"])
                for series in trend["series"]:
                    numbers = [p50 for _, p50 in rows[series["provider"]]]
                    columns = series["columns"]
                    self.assertEqual((sum(columns["n"]), min(columns["min_ns"]),
                                      max(columns["max_ns"])),
                                     (len(numbers), min(numbers), max(numbers)))
            for name in ("events", "change_points"):
                self.assertEqual(trend[name], [e for e in whole[name] if e["run"] in wanted])
        self.assertEqual(self.trend(branch="none")["total"], 0)

    def raw_pages(self, more, limit):
        after = ""
        while after is not None:
            page = self.get(f"trends?case={ATTENTION}&device={GPU}&raw=1&limit={limit}{more}"
                            + (f"&after={after}" if after else ""))
            yield page
            after = page["next"]

    def test_a_range_of_commits(self):
        whole = self.ours(self.trend(order="commit"))
        commits = list(dict.fromkeys(whole["commit"]))
        first, last = commits[10], commits[-11]
        wanted = {run for run, commit in zip(whole["run"], whole["commit"])
                  if commit in commits[10:-10]}
        self.assertGreater(len(wanted), 5)
        for parameters, kept in (({"from_commit": first, "to_commit": last[:10]}, commits[10:-10]),
                                 ({"from_commit": first[:7]}, commits[10:]),
                                 ({"to_commit": last}, commits[:-10]),
                                 ({"from_commit": last, "to_commit": first}, [])):
            n = sum(c in kept for c in whole["commit"])
            trend = self.trend(order="commit", provider="ours", **parameters)
            self.assertEqual(trend["total"], n)
            if n > 0:
                self.assertEqual(self.ours(trend)["commit"],
                                 [c for c in whole["commit"] if c in kept])
                buckets = self.ours(self.trend(order="commit", points=4, **parameters))
                self.assertEqual(sum(buckets["n"]), n)
                self.assertEqual(len(buckets["n"]), 4)
        trend = f"/api/v1/trends?case={GEMV}&device={GPU}"
        for more in (f"&from_commit={first}", f"&order=commit&from_commit={first[:6]}",
                     f"&order=commit&to_commit={first.upper()}x", "&order=commit&to_commit=0000000",
                     f"&order=commit&from_commit={first}0", "&branch=" + "x" * 401):
            self.assert_problem(self.server.get(trend + more), 400)

    def test_a_commit_that_two_begin_with_is_none(self):
        path = os.path.join(self.folder.name, "commits.db")
        seed(path, 4, devices=1)
        with contextlib.closing(sqlite3.connect(path)) as db, db:
            db.execute("UPDATE revision SET commit_id = 'abcdef0' || substr(commit_id, 8)")
            commits = [commit for commit, in db.execute("SELECT commit_id FROM revision"
                                                        " WHERE first_ms IS NOT NULL")]
        server = Server(path)
        self.addCleanup(server.stop)
        trend = f"/api/v1/trends?case={GEMV}&device={GPU}&order=commit&from_commit="
        self.assertGreater(len(set(commits)), 1)
        self.assertEqual(server.get(trend + commits[0]).status, 200)
        self.assert_problem(server.get(trend + "abcdef0"), 400)

    def test_a_series_is_what_its_newest_point_of_the_range_is(self):
        path = os.path.join(self.folder.name, "roles.db")
        seed(path, 4, devices=1)
        with contextlib.closing(sqlite3.connect(path)) as db, db:
            db.execute("UPDATE result SET role = iif(role = 'provider', 'candidate', 'provider')"
                       " WHERE run_id = 4")
            last, = db.execute("SELECT time_ms FROM run WHERE id = 4").fetchone()
        server = Server(path)
        self.addCleanup(server.stop)
        for more, ours in ((f"&to={last - 1}", "candidate"), ("", "provider")):
            for points in (1, 100):
                series = server.json(f"/api/v1/trends?case={GEMV}&device={GPU}&points={points}"
                                     + more)["series"]
                self.assertEqual([s["provider"] for s in series if s["role"] == ours], ["ours"])
                self.assertGreater(len(series), 1)

    def test_refusals(self):
        trend = f"trends?case={GEMV}&device={GPU}"
        self.assertEqual(self.get(trend + "&branch=" + quote("\u6838" * 400))["series"], [])
        for path in ("trends", f"trends?case={GEMV}", f"trends?device={GPU}",
                     trend + "&points=0", trend + "&points=5001",
                     trend + "&raw=1&limit=5001", trend + "&order=uuid",
                     trend + "&raw=2", trend + "&raw=1&points=5", trend + "&raw=1&order=commit",
                     trend + "&limit=5", trend + "&after=1.2.3.4", trend + "&raw=1&after=x",
                     trend + "&raw=1&after=1.2.3", trend + "&raw=1&after=1.2.3.4x",
                     trend + "&raw=1&after=99999.1.1.1",
                     trend + "&from=-1", trend + "&from=1e3", trend + "&to=9" + "9" * 20,
                     trend + "&provider=A", trend + "&contract=", trend + "&format=xml"):
            self.assert_problem(self.server.get("/api/v1/" + path), 400)


class Chain(History):
    """The ratios to the baseline, from one baseline to the next."""

    NAMES = "time_ms,n,p50_ns,ratio,chain,chain_part,main,run,branch"

    def test_ratios_and_branches_are_those_of_the_documents(self):
        for case in (GEMV, ATTENTION):
            columns = self.ours(self.trend(case, columns=self.NAMES))
            baselines = {}
            for i, uuid in enumerate(columns["run"]):
                document = self.get(f"runs/{uuid}")
                item = next(c for c in document["cases"] if c["id"] == case)
                self.assertIs(columns["main"][i], document["git"]["branch"] == "main")
                ratio = (item.get("ratio") or {}).get("value")
                if ratio:
                    self.assertAlmostEqual(columns["ratio"][i], ratio, 8)
                self.assertEqual(columns["ratio"][i] is None, ratio is None)
                self.assertEqual(columns["chain"][i] is None, ratio is None)
                self.assertEqual(columns["chain_part"][i] is None, ratio is None)
                if ratio is None:
                    continue
                link = columns["chain"][i] / ratio, columns["chain_part"][i]
                known = baselines.setdefault(item["baseline"]["time_ms"], link)
                self.assertAlmostEqual(link[0], known[0], 6)
                self.assertEqual(link[1], known[1])
            self.assertEqual({part for _, part in baselines.values()},
                             set(range(1 + max(part for _, part in baselines.values()))))
            newest = baselines[max(baselines)]
            self.assertAlmostEqual(newest[0], 1)
            self.assertEqual(newest[1], 0)
            # A range has the values that the whole has.
            half = len(columns["run"]) // 2
            part = self.ours(self.trend(case, columns=self.NAMES,
                                        **{"to": columns["time_ms"][half]}))
            self.assertEqual(part["chain"], columns["chain"][:half + 1])

    def test_each_contract_has_a_chain_of_its_own(self):
        path = os.path.join(self.folder.name, "contracts.db")
        seed(path, 60, devices=1)
        server = Server(path)
        self.addCleanup(server.stop)

        def chains():
            answer = server.json(f"/api/v1/trends?case={IMPROVED}&device={GPU}"
                                 f"&columns={self.NAMES}")
            return {s["contract"]: s["columns"]["chain"] for s in answer["series"]
                    if s["role"] == "candidate"}
        with contextlib.closing(sqlite3.connect(path)) as db, db:
            db.execute("UPDATE result SET contract = 'another' WHERE run_id % 2")
        both = chains()
        self.assertEqual((len(both), [any(values) for values in both.values()]), (2, [True] * 2))
        with contextlib.closing(sqlite3.connect(path)) as db, db:
            db.execute("DELETE FROM result WHERE contract = 'another'")
        self.assertNotIn("another", chains())
        self.assertEqual(both | chains(), both)

    def test_providers_have_none(self):
        trend = self.trend(columns=self.NAMES)
        others = [s for s in trend["series"] if s["role"] == "provider"]
        self.assertTrue(others)
        for series in others:
            self.assertEqual(set(series["columns"]["chain"] + series["columns"]["ratio"]), {None})
            self.assertIsNone(series["change"])

    def test_buckets_are_of_the_main_branch_or_of_others(self):
        whole = self.ours(self.trend(ATTENTION, columns=self.NAMES))
        trend = self.trend(ATTENTION, columns=self.NAMES, points=4)
        self.assertTrue(trend["bucketed"])
        cut = self.ours(trend)
        self.assertLessEqual(len(cut["n"]), 8)
        self.assertEqual(cut["time_ms"], sorted(cut["time_ms"]))
        for is_main in (True, False):
            self.assertEqual(sum(n for n, m in zip(cut["n"], cut["main"]) if m is is_main),
                             whole["main"].count(is_main))
        self.assertEqual({b == "main" for b, m in zip(cut["branch"], cut["main"]) if m}, {True})
        chains = [c for c, m in zip(whole["chain"], whole["main"]) if m and c]
        for chain, is_main in zip(cut["chain"], cut["main"]):
            if is_main and chain:
                self.assertTrue(min(chains) <= chain <= max(chains))

    def test_the_change_over_a_range(self):
        series = next(s for s in self.trend(ATTENTION, columns=self.NAMES)["series"]
                      if s["role"] == "candidate")
        columns, change = series["columns"], series["change"]
        rows = [(t, c) for t, c, p, m in zip(columns["time_ms"], columns["chain"],
                                             columns["chain_part"], columns["main"])
                if m and p == 0]
        self.assertEqual((change["from_ms"], change["to_ms"]), (rows[0][0], rows[-1][0]))
        self.assertAlmostEqual(change["ratio"], statistics.median(c for _, c in rows[-5:])
                               / statistics.median(c for _, c in rows[:5]))
        self.assertEqual({s["change"] for s in self.trend(ATTENTION)["series"]}, {None})
        # Of a short range each half is an end.
        short = next(s for s in self.trend(ATTENTION, columns=self.NAMES,
                                           **{"from": rows[-4][0]})["series"]
                     if s["role"] == "candidate")
        self.assertAlmostEqual(short["change"]["ratio"],
                               statistics.median(c for _, c in rows[-2:])
                               / statistics.median(c for _, c in rows[-4:-2]))

    def test_compare_goes_by_the_links_too(self):
        """Runs with different baselines: where one became the other, and not where none did."""
        for case, is_linked in (("attention_fwd/fp16/b4-h16-s4096-d128/causal", True),
                                (ACCEPTED, False)):
            columns = self.ours(self.trend(case, columns=self.NAMES))
            known = [i for i, chain in enumerate(columns["chain"]) if chain]
            levels = {i: columns["chain"][i] / columns["ratio"][i] for i in known}
            first, last = known[0], known[-1]
            self.assertEqual(columns["chain_part"][first] == columns["chain_part"][last],
                             is_linked)
            self.assertEqual(abs(levels[first] - levels[last]) > 0.01, is_linked)
            for a, b in ((first, last), (last, first)):
                pair = next(c for c in self.get(
                    f"compare?a={columns['run'][a]}&b={columns['run'][b]}")["cases"]
                    if c["id"] == case)
                if is_linked:
                    self.assertAlmostEqual(pair["paired"],
                                           columns["chain"][b] / columns["chain"][a], 6)
                    self.assertTrue(pair["paired_lo"] < pair["paired"] < pair["paired_hi"])
                else:
                    self.assertIsNone(pair["paired"])

    def test_rows_have_them_too(self):
        columns = self.ours(self.trend(columns=self.NAMES))
        rows = self.rows(f"trends?case={GEMV}&device={GPU}&columns={self.NAMES}&provider=ours")
        self.assertEqual([r["chain"] for r in rows], columns["chain"])
        self.assertEqual([r["main"] for r in rows], columns["main"])


class Long(ServedCase):
    """2,000 runs of a case, each with three results, and four of a moment."""

    @classmethod
    def prepare(cls):
        cls.results = fill(BUILD, cls.db, 2000, 1)
        with contextlib.closing(sqlite3.connect(cls.db)) as db, db:
            case, device = db.execute("SELECT case_id, device FROM track").fetchone()
            times = dict(db.execute("SELECT id, time_ms FROM run"))
            for table, key in (("run", "id"), ("result", "run_id")):
                db.executemany(f"UPDATE {table} SET time_ms = ? WHERE {key} = ?",
                               [(times[max(1, run // 4 * 4)], run) for run in times])
        cls.path = f"/api/v1/trends?case={case}&device={device}"

    def points(self, answer):
        return [(s["provider"], run) for s in answer["series"] for run in s["columns"]["run"]]

    def test_an_answer_has_at_most_5000_points(self):
        for more in ("", "&columns=run,chain,main", "&order=commit",
                     "&columns=run,main&order=commit"):
            answer = self.server.json(f"{self.path}&points=5000{more}")
            n = len(self.points(answer))
            self.assertTrue(answer["bucketed"])
            self.assertEqual(answer["total"], self.results)
            self.assertTrue(0 < n <= 5000, n)
        # What is not more comes point by point.
        answer = self.server.json(self.path + "&points=5000&branch=main")
        self.assertFalse(answer["bucketed"])
        self.assertEqual(len(self.points(answer)), answer["total"])

    def test_the_pages_of_a_trend_have_each_point_once(self):
        for more in ("", "&columns=run,chain,main"):
            # The page ends between two runs of one time.
            first = self.server.json(f"{self.path}&raw=1&limit=4999{more}")
            second = self.server.json(f"{self.path}&raw=1&limit=5000{more}&after={first['next']}")
            points = self.points(first) + self.points(second)
            self.assertEqual(len(self.points(first)), 4999)
            self.assertIsNone(second["next"])
            self.assertEqual((len(points), len(set(points))), (self.results, self.results))


def add_runs(db, device, epochs):
    """Copies of a run, each with its (time, epoch)."""
    names = [row[1] for row in db.execute("PRAGMA table_info(run)")]
    values = {"id": "NULL", "uuid": "?", "time_ms": "?", "epoch": "?", "device": "?"}
    db.executemany(f"INSERT INTO run SELECT {', '.join(values.get(n, n) for n in names)}"
                   " FROM run WHERE id = 1",
                   [(str(uuid.uuid5(uuid.NAMESPACE_URL, f"{device}/{i}")), time, device, epoch)
                    for i, (time, epoch) in enumerate(epochs)])


class Epochs(History):
    """From when on a device had which driver, runtime and power limit."""

    # Of n runs. `apart`: one epoch ends before the next begins; `turns`: two machines.
    SHAPES = {"apart": lambda n: [(i, f"e{i // 2}") for i in range(n)],
              "turns": lambda n: [(i, f"e{i % 2}") for i in range(n)],
              "mixed": lambda n: [(i, f"e{i * 7919 % (n // 3)}") for i in range(n)],
              "one-of-many": lambda n: [(i, f"e{i // 2 if i % 9 else 7}") for i in range(n)],
              "same-time": lambda n: [(i // 3, f"e{i * 31 % 5}") for i in range(n)],
              "touching": lambda n: [(10 * (i // 4) + (0, 1, 1, 2)[i % 4],
                                      f"e{2 * (i // 4) + i % 2}") for i in range(n)],
              "old-last": lambda n: [(n - i, f"e{i // 4}") for i in range(n)],
              "unknown": lambda n: [(i, f"e{i // 2}" if i % 3 else "") for i in range(n)]}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server.stop()
        with contextlib.closing(sqlite3.connect(cls.db)) as db, db:
            for name, shape in cls.SHAPES.items():
                add_runs(db, name, shape(60))
        cls.server = Server(cls.db)

    def test_each_stretch_of_an_epoch_once(self):
        devices = {d["model"]: d["epochs"] for d in self.get("devices")["devices"]}
        with contextlib.closing(sqlite3.connect(self.db)) as db:
            runs = db.execute("SELECT device, time_ms, epoch FROM run WHERE epoch > ''"
                              " ORDER BY device, time_ms, id").fetchall()
        wanted = {}
        for device, time, epoch in runs:
            known = wanted.setdefault(device, [])
            if not known or known[-1]["epoch"] != epoch:
                known.append({"from_ms": time, "epoch": epoch})
        self.assertLessEqual(set(self.SHAPES), set(wanted))
        self.assertEqual(devices, wanted)
        for device, epochs in wanted.items():
            self.assertEqual(self.trend(device=device)["epochs"], epochs, device)

    def steps(self, query, name, n):
        """What SQLite does for it, in instructions of its machine."""
        sql = read_file(os.path.join(ROOT, "server", "queries", query))
        values = dict.fromkeys(re.findall(r":(\w+)", sql)) | {"device": name, "case": GEMV}
        count = 0

        def one_more():
            nonlocal count
            count += 1

        with contextlib.closing(sqlite3.connect(self.path)) as db:
            db.execute("DELETE FROM run WHERE id > 1")
            add_runs(db, name, self.SHAPES[name](n))
            db.set_progress_handler(one_more, 1)
            self.assertTrue(db.execute(sql, values).fetchall())
        return count

    def test_four_times_the_epochs_cost_four_times_as_much(self):
        self.path = os.path.join(self.folder.name, "steps.db")
        seed(self.path, 1, 1, 1)
        for query in ("trend_context.sql", "devices.sql"):
            for name in self.SHAPES:
                few, many = (self.steps(query, name, n) for n in (200, 800))
                self.assertLess(many, 6 * few, (query, name))


if __name__ == "__main__":
    unittest.main()
