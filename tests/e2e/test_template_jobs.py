# SPDX-License-Identifier: Apache-2.0
"""The scripts of the jobs that `gate init` writes and of ci/templates, run as the CI systems do."""

import contextlib
import hashlib
import json
import os
import re
import subprocess
import unittest

from fake_services import HEAD, TOKEN, GitHub, GitLab, InJob
from fake_tracker import TOKEN as TRACKER_TOKEN, Tracker
from harness import GATE, PATIENCE, ROOT, read_file, sample_run, write_file

CHECK = os.path.join(ROOT, "tests", "templates", "check.mjs")
MODULES = os.path.join(ROOT, "tests", "templates", "node_modules", ".package-lock.json")
TEMPLATES = os.path.join(ROOT, "ci", "templates")
SERVER = "https://gate.example.org"


reads_yaml = unittest.skipUnless(os.path.isfile(MODULES), "npm has not brought a reader of YAML")


class Jobs(InJob):
    @classmethod
    def setUpClass(cls):
        cls.run_document = sample_run(HEAD)
        cls.run_document.update(verdict="regression", exit_code=1)
        cls.run_document["cases"] = [case for case in cls.run_document["cases"]
                                     if case["verdict"] != "wrong"]
        red = next(c for c in cls.run_document["cases"] if c["verdict"] == "regression")
        red["reason"] = "slower by 12 %"
        cls.page = f"{SERVER}/#/run/{cls.run_document['uuid']}"
        cls.case = red["id"]
        cls.annotation = ("::error title=Kernel Gate%3A regression::"
                          f"{cls.case}: slower by 12 %25\n")

    def setUp(self):
        super().setUp()
        subprocess.run(["git", "init", "-q", "-b", "main", self.folder], check=True)
        for name, value in (("user.name", "A"), ("user.email", "a@example")):
            subprocess.run(["git", "-C", self.folder, "config", name, value], check=True)
        self.env.update(GATE=GATE, GATE_SERVER=SERVER, GITHUB_STEP_SUMMARY=self.path("summary"),
                        GITHUB_OUTPUT=self.path("output"))

    def git(self, *arguments):
        return subprocess.run(["git", "-C", self.folder, *arguments], check=True,
                              capture_output=True, text=True).stdout

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        write_file(self.path(name), text)
        return self.path(name)

    def read(self, name):
        return read_file(self.path(name))

    def init(self, system, folder=""):
        os.makedirs(self.path(folder), exist_ok=True)
        subprocess.run([GATE, "init", "--force", "--ci", system], cwd=self.path(folder),
                       check=True, capture_output=True)

    def yaml(self, path):
        done = subprocess.run(["node", CHECK, "json", self.path(path)], capture_output=True,
                              text=True, check=True, timeout=PATIENCE)
        return json.loads(done.stdout)

    def component(self, folder=""):
        """With its inputs filled in."""
        text = read_file(os.path.join(TEMPLATES, "gitlab-component", "kernel-gate.yml"))
        for name, value in (("gate", GATE), ("args", ""), ("build", "true"), ("stage", "test"),
                            ("tag", "gpu"), ("wait", "60"), ("folder", folder)):
            text = text.replace(f"$[[ inputs.{name} ]]", value)
        return self.yaml(self.write("component.yml", text))

    def shell(self, script, folder="", **env):
        script = "\n".join(script) if isinstance(script, list) else script
        done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", script], cwd=self.path(folder),
                              env={**self.env, **env}, capture_output=True, text=True, check=False,
                              timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def tracker(self):
        """Of which the library of the run is wanted: it is slower, and may be accepted."""
        tracker = self.start(Tracker())
        self.env.update(GATE_SERVER=tracker.url, HOME=self.path("home"))
        return tracker

    def outcome(self, folder=""):
        """What the measuring job leaves to the other one."""
        run = json.loads(json.dumps(self.run_document))
        run["libraries"][0]["sha256"] = hashlib.sha256(b"library").hexdigest()
        self.write(folder + "gate-run.json", json.dumps(run))
        self.write(folder + "gate-library.so", "library")

    def assert_sent(self, tracker):
        self.assertEqual(list(tracker.runs), [self.run_document["uuid"]])
        self.assertEqual(list(tracker.artifacts.values()), [b"library"])

    def fake_run(self, exit_code=0):
        """A gate whose runs leave the red report; all other commands are the gate's."""
        self.write("red.json", json.dumps(self.run_document))
        path = self.write("bin/gate", f"""#!/bin/sh
[ "$1" = run ] || exec {GATE} "$@"
echo "$*" >> {self.path("asked")}
for word; do case $word in
json=*) cp {self.path("red.json")} "${{word#*=}}" ;;
markdown=*) echo the table > "${{word#*=}}" ;;
esac; done
exit {exit_code}
""")
        os.chmod(path, 0o755)
        return path


