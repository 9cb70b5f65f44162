# SPDX-License-Identifier: Apache-2.0
"""The files of the page as gate-server gives them out."""

import gzip
import os
import posixpath
import re
import subprocess
import tempfile
import unittest

from harness import PATIENCE, ROOT, SeededCase, Server, write_file

FOREVER = "public, max-age=31536000, immutable"
FILE = re.compile(rb'(?:src|href)="(files/([0-9a-f]{16})/([\w./]+))"')
EMBED = os.path.join(ROOT, "gate", "base", "embed.sh")


class Page(SeededCase):
    def setUp(self):
        self.page = self.server.get("/")
        if not self.pages():
            self.skipTest("built with WEB=0")

    def test_all_that_it_names_is_there(self):
        self.assertEqual(self.page.status, 200)
        self.assertEqual(self.page.getheader("Content-Type"), "text/html; charset=utf-8")
        self.assertEqual(self.page.getheader("Cache-Control"), "no-cache")
        found = FILE.findall(self.page.bytes)
        self.assertEqual(len({version for _, version, _ in found}), 1, "one version for all")
        folder = f"/files/{found[0][1].decode()}/"
        names, todo = set(), [name.decode() for _, _, name in found]
        app = self.server.get(folder + "frame/app.js").bytes.decode()
        views = re.search(r"const VIEWS = \[(.*?)\]", app, re.DOTALL)[1]
        todo += [f"views/{name or 'overview'}.js" for name in re.findall(r'"(\w*)"', views)]
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
                todo += [posixpath.normpath(posixpath.join(posixpath.dirname(name), n.decode()))
                         for n in re.findall(rb'(?:from|import) ?\(?"(\.[\w./-]+)"',
                                             response.bytes)]
        self.assertGreater(len(names), 20)
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
            write_file(os.path.join(folder, "index.html"), "mine")
            server = Server(self.db, "--web-root", folder)
            self.assertEqual(server.get("/").bytes, b"mine")
            self.assertEqual(server.get("/uplot.js").status, 200)
            self.assertEqual(server.get("/app.js").status, 404)
            self.assertEqual(server.stop(), 0)


class Embed(unittest.TestCase):
    """The build tool: what its table holds follows from the files alone."""

    def embed(self, *names):
        return subprocess.run([EMBED, "--page", "x", *names], check=True, timeout=PATIENCE,
                              stdout=subprocess.PIPE).stdout.decode()

    def bytes_of(self, table, kind, index):
        digits = re.search(rf"{kind}_{index}\[\] = {{([\d,\s]*)0}};", table).group(1)
        return bytes(int(d) for d in digits.split(",") if d.strip())

    def test_versions(self):
        with tempfile.TemporaryDirectory() as folder:
            def write(name, text):
                path = os.path.join(folder, name)
                write_file(path, text)
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
            for path in (folder + "/none", write("a&b.js", ""), write("a b.js", "")):
                self.assertNotEqual(
                    subprocess.run([EMBED, "--page", "x", path], check=False,
                                   stderr=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL).returncode, 0, path)


if __name__ == "__main__":
    unittest.main()
