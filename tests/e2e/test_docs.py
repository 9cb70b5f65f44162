# SPDX-License-Identifier: Apache-2.0
"""README and docs/: links lead to files, the example compiles, lists are complete."""

import contextlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import tempfile
import unittest

from harness import seed

ROOT = os.environ.get("KERNEL_GATE_ROOT", os.getcwd())
NVCC = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")


def text_of(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def pages():
    below = os.path.join(ROOT, "docs")
    return ["README.md"] + sorted(f"docs/{n}" for n in os.listdir(below) if n.endswith(".md"))


class Links(unittest.TestCase):
    def test_each_leads_to_a_file(self):
        seen = 0
        for page in pages():
            for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text_of(page)):
                if not target.startswith(("http:", "https:")):
                    seen += 1
                    path = os.path.normpath(os.path.join(ROOT, os.path.dirname(page), target))
                    self.assertTrue(os.path.exists(path), f"{page}: {target}")
        self.assertGreater(seen, 20)


class Queries(unittest.TestCase):
    """What docs/server.md tells people to ask with sqlite3 has an answer."""

    def test_each_has_rows(self):
        text = text_of("docs/server.md")
        queries = re.findall(r'sqlite3 gate\.db "([^"]+)"', text)
        self.assertEqual(len(queries), 5)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "gate.db")
            seed(path, 60)
            with contextlib.closing(sqlite3.connect(path)) as db:
                for query in queries:
                    # the seeded runs are not of the last 30 days
                    query = query.replace("'-30 days'", "'-30 years'")
                    self.assertGreater(len(db.execute(query).fetchall()), 0, query)


class Readme(unittest.TestCase):
    def test_it_stays_short(self):
        self.assertLessEqual(len(text_of("README.md").splitlines()), 150)

    @unittest.skipUnless(NVCC, "no nvcc")
    def test_its_library_compiles(self):
        [source] = re.findall(r"```cuda\n(.*?)```", text_of("README.md"), re.S)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "mykernels.cu")
            with open(path, "w", encoding="utf-8") as file:
                file.write(source)
            built = subprocess.run(
                [NVCC, "-arch=sm_90", "-Xcompiler", "-fPIC", "-shared", "-I",
                 os.path.join(ROOT, "kernels"), path, "-o", os.path.join(folder, "lib.so")],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True)
        self.assertEqual((built.returncode, built.stdout), (0, ""))


OPS = re.findall(r"&op_(\w+)", text_of("kernels/ops/op.c"))


class Ops(unittest.TestCase):
    """No op is forgotten where a list of all of them stands."""

    def test_each_is_there(self):
        self.assertGreater(len(OPS), 9)
        suites = ("kernels/suites/smoke.json", "kernels/suites/ops.json")
        for paths in (suites, ("examples/mykernels/kernels.json",), ("kernels/host/library.c",),
                      ("tests/mutants/catalogue.json",), ("tests/e2e/test_verify_nightly.py",)):
            named = set(re.findall(r"\w+", "".join(map(text_of, paths)).replace("host_", "")))
            self.assertEqual(set(OPS) - named, set(), paths)


class Kernels(unittest.TestCase):
    """docs/kernels.md names the tensors of each op as kernel.h does."""

    def test_the_table_is_that_of_the_header(self):
        header = text_of("kernels/kernel.h")
        comment = header[header.index("What is computed"):header.index("Storage type of a tensor")]
        ops = {}
        for name, inputs, outputs in re.findall(
                r"^ \* (\w+) +in: ((?:.|\n)*?) out: (.*)$", comment, re.MULTILINE):
            ops[name.lower()] = tuple(re.findall(r"\w+\[[\w,+]+\]", part)
                                      for part in (inputs, outputs))
        rows = re.findall(r"^\| `(\w+)` \| (\S*\[.*?) \| (.*?) \| (.*) \|$",
                          text_of("docs/kernels.md"), re.MULTILINE)
        self.assertEqual({op: (a.split(), b.split()) for op, a, b, _ in rows}, ops)
        self.assertEqual(ops.keys(), set(OPS))
        for op, _, _, names in rows:
            said = comment[comment.index(f" * {op} "):]
            said = re.split(r"[;.]", said[said.index("sizes"):])[0]
            for name in names.replace("`", "").split():
                self.assertIn(name, re.findall(r"\w+", said), op)


class Environment(unittest.TestCase):
    """docs/ci.md lists the variables that the programs read: all of them, and no other."""

    BY_ANOTHER_NAME = {  # who asks for a variable that stands elsewhere
        "gate/base/environment.c", "gate/ci/ci.c", "gate/cli/cmd_doctor.c",
        "gate/comment/comment.c", "gate/tracker/tracker.c", "server/http/listen.c"}
    ELSEWHERE = {"gate/ci/ci.c", "gate/base/scrub.c", "gate/base/environment.c"}

    def test_the_table_is_whole(self):
        read, indirect = set(), set()
        for top in ("gate", "kernels", "server"):
            for folder, _, names in os.walk(os.path.join(ROOT, top)):
                for name in names:
                    path = os.path.relpath(os.path.join(folder, name), ROOT)
                    if not name.endswith((".c", ".h", ".cu", ".cuh")):
                        continue
                    text = text_of(path)
                    if re.search(r"\bgetenv\([^\"]", text):
                        indirect.add(path)
                    if path not in self.ELSEWHERE:
                        read.update(re.findall(
                            r'\b(?:getenv|variable|environment_get)\("([A-Z_]+)"\)', text))
                        read.update(re.findall(r'"((?:GATE|KG|XDG|GITHUB|GITLAB|CI)_[A-Z0-9_]+)"',
                                               text))
        self.assertEqual(indirect, self.BY_ANOTHER_NAME)
        section = text_of("docs/ci.md").split("## Environment")[1]
        self.assertEqual(read, set(re.findall(r"`([A-Z][A-Z0-9_]+)`", section)))

    def test_the_meanings_are_those_that_doctor_prints(self):
        listing = text_of("gate/base/environment.c").split("environment_variables[] = {")[1]
        entries = re.findall(r'\{"(\w+)",\s*((?:"[^"]*"\s*)+),', listing)
        printed = {name: "".join(re.findall(r'"([^"]*)"', text)) for name, text in entries}
        section = text_of("docs/ci.md").split("## Environment")[1]
        table = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", section, re.MULTILINE))
        self.assertGreater(len(table), 20)
        self.assertEqual(table, printed)

    def test_what_is_recognised_of_other_ci_systems(self):
        section = text_of("docs/ci.md").split("## Other CI systems")[1].split("\n## ")[0]
        listed = dict(re.findall(r"^\| (\w+)[^|]*\|[^|]*\| (`[^|]*) \|", section, re.MULTILINE))
        tables = text_of("gate/ci/ci.c").split("systems[] = {")[1].split("};")[0]
        told = {"Jenkins": "JENKINS", "Buildkite": "BUILDKITE", "Azure": "AZURE",
                "CircleCI": "CIRCLE"}
        self.assertEqual(set(listed), set(told))
        for system, names in listed.items():
            table = tables.split(f"[CI_{told[system]}]")[1].split("[CI_")[0]
            read = set(re.findall(r'"([A-Z0-9_]+)"', table.split(",", 1)[1]))
            self.assertLessEqual(read, set(re.findall(r"`([A-Z0-9_]+)`", names)), system)


if __name__ == "__main__":
    unittest.main()