@reads_yaml
class OnGitHub(Jobs):
    def steps(self, path, job):
        return {step.get("name"): step for step in self.yaml(path)["jobs"][job]["steps"]}

    def test_what_is_red_becomes_annotations(self):
        self.init("github")
        step = self.steps(".github/workflows/kernel-gate.yml", "gate")["Summary"]
        self.write("gate.md", "the table")
        self.write("build/libmykernels.so", "library")
        self.write("gate-run.json", json.dumps(self.run_document))
        self.assertIn(self.annotation, self.shell(step["run"]))
        self.assertEqual(self.read("summary"), "the table")
        self.assertEqual(self.read("gate-library.so"), "library")

    def test_a_job_without_a_checkout_passes_nothing_on(self):
        """What lies in the folder then is of the job before, on a runner that stays."""
        self.init("github")
        steps = self.yaml(".github/workflows/kernel-gate.yml")["jobs"]["gate"]["steps"]
        checkout, = (s for s in steps if s.get("uses", "").startswith("actions/checkout@"))
        self.assertEqual(checkout["id"], "checkout")
        always = [step["if"] for step in steps if "always()" in step.get("if", "")]
        self.assertEqual(always, ["always() && steps.checkout.outcome == 'success'"] * 2)

    def test_the_baselines_of_a_folder_are_proposed(self):
        """What GitHub does with paths and folders is done here by hand."""
        self.init("github", "gpu")
        workflow = self.yaml(".github/workflows/kernel-gate.yml")
        self.assertEqual(workflow["defaults"]["run"]["working-directory"], "./gpu/")
        step, = (s for s in workflow["jobs"]["baselines"]["steps"] if "run" in s)
        self.write("temp/measured/baselines/nvidia-h200.json", "{}")
        self.write("bin/gh", "#!/bin/sh\n")
        os.chmod(self.path("bin/gh"), 0o755)
        subprocess.run(["git", "init", "-q", "--bare", self.path("origin")], check=True)
        self.git("remote", "add", "origin", self.path("origin"))
        self.git("commit", "-q", "--allow-empty", "-m", "first")
        self.shell(step["run"], "gpu", RUNNER_TEMP=self.path("temp"),
                   PATH=f"{self.path('bin')}:{self.env['PATH']}")
        self.assertEqual(self.git("ls-tree", "-r", "--name-only", "kernel-gate/baselines"),
                         "gpu/baselines/nvidia-h200.json\n")

    def test_a_run_links_to_the_server_where_there_is_one(self):
        self.init("github")
        script = self.steps(".github/workflows/kernel-gate.yml", "gate")["Gate"]["run"]
        script = script.replace("${{ github.event_name == 'push' && '--accept-new --ratchet' || "
                                "'' }}", "")
        self.env["GATE"] = self.fake_run()
        self.shell(script)
        self.shell(script, GATE_SERVER="")
        asked = self.read("asked").splitlines()
        self.assertEqual(["--link " + SERVER in line for line in asked], [True, False])

    def test_defaults_have_no_expression(self):
        """GitHub refuses a workflow that has one there."""
        for folder in (".", "gpu"):
            self.init("github", folder)
            for name in os.listdir(self.path(".github/workflows")):
                workflow = self.yaml(f".github/workflows/{name}")
                jobs = workflow["jobs"].values()
                for part in (workflow, *jobs):
                    self.assertNotIn("${{", json.dumps(part.get("defaults")), name)

    def test_a_build_that_failed_is_no_fault_of_the_second_job(self):
        self.init("github")
        for name in ("Push to the tracking server", "Comment"):
            step = self.steps(".github/workflows/kernel-gate-comment.yml", "comment")[name]
            self.assertEqual(step["working-directory"], "${{ runner.temp }}")
            self.shell(step["run"], GATE="false")

    def test_the_job_that_runs_the_change_has_no_secret(self):
        self.init("github")
        workflow = self.yaml(".github/workflows/kernel-gate.yml")
        self.assertEqual(workflow["permissions"], {"contents": "read"})
        with_code = {name for name, job in workflow["jobs"].items()
                     if re.search(r'\$GATE\W', json.dumps(job))}
        with_secrets = {name for name, job in workflow["jobs"].items()
                        if re.search(r"secrets|github\.token|permissions", json.dumps(job))}
        self.assertEqual((with_code, with_secrets), ({"gate"}, {"baselines"}))
        checkout, = (step for step in workflow["jobs"]["gate"]["steps"]
                     if step.get("uses", "").startswith("actions/checkout"))
        self.assertIs(checkout["with"]["persist-credentials"], False)
        second = self.read(".github/workflows/kernel-gate-comment.yml")
        self.assertNotIn("actions/checkout", second)

    def test_the_second_job_sends_the_run_and_its_library(self):
        self.init("github")
        steps = self.steps(".github/workflows/kernel-gate-comment.yml", "comment")
        step = steps["Push to the tracking server"]
        # One for pull requests and the main branch: a red run's library may be accepted.
        self.assertEqual(step["env"]["GATE_TOKEN"], "${{ secrets.GATE_TOKEN }}")
        event = "${{ github.event.workflow_run.head_%s }}"
        self.assertEqual((step["env"]["HEAD"], step["env"]["BRANCH"]),
                         (event % "sha", event % "branch"))
        tracker = self.tracker()
        self.outcome("report/")
        env = {**step["env"], "GATE_TOKEN": TRACKER_TOKEN, "HEAD": HEAD}
        refused = subprocess.run(["bash", "-e", "-c", step["run"]], cwd=self.folder, check=False,
                                 env={**self.env, **env, "BRANCH": "faster"}, capture_output=True,
                                 text=True)
        self.assertIn("is of branch 'main', not of 'faster'", refused.stderr)
        self.assertEqual(tracker.runs, {})
        self.shell(step["run"], **{**env, "BRANCH": "main"})
        self.assert_sent(tracker)

    def test_the_comment_links_to_the_run(self):
        self.init("github")
        step = self.steps(".github/workflows/kernel-gate-comment.yml", "comment")["Comment"]
        service = self.start(GitHub(HEAD))
        service.open_pull(12, HEAD)
        self.write("report/gate-run.json", json.dumps(self.run_document))
        event = {"workflow_run": {"head_sha": HEAD, "head_branch": "faster",
                                  "head_repository": {"full_name": "alice/kernels"}}}
        env = {**service.variables(), "GITHUB_EVENT_NAME": "workflow_run",
               "GITHUB_EVENT_PATH": self.write("event.json", json.dumps(event))}
        self.shell(step["run"], **env)
        self.assertIn(self.page, service.comments[0]["body"])
        self.shell(step["run"], **env, GATE_SERVER="")
        self.assertNotIn("://", service.comments[0]["body"])

    def test_the_action_does_so_too(self):
        path = os.path.join(TEMPLATES, "github-action", "action.yml")
        action = self.yaml(path)
        self.assertEqual(action["inputs"]["wait"]["default"], "3000")
        step = action["runs"]["steps"][0]
        env = {"GATE": self.fake_run(), "ARGS": "--device host", "LINK": SERVER, "WAIT": "7"}
        self.assertIn(self.annotation, self.shell(step["run"], **env))
        self.assertIn("run --wait 7 --device host --link " + SERVER, self.read("asked"))
        self.assertEqual(self.read("output"), "exit-code=0\n")

    def test_the_action_passes_on_nothing_of_another_job(self):
        step = self.yaml(os.path.join(TEMPLATES, "github-action", "action.yml"))["runs"]["steps"][0]
        for name in ("gate.md", "gate.xml", "gate-run.json"):
            self.write("kernel-gate/" + name, "old")
        env = {"GATE": "/nonexistent/gate", "ARGS": "", "LINK": ""}
        done = subprocess.run(["bash", "-e", "-c", step["run"]], cwd=self.folder, check=False,
                              env={**self.env, **env}, capture_output=True)
        self.assertEqual(done.returncode, 127)
        self.assertEqual(os.listdir(self.path("kernel-gate")), [])


