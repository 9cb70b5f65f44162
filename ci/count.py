#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the tree: lines, files and functions, by folder and by what asks for the lines.

    ci/count.py [DIR]        of the files that git knows

A C function is found by its opening brace in the first column, as clang-format sets it. A static
function counts as called once when its file has one call of it and no other use.
"""

import collections
import os
import re
import subprocess
import sys

KINDS = (".c", ".h", ".cu", ".cuh", ".sql", ".py", ".sh", ".js", ".css", ".mjs")
C_LIKE = (".c", ".h", ".cu", ".cuh")

# The folders of which a total is an aim, and what they are made of.
TOTALS = (
    ("gate without store, with ops and reference",
     r"gate/(?!store/|history/)|kernels/(ops|reference)/"),
    ("server and store", r"server/|gate/(store|history)/"),
    ("page (JS and CSS)", r"web/"),
    ("tests of server, store and page",
     r"tests/browser/|tests/(unit|e2e)/(test_)?(store|watch|writer|alerts|api|auth|care|http|"
     r"ingest|"
     r"log|openapi|ops|readers|records|request|server|service|tag|rate_limit|hmac|number|bytes|"
     r"changepoint|document_cut)"),
)

# What asks for a file of the gate: the first pattern that its path begins with decides.
CORE, FEATURE, ROBUST = "core", "feature", "robustness"
ROWS = (
    (ROBUST, "audit of timed launches", r"gate/worker/audit"),
    (ROBUST, "busy GPU, lock, NVML", r"gate/device/(\w*(lock|busy|nvml|users)|cuda_users)"),
    (ROBUST, "design of shapes, neighbours", r"gate/verify/verify_(shapes|neighbours|design)"),
    (ROBUST, "layouts, guards, large, far strides",
     r"gate/verify/verify_(layout|guard|large|zones)|gate/launch/\w*(guard|zones)"),
    (ROBUST, "machine code of what was launched", r"gate/(launch/finger|library/machine)"),
    (ROBUST, "order of launches in a recording", r"gate/device/(serial|\w*capture|graph)"),
    (ROBUST, "state kept, soak, spot, timed outputs",
     r"gate/verify/verify_(state|soak|spot|timed|endure)"),
    (FEATURE, "bisect", r"gate/bisect/|gate/cli/cmd_bisect"),
    (FEATURE, "blame", r"gate/\w+/\w*(blame|transplant)"),
    (FEATURE, "calibrate", r"gate/\w+/\w*calibrat"),
    (FEATURE, "ceilings", r"gate/\w+/\w*ceiling"),
    (FEATURE, "comment", r"gate/comment/|gate/cli/cmd_comment"),
    (FEATURE, "counters", r"gate/counters/|gate/cli/\w*counters"),
    (FEATURE, "diff", r"gate/diff/|gate/cli/cmd_diff"),
    (FEATURE, "doctor", r"gate/cli/cmd_doctor"),
    (FEATURE, "fetch", r"gate/\w+/\w*fetch"),
    (FEATURE, "CI variables", r"gate/ci/"),
    (FEATURE, "init", r"gate/cli/(cmd_)?init"),
    (FEATURE, "instructions", r"gate/\w+/\w*(instructions|listing)"),
    (FEATURE, "manual page and completion", r"gate/cli/program"),
    (FEATURE, "push", r"gate/tracker/|gate/remote/|gate/cli/cmd_push"),
    (FEATURE, "ratchet", r"gate/\w+/\w*ratchet"),
    (FEATURE, "rebuild and against a commit", r"gate/baseline/revision"),
    (FEATURE, "search", r"gate/search/|gate/cli/(cmd_)?search"),
    (FEATURE, "shards and merge", r"gate/\w+/(cmd_merge|\w*shard|merge)"),
    (FEATURE, "wrapper", r"gate/\w+/\w*(sanitize|wrapper)"),
    (CORE, "baselines and artifacts", r"gate/baseline/|gate/cli/(baseline|cmd_baseline)"),
    (CORE, "cases and ops", r"gate/cases/|kernels/ops/"),
    (CORE, "compare, history, lists",
     r"gate/cli/(cmd_)?(compare|history|leaderboard|report|export|import)"),
    (CORE, "decide", r"gate/decide/"),
    (CORE, "device", r"gate/device/"),
    (CORE, "document", r"gate/document/"),
    (CORE, "reference", r"kernels/reference/"),
    (CORE, "reports", r"gate/report/"),
    (CORE, "run", r"gate/run/|gate/cli/(cmd_)?run"),
    (CORE, "verify", r"gate/verify/|gate/cli/cmd_verify"),
    (CORE, "worker, launch, library", r"gate/(worker|measure|launch|library)/"),
    (CORE, "base", r"gate/(base|lib)/"),
    (CORE, "commands and the rest", r"gate/(?!store/|history/)"),
)

FUNCTION = re.compile(r"^(?![#\s}{])([^;={}#()]*?)\b(\w+)\([^;{}]*\)\s*\n\{\n.*?^\}",
                      re.M | re.S)
BOUNDS = re.compile(r"__(?:launch_bounds|cluster_dims)__\([^()]*(\([^()]*\)[^()]*)*\)")
COMMENT_OR_STRING = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S)

Function = collections.namedtuple("Function", "path name lines static once")


def listed(root):
    names = subprocess.run(["git", "-C", root, "ls-files", "-z"], check=True,
                           stdout=subprocess.PIPE).stdout.decode().split("\0")
    return [n for n in names if n.endswith(KINDS) and os.path.isfile(os.path.join(root, n))]


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def functions_of(path, text):
    """The functions that a C file defines; comments and strings are blanked, lines are kept."""
    text = COMMENT_OR_STRING.sub(lambda m: '""' if m[0][0] in "\"'" else
                                 " " + "\n" * m[0].count("\n"), text)
    text = BOUNDS.sub("", text)
    uses = collections.Counter(re.findall(r"\w+", text))
    calls = collections.Counter(re.findall(r"(\w+)\(", text))
    for match in FUNCTION.finditer(text):
        name = match.group(2)
        declared = len(re.findall(rf"(?m)^static [^;{{}}=]*\b{name}\([^;{{}}]*\);", text))
        static = re.search(r"\bstatic\b", match.group(1)) is not None
        once = uses[name] - declared == 2 == calls[name] - declared
        yield Function(path, name, match.group(0).strip("\n").count("\n") + 1, static,
                       static and once)


def folder_of(path):
    return "/".join(path.split("/")[:-1][:2]) or "."


def row_of(path):
    return next(((kind, name) for kind, name, pattern in ROWS if re.match(pattern, path)), None)


def show(head, rows):
    print(f"\n{head}")
    for name, *figures in rows:
        print(f"  {name:44}" + "".join(f"{figure:>9}" for figure in figures))


def figures(functions):
    """Functions, mean lines, longest, static ones called once of 100 static ones."""
    lines = [f.lines for f in functions]
    static = [f for f in functions if f.static]
    once = sum(f.once for f in static)
    return (len(lines), f"{sum(lines) / len(lines):.1f}" if lines else "-", max(lines, default="-"),
            f"{100 * once / len(static):.0f} %" if static else "-")


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    texts = {path: read(root, path) for path in listed(root)}
    lines = {path: text.count("\n") for path, text in texts.items()}
    functions = [f for path, text in texts.items() if path.endswith(C_LIKE)
                 for f in functions_of(path, text)]

    def row(name, paths):
        paths = set(paths)
        return (name, len(paths), sum(p.endswith((".h", ".cuh")) for p in paths),
                sum(lines[p] for p in paths), *figures([f for f in functions if f.path in paths]))

    head = "files  headers    lines     func     mean  longest  1 call"
    folders = collections.defaultdict(list)
    for path in texts:
        folders[folder_of(path)].append(path)
    show(f"{'by folder':46}{head}", [row(f, folders[f]) for f in sorted(folders)])

    groups = collections.defaultdict(list)
    for path in texts:
        if row_of(path):
            groups[row_of(path)].append(path)
    show(f"{'by what asks for it':46}{head}",
         [row(f"{kind}: {name}", groups[kind, name]) for kind, name in sorted(groups)] +
         [row(f"{wanted} in all", [p for (kind, _), paths in groups.items() for p in paths
                                   if kind == wanted]) for wanted in (CORE, ROBUST, FEATURE)])

    show(f"{'totals with an aim':46}{head}",
         [row(name, [p for p in texts if re.match(pattern, p)]) for name, pattern in TOTALS] +
         [row("all", texts)])
    show("longest functions", [(f"{f.path}:{f.name}", f.lines)
                               for f in sorted(functions, key=lambda f: -f.lines)[:10]])


if __name__ == "__main__":
    main()
