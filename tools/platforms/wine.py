#!/usr/bin/env python3
"""wine.py TACIT.EXE [TACIT [TESTS]] [--long]: the command for Windows under Wine: its version, its help, its demo, jobs against
the command for here (TACIT) on either side, and the tests of the command that TESTS, their binary, has: some of them, or with
--long all that Wine can run. Ends with `N passed, N failed`."""

import argparse
import contextlib
import fcntl
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

HERE = Path(__file__).resolve().parent
CRATE = HERE.parent.parent / "crates" / "tacit-cli"
# Seconds that everything may take.
DEADLINE, DEADLINE_LONG = 400, 3600
# So many tests that fail run again: of the chosen ones, and of all.
FEW, FEW_LONG = 4, 12

# Of these few minutes, one for each thing that systems do in their own way: paths, locks, replaced files, sockets, times.
CHOSEN = [
    "deal::seeds_that",
    "errors::",
    "keys::",
    "manual::",
    "messy::",
    "psi::in_buckets_on_disk",
    "relay::",
    "serve::granted_runs",
    "sources::",
    "tables::",
    "tags::",
]

MODES = "looks at modes of files, which are Wine's here"
MEMORY = "measures the memory of the process, of which Wine's is a part"
SHELL = "puts a shell, a signal (SIGHUP, SIGTERM) or a limit of Linux between itself and the command"
SYSTEM = "looks for files, pipes or names that Linux alone has"
LOCKS = "holds a lock of Linux, of which programs under Wine do not know"
PATHS = "compares a path or a quoted word that is printed, which look otherwise here"
WORDS = "compares words of Linux's for a fault"
OPEN = "replaces a file that is open, which Windows can on its own disks and Wine cannot"
FREE = "expects a bound by the memory that is free, which the command knows on Linux alone"
SLOW = "counts on a process that starts within a moment"
NOT_UNDER_WINE = {
    "bad_input::a_peer_that_goes_in_the_middle": SLOW,
    "bad_input::an_interrupted_run": SHELL,
    "bad_input::outputs_of_a_run_with_a_config_file": PATHS,
    "bench::unusable_requests": FREE,
    "check::escapes_of_a_file": PATHS,
    "deal::the_mark_of_a_used_seed": LOCKS,
    "errors::an_interrupt_is_told_to_the_peer": SHELL,
    "eval::sizes_that_a_circuit_declares": FREE,
    "first::a_table_without_a_key": PATHS,
    "formats::": MODES,
    "gateway::": SHELL,
    "keys::out_and_output": SYSTEM,
    "kinds::keys_beyond_memory": SHELL,
    "long::": MEMORY,
    "nisc::a_strangers_question_spends_no_key": MODES,
    "nisc::every_step_holds": MEMORY,
    "nisc::files_may_come_from_standard_input": MODES,
    "nisc::nobody_can_pass": MODES,
    "nisc::with_a_peer_named": MODES,
    "ot::a_run_holds": MEMORY,
    "ot::a_run_of_vole_holds": MEMORY,
    "ot::a_share_is_the_owners_alone": MODES,
    "ot::own_messages_and_choices_that_do_not_serve": FREE,
    "outputs::": SYSTEM,
    "pair::secrets_expire": MODES,
    "psi::in_buckets_no_more_memory": MEMORY,
    "relay::a_relay_says_that_it_has_stopped": SHELL,
    "resume::": SHELL,
    "serve::a_key_that_follows_another": SHELL,
    "serve::a_reload_is_whole": SHELL,
    "serve::an_unattended_request": SHELL,
    "serve::every_rule_refuses": SHELL,
    "serve::kills_at_random": SHELL,
    "serve::lookups_are_answered": OPEN,
    "serve::strangers_and_requests": MEMORY,
    "serve::the_log_has_levels": SHELL,
    "serve::the_silent_the_slow": SYSTEM,
    "snapshots::errors_are_as_kept": WORDS,
    "tags::rotation_takes_a_new_key": OPEN,
    "triples::a_run_holds": MEMORY,
    "waiting::a_connecting_side_says": FREE,
}


def wine():
    """The loader for 64 bits, which Debian keeps where no shell finds it."""
    places = [Path("/usr/lib/wine/wine64"), *(Path(found) for found in map(shutil.which, ("wine64", "wine")) if found)]
    return next((str(place) for place in places if place.exists()), None)


@contextlib.contextmanager
def windows():
    """A Windows that ends with the `with`; gives its environment and the loader."""
    loader = wine()
    with tempfile.TemporaryDirectory() as folder:
        prefix = Path(folder) / "prefix"
        environment = {**os.environ, "WINEPREFIX": str(prefix), "WINEARCH": "win64", "WINEDEBUG": "-all"}
        environment.pop("DISPLAY", None)
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment}
        subprocess.run([loader, "wineboot", "--init"], check=True, timeout=200, **quiet)
        system = prefix / "drive_c" / "windows" / "system32"
        if not (system / "bcryptprimitives.dll").exists():
            library = ["-shared", "-O2", "-o", str(system / "bcryptprimitives.dll"), str(HERE / "bcryptprimitives.c"), "-ladvapi32"]
            subprocess.run(["x86_64-w64-mingw32-gcc", *library], check=True)
        # As long as one program runs, the others find everything started, and no pipe of theirs goes to what Wine starts.
        first = subprocess.Popen([loader, "cmd.exe"], **{**quiet, "stdin": subprocess.PIPE})
        try:
            yield environment, loader
        finally:
            first.stdin.close()
            first.wait(timeout=60)
            server = Path("/usr/lib/wine/wineserver64")
            server = str(server) if server.exists() else "wineserver"
            subprocess.run([server, "--kill"], **quiet)
            subprocess.run([server, "--wait"], timeout=60, **quiet)