@reads_yaml
class OnGitLab(Jobs):
    def pipelines(self):
        """And the folder that they measure in."""
        self.init("gitlab", "gpu")
        return ((self.yaml(".gitlab-ci.yml"), "gpu/"), (self.component("gpu/"), "gpu/"),
                (self.component(), ""))

    def test_what_is_red_becomes_annotations(self):
        for pipeline, folder in self.pipelines():
            job = pipeline["kernel-gate"]
            name = job["artifacts"]["reports"]["annotations"]
            self.write(folder + "gate-run.json", json.dumps(self.run_document))
            self.shell(job["after_script"], GATE_SERVER="")
            self.assertFalse(os.path.exists(self.path(name)))
            self.write(folder + "build/libmykernels.so", "library")
            self.shell(job["after_script"])
            links = [link["external_link"] for link in json.loads(self.read(name))["Kernel Gate"]]
            self.assertEqual(links[0]["url"], self.page)
            self.assertEqual(links[1]["label"], f"regression: {self.case}")
            os.remove(self.path(name))
        self.assertEqual(self.read("gpu/gate-library.so"), "library")

    def test_the_comment_links_to_the_run(self):
        for pipeline, folder in self.pipelines():
            self.write(folder + "gate-run.json", json.dumps(self.run_document))
            service = self.start(GitLab(HEAD))
            script = pipeline["kernel-gate-comment"]["script"]
            self.shell(script, **service.variables())
            self.assertIn(self.page, service.comments[0]["body"])
            self.shell(script, **service.variables(), GATE_SERVER="")
            self.assertNotIn("://", service.comments[0]["body"])

    def test_the_job_that_runs_the_change_refuses_to_have_a_secret(self):
        names = ["GITLAB_TOKEN", "GATE_TOKEN", "GATE_GIT_TOKEN"]
        for pipeline, _ in self.pipelines():
            job = pipeline["kernel-gate"]
            self.assertNotIn("environment", job)
            self.shell(job["before_script"])
            for name in names:
                done = subprocess.run(["bash", "-e", "-c", "\n".join(job["before_script"])],
                                      env={**self.env, name: "x"}, cwd=self.folder, check=False,
                                      capture_output=True, text=True)
                self.assertEqual(done.returncode, 1)
                self.assertIn("environment scope kernel-gate", done.stdout)
            others = [other for name, other in pipeline.items() if name.startswith("kernel-gate-")]
            for other in others:
                self.assertEqual(other["environment"], {"name": "kernel-gate", "action": "access"})
                self.assertNotRegex(json.dumps(other), r"GATE run|/gate run|make ")
        self.assertEqual(len(others), 1)  # of the component, the last

    def test_the_second_job_sends_the_run_and_its_library(self):
        tracker = self.tracker()
        (pipeline, folder), *_ = self.pipelines()
        self.outcome(folder)
        job = pipeline["kernel-gate-comment"]
        env = {name: value for name, value in job["variables"].items() if name != "GATE"}
        env.update(GATE_TOKEN=TRACKER_TOKEN, CI_COMMIT_SHA=HEAD)
        self.shell(job["script"], **env, CI_MERGE_REQUEST_SOURCE_BRANCH_NAME="faster")
        self.assertEqual(tracker.runs, {})
        self.shell(job["script"], **env, CI_COMMIT_BRANCH="main")
        self.assert_sent(tracker)

    def test_the_component_waits_as_long_as_it_is_told(self):
        script = self.component()["kernel-gate"]["script"]
        self.assertIn(f"{GATE} run --wait 60 ", script[-1])

    def test_a_fork_s_merge_request_has_no_job(self):
        for pipeline, _ in self.pipelines():
            for job in (pipeline["kernel-gate"], pipeline["kernel-gate-comment"]):
                rule, = (r["if"] for r in job["rules"] if "merge_request_event" in r["if"])
                self.assertIn("$CI_MERGE_REQUEST_SOURCE_PROJECT_ID == $CI_PROJECT_ID", rule)

    def test_the_second_job_does_nothing_where_nothing_was_measured(self):
        for pipeline, _ in self.pipelines():
            self.shell(pipeline["kernel-gate-comment"]["script"], GITLAB_TOKEN=TOKEN,
                       GATE_TOKEN=TRACKER_TOKEN, CI_MERGE_REQUEST_IID="12")


