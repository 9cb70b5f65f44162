"""The files of the page as gate-server gives them out, and the page without scripts."""

import gzip
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_alerts import watched  # noqa: E402
import test_server as base  # noqa: E402

FOREVER = "public, max-age=31536000, immutable"
FILE = re.compile(rb'(?:src|href)="(files/([0-9a-f]{16})/([\w.]+))"')
EMBED = os.path.join(base.ROOT, "build", "embed")


class Page(base.SeededCase):
    def setUp(self):
        self.page = self.server.get("/")
        if not FILE.search(self.page.bytes) or b"app.js" not in self.page.bytes:
            self.skipTest("built with WEB=0")

    def test_all_that_it_names_is_there(self):
        self.assertEqual(self.page.status, 200)
        self.assertEqual(self.page.getheader("Content-Type"), "text/html; charset=utf-8")
        self.assertEqual(self.page.getheader("Cache-Control"), "no-cache")
        found = FILE.findall(self.page.bytes)
        self.assertEqual(len({version for _, version, _ in found}), 1, "one version for all")
        folder = f"/files/{found[0][1].decode()}/"
        names, todo = set(), [name.decode() for _, _, name in found]
        while todo:
            name = todo.pop()
            if name in names:
                continue
            names.add(name)
            response = self.server.get(folder + name)
            self.assertEqual(response.status, 200, name)
            self.assertEqual(response.getheader("Cache-Control"), FOREVER)
            if name.endswith(".js"):
                self.assertEqual(response.getheader("Content-Type"),
                                 "text/javascript; charset=utf-8")
                todo += [n.decode() for n in
                         re.findall(rb'(?:from|import) ?\(?"\./([\w./-]+)"', response.bytes)]
        self.assertGreater(len(names), 4)
        self.assertEqual(self.server.get(folder + "uplot.js").status, 200)

    def test_two_forms(self):
        path = "/" + FILE.search(self.page.bytes).group(1).decode()
        plain = self.server.get(path)
        self.assertIsNone(plain.getheader("Content-Encoding"))
        for value in ("gzip", "deflate, gzip;q=0.5", "br , GZIP ; q=1"):
            packed = self.server.get(path, headers={"Accept-Encoding": value})
            self.assertEqual(packed.getheader("Content-Encoding"), "gzip", value)
            self.assertEqual(gzip.decompress(packed.bytes), plain.bytes)
            self.assertEqual(packed.getheader("Vary"), "Accept-Encoding")
            self.assertNotEqual(packed.getheader("ETag"), plain.getheader("ETag"))
        for value in ("identity", "gzip;q=0", "gzip; q=0.000", "xgzip", "gzipped", "br", ""):
            response = self.server.get(path, headers={"Accept-Encoding": value})
            self.assertIsNone(response.getheader("Content-Encoding"), value)
            self.assertEqual(response.bytes, plain.bytes)
            self.assertEqual(response.getheader("Vary"), "Accept-Encoding")
        tag = packed.getheader("ETag")
        again = self.server.get(path, headers={"If-None-Match": tag, "Accept-Encoding": "gzip"})
        self.assertEqual((again.status, again.bytes), (304, b""))
        self.assertIsNone(again.getheader("Content-Encoding"))

    def test_other_versions_and_names(self):
        path = "/" + FILE.search(self.page.bytes).group(1).decode()
        folder, name = os.path.split(path)
        for other in (f"/files/0000000000000000/{name}", f"/{name}", f"{folder}{name}",
                      f"{folder}/index.html/", f"{folder}/none.js", f"{folder}x/{name}", folder,
                      "/files/", "/index.html"):
            self.assertEqual(self.server.get(other).status, 404, other)

    def test_web_root_has_what_npm_brings(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "index.html"), "w", encoding="utf-8") as file:
                file.write("mine")
            server = base.Server(self.db, "--web-root", folder)
            self.assertEqual(server.get("/").bytes, b"mine")
            self.assertEqual(server.get("/uplot.js").status, 200)
            self.assertEqual(server.get("/app.js").status, 404)
            self.assertEqual(server.stop(), 0)