# The first commands of a new user, with a pattern of their output.
STEPS = [
    (["--version"], r"tacit \d+\.\d+"),
    (["--help"], r"Usage: tacit "),
    (["keygen", "--out", "alice.key"], r"alice\.pub is the public key"),
    (["check", "alice.key"], r""),
    (["demo"], r"matches on both sides, the same as a plain join"),
]


def first_steps(command, environment):
    """Does them; returns the faults."""
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        for words, wanted in STEPS:
            run = subprocess.run(
                [*command, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=200
            )
            told = words != ["check", "alice.key"]
            if (run.returncode == 0) != told or not re.search(wanted, run.stdout) or "panicked" in run.stderr:
                faults.append(f"tacit {' '.join(words)}: exit code {run.returncode}: {run.stdout}{run.stderr}")
    return faults


def interrupted(command, environment):
    """Ctrl-C at a console ends a command that waits for its peer, which has said that the free memory is not known; returns
    the faults."""
    words = ["psi", "--input", "t.csv", "--key", "k", "--result", "me", "--output", "common.csv"]
    words += ["--listen", "127.0.0.1:0", "--identity", "alice.key", "--peer", "bob.pub"]
    with tempfile.TemporaryDirectory() as folder:
        for key in ("alice.key", "bob.key"):
            subprocess.run([*command, "keygen", "--out", key], cwd=folder, env=environment, capture_output=True, check=True)
        (Path(folder) / "t.csv").write_text("k\na\n")
        console, end = pty.openpty()

        def take_console():
            os.setsid()
            fcntl.ioctl(end, termios.TIOCSCTTY, 0)

        run = subprocess.Popen([*command, *words], cwd=folder, env=environment, stdin=end, stdout=end, stderr=end, preexec_fn=take_console)
        os.close(end)
        said = b""
        try:
            while select.select([console], [], [], 60)[0]:
                # What is read after the end is an error.
                said += os.read(console, 4096)
                if b"waiting for" in said:
                    os.write(console, b"\x03")
                    break
            while select.select([console], [], [], 60)[0] and b"interrupted" not in said:
                said += os.read(console, 4096)
            code = run.wait(timeout=60)
        except (OSError, subprocess.TimeoutExpired):
            run.kill()
            code = run.wait()
        os.close(console)
    # Without the console's own line ends and controls.
    said = re.sub(r"\x1b\[[?\d;]*[A-Za-z]|[\r\n]", "", said.decode(errors="replace"))
    right = code == 130 and "interrupted" in said and "--max-peer-rows sets a limit" in said
    return [] if right else [f"Ctrl-C: exit code {code}: {said}"]


def interoperate(native, command, environment):
    """How many jobs of the two commands passed and failed."""
    words = [sys.executable, str(HERE / "interoperate.py"), str(native), command]
    run = subprocess.run(words, env=environment, stdout=subprocess.PIPE, text=True)
    print(run.stdout, end="")
    found = re.search(r"(\d+) passed, (\d+) failed", run.stdout)
    return (int(found[1]), int(found[2])) if found else (0, 1)


def tests(binary, exe, environment, loader, is_long):
    """How many tests passed and failed, with what they printed on standard output. What fails runs again, alone: Wine
    stumbles at times over a process that ends or does not start."""
    skipped = [word for name in NOT_UNDER_WINE for word in ("--skip", name)]
    threads = ["--test-threads", str(max(2, os.cpu_count() or 2))]

    def run(*words):
        done = subprocess.run(
            [str(binary), *words],
            cwd=CRATE,
            env={**environment, "TACIT_UNDER_TEST": f"{loader} {exe}"},
            capture_output=True,
            text=True,
            timeout=DEADLINE_LONG if is_long else DEADLINE,
        )
        found = re.search(r"(\d+) passed; (\d+) failed", done.stdout)
        if done.returncode != 0:
            print(done.stdout, done.stderr)
        names = re.findall(r"^test (\S+) \.\.\. FAILED$", done.stdout, re.MULTILINE)
        passed, failed = (int(found[1]), int(found[2])) if found else (0, 1)
        return passed, max(failed, int(done.returncode != 0)), names

    passed, failed, names = run(*threads, *([] if is_long else CHOSEN), *skipped)
    if names and len(names) == failed <= (FEW_LONG if is_long else FEW):
        print(f"again, alone: {', '.join(names)}")
        more, failed, _ = run("--test-threads", "1", "--exact", *names)
        passed += more
    return passed, failed


def check(exe, native=None, binary=None, is_long=False):
    """Everything that can be tried with what is given; how many passed and failed."""
    exe = exe.resolve()
    with windows() as (environment, loader):
        faults = [*first_steps([loader, str(exe)], environment), *interrupted([loader, str(exe)], environment)]
        print("".join(f"error: {fault}\n" for fault in faults), end="")
        counts = [(len(STEPS) + 1 - len(faults), len(faults))]
        if native:
            counts.append(interoperate(native, f"{loader} {exe}", environment))
        if binary:
            counts.append(tests(binary.resolve(), exe, environment, loader, is_long))
    return tuple(map(sum, zip(*counts)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("exe", type=Path)
    parser.add_argument("native", type=Path, nargs="?")
    parser.add_argument("tests", type=Path, nargs="?")
    parser.add_argument("--long", action="store_true")
    options = parser.parse_args()
    passed, failed = check(options.exe, options.native, options.tests, options.long)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
