#!/usr/bin/env python3
"""The page of `tacit ui`: two pages that go the whole way together, and what else may be sent to one.

Two commands serve a page each, two headless Chromiums open them: one invites, the other joins, both see the
terms, and the result is the plain join of both files. Then: wrong codes, hostile cells, a page of another origin,
a wrong host and a wrong token (also by plain HTTP), a tab that is closed, a run that is cancelled, both languages,
a narrow screen, the keyboard. The tests are in `scripts/ui`, by subject.

    scripts/test_ui.py [--picture FOLDER] [--failfast]

--picture FOLDER  also writes pictures of the steps there, of tables without hostile cells; the book has `ui-ask` and
                  `ui-result`
--failfast        ends after the first test that fails

Ends with `N passed, N failed`; the exit code is 0 only if nothing failed. Where there is no Chromium (Debian's
package `chromium`) it says so, and tests what does not need it.
"""

import sys
import tempfile
import unittest
from pathlib import Path

from chromium import CHROMIUM
from ui.asking import Asking
from ui.looks import Looks
from ui.pages import TACIT, Page, Tab, here
from ui.strangers import Strangers, TheEnd
from ui.together import Service, Together


def main():
    if not TACIT.exists():
        sys.exit(f"{TACIT} is not there: cargo build makes it")
    if "--picture" in sys.argv:
        here.pictures = Path(sys.argv[sys.argv.index("--picture") + 1])
        here.pictures.mkdir(parents=True, exist_ok=True)
    if not CHROMIUM:
        print("skipped: no Chromium here (apt-get install chromium), so the pages are not looked at")
    folder = tempfile.TemporaryDirectory()
    here.home = Path(folder.name).resolve()
    pages = []
    try:
        for name in ("alice", "bob"):
            pages.append(Page(here.home, name))
        here.alice, here.bob = pages
        here.tabs.extend(Tab() for _ in range(2 if CHROMIUM else 0))
        suite = unittest.TestSuite(
            unittest.defaultTestLoader.loadTestsFromTestCase(case) for case in (Asking, Together, Service, Looks, Strangers, TheEnd)
        )
        result = unittest.TextTestRunner(verbosity=0, failfast="--failfast" in sys.argv).run(suite)
    finally:
        for tab in here.tabs:
            tab.end()
        for page in pages:
            if page.process.poll() is None:
                page.end()
        folder.cleanup()
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - len(result.skipped) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