class Plain(base.SeededCase):
    runs = 80

    def test_it_has_the_essential(self):
        watched(self.db)
        response = self.server.get("/plain")
        self.assertEqual(response.status, 200)
        self.assertEqual(response.getheader("Content-Type"), "text/html; charset=utf-8")
        text = response.bytes.decode()
        self.assertNotIn("<script", text)
        self.assertNotIn("style=", text)
        self.assertEqual(text.count("<table>"), 3)
        for piece in ("NVIDIA H200", "verdict wrong", base.GEMV, self.uuids[-2], "api/v1/cases",
                      "2025-06-"):
            self.assertIn(piece, text)
        for address in re.findall(r'href="(api/[^"]*)"', text):
            self.assertEqual(self.server.get("/" + address).status, 200, address)
        runs = text[text.index("Newest runs"):]
        self.assertNotIn("tune-tiles", text)
        cases = text[text.index("worst first"):text.index("Newest runs")]
        order = re.findall(r'<span class="verdict ([a-z-]+)"', cases)
        self.assertEqual(order[0], "wrong")
        self.assertEqual(order.index("pass"), len(order) - order.count("pass"), "worst first")
        self.assertEqual(cases.count("<tr>"), 1 + 24)
        for number in ("\u00b5s<", ">failed<", ">2.9e-04<", "\u00d7 cublas<"):
            self.assertIn(number, cases)
        self.assertNotIn(" us<", cases)
        self.assertRegex(cases, r">\+\d\.\d\d % \(\+\d\.\d\d to \+\d\.\d\d %\)<")
        self.assertRegex(cases, r">\+[3-9]\.\d\d % since <span class=\"mono\">[0-9a-f]{9}<")
        # No alert tells of a wrong result.
        self.assertEqual(cases.count('"number">since <span class="mono">'), 2)
        style = re.search(r'href="([\w./]+\.css)"', text).group(1)
        self.assertEqual(self.server.get("/" + style).status, 200)
        tag = response.getheader("ETag")
        self.assertEqual(self.server.get("/plain", headers={"If-None-Match": tag}).status, 304)

    def test_a_run(self):
        uuid = self.uuids[-2]
        self.assertIn(f'href="plain?run={uuid}"', self.server.get("/plain").bytes.decode())
        page = self.server.get(f"/plain?run={uuid}")
        text = page.bytes.decode()
        self.assertEqual((page.status, text.count("<table>")), (200, 2))
        run = self.server.json(f"/api/v1/runs/{uuid}")
        order = ["wrong", "regression", "environment", "no-verdict", "improvement", "pass"]
        expected = sorted((c["verdict"] for c in run["cases"]), key=order.index)
        cases = text[text.index("All cases"):]
        self.assertEqual(re.findall(r'<span class="verdict ([a-z-]+)"', cases), expected)
        for case in run["cases"]:
            self.assertEqual(cases.count(f'<td class="case">{case["id"]}</td>'), 1)
        for address in re.findall(r'href="(api/[^"]*)"', text):
            self.assertEqual(self.server.get("/" + address).status, 200, address)
        for none in ("0000", "%3Cscript", "", "x" * 300):
            page = self.server.get(f"/plain?run={none}")
            self.assertEqual(page.status, 404, none)
            self.assertIn("no such run", page.bytes.decode())
            self.assertNotIn("<script", page.bytes.decode())

    def test_more_cases_than_a_page_has(self):
        with tempfile.TemporaryDirectory() as folder:
            db = os.path.join(folder, "gate.db")
            subprocess.run([base.SEED, db, "1", "501", "1"], check=True, timeout=base.PATIENCE,
                           stdout=subprocess.DEVNULL)
            server = base.Server(db)
            text = server.get("/plain").bytes.decode()
            cases = text[text.index("worst first"):text.index("Newest runs")]
            self.assertEqual(cases.count('<td class="case">'), 500)
            self.assertIn("There are more", cases)
            self.assertEqual(server.stop(), 0)

    def test_branches(self):
        text = self.server.get("/plain").bytes.decode()
        self.assertIn('<a href="plain?all=1">', text)
        every = self.server.get("/plain?all=1").bytes.decode()
        runs = every[every.index("Newest runs"):]
        self.assertEqual(runs.count("<td>tune-tiles</td>"), 5, "of 25 runs, one in five")
        self.assertIn('<a href="plain">', every)
        # Where no run is watched, all are shown, and it says why.
        server = base.Server(self.db, "--watch-branch", "release-*")
        self.assertIn("No run is of a watched branch", server.get("/plain").bytes.decode())
        self.assertEqual(server.stop(), 0)

    def test_hostile_text_stays_text(self):
        with tempfile.TemporaryDirectory() as folder:
            run = os.path.join(folder, "run.json")
            with open(os.path.join(base.ROOT, "tests/data/run-h200.json"), encoding="utf-8") as f:
                text = f.read()
            with open(run, "w", encoding="utf-8") as file:
                file.write(re.sub(r'"subject":\s*"[^"]*"',
                                  r'"subject": "<script>alert(\"&amp;\")</script>"', text))
            db = os.path.join(folder, "gate.db")
            subprocess.run([os.path.join(base.BUILD, "bin", "gate"), "import", "--db", db, run],
                           check=True, timeout=base.PATIENCE, stdout=subprocess.DEVNULL)
            server = base.Server(db)
            page = server.get("/plain").bytes.decode()
            self.assertNotIn("<script", page)
            self.assertIn("&lt;script&gt;alert(&quot;&amp;amp;&quot;)&lt;/script&gt;", page)
            self.assertEqual(server.stop(), 0)

    def test_an_empty_history(self):
        with tempfile.TemporaryDirectory() as folder:
            db = os.path.join(folder, "gate.db")
            base.seed(db, 0)
            server = base.Server(db)
            self.assertIn("no runs yet", server.get("/plain").bytes.decode())
            self.assertEqual(server.stop(), 0)


