#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what no compiler or formatter checks: the rules of this tree.

    ci/check_sources.py [FILE...]

Without a file it looks at all files that git knows or would add. One line a finding,
"file:line: what"; exit 1 when there is one.
"""

import os
import re
import subprocess
import sys

CODE = (".c", ".h", ".cu", ".cuh")
TEXT = CODE + (".mk", ".py", ".sh", ".mjs", ".js", ".css", ".html", ".md", ".yml", ".service")
MAX_COLUMNS = 100
# Files whose lines cannot be cut: tables and links.
LONG_LINES = (".md", ".yml", ".html", ".service")
# Of what people read first, the prose can be.
MAX_PROSE = 150
PROSE = re.compile(r"(README|docs/(?!results)[^/]+)\.md$")

BANNED = {
    "strcpy": "snprintf or struct buf",
    "strcat": "struct buf",
    "sprintf": "snprintf",
    "vsprintf": "vsnprintf",
    "strncpy": "snprintf",
    "strncat": "struct buf",
    "strtok": "strchr or strcspn",
    "atoi": "strtol with its errors checked",
    "atol": "strtol with its errors checked",
    "atof": "strtod with its errors checked",
    "gets": "fgets",
    "gmtime": "gmtime_r",
    "localtime": "localtime_r",
    "ctime": "strftime",
    "asctime": "strftime",
    "alloca": "malloc",
    "tmpnam": "mkstemp",
    "mktemp": "mkstemp",
}
BANNED_CALL = re.compile(r"(?<![\w.>])(%s)\s*\(" % "|".join(BANNED))
EXIT_CALL = re.compile(r"(?<![\w.>])exit\s*\(")
# A statement in a format string has a conversion in it.
SQL_FORMAT = re.compile(r'"[^"]*\b(SELECT|INSERT INTO|UPDATE|DELETE FROM|REPLACE INTO)\b[^"]*%[-+ #0-9.*]*'
                        r'(?:hh|h|ll|l|j|z|t|L)?[diouxXeEfgGaAcspqQw][^"]*"')
INCLUDE = re.compile(r'^ *# *include "([^"]+)"', re.M)
LEFT_OVER = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
MACHINE_PATH = re.compile(r"(?<![\w.$}])/(?:work|home/\w+|Users/\w+|root/)\b")
COMMENT_OR_STRING = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S)

# Written by the build.
GENERATED = ("version.h",)

# Headers that are meant to be included more than once.
REPEATED = ("kernels/host/simd_body.h", "gate/document/document_members.h")

# Of this tree, to read a kernel of ours: its file and all that it includes.
MOST_FILES_OF_KERNEL = 12

findings = 0


def found(path, line, what):
    global findings
    findings += 1
    print(f"{path}:{line}: {what}")


def blank(text, keep_strings):
    """`text` without comments (and strings), with the same line numbers."""

    def cut(match):
        piece = match.group(0)
        if piece[0] in "\"'":
            return piece if keep_strings else piece[0] * 2
        return " " + "\n" * piece.count("\n")

    return COMMENT_OR_STRING.sub(cut, text)


def lines_with(pattern, text):
    for match in pattern.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match


def check_code(path, text):
    code = blank(text, keep_strings=False)
    for line, match in lines_with(BANNED_CALL, code):
        name = match.group(1)
        found(path, line, f"{name} is banned, use {BANNED[name]}")
    if os.path.basename(path) != "main.c" and not path.startswith(("tests/", "gate/base/alloc.c")):
        for line, _ in lines_with(EXIT_CALL, code):
            found(path, line, "exit() below main: return a status")
    # Strings that the compiler joins are one string.
    joined = re.sub(r'"\s*\n\s*"', lambda m: "\0" * m.group(0).count("\n"),
                    blank(text, keep_strings=True))
    for match in SQL_FORMAT.finditer(joined):
        line = len(re.findall("[\n\0]", joined[: match.start()])) + 1
        found(path, line, "SQL in a format string: bind values to a statement of store_sql.c")


def check_guard(path, text):
    parts = path.split("/")
    guard = re.sub(r"\W", "_", "_".join(parts)).upper()
    first = re.search(r"^#ifndef (\w+)\n#define (\w+)$", text, re.M)
    if not first or first.group(1) != first.group(2):
        found(path, 1, f"no header guard, expected {guard}")
        return
    have = first.group(1)
    # kernels/ is what users see: its headers may be guarded by KG_ and the rest of the path.
    allowed = {guard}
    if parts[0] == "kernels":
        allowed |= {re.sub(r"\W", "_", "_".join(["KG"] + parts[i:])).upper()
                    for i in range(1, len(parts))}
    if have not in allowed:
        found(path, 1, f"header guard is {have}, expected {guard}")


def check_licence(path, text):
    if "SPDX-License-Identifier: Apache-2.0" not in text[:200]:
        found(path, 1, "no line 'SPDX-License-Identifier: Apache-2.0'")


def check_text(path, text):
    for line, match in lines_with(LEFT_OVER, text):
        found(path, line, f"{match.group(1)} in the tree: do it or file it")
    for line, match in lines_with(MACHINE_PATH, text):
        found(path, line, f"path of one machine: {match.group(0)}")
    for number, line in enumerate(text.split("\n"), 1):
        if line != line.rstrip():
            found(path, number, "blanks at the end of the line")
        if len(line) > MAX_COLUMNS and not path.endswith(LONG_LINES):
            found(path, number, f"{len(line)} columns, at most {MAX_COLUMNS}")
    if text and not text.endswith("\n"):
        found(path, text.count("\n") + 1, "no newline at the end of the file")


def check_prose(path, text):
    """Tables and code have the lines that they need."""
    fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        fenced ^= line.startswith("```")
        if len(line) > MAX_PROSE and not fenced and not line.startswith(("|", "    ")):
            found(path, number, f"{len(line)} columns of prose, at most {MAX_PROSE}")


# What a top folder may include of: the first of these is below all others.
MAY_INCLUDE = {
    "kernels": {"kernels"},
    "gate": {"kernels", "gate"},
    "server": {"gate", "server"},
}


def project_includes(paths):
    """(file, line, the file that it includes) of every include of a file of this tree; an
    example is a tree of its own, and problem.h is installed beside kernel.h."""
    for path in (p for p in paths if p.endswith(CODE) and not p.startswith("examples/") and
                 p != "kernels/problem.h"):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for line, match in lines_with(INCLUDE, text):
            yield path, line, match.group(1)


def check_includes(paths):
    """Includes are written from the root, and top folders include of those below them alone."""
    known = set(paths)
    for path, line, included in project_includes(paths):
        if included not in known and included not in GENERATED:
            found(path, line, f'no file {included}: write includes from the root of the tree')
            continue
        allowed = MAY_INCLUDE.get(path.split("/")[0])
        if allowed and "/" in included and included.split("/")[0] not in allowed:
            found(path, line, f"{path.split('/')[0]}/ must not include {included}")


def check_folders(paths):
    """Folders include of each other in one direction, so that each can be understood alone."""
    graph = {}
    for path, _, included in project_includes(paths):
        here, there = os.path.dirname(path), os.path.dirname(included)
        if here != there and all(f.startswith(("gate/", "server/")) for f in (here, there)):
            graph.setdefault(here, {})[there] = path
    done = set()

    def visit(folder, trail):
        if folder in trail:
            ring = trail[trail.index(folder):] + [folder]
            found(graph[ring[0]][ring[1]], 1, f"folders include in a ring: {' -> '.join(ring)}")
            return
        if folder in done:
            return
        for other in sorted(graph.get(folder, {})):
            visit(other, trail + [folder])
        done.add(folder)

    for folder in sorted(graph):
        visit(folder, [])


def check_kernels(paths):
    """A kernel of ours can be read in few files."""
    includes = {}
    for path, _, included in project_includes(p for p in paths if p.startswith("kernels/")):
        includes.setdefault(path, []).append(included)
    for path in sorted(p for p in includes if p.endswith(".cu")):
        files = [path]
        for file in files:
            files += {f for f in includes.get(file, ()) if f not in files}
        if len(files) > MOST_FILES_OF_KERNEL:
            found(path, 1, f"reads {len(files)} files of this tree, at most {MOST_FILES_OF_KERNEL}")


def op_names(paths):
    """The names of all ops, by their files."""
    for path in (p for p in paths if p.startswith("kernels/ops/") and p.endswith(".c")):
        with open(path, encoding="utf-8") as file:
            yield from re.findall(r'\.name = "(\w+)"', file.read())


def check_ops(paths):
    """Gate and server read the tables of kernels/ops, and ask of no op or dtype which it is."""
    names = "|".join(op_names(paths)) or "no op"
    names = re.compile(rf'KG_OP_\w+|"(?:{names})"|case KG_(?:F|BF)\d+|\bop_(?:{names})\b')
    for path in paths:
        if path.startswith(("gate/", "server/")) and path.endswith(CODE):
            with open(path, encoding="utf-8") as file:
                for line, match in lines_with(names, blank(file.read(), True)):
                    found(path, line, f"{match.group(0)}: ask the tables of kernels/ops")


def check(path):
    with open(path, encoding="utf-8") as file:
        try:
            text = file.read()
        except UnicodeDecodeError:
            found(path, 1, "not UTF-8")
            return
    # This file names what it looks for.
    if os.path.abspath(path) != os.path.abspath(__file__):
        check_text(path, text)
    if PROSE.match(path):
        check_prose(path, text)
    if path.endswith(CODE + (".py", ".sh", ".mjs", ".js", ".css")):
        check_licence(path, text)
    if path.endswith(CODE):
        check_code(path, text)
    if path.endswith((".h", ".cuh")) and path not in REPEATED:
        check_guard(path, text)


def main():
    paths = sys.argv[1:]
    if not paths:
        listing = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            check=True, stdout=subprocess.PIPE).stdout.decode()
        paths = sorted(p for p in listing.split("\0") if p and os.path.isfile(p))
        check_includes(paths)
        check_folders(paths)
        check_kernels(paths)
        check_ops(paths)
    for path in paths:
        if path.endswith(TEXT) or os.path.basename(path) in ("Makefile", "run"):
            check(path)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
