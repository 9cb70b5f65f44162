# SPDX-License-Identifier: Apache-2.0
"""The build, the packages script, the installed tree, the runner's tarball and the test runner.

Everything happens in a copy of the tree without its git data, so that the tree itself stays as it
is. The CUDA parts are left out: they take minutes to compile and follow the same rules. So is the
dashboard: it needs npm and a network. The compiler does not optimize here, which takes half of the
time; what is tested otherwise was built with optimization.
"""

import glob
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import unittest
import urllib.error
import urllib.request

ROOT = os.environ.get("KERNEL_GATE_ROOT", os.getcwd())
TREE = None  # the copy
SCRATCH = None
SETTINGS = ("CUDA=0", "WEB=0", "CFLAGS=-O0")
os.environ.pop("LD_PRELOAD", None)  # tests/run's smaller cache is no library that a program needs


def run(*command, cwd=None, env=None, umask=-1):
    return subprocess.run(
        command, cwd=cwd or TREE, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, umask=umask)


def make(*arguments, umask=-1, **more):
    env = {k: v for k, v in os.environ.items() if k not in ("CUDA", "CFLAGS", "LDFLAGS")}
    env.update(more)
    # Not part of the tree that it lies in, if any.
    env["GIT_CEILING_DIRECTORIES"] = os.path.dirname(TREE)
    return run("make", *SETTINGS, *arguments, env=env, umask=umask)


def setUpModule():
    global TREE, SCRATCH
    SCRATCH = tempfile.mkdtemp(prefix="build-test.")
    TREE = os.path.join(SCRATCH, "tree")
    shutil.copytree(
        ROOT, TREE,
        ignore=lambda folder, names: [n for n in names if n in (".git", "node_modules")
                                      or folder == ROOT and n in ("build", "dist")])


def tearDownModule():
    shutil.rmtree(SCRATCH)


def executable(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, 0o755)


