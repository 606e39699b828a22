#!/usr/bin/env python3
"""The image runs in a sandbox as its configuration says; SBOM, formula, winget manifests, installer and chart hold
together. Ends with `N passed, N failed`.
"""

import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile
from pathlib import Path

import release

ROOT = release.ROOT
CHART = ROOT / "packaging" / "helm" / "tacit"
# Stands for the command: says what it was started with, and by whom.
PROGRAM = """
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv) {
  char here[256];
  printf("%d %s", (int)getuid(), getcwd(here, sizeof here));
  for (int i = 0; i < argc; i++) printf(" %s", argv[i]);
  printf(" %s\\n", access("/etc", F_OK) ? "alone" : "not alone");
  return 0;
}
"""


def tool(*words):
    return subprocess.run([sys.executable, ROOT / "tools" / "release" / "release.py", *words], check=True, stdout=subprocess.PIPE, text=True).stdout


class Image(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def binary(self):
        (self.folder / "program.c").write_text(PROGRAM)
        compiler = shutil.which("musl-gcc") or shutil.which("gcc")
        if not compiler:
            self.skipTest("no C compiler here")
        subprocess.run([compiler, "-static", "-o", self.folder / "program", self.folder / "program.c"], check=True)
        return self.folder / "program"

    def test_every_blob_has_its_digest_and_the_same_binary_gives_the_same_image(self):
        binary = self.binary()
        for name in ("one.tar", "two.tar"):
            tool("image", binary, self.folder / name)
        first = (self.folder / "one.tar").read_bytes()
        self.assertEqual(first, (self.folder / "two.tar").read_bytes())
        with tarfile.open(fileobj=io.BytesIO(first)) as tar:
            files = {one.name: tar.extractfile(one).read() for one in tar if one.isfile()}
        for name, data in files.items():
            if name.startswith("blobs/"):
                self.assertEqual(name.rsplit("/", 1)[1], hashlib.sha256(data).hexdigest())
        blob = lambda one: files["blobs/" + one["digest"].replace(":", "/")]  # noqa: E731
        manifest = json.loads(blob(json.loads(files["index.json"])["manifests"][0]))
        config = json.loads(blob(manifest["config"]))
        plain = gzip.decompress(blob(manifest["layers"][0]))
        self.assertEqual(config["rootfs"]["diff_ids"], [release.digest(plain)])

    def test_it_runs_in_a_root_of_its_own_as_its_user(self):
        sandbox = ["unshare", "--user", "--map-users", "auto", "--map-groups", "auto", "--map-root-user"]
        sandbox = sandbox if subprocess.run([*sandbox, "true"], stderr=subprocess.DEVNULL).returncode == 0 else []
        if not sandbox and os.getuid() != 0:
            self.skipTest("no right to make a root of its own")
        tool("image", self.binary(), self.folder / "image.tar")
        with tarfile.open(self.folder / "image.tar") as tar:
            read = lambda name: tar.extractfile(name).read()  # noqa: E731
            blob = lambda one: read("blobs/" + one["digest"].replace(":", "/"))  # noqa: E731
            manifest = json.loads(blob(json.loads(read("index.json"))["manifests"][0]))
            config = json.loads(blob(manifest["config"]))["config"]
            root = self.folder / "root"
            with tarfile.open(fileobj=io.BytesIO(blob(manifest["layers"][0]))) as layer:
                layer.extractall(root, filter="tar" if os.getuid() == 0 else "data")
        user = config["User"]
        owner = (root / "data").stat()
        if os.getuid() == 0 and not sandbox:
            self.assertEqual(f"{owner.st_uid}:{owner.st_gid}", user)
        # As a runtime does: the root, the directory, the user, then entry point and command.
        command = ["chroot", f"--userspec={user}", root, *config["Entrypoint"], *config["Cmd"]]
        run = subprocess.run([*([] if os.getuid() == 0 else sandbox), *command], stdout=subprocess.PIPE, text=True, check=True)
        self.assertEqual(run.stdout, f"{user.split(':')[0]} / /tacit --json serve --policy /policy/policy.toml alone\n")


class Manifests(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def archive(self, target, ending="tar.gz"):
        """An archive of a command that says its version, and the line of its checksum."""
        path = self.folder / f"tacit-{target}.{ending}"
        script = b"#!/bin/sh\necho tacit 1.2.3\n"
        with tarfile.open(path, "w:gz") as tar:
            tar.addfile(release.entry("tacit", 0, 0o755, kind=tarfile.DIRTYPE))
            tar.addfile(release.entry("tacit/tacit", len(script), 0o755), io.BytesIO(script))
        return f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"

    def made(self, *targets):
        lines = [self.archive(*target) for target in targets]
        (self.folder / "SHA256SUMS").write_text("".join(lines) + "0" * 64 + "  tacit-1.2.3-cp311-abi3-linux.whl\n")
        tool("manifests", "1.2.3", self.folder / "SHA256SUMS", self.folder / "out", "--url", f"file://{self.folder}")
        return self.folder / "out", [line.split()[0] for line in lines]

    def test_each_names_the_archives_and_their_checksums(self):
        linux = [("x86_64-unknown-linux-musl",), ("aarch64-unknown-linux-musl",)]
        out, sums = self.made(*linux, ("x86_64-pc-windows-gnu", "zip"))
        formula = (out / "tacit.rb").read_text()
        self.assertTrue(all(one in formula for one in sums[:2]) and "on_macos" not in formula and "on_linux" in formula)
        self.assertEqual(formula.count(" do\n") + formula.count("def ") + formula.count("class "), formula.count("end\n"))
        installers = (out / "winget" / "Tacit.Tacit.installer.yaml").read_text()
        self.assertIn(sums[2].upper(), installers)
        versions = [re.search(r"^PackageVersion: (.*)$", path.read_text(), re.MULTILINE)[1] for path in (out / "winget").iterdir()]
        self.assertEqual(versions, ["1.2.3"] * 3)
        out, _ = self.made(linux[0])
        self.assertNotIn("aarch64-unknown", (out / "install.sh").read_text().split("case \"$target\"")[1])

    def test_the_installer_takes_what_has_the_checksum_and_nothing_else(self):
        if not shutil.which("curl"):
            self.skipTest("no curl here")
        machine = os.uname().machine
        out, _ = self.made((f"{machine}-unknown-linux-musl",))
        run = lambda: subprocess.run(["sh", out / "install.sh", self.folder / "bin"], capture_output=True, text=True)  # noqa: E731
        archive = self.folder / f"tacit-{machine}-unknown-linux-musl.tar.gz"
        good = archive.read_bytes()
        archive.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
        refused = run()
        self.assertEqual((refused.returncode, (self.folder / "bin").exists()), (1, False), refused.stderr)
        self.assertIn("nothing was installed", refused.stderr)
        archive.write_bytes(good)
        installed = run()
        self.assertEqual(installed.returncode, 0, installed.stderr)
        self.assertIn("tacit 1.2.3 installed as", installed.stdout)


    def test_the_archive_for_windows_is_what_winget_unpacks(self):
        exe, archive = self.folder / "tacit.exe", self.folder / "tacit-x86_64-pc-windows-gnu.zip"
        header = b"MZ".ljust(60, b"\0") + (64).to_bytes(4, "little")
        exe.write_bytes(header + b"PE\0\0\x64\x86" + b"program")
        tool("zip", exe, archive)
        first = archive.read_bytes()
        tool("zip", exe, archive)
        self.assertEqual(archive.read_bytes(), first)
        with zipfile.ZipFile(archive) as packed:
            self.assertEqual(sorted(packed.namelist()), ["tacit/LICENSE-APACHE", "tacit/LICENSE-MIT", "tacit/tacit.exe"])
            self.assertEqual(packed.read("tacit/tacit.exe"), exe.read_bytes())
            self.assertEqual(packed.read("tacit/LICENSE-MIT"), (ROOT / "LICENSE-MIT").read_bytes())
            names = packed.namelist()
        (self.folder / "SHA256SUMS").write_text(f"{hashlib.sha256(first).hexdigest()}  {archive.name}\n")
        tool("manifests", "1.2.3", self.folder / "SHA256SUMS", self.folder / "out", "--url", "https://example.org")
        said = (self.folder / "out" / "winget" / "Tacit.Tacit.installer.yaml").read_text()
        self.assertIn(f"InstallerSha256: {hashlib.sha256(first).hexdigest().upper()}\n", said)
        self.assertIn(f"InstallerUrl: https://example.org/{archive.name}\n", said)
        inside = re.search(r"RelativeFilePath: (.*)", said)[1].replace("\\", "/")
        self.assertIn(inside, names)
        # One for another processor, and no program at all.
        for wrong in (header + b"PE\0\0\x64\xaa", b"\x7fELF" + bytes(100)):
            exe.write_bytes(wrong)
            run = subprocess.run([sys.executable, ROOT / "tools/release/release.py", "zip", exe, archive], capture_output=True, text=True)
            self.assertEqual(run.returncode, 1)
            self.assertIn("no program for Windows on x86-64", run.stderr)
        self.assertEqual(archive.read_bytes(), first)


class Bill(unittest.TestCase):
    def test_it_lists_what_the_command_is_made_of_and_no_tool_of_its_tests(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "bom.json"
            tool("sbom", path, "--target", "x86_64-unknown-linux-gnu")
            bom = json.loads(path.read_text())
        names = {one["name"] for one in bom["components"]}
        self.assertTrue({"rustls", "curve25519-dalek", "tacit", "tacit-crypto", "arrow-array"} <= names)
        self.assertFalse({"rcgen", "tempfile-nonsense"} & names)
        self.assertEqual(bom["metadata"]["component"]["name"], "tacit-cli")
        self.assertTrue(all("licenses" in one for one in bom["components"]))
        foreign = [one for one in bom["components"] if not one["name"].startswith("tacit")]
        self.assertTrue(all(len(one["hashes"][0]["content"]) == 64 for one in foreign))
        known = {one["bom-ref"] for one in [*bom["components"], bom["metadata"]["component"]]}
        for one in bom["dependencies"]:
            self.assertTrue({one["ref"], *one["dependsOn"]} <= known)


class Chart(unittest.TestCase):
    """`helm template`, where there is a helm: GO_HELM or in the path."""

    def rendered(self, *settings):
        helm = os.environ.get("HELM") or shutil.which("helm")
        if not helm:
            self.skipTest("no helm here: the chart is not rendered")
        words = [word for setting in settings for word in ("--set", setting)]
        run = subprocess.run([helm, "template", "t", CHART, *words], capture_output=True, text=True)
        return run.returncode, run.stdout + run.stderr

    def test_each_part_is_rendered_alone(self):
        parts = {
            "serve.enabled=true,serve.policy=version = 1,serve.secret=keys": ["serve", "--policy"],
            "gateway.enabled=true,gateway.args={--listen,0.0.0.0:7700},gateway.secret=keys": ["gateway", "0.0.0.0:7700"],
            "relay.enabled=true": ["relay", "0.0.0.0:7710"],
        }
        for settings, words in parts.items():
            code, said = self.rendered(settings)
            self.assertEqual(code, 0, said)
            self.assertTrue(all(word in said for word in words), said)
            for promise in ("readOnlyRootFilesystem: true", "runAsNonRoot: true", 'drop: ["ALL"]', "runAsUser: 65532"):
                self.assertEqual(said.count(promise), 1, f"{promise}: {said}")
        code, said = self.rendered("serve.enabled=true")
        self.assertTrue(code != 0 and "serve.policy" in said, said)
        self.assertNotIn("kind: Deployment", self.rendered()[1])

    def test_version_and_user_are_those_of_the_image(self):
        chart = (CHART / "Chart.yaml").read_text()
        self.assertIn(f'appVersion: "{release.workspace()["version"]}"', chart)
        template = (CHART / "templates" / "_helpers.tpl").read_text()
        self.assertIn(f"runAsUser: {release.containerfile()['User'].split(':')[0]}", template)


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=1).result
    failed = len(result.failures) + len(result.errors)
    for test, why in result.skipped:
        print(f"left out: {test.id()}: {why}")
    print(f"{result.testsRun - failed - len(result.skipped)} passed, {failed} failed")
    sys.exit(1 if failed else 0)
