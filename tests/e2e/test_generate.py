# SPDX-License-Identifier: Apache-2.0
"""The manual page and the completions hold what --help says, no less and no more."""

import glob
import os
import re
import shutil
import subprocess
import unittest

from harness import GATE, ROOT, SERVER, read_file


def gate(*args):
    done = subprocess.run([GATE, *args], check=True, capture_output=True, text=True)
    return done.stdout


def commands():
    return re.findall(r"(?m)^  ([a-z]+) ", gate("--help"))


def options(command):
    return set(re.findall(r"(?m)^  --([a-z0-9-]+)", gate(command, "--help"))) - {"help"}


class Generated(unittest.TestCase):
    def held(self, sections, names_in):
        self.assertEqual(list(sections), commands())
        for command, text in sections.items():
            self.assertEqual(set(names_in(text)) - {"help"}, options(command), command)

    def test_manual(self):
        page = gate("generate", "man").replace("\\-", "-")
        parts = re.split(r"(?m)^\.SS gate (\w+)\n", page.split("\n.SH ENVIRONMENT")[0])
        self.held(dict(zip(parts[1::2], parts[2::2])),
                  lambda text: re.findall(r"(?m)^\.B --([a-z0-9-]+)", text))
        for variable in re.findall(r"(?m)^  ?(GATE_[A-Z_]+)", gate("doctor", "--help")):
            self.assertIn(variable, page)
        self.reads_well(gate("generate", "man"))

    def reads_well(self, page):
        headings = re.findall(r"(?m)^\.SH (.*)", page)
        for heading in ("NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "FILES"):
            self.assertIn(heading, headings)
        if shutil.which("groff"):
            done = subprocess.run(["groff", "-man", "-ww", "-Tutf8"], input=page,
                                  capture_output=True, text=True, check=True)
            self.assertEqual(done.stderr, "")

    def test_only_a_run_offers_all_devices(self):
        for command in ("run", "verify", "compare", "bisect", "search", "calibrate", "doctor"):
            form, = re.findall(r"--device (\S+)", gate(command, "--help"))
            self.assertEqual("all" in form.split("|"), command == "run", command)

    def test_manual_of_the_server(self):
        page = subprocess.run([os.path.join(ROOT, "ci", "server-man.sh"), SERVER], check=True,
                              capture_output=True, text=True).stdout
        text = page.replace("\\&", "").replace("\\-", "-").replace("\\e", "\\")
        usage = subprocess.run([SERVER, "--help"], check=True, capture_output=True, text=True)
        names = re.findall(r"(?m)^       gate-server ([a-z|]+)", usage.stdout)
        for command in [[]] + [[name] for line in names for name in line.split("|")]:
            said = subprocess.run([SERVER, *command, "--help"], check=True, capture_output=True,
                                  text=True).stdout
            for line in said.splitlines():
                self.assertIn(re.sub("^(Usage: |Exit status: |       (?=gate))", "", line), text)
        self.reads_well(page)

    def test_completions_of_the_server(self):
        def named(*command):
            said = subprocess.run([SERVER, *command, "--help"], check=True, capture_output=True,
                                  text=True).stdout
            usage, listed = said.split("\n\n", 1)
            names = set(re.findall("--[a-z-]+", usage) + re.findall(r"(?m)^  (--[a-z-]+)", listed))
            return names | {"--help"}
        script = subprocess.run([os.path.join(ROOT, "ci", "server-completions.sh"), SERVER],
                                check=True, capture_output=True, text=True).stdout
        found = dict(re.findall(r"(?m)^    ([a-z]+)\) words='([^']*)' ;;", script))
        self.assertEqual(set(found), {"token", "check", "backup", "restore", "thin", "routes"})
        for name, words in found.items():
            self.assertEqual(set(words.split()), named(name), name)
        everything, = re.findall(r"(?m)^    \*\) words='([^']*)' ;;", script)
        tables = set()
        for path in glob.glob(os.path.join(ROOT, "server", "**", "*.c"), recursive=True):
            tables.update(re.findall(
                r'\{"([a-z-]+)", (?:no_arg|required_arg|TEXT|FLAG|NUMBER|READ)', read_file(path)))
        offered = " ".join([everything, *found.values()]).split()
        self.assertEqual({word[2:] for word in offered if word[0] == "-"},
                         tables | {"version"})
        ask = script + ('\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _gate_server; '
                        'printf "%s\\n" "${COMPREPLY[@]}"')
        for words, expected in ((["to"], ["token"]), (["thin", "--o"], ["--older-than"]),
                                (["--db", "x", "--tls-k"], ["--tls-key"]), (["--db", ""], [])):
            done = subprocess.run(["bash", "-c", ask, "bash", "gate-server", *words], check=True,
                                  capture_output=True, text=True)
            self.assertEqual(done.stdout.split(), expected)

    def test_bash(self):
        script = gate("generate", "bash")
        self.held(dict(re.findall(r"(?m)^        (\w+)\) options='([^']*)' ;;", script)),
                  lambda text: re.findall(r"--([a-z0-9-]+)", text))
        ask = script + ('\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _gate; '
                        'printf "%s\\n" "${COMPREPLY[@]}"')

        def complete(*words):
            done = subprocess.run(["bash", "-c", ask, "bash", "gate", *words], check=True,
                                  capture_output=True, text=True)
            return done.stdout.split()
        self.assertEqual(complete("bis"), ["bisect"])
        self.assertEqual(complete("run", "--thr"), ["--threshold"])
        self.assertEqual(complete("run", "file"), [])
        self.assertEqual(complete("run", "--device", ""), ["auto", "host", "cuda:0", "all"])
        self.assertEqual(complete("verify", "--device", "h"), ["host"])
        self.assertEqual(complete("run", "--suite", ""), [])
        self.assertEqual(set(complete("push", "--")) - {"--help"},
                         {"--" + name for name in options("push")})

    def test_another_kind(self):
        self.assertEqual(subprocess.run([GATE, "generate", "x"], check=False,
                                        capture_output=True).returncode, 64)


if __name__ == "__main__":
    unittest.main()