class Build(unittest.TestCase):
    """The whole of it, once: later tests use what the first `make` made."""

    @classmethod
    def setUpClass(cls):
        cls.first = make(f"-j{os.cpu_count()}")
        if cls.first.returncode != 0:
            raise AssertionError(cls.first.stdout)

    def rebuilt(self, *arguments):
        """The sources that a `make` compiles."""
        done = make(*arguments)
        self.assertEqual(done.returncode, 0, done.stdout)
        return {line.split()[1] for line in done.stdout.splitlines() if line.startswith("  CC ")}

    def touch(self, name):
        # A moment that no object can be younger than, on any file system.
        path = os.path.join(TREE, name)
        newest = max(os.stat(os.path.join(folder, f)).st_mtime
                     for folder, _, files in os.walk(os.path.join(TREE, "build")) for f in files)
        os.utime(path, (newest + 2, newest + 2))
        self.addCleanup(os.utime, path, (newest - 3600, newest - 3600))

    def test_says_that_cuda_is_left_out(self):
        said = [line for line in self.first.stdout.splitlines() if "left out" in line]
        self.assertEqual(said, [
            "CUDA parts are left out: CUDA=0.",
            "The dashboard is left out: WEB=0."])

    def test_the_server_without_the_dashboard_says_where_the_data_is(self):
        db = os.path.join(SCRATCH, "without.db")
        done = run("build/bin/gate", "import", "--db", db, "tests/data/run-h200.json")
        self.assertEqual(done.returncode, 0, done.stdout)
        server = subprocess.Popen(["build/bin/gate-server", "--db", db, "--listen", "127.0.0.1:0"],
                                  cwd=TREE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(server.wait)
        self.addCleanup(server.stderr.close)
        self.addCleanup(server.kill)
        url = re.search(r"http://\S+", server.stderr.readline()).group()
        with self.assertRaises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(url, timeout=60)
        self.assertEqual(caught.exception.code, 404)
        text = caught.exception.read().decode()
        self.assertIn("WEB=0", text)
        with urllib.request.urlopen(url + re.search(r"/(api\S*csv)", text).group(1),
                                    timeout=60) as response:
            self.assertIn("nvidia-h200", response.read().decode())

    def test_quiet_unless_asked(self):
        self.assertIn("  CC    gate/main.c\n", self.first.stdout)
        self.assertNotIn("-std=c", self.first.stdout)
        self.touch("gate/main.c")
        loud = make("V=1")
        self.assertIn("-std=c", loud.stdout)
        self.assertNotIn("  CC    gate/main.c\n", loud.stdout)

    def test_nothing_is_built_twice(self):
        self.assertEqual(self.rebuilt(), set())

    def test_header_rebuilds_its_users_only(self):
        self.touch("gate/base/gzip.h")
        rebuilt = self.rebuilt()
        self.assertIn("gate/base/gzip.c", rebuilt)
        self.assertNotIn("gate/base/error.c", rebuilt)
        # What it compiled is as new as the clock says, and the header is newer than that.
        os.utime(os.path.join(TREE, "gate/base/gzip.h"), (0, 0))
        self.assertEqual(self.rebuilt(), set())

    def test_flags_rebuild(self):
        """In a folder of its own, or the next test would build all."""
        of_one = ("B=flags", "flags/obj/gate/base/error.c.o")
        flags = "CFLAGS=-O2 -g -DCHANGED_FLAG"
        self.assertEqual(self.rebuilt(*of_one), {"gate/base/error.c"})
        self.assertEqual(self.rebuilt(flags, *of_one), {"gate/base/error.c"})
        self.assertEqual(self.rebuilt(flags, *of_one), set())
        self.assertEqual(self.rebuilt(*of_one), {"gate/base/error.c"})

    def test_a_sanitizer_build_takes_the_cuda_objects_that_are_there(self):
        nvcc = os.path.join(SCRATCH, "nvcc")
        executable(nvcc, f"#!/bin/sh\necho 'release 13.0, TOP={SCRATCH}'\n")
        flags = os.path.join(TREE, "build/cuda/90a/flags")
        env = {k: v for k, v in os.environ.items() if k != "CFLAGS"}
        compiled_with = []
        for sanitize in ("", "address,undefined", "thread"):
            done = run("make", "CUDA=1", "WEB=0", f"NVCC={nvcc}", "CUDA_ARCHS=90a",
                       f"SANITIZE={sanitize}", os.path.relpath(flags, TREE), env=env)
            self.assertEqual(done.returncode, 0, done.stdout)
            with open(flags, encoding="utf-8") as file:
                compiled_with.append(file.read())
        self.assertIn(nvcc, compiled_with[0])
        self.assertEqual(compiled_with, compiled_with[:1] * 3)

    def test_bad_settings_are_refused(self):
        for setting, named in (("SANITIZE=adress", "SANITIZE is 'adress'"),
                               ("CUDA=yes", "CUDA is 'yes'"), ("WEB=2", "WEB is '2'")):
            with self.subTest(setting):
                done = run("make", setting, "help")
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(named, done.stdout)

    def test_warnings_are_errors(self):
        path = os.path.join(TREE, "gate/base/warned.c")
        with open(path, "w", encoding="utf-8") as file:
            file.write("int warned(int x);\nint warned(int x)\n{\n    return 0;\n}\n")
        self.addCleanup(os.remove, path)
        done = make("build/obj/gate/base/warned.c.o")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("unused parameter", done.stdout)

    def test_install_and_uninstall(self):
        root = os.path.join(SCRATCH, "root")
        done = make("install", f"DESTDIR={root}", "PREFIX=/opt/gate", umask=0o077)
        self.assertEqual(done.returncode, 0, done.stdout)
        at = os.path.join(root, "opt/gate")
        for name in ("bin/gate", "bin/gate-server", "lib/kernel-gate/libhost.so",
                     "share/kernel-gate/suites/host.json", "share/man/man1/gate.1",
                     "share/man/man1/gate-server.1",
                     "share/bash-completion/completions/gate",
                     "share/bash-completion/completions/gate-server",
                     "lib/cmake/kernel-gate/kernel-gate-config.cmake",
                     "share/doc/kernel-gate/kernels.md", "share/doc/kernel-gate/ops.md",
                     "share/doc/kernel-gate/CHANGELOG.md",
                     "share/kernel-gate/schemas/run.schema.json"):
            self.assertTrue(os.path.isfile(os.path.join(at, name)), name)
        for folder, _, files in os.walk(at):
            self.assertEqual(os.stat(folder).st_mode & 0o777, 0o755, folder)
            for name in files:
                mode = os.stat(os.path.join(folder, name)).st_mode & 0o777
                self.assertEqual(mode, 0o755 if folder.endswith("/bin") else 0o644, name)
        self.compiles_a_library(at)
        with open(os.path.join(at, "lib/systemd/system/gate-server.service"),
                  encoding="utf-8") as file:
            self.assertIn("ExecStart=/opt/gate/bin/gate-server", file.read())
        version = run(os.path.join(at, "bin/gate"), "--version", cwd="/")
        self.assertEqual(version.returncode, 0, version.stdout)
        self.assertIn("0.2.0", version.stdout)

        keep = os.path.join(at, "share/other")
        executable(keep, "")
        done = make("uninstall", f"DESTDIR={root}", "PREFIX=/opt/gate")
        self.assertEqual(done.returncode, 0, done.stdout)
        left = [os.path.join(folder, name) for folder, folders, files in os.walk(root)
                for name in folders + files]
        self.assertEqual(left, [os.path.join(root, "opt"), at, os.path.join(at, "share"), keep])
        os.remove(keep)
        make("install", f"DESTDIR={root}", "PREFIX=/opt/gate")
        done = make("uninstall", f"DESTDIR={root}", "PREFIX=/opt/gate")
        self.assertEqual((done.returncode, os.listdir(root)), (0, []), done.stdout)

    @unittest.skipUnless(shutil.which("cmake"), "no cmake")
    def test_cmake_finds_the_installed_header(self):
        root = os.path.join(SCRATCH, "cmake-root")
        done = make("install", f"DESTDIR={root}", "PREFIX=/opt/gate")
        self.assertEqual(done.returncode, 0, done.stdout)
        source = os.path.join(SCRATCH, "cmake-source")
        os.mkdir(source)
        with open(os.path.join(source, "library.c"), "w", encoding="utf-8") as file:
            file.write("#include <problem.h>\n"
                       "KG_EXPORT const struct kg_library *kg_library(void) { return 0; }\n")
        with open(os.path.join(source, "CMakeLists.txt"), "w", encoding="utf-8") as file:
            file.write("cmake_minimum_required(VERSION 3.18)\nproject(mine C)\n"
                       "foreach(version 9 0.3 0.1 0.2 0.2.0)\n"
                       "  find_package(kernel-gate ${version} QUIET)\n"
                       "  message(\"${version} ${kernel-gate_FOUND}\")\n"
                       "  unset(kernel-gate_DIR CACHE)\nendforeach()\n"
                       "find_package(kernel-gate REQUIRED)\n"
                       "add_library(mine SHARED library.c)\n"
                       "target_link_libraries(mine PRIVATE kernel-gate::kernel)\n")
        at = os.path.join(SCRATCH, "cmake-build")
        done = run("cmake", "-S", source, "-B", at,
                   "-DCMAKE_PREFIX_PATH=" + os.path.join(root, "opt/gate"))
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(re.findall(r"(?m)^([0-9.]+) (\d)$", done.stdout), [
            ("9", "0"), ("0.3", "0"), ("0.1", "1"), ("0.2", "1"), ("0.2.0", "1")])
        done = run("cmake", "--build", at)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_libraries_show_one_symbol(self):
        shown = run("nm", "-D", "--defined-only", "build/lib/kernel-gate/libhost.so")
        self.assertEqual([line.split()[-1] for line in shown.stdout.splitlines()], ["kg_library"])

    def test_tarball(self):
        """Of this configuration: a library that another one built stays out of it."""
        other = os.path.join(TREE, "build/lib/kernel-gate/libours.so")
        executable(other, "")
        self.addCleanup(os.remove, other)
        done = make("dist", "MUTANTS=")  # which take long to compile
        self.assertEqual(done.returncode, 0, done.stdout)
        packed, = os.listdir(os.path.join(TREE, "dist"))
        self.assertRegex(packed, r"^kernel-gate-0\.2\.0-linux-\w+\.tar\.gz$")
        at = os.path.join(SCRATCH, "unpacked")
        with tarfile.open(os.path.join(TREE, "dist", packed)) as tar:
            tar.extractall(at)
        top, = os.listdir(at)
        for name in ("bin/gate", "lib/kernel-gate/libhost.so", "lib/kernel-gate/libcjson.so.1",
                     "share/kernel-gate/suites/host.json", "README.md", "docs/kernels.md",
                     "docs/ops.md", "docs/bundles.md", "share/kernel-gate/bundle.py",
                     "share/kernel-gate/licences/libcjson.txt", "LICENSE"):
            self.assertTrue(os.path.isfile(os.path.join(at, top, name)), name)
        self.assertFalse(os.path.exists(os.path.join(at, top, "lib/kernel-gate/libours.so")))
        self.compiles_a_library(os.path.join(at, top))
        self.run_with_libc_only(os.path.join(at, top))

    @unittest.skipUnless(shutil.which("dpkg-shlibdeps"), "no dpkg-dev")
    def test_debian_packages(self):
        env = {"SOURCE_DATE_EPOCH": "1700000000", "DEB_MAINTAINER": "A <a@example.org>"}
        self.addCleanup(shutil.rmtree, os.path.join(TREE, "dist"), ignore_errors=True)
        shutil.rmtree(os.path.join(TREE, "dist"), ignore_errors=True)
        refused = run("ci/deb.sh", "v1_2")
        self.assertEqual(refused.returncode, 64, refused.stdout)
        self.assertFalse(os.path.exists(os.path.join(TREE, "dist")))
        done = make("deb", "VERSION=1.2.3-4-gabc", **env)
        self.assertEqual(done.returncode, 0, done.stdout)
        for name, files in (
                ("kernel-gate", ("bin/gate", "lib/kernel-gate/libhost.so",
                                 "share/man/man1/gate.1.gz", "share/pkgconfig/kernel-gate.pc",
                                 "share/doc/kernel-gate/kernels.md",
                                 "share/doc/kernel-gate/CHANGELOG.md")),
                ("kernel-gate-server", ("bin/gate-server", "share/man/man1/gate-server.1.gz",
                                        "lib/systemd/system/gate-server.service",
                                        "share/doc/kernel-gate-server/CHANGELOG.md"))):
            package, = glob.glob(os.path.join(TREE, "dist", name + "_1.2.3+4+gabc_*.deb"))
            listed = run("dpkg-deb", "--contents", package).stdout
            for file in files:
                self.assertIn(f" ./usr/{file}\n", listed)
            self.container_takes(name, listed)
            self.assertIn("libc6", run("dpkg-deb", "--field", package, "Depends").stdout)

    def container_takes(self, name, listed):
        """Its file copies one package, and starts a program of it."""
        short = "server" if name.endswith("server") else "gate"
        with open(os.path.join(TREE, "ci", short + ".Dockerfile"), encoding="utf-8") as file:
            said = file.read()
        copied, = re.findall(r"(?m)^COPY (\S+) ", said)
        package, = glob.glob(os.path.join(TREE, copied))
        self.assertTrue(os.path.basename(package).startswith(name + "_"), package)
        program, = re.findall(r'(?m)^ENTRYPOINT \["(\S+)"\]', said)
        self.assertIn(f" ./usr/bin/{program}\n", listed)

    def compiles_a_library(self, at):
        """With what pkg-config says of kernel.h, wherever the tree lies."""
        env = dict(os.environ, PKG_CONFIG_PATH=os.path.join(at, "lib/pkgconfig"))
        version = run("pkg-config", "--modversion", "kernel-gate", env=env).stdout
        self.assertTrue(version.startswith("0.2.0"), version)
        flags = run("pkg-config", "--cflags", "kernel-gate", env=env).stdout
        source = os.path.join(SCRATCH, "library.c")
        with open(source, "w", encoding="utf-8") as file:
            file.write("#include <problem.h>\n"
                       "KG_EXPORT const struct kg_library *kg_library(void) { return 0; }\n")
        done = run("gcc", "-std=c11", "-Wall", "-Werror", *flags.split(), "-shared", "-fPIC",
                   source, "-o", os.path.join(SCRATCH, "library.so"), cwd=SCRATCH)
        self.assertEqual(done.returncode, 0, done.stdout)

    def run_with_libc_only(self, unpacked):
        """Runs the packed gate in a root that holds it and the C library."""
        if os.geteuid() != 0:
            self.skipTest("chroot needs root")
        root = os.path.join(SCRATCH, "bare")
        shutil.copytree(unpacked, os.path.join(root, "gate"))
        os.makedirs(os.path.join(root, "tmp"))
        listed = run("ldd", os.path.join(unpacked, "bin/gate"))
        loader = None
        for word in listed.stdout.split():
            if not word.startswith("/") or word.startswith(unpacked):
                continue
            name = os.path.basename(word)
            self.assertRegex(name, r"^(ld-linux.*|lib(c|m|dl|pthread|rt))\.so\.\d$")
            loader = word if name.startswith("ld-linux") else loader
            at = root + word
            os.makedirs(os.path.dirname(at), exist_ok=True)
            shutil.copy(word, at)
        self.assertIsNotNone(loader, listed.stdout)
        # The loader and the gate ask it where the program lies.
        os.makedirs(os.path.join(root, "proc/self"))
        os.symlink("/gate/bin/gate", os.path.join(root, "proc/self/exe"))

        def inside(*arguments):
            return run("chroot", root, "/gate/bin/gate", *arguments)

        version = inside("--version")
        self.assertEqual(version.returncode, 0, version.stdout)
        self.assertIn("0.2.0", version.stdout)
        # A missing GPU is found out, not stumbled over.
        refused = inside("run", "--suite", "smoke", "--device", "cuda:0", "--db", "/tmp/gate.db")
        self.assertEqual(refused.returncode, 4, refused.stdout)


class Help(unittest.TestCase):
    def test_lists_the_targets(self):
        said = run("make", "help")
        self.assertEqual(said.returncode, 0, said.stdout)
        listed = re.findall(r"(?m)^  ([a-z-]+) ", said.stdout)
        self.assertEqual(listed[:5], ["all", "run", "serve", "test", "install"])
        self.assertLessEqual({"test-gpu", "lint", "format", "dist", "deb", "uninstall", "deps",
                              "clean", "help", "test-long"}, set(listed))

    def test_every_listed_target_is_there(self):
        said = run("make", "help").stdout.split("Settings", maxsplit=1)[0]
        done = make("-nk", *re.findall(r"(?m)^  ([a-z-]+) ", said))
        self.assertEqual(re.findall("No rule to make.*", done.stdout), [])


class Packages(unittest.TestCase):
    """ci/deps.sh on machines that are made of fake commands."""

    def machine(self, commands):
        folder = tempfile.mkdtemp(dir=SCRATCH)
        log = os.path.join(folder, "log")
        for name in ("sh", "env", "grep", "mktemp", "rm", "cat"):
            os.symlink(shutil.which(name), os.path.join(folder, name))
        for name, text in commands.items():
            executable(os.path.join(folder, name), f'#!/bin/sh\necho "{name} $*" >>{log}\n{text}\n')
        return folder, log

    def deps(self, folder, *arguments):
        return run(os.path.join(TREE, "ci/deps.sh"), *arguments, env={"PATH": folder})

    def calls(self, log):
        if not os.path.exists(log):
            return []
        with open(log, encoding="utf-8") as file:
            return file.read().splitlines()

    def test_prints_one_command_without_rights(self):
        folder, log = self.machine({"id": "echo 1000", "apt-get": "", "gcc": ""})
        done = self.deps(folder, "build")
        self.assertEqual(done.returncode, 1)
        commands = [line.strip() for line in done.stdout.splitlines() if line.startswith(" ")]
        self.assertEqual(commands, [
            "sudo apt-get install -y --no-install-recommends pkg-config libmicrohttpd-dev "
            "libgnutls28-dev libsqlite3-dev libcjson-dev libexpat1-dev libmd-dev zlib1g-dev "
            "libzstd-dev"])
        self.assertFalse([c for c in self.calls(log) if c.startswith("apt-get")])

    def test_installs_as_root_what_is_missing(self):
        folder, log = self.machine({
            "id": "echo 0", "apt-get": "", "gcc": "",
            "pkg-config": '[ "$2" != sqlite3 ]'})
        done = self.deps(folder, "build")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(done.stdout, "Installing libsqlite3-dev\n")
        installs = [c for c in self.calls(log) if "install" in c]
        self.assertEqual(len(installs), 1)
        self.assertIn(" libsqlite3-dev ", installs[0] + " ")
        self.assertNotIn("libcjson-dev", installs[0])

    def test_what_takes_minutes_shows_where_it_is(self):
        """As if 20 seconds passed twice during the installation."""
        folder, log = self.machine({
            "id": "echo 0", "gcc": "", "pkg-config": '[ "$2" != sqlite3 ]', "sleep": "",
            "apt-get": '[ "$1" != install ] || { echo Unpacking npm; : >$0.begun; '
                       'until [ -e $0.seen ]; do :; done; }',
            "tail": 'at=${0%tail}apt-get; [ ! -e $at.begun ] || '
                    '{ [ ! -e $at.once ] || : >$at.seen; : >$at.once; }; cat $3'})
        done = self.deps(folder, "build")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("\n    Unpacking npm\n", done.stdout)

    def test_check_installs_nothing(self):
        folder, log = self.machine({"id": "echo 0", "apt-get": "", "gcc": ""})
        done = self.deps(folder, "--check", "build")
        self.assertEqual(done.returncode, 1)
        self.assertNotIn("sudo", done.stdout)
        self.assertFalse([c for c in self.calls(log) if c.startswith("apt-get")])

    def test_failed_installation_is_told(self):
        folder, _ = self.machine({
            "id": "echo 0", "gcc": "",
            "apt-get": '[ "$1" = update ] || { echo "E: no space"; exit 100; }'})
        done = self.deps(folder, "build")
        self.assertEqual(done.returncode, 1)
        self.assertIn("E: no space", done.stdout)

    def test_quiet_when_all_is_there(self):
        folder, log = self.machine({
            "id": "echo 1000", "gcc": "", "pkg-config": "", "apt-get": ""})
        done = self.deps(folder, "build")
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertFalse([c for c in self.calls(log) if c.startswith("apt-get")])

    def test_what_checks_the_packages(self):
        folder, log = self.machine({"id": "echo 0", "apt-get": ""})
        self.assertEqual(self.deps(folder, "packages").returncode, 0)
        self.assertIn("apt-get install -y --no-install-recommends lintian "
                      "-o DPkg::Lock::Timeout=300", self.calls(log))
        with open(os.path.join(TREE, ".ci/run"), encoding="utf-8") as file:
            self.assertIn("ci/deps.sh packages", file.read())

    def test_usage(self):
        self.assertEqual(run("ci/deps.sh").returncode, 64)
        self.assertEqual(run("ci/deps.sh", "everything").returncode, 64)


class Nvcc(unittest.TestCase):
    """What ptxas says and ci/nvcc.sh makes of it."""

    def compile(self, said, *options, status=0):
        compiler = os.path.join(SCRATCH, "fake-nvcc")
        executable(compiler, f"#!/bin/sh\ncat <<'END'\n{said}\nEND\nexit {status}\n")
        return run("ci/nvcc.sh", *options, os.path.join(SCRATCH, "nvcc.log"), compiler)

    ENTRY = "ptxas info    : Compiling entry function 'fast_kernel' for 'sm_90a'\n"

    def test_clean(self):
        done = self.compile(
            self.ENTRY + "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads",
            "--spills", "0")
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_spills(self):
        said = self.ENTRY + "    96 bytes stack frame, 128 bytes spill stores, 96 bytes spill loads"
        done = self.compile(said)
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        done = self.compile(said, "--spills", "128")
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        done = self.compile(said, "--spills", "127")
        self.assertEqual(done.returncode, 1)
        self.assertIn("fast_kernel", done.stdout)
        self.assertIn("128 bytes spill stores", done.stdout)

    def test_remarks_that_cost_speed(self):
        for code in ("C7508", "C7510", "C7515", "C7519"):
            done = self.compile(f"ptxas info    : ({code}) Potential Performance Loss",
                                "--spills", "0")
            self.assertEqual(done.returncode, 1)
            self.assertIn(code, done.stdout)

    def test_errors_without_the_chatter(self):
        done = self.compile(self.ENTRY + "kernel.cu(3): error: no", status=2)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout, "kernel.cu(3): error: no\n")


