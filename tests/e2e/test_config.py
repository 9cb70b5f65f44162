# SPDX-License-Identifier: Apache-2.0
"""gate.json: where each value of an option comes from, and what is said of a wrong one.

sanitized: gate reads gate.json
"""

import json
import os
import re
import shutil
import subprocess
import unittest

from harness import GATE, HOST, ROOT, Gate, mutant, read_file, write_file


class Config(Gate):
    def setUp(self):
        super().setUp()
        os.makedirs(self.path("below/deeper"))
        subprocess.run(["git", "init", "-q", self.folder], check=True)

    def config(self, text=None, name="gate.json", **keys):
        write_file(self.path(name), text or json.dumps({"schema": "gate-config/1", **keys}))

    def shown(self, *arguments, folder="", **env):
        env = {**{k: v for k, v in os.environ.items()
                  if k == "GATE_LOCKS" or not k.startswith("GATE_")}, **env}
        done = subprocess.run([GATE, "run", "--print-config", *arguments], env=env,
                              cwd=self.path(folder), capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {row[0]: tuple(row[1:]) for row in
                (re.split(r"  +", line) for line in done.stdout.splitlines()[1:])}

    def test_without_a_file_the_defaults_hold(self):
        shown = self.shown()
        self.assertEqual(shown["db"], ("./gate.db", "default"))
        self.assertEqual(shown["threshold"], ("2%", "default"))

    def test_an_option_beats_a_variable_and_a_variable_the_file(self):
        self.config(database="file.db", baselines="file", library="file.so", host_threshold="20%")
        shown = self.shown("--db", "option.db", GATE_DB="variable.db", GATE_BASELINES="variable")
        self.assertEqual(shown["db"], ("option.db", "command line"))
        self.assertEqual(shown["baselines"], ("variable", "$GATE_BASELINES"))
        self.assertEqual(shown["library"], ("file.so", "gate.json"))
        self.assertEqual(shown["host-threshold"], ("20%", "gate.json"))

    def test_a_variable_that_is_empty_says_nothing(self):
        self.assertEqual(self.shown(GATE_DB="")["db"], ("./gate.db", "default"))

    def test_options_that_repeat_replace_those_of_the_file(self):
        self.config(providers=["a.so", "b.so"])
        self.assertEqual(self.shown()["provider"], ("a.so, b.so", "gate.json"))
        self.assertEqual(self.shown("--provider", "c.so")["provider"], ("c.so", "command line"))

    def test_an_empty_list_is_none_and_not_the_default(self):
        self.config(providers=[])
        self.assertEqual(self.shown()["provider"], ("none", "gate.json"))
        self.assertEqual(self.shown("--provider", "c.so")["provider"], ("c.so", "command line"))
        worker = self.path("worker.sh")
        write_file(worker, f'#!/bin/sh\necho "$@" > {self.path("asked")}\nexit 1\n')
        os.chmod(worker, 0o755)
        for keys, options, vendors in (({}, [], True), ({"providers": []}, [], False),
                                       ({}, ["--no-vendors"], False)):
            self.config(**keys)
            self.gate("run", "--device", "cuda:0", "--library", HOST, "--worker", worker, *options)
            self.assertEqual("libcublas_provider.so" in read_file(self.path("asked")), vendors)

    def test_paths_are_relative_to_the_file(self):
        self.config(library="l.so", baselines="/absolute", suite="own/suite.json")
        shown = self.shown(folder="below/deeper")
        self.assertEqual(shown["library"], ("../../l.so", "../../gate.json"))
        self.assertEqual(shown["baselines"], ("/absolute", "../../gate.json"))
        self.assertEqual(shown["suite"], ("../../own/suite.json", "../../gate.json"))

    def test_the_name_of_a_suite_is_no_path(self):
        self.config(suite="smoke")
        self.assertEqual(self.shown(folder="below")["suite"], ("smoke", "../gate.json"))

    def test_the_nearest_file_counts(self):
        self.config(database="far.db")
        self.config(database="near.db", name="below/gate.json")
        self.assertEqual(self.shown(folder="below/deeper")["db"], ("../near.db", "../gate.json"))

    def test_a_file_outside_of_the_repository_does_not_count(self):
        subprocess.run(["git", "init", "-q", self.path("below")], check=True)
        self.config(database="far.db")
        self.assertEqual(self.shown(folder="below/deeper")["db"], ("./gate.db", "default"))

    def test_a_source_that_is_newer_than_the_library_is_named(self):
        library = write_file(self.path("build/l.so"), "no library: nothing is measured")
        other = write_file(self.path("build/other.so"), "neither")
        source = write_file(self.path("src/\u00e4.cu"), "")
        older = write_file(self.path("src/\u00fc.cu"), "")
        write_file(self.path("src/note.txt"), "")
        said = ("gate: src/\u00e4.cu is newer than build/l.so: if the library is built from it, "
                "build ")
        for tracked, changed, options, env, build, expected in (
                (False, 20, (), {}, "", ""),  # git knows it not
                (True, 10, (), {}, "", ""),
                (True, 20, (), {}, "", said + "first\n"),
                (True, 20, (), {}, "make it", said + "first: make it\n"),
                (True, 20, (), {"CI": "true"}, "make it", ""),
                (True, 20, ("--library", other), {}, "", "")):
            self.config(library="build/l.so", **({"build": build} if build else {}))
            if tracked:
                subprocess.run(["git", "-C", self.folder, "add", "src"], check=True)
            for file, time in ((library, 10), (other, 10), (source, changed),
                               (older, changed - 5)):
                os.utime(file, (time, time))
            for command in ("run", "verify"):
                done = self.gate(command, "--device", "host", *options, **env)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertEqual("".join(re.findall("gate: .*\n", done.stderr)), expected)

    def assert_refused(self, message, *arguments):
        done = self.gate("run", *arguments)
        self.assertEqual((done.returncode, done.stdout), (64, ""))
        self.assertIn(message, done.stderr)

    def test_a_key_that_is_unknown(self):
        self.config('{"schema": "gate-config/1",\n "libary": "x.so"}')
        self.assert_refused("gate.json:2:2: ")

    def test_a_report_says_what_was_refused(self):
        report = self.path("r.json")
        for config, options, message in (
                ('{"schema": "gate-config/1"}', ("--threshold", "2"),
                 "--threshold is '2', expected a percentage"),
                ('{"schema": "gate-config/1",\n "libary": "x.so"}', (), "gate.json:2:2: ")):
            self.config(config)
            self.assert_refused(message, *options, "--report", "json=" + report)
            said = json.loads(read_file(report))["message"]
            self.assertTrue(said.startswith("nothing was measured: " + message), said)

    def test_a_report_is_no_configuration(self):
        self.config('{"schema": "gate-run/1"}')
        self.assert_refused("gate-config/1")

    def test_help_is_not_kept_back_by_a_broken_file(self):
        self.config("{")
        self.assertEqual(self.gate("run", "--help").returncode, 0)

    def test_a_wrong_value_names_option_value_and_form(self):
        for option, value, form in (
                ("--threshold", "3", "such as 3%"), ("--seed", "zz", "1 to 16 hex digits"),
                ("--report", "markdown", "FORMAT=FILE"), ("--budget", "x", "a number from 1 to"),
                ("--db", "", "FILE")):
            with self.subTest(option):
                self.assert_refused(f"{option} is '{value}', expected", option, value)
                self.assert_refused(form, option, value)


class Environment(Gate):
    def test_doctor_and_documentation_have_one_table(self):
        page = read_file(os.path.join(ROOT, "docs", "ci.md"))
        documented = re.findall(r"^\| `([A-Z_]+)` \| (.*) \|$", page, re.MULTILINE)
        done = subprocess.run([GATE, "doctor", "--device", "host"], env={}, check=True,
                              stdout=subprocess.PIPE, text=True)
        printed = re.findall(r"^  (\w+) +(.*)$", done.stdout.split("\nenvironment\n")[1],
                             re.MULTILINE)
        self.assertEqual(printed, documented)

    def test_doctor_prints_no_token(self):
        done = self.gate("doctor", "--device", "host", GATE_TOKEN="kg_secret", GATE_DB="x.db")
        self.assertNotIn("kg_secret", done.stdout)
        self.assertIn("x.db;", done.stdout)

    def test_doctor_tells_what_is_empty_from_what_is_not_set(self):
        for value, shown in (("", r"\(empty\); "), ("1,2", "1,2; ")):
            done = self.gate("doctor", "--device", "host", CUDA_VISIBLE_DEVICES=value)
            self.assertRegex(done.stdout, rf"\n  CUDA_VISIBLE_DEVICES +{shown}the GPUs that")

    def judged(self):
        done = self.gate("doctor", "--device", "host")
        self.assertEqual(done.returncode, 0, done.stderr)
        return re.search(r"\nlibrary to test\n(.*?)\nfiles\n", done.stdout, re.DOTALL).group(1)

    def judged_json(self):
        done = self.gate("doctor", "--device", "host", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["library"]

    def test_doctor_opens_the_providers_of_gate_json(self):
        write_file(self.path("gate.json"), json.dumps({
            "schema": "gate-config/1", "providers": ["nope.so", mutant("wrong_abi")]}))
        said = self.gate("doctor", "--device", "host").stdout
        self.assertIn("nope           absent: cannot read kernel library 'nope.so'", said)
        done = self.gate("doctor", "--device", "host", "--json")
        self.assertEqual([a["provider"] for a in json.loads(done.stdout)["absent"]],
                         ["nope", "wrong_abi"])

    def test_what_doctor_says_of_a_library_cannot_speak_to_the_terminal(self):
        done = self.gate("doctor", "--device", "host", "--library", "a\x1b[31m.so")
        self.assertIn("cannot read kernel library 'a\ufffd[31m.so'", done.stdout)
        self.assertNotIn("\x1b", done.stdout)

    def test_doctor_looks_at_the_library_of_gate_json(self):
        attention = {"op": "attention_fwd", "dtype": "fp16", "b": 1, "h": 1, "s": 8,
                     "causal": False}
        suite = {"schema": "gate-suite/1", "name": "own", "cases": [
            dict(attention, d=64), dict(attention, d=1024)]}
        for name, content in (("suite.json", suite), ("gate.json", {
                "schema": "gate-config/1", "library": "l.so", "suite": "suite.json"})):
            write_file(self.path(name), json.dumps(content))
        self.assertIn("cannot read kernel library 'l.so'", self.judged())
        absent = self.judged_json()
        self.assertIn("cannot read kernel library 'l.so'", absent["message"])
        self.assertIsNone(absent["provider"])
        shutil.copy(mutant("wrong_abi"), self.path("l.so"))
        self.assertIn("it has kernel ABI 3, this gate speaks 2", self.judged())
        shutil.copy(HOST, self.path("l.so"))
        self.assertRegex(
            self.judged(), r"l\.so: opens; provider host, version \S+, ABI 2, sha256 \S+\n"
            r"  suite +suite\.json: 2 cases, 1 not served: attention_fwd/\S+d1024\S*$")
        opened = self.judged_json()
        self.assertEqual(
            [opened[key] for key in ("file", "message", "provider", "suite", "suite_message",
                                     "cases", "not_served")],
            ["l.so", None, "host", "suite.json", None, 2,
             ["attention_fwd/fp16/b1-h1-s8-d1024/full"]])
        self.assertRegex(opened["sha256"], "^[0-9a-f]{64}$")
        os.remove(self.path("suite.json"))
        self.assertIn("suite          suite.json: cannot open", self.judged())
        self.assertIn("cannot open", self.judged_json()["suite_message"])
        os.remove(self.path("gate.json"))
        self.assertIsNone(self.judged_json())


if __name__ == "__main__":
    unittest.main()
