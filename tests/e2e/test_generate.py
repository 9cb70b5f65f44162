# SPDX-License-Identifier: Apache-2.0
"""The manual page and the completions hold what --help says, no less and no more."""

import re
import shutil
import subprocess
import unittest

from harness import GATE, SERVER


def said(*command):
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout


def commands(program):
    """Their words; of the server, "" is the program itself."""
    text = said(program, "--help")
    if program == GATE:
        return re.findall(r"(?m)^  ([a-z]+) ", text)
    lines = re.findall(r"(?m)^       gate-server ([a-z|]+)", text)
    return [name for line in lines for name in line.split("|")] + [""]


def options(program, command):
    return set(re.findall(r"(?m)^  --([a-z0-9-]+)", said(program, *command.split(), "--help")))


def completes(program, *words):
    name = "gate" if program == GATE else "gate-server"
    ask = said(program, "generate", "bash") + (
        f'\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _{name}; printf "%s\n" "${{COMPREPLY[@]}}"')
    return said("bash", "-c", ask, "bash", name, *words).split()


class Generated(unittest.TestCase):
    def held(self, program, sections, names_in):
        self.assertEqual(list(sections), commands(program))
        for command, text in sections.items():
            self.assertEqual(set(names_in(text)) | {"help"}, options(program, command), command)

    def test_manuals(self):
        for program in (GATE, SERVER):
            page = said(program, "generate", "man")
            parts = re.split(r"(?m)^\.SS gate(?:-server)? ?(\w*)\n",
                             re.split(r"\n\.SH E", page.replace("\\-", "-"))[0])
            self.held(program, dict(zip(parts[1::2], parts[2::2])),
                      lambda text: re.findall(r"(?m)^\.B --([a-z0-9-]+)", text))
            synopsis = re.search(r"\.SH SYNOPSIS\n(.*)", page.replace("\\-", "-"))[1]
            self.assertEqual("Usage: " + re.sub(r"\\f.", "", synopsis),
                             said(program, "--help").split("\n")[0])
            headings = re.findall(r"(?m)^\.SH (.*)", page)
            for heading in ("NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "FILES"):
                self.assertIn(heading, headings)
            if shutil.which("groff"):
                done = subprocess.run(["groff", "-man", "-ww", "-Tutf8"], input=page,
                                      capture_output=True, text=True, check=True)
                self.assertEqual(done.stderr, "")

    def test_variables(self):
        page = said(GATE, "generate", "man").replace("\\-", "-")
        for variable in re.findall(r"(?m)^  ?(GATE_[A-Z_]+)", said(GATE, "doctor", "--help")):
            self.assertIn(variable, page)

    def test_only_a_run_offers_all_devices(self):
        for command in ("run", "verify", "compare", "bisect", "search", "calibrate", "doctor"):
            form, = re.findall(r"--device (\S+)", said(GATE, command, "--help"))
            self.assertEqual("all" in form.split("|"), command == "run", command)

    def test_bash(self):
        for program in (GATE, SERVER):
            found = re.findall(r"(?m)^        ([\w*]+)\) options='([^']*)' ;;",
                               said(program, "generate", "bash"))
            self.held(program, {name.strip("*"): words for name, words in found},
                      lambda text: re.findall(r"--([a-z0-9-]+)", text))
        for program, words, expected in (
                (GATE, ("bis",), ["bisect"]), (GATE, ("run", "--thr"), ["--threshold"]),
                (GATE, ("run", "file"), []), (GATE, ("run", "--suite", ""), []),
                (GATE, ("run", "--device", ""), ["auto", "host", "cuda:0", "all"]),
                (GATE, ("verify", "--device", "h"), ["host"]),
                (SERVER, ("to",), ["token"]), (SERVER, ("thin", "--o"), ["--older-than"]),
                (SERVER, ("--tls-k",), ["--tls-key"]), (SERVER, ("--db", ""), []),
                (SERVER, ("--db", "x", "--tls-k"), ["--tls-key"])):
            self.assertEqual(completes(program, *words), expected, words)

    def test_another_kind(self):
        self.assertEqual(subprocess.run([GATE, "generate", "x"], check=False,
                                        capture_output=True).returncode, 64)


if __name__ == "__main__":
    unittest.main()