class SourceRules(unittest.TestCase):
    """ci/check_sources.py finds what it is for."""

    LICENCE = "/* SPDX-License-Identifier: Apache-2.0 */\n"

    def findings(self, name, text, licence=LICENCE):
        path = os.path.join(TREE, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(licence + text)
        done = run("python3", "ci/check_sources.py", name)
        os.remove(path)
        self.assertEqual(done.returncode, 1 if done.stdout else 0)
        return done.stdout

    def test_a_file_names_its_licence(self):
        self.assertIn("no line 'SPDX", self.findings("gate/x.c", "int x;\n", licence=""))

    def test_each_rule(self):
        faults = (
            ("gate/x.c", "    str" "cpy(a, b);\n", "strcpy is banned"),
            ("gate/x.c", "    exit(1);\n", "exit() below main"),
            ("gate/x.c", '    f("SELECT x "\n      "FROM t WHERE y = %d", y);\n',
             "SQL in a format"),
            ("gate/x.c", "/* TO" "DO */\n", "do it or file it"),
            ("gate/x.c", '    open("/ho' 'me/me/x");\n', "path of one machine"),
            ("gate/x.c", "x" * 101 + "\n", "101 columns"),
            ("gate/x.c", "x;  \n", "blanks at the end"),
            ("gate/x.c", "x;", "no newline"),
            ("gate/x.h", "#ifndef X_H\n#define X_H\n#endif\n", "expected GATE_X_H"),
            ("docs/x.md", "x" * 151 + "\n", "151 columns of prose"),
        )
        for name, text, what in faults:
            with self.subTest(what):
                self.assertIn(what, self.findings(name, text))

    def test_what_is_allowed(self):
        for name, text in (
                ("gate/x.c", "    // str" "cpy(a, b) is banned\n"),
                ("gate/x.c", "    atexit(f);\n    x->exit(1);\n"),
                ("gate/x.c", '    f("SELECT x FROM t WHERE y = ?", "%d");\n'),
                ("gate/x.h", "#ifndef GATE_X_H\n#define GATE_X_H\n#endif\n"),
                ("docs/x.md", "x" * 150 + "\n```\n" + "y" * 200 + "\n```\n"),
                ("docs/x.md", "| " + "z" * 200 + " |\n")):
            with self.subTest(text):
                self.assertEqual(self.findings(name, text), "")

    def test_folders(self):
        """Includes are written from the root and go in one direction; a kernel takes few files."""
        tree = tempfile.mkdtemp(dir=SCRATCH)
        headers = [f"kernels/x/h{i}.h" for i in range(12)]
        guards = [re.sub(r"\W", "_", h).upper() for h in headers]
        for name, text in (
                ("gate/base/x.c", '#include "gate/run/y.h"\n'),
                ("gate/base/z.c", '#include "server/s.h"\n'),
                ("gate/run/y.h", "#ifndef GATE_RUN_Y_H\n#define GATE_RUN_Y_H\n#endif\n"),
                ("gate/run/z.c", '#include "gate/base/x.h"\n#include "y.h"\n'),
                ("gate/run/o.c", "int o = KG_OP_CONV;\nconst char *n = \"conv\"; /* \"conv\" */\n"),
                ("kernels/ops/conv.c", 'struct op op_conv = {.name = "conv"};\n'),
                ("kernels/x/few.cu", "".join(f'#include "{h}"\n' for h in headers[:11])),
                ("kernels/x/many.cu", f'#include "{headers[11]}"\n'),
                *((h, f"#ifndef {g}\n#define {g}\n" +
                   (f'#include "{headers[i - 1]}"\n' if i else "") + "#endif\n")
                  for i, (h, g) in enumerate(zip(headers, guards))),
                ("server/s.h", "#ifndef SERVER_S_H\n#define SERVER_S_H\n#endif\n")):
            os.makedirs(os.path.dirname(os.path.join(tree, name)), exist_ok=True)
            with open(os.path.join(tree, name), "w", encoding="utf-8") as file:
                file.write(text if name.endswith(".md") else self.LICENCE + text)
        run("git", "init", "-q", cwd=tree)
        script = os.path.join(TREE, "ci/check_sources.py")
        found = run("python3", script, cwd=tree).stdout.splitlines()
        self.assertEqual(found, [
            "gate/base/z.c:2: gate/ must not include server/s.h",
            "gate/run/z.c:2: no file gate/base/x.h: write includes from the root of the tree",
            "gate/run/z.c:3: no file y.h: write includes from the root of the tree",
            "gate/base/x.c:1: folders include in a ring: gate/base -> gate/run -> gate/base",
            "kernels/x/many.cu:1: reads 13 files of this tree, at most 12",
            "gate/run/o.c:2: KG_OP_CONV: ask the tables of kernels/ops",
            'gate/run/o.c:3: "conv": ask the tables of kernels/ops'])


class Count(unittest.TestCase):
    """ci/count.py on a small tree: two lines of one function, and one that is called once."""

    def test_functions(self):
        tree = tempfile.mkdtemp(dir=SCRATCH)
        executable(os.path.join(tree, "gate/decide/x.c"),
                   "static int twice(int x);\n\n"
                   "static enum a\nonce(int x)\n{\n    return x; /* once() { */\n}\n\n"
                   "static int twice(int x)\n{\n    return once(x);\n}\n\n"
                   "int all(int x)\n{\n    return twice(x) + twice(1);\n}\n")
        executable(os.path.join(tree, "gate/decide/x.h"), "int all(int x);\n")
        run("git", "init", "-q", cwd=tree)
        run("git", "add", ".", cwd=tree)
        done = run("python3", os.path.join(TREE, "ci/count.py"), tree)
        self.assertEqual(done.returncode, 0, done.stdout)
        # files, headers, lines, functions, their mean, the longest, called once of static ones
        expected = ["2", "1", "18", "3", "4.3", "5", "50", "%"]
        for row in ("gate/decide", "core: decide", "all"):
            found, = re.findall(rf"(?m)^  {row} (.*)", done.stdout)
            self.assertEqual(found.split(), expected, row)


class Runner(unittest.TestCase):
    """tests/run adds up honestly."""

    def results(self, *programs, sources=(), timeout=20):
        tree = tempfile.mkdtemp(dir=SCRATCH)
        os.makedirs(os.path.join(tree, "tests/unit"))
        shutil.copy(os.path.join(TREE, "tests/run"), os.path.join(tree, "tests/run"))
        for i, program in enumerate(programs):
            executable(os.path.join(tree, f"tests/unit/test_{i}.c"), "".join(sources[i:i + 1]))
            executable(os.path.join(tree, f"build/tests/unit/test_{i}"), "#!/bin/sh\n" + program)
        done = run("python3", "tests/run", "--timeout", str(timeout), cwd=tree)
        self.said = done.stdout.splitlines()
        return done.returncode, self.said[-1]

    GOOD = "echo 1..2; echo ok 1 - a; echo ok 2 - b"

    def test_good(self):
        self.assertEqual(self.results(self.GOOD, self.GOOD), (0, "4 passed, 0 failed, 0 skipped"))

    def test_skips(self):
        self.assertEqual(
            self.results("echo 1..2; echo 'not ok 1 # SKIP a'; echo 'ok 2 - b'"),
            (0, "1 passed, 0 failed, 1 skipped"))

    def test_nothing_passed(self):
        self.assertEqual(self.results("echo 1..1; echo 'ok 1 - a # SKIP no'"),
                         (1, "0 passed, 0 failed, 1 skipped"))
        self.assertEqual(self.results(), (1, "0 passed, 0 failed, 0 skipped"))
        self.assertEqual(self.results("echo 1..0"), (1, "0 passed, 1 failed, 0 skipped"))

    def test_bad_result(self):
        self.assertEqual(self.results("echo 1..2; echo not ok 1 - a; echo ok 2 - b; exit 1",
                                      self.GOOD), (1, "3 passed, 1 failed, 0 skipped"))
        self.assertEqual(self.said[-3], "failed: tests/unit/test_0.c: a")

    def test_ends_badly_with_good_results(self):
        for how in ("kill -SEGV $$", "exit 99"):
            with self.subTest(how):
                self.assertEqual(self.results(f"{self.GOOD}; {how}"),
                                 (1, "2 passed, 1 failed, 0 skipped"))

    def test_fewer_results_than_planned(self):
        self.assertEqual(self.results("echo 1..3; echo ok 1; echo ok 2"),
                         (1, "2 passed, 1 failed, 0 skipped"))
        self.assertEqual(self.results("echo ok 1"), (1, "1 passed, 1 failed, 0 skipped"))

    def test_a_program_that_hangs(self):
        self.assertEqual(self.results(f"{self.GOOD}; exec tail -f /dev/null", timeout=4),
                         (1, "2 passed, 1 failed, 0 skipped"))

    def test_parts_on_a_gpu(self):
        """One that hangs, within its own limit, costs no other; each has a log."""
        tree = tempfile.mkdtemp(dir=SCRATCH)
        os.makedirs(os.path.join(tree, "tests/gpu"))
        shutil.copy(os.path.join(TREE, "tests/run"), os.path.join(tree, "tests/run"))
        for name, program in (("a_last", self.GOOD), ("z_first", self.GOOD),
                              ("hangs", "echo 1..2; echo ok 1 - a; exec tail -f /dev/null")):
            executable(os.path.join(tree, f"tests/gpu/test_{name}.c"), "")
            executable(os.path.join(tree, f"build/tests/gpu/test_{name}"), "#!/bin/sh\n" + program)
        executable(os.path.join(tree, "tests/gpu/order.txt"),
                   "# seconds\n60 test_z_first.c\n4 test_hangs.c\n")
        done = run("python3", "tests/run", "--gpu", "--logs", "logs", cwd=tree)
        said = done.stdout.splitlines()
        self.assertEqual((done.returncode, said[-1]), (1, "5 passed, 1 failed, 0 skipped"))
        table = [i for i, line in enumerate(said) if line.startswith("in all, each with a log in ")]
        self.assertEqual([line.split(":")[0] for line in said[table[0] + 1:table[0] + 4]],
                         [f"{word} tests/gpu/test_{name}.c" for word, name in (
                             ("ok  ", "z_first"), ("FAIL", "hangs"), ("ok  ", "a_last"))])
        with open(os.path.join(tree, "logs/test_hangs.c.log"), encoding="utf-8") as log:
            self.assertEqual(log.read(), "1..2\nok 1 - a\n")
        chosen = run("python3", "tests/run", "--gpu", "tests/gpu/test_z*", cwd=tree)
        self.assertEqual((chosen.returncode, chosen.stdout.splitlines()[-1]),
                         (0, "2 passed, 0 failed, 0 skipped"))

    def test_each_part_on_a_gpu_has_its_limit(self):
        with open(os.path.join(TREE, "tests/gpu/order.txt"), encoding="utf-8") as file:
            names = [line.split()[1] for line in file if line[0] != "#"]
        self.assertEqual(sorted(names), [name for name in sorted(os.listdir(
            os.path.join(TREE, "tests/gpu"))) if re.match(r"test_.*\.(c|py)$", name)])

    def test_program_is_missing(self):
        tree = tempfile.mkdtemp(dir=SCRATCH)
        executable(os.path.join(tree, "tests/unit/test_lost.c"), "")
        shutil.copy(os.path.join(TREE, "tests/run"), os.path.join(tree, "tests/run"))
        done = run("python3", "tests/run", cwd=tree)
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]),
                         (1, "0 passed, 1 failed, 0 skipped"))

    def test_what_runs_alone_comes_last(self):
        first, second = f"test -e done || exit 1; {self.GOOD}", f"touch done; {self.GOOD}"
        self.assertEqual(self.results(first, second, sources=["/* runs alone: it measures */"]),
                         (0, "4 passed, 0 failed, 0 skipped"))

    def test_left_over_children_are_ended(self):
        fifo = os.path.join(SCRATCH, "alive")
        os.mkfifo(fifo)
        # Nobody else holds the pipe open, so reading it ends when the child does.
        reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        self.assertEqual(self.results(f"tail -f /dev/null >{fifo} & {self.GOOD}"),
                         (0, "2 passed, 0 failed, 0 skipped"))
        os.set_blocking(reader, True)
        self.assertEqual(os.read(reader, 1), b"")


if __name__ == "__main__":
    unittest.main()