class OnSlurm(Jobs):
    REPORTS = ("gate.md", "gate.xml", "gate-run.json")

    def job(self, build="true", exit_code=0, **env):
        """After another one that left its reports; its exit code."""
        subprocess.run([GATE, "init", "--force", "--ci", "slurm", "--build", build],
                       cwd=self.folder, check=True, capture_output=True)
        self.fake_run(exit_code)
        for name in self.REPORTS:
            self.write(name, "old")
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.path("asked"))
        return subprocess.run(
            ["bash", "kernel-gate.slurm.sh"], cwd=self.folder, check=False, capture_output=True,
            env={**self.env, "KERNEL_GATE": self.folder, "GATE_SERVER": "", **env}).returncode

    def left(self):
        return [name for name in self.REPORTS if os.path.exists(self.path(name))]

    def test_the_exit_code_is_the_gate_s(self):
        for code in (0, 1, 2, 3, 4, 64, 74):
            self.assertEqual(self.job(exit_code=code), code)
            self.assertEqual(self.read("gate.md"), "the table\n")
            self.assertIn("run --wait 600", self.read("asked"))

    def test_a_job_that_measured_nothing_shows_nothing_of_the_one_before(self):
        for build, env in (("false", {}), ("sh -c 'exit 2'", {}),
                           ("true", {"SLURM_TMPDIR": self.path("none")})):
            self.assertEqual(self.job(build, **env), 74)
            self.assertEqual(self.left(), [])
            self.assertFalse(os.path.exists(self.path("asked")))


if __name__ == "__main__":
    unittest.main()