class Embed(unittest.TestCase):
    """The build tool: what its table holds follows from the files alone."""

    def embed(self, *names):
        return subprocess.run([EMBED, "--page", "x", *names], check=True, timeout=base.PATIENCE,
                              stdout=subprocess.PIPE).stdout.decode()

    def bytes_of(self, table, kind, index):
        digits = re.search(rf"{kind}_{index}\[\] = {{([\d,\s]*)0}};", table).group(1)
        return bytes(int(d) for d in digits.split(",") if d.strip())

    def test_comments_stay_at_home(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.js")
            with open(path, "w", encoding="utf-8") as file:
                file.write("/*!\n  a licence // stays\n */\n// goes\n\n/**\n * goes\n */\n"
                           "const a = {\n    b: 1, // goes\n    c: \"x // stays\",\n"
                           "    d: `it's // here`, e: '\"', // reader's,\n};\n/* goes */\nlast;")
            self.assertEqual(self.bytes_of(self.embed(path), "file", 0).decode(),
                             "/*!\n  a licence // stays\n */\nconst a = {b: 1,"
                             "c: \"x // stays\",\nd: `it's // here`, e: '\"', // reader's,\n};"
                             "last;")

    def test_versions(self):
        with tempfile.TemporaryDirectory() as folder:
            def write(name, text):
                path = os.path.join(folder, name)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                return path
            page = write("index.html", '<script src="a.js"></script><a href="b.js">"a.js</a>')
            module = write("a.js", 'import "./b.js";')
            table = self.embed(page, module)
            version = re.search(r'x_version\[\] = "([0-9a-f]{16})"', table).group(1)
            # b.js is no file of the table, and a quote that does not close names none.
            html = self.bytes_of(table, "file", 1).decode()
            self.assertEqual(html, f'<script src="files/{version}/a.js"></script>'
                                   '<a href="b.js">"a.js</a>')
            self.assertEqual(gzip.decompress(self.bytes_of(table, "gz", 1)).decode(), html)
            self.assertEqual(self.bytes_of(table, "file", 0).decode(), 'import "./b.js";')
            self.assertEqual(self.embed(module, page), table, "the order of the files is no matter")
            write("a.js", 'import "./c.js";')
            self.assertNotIn(version, self.embed(page, module))
            self.assertNotEqual(
                subprocess.run([EMBED, "--page", "x", folder + "/none"], check=False,
                               stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL).returncode, 0)


if __name__ == "__main__":
    unittest.main()
