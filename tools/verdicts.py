"""How a script of checks ends: what failed, a line each, and `N passed, N failed`."""


def told(verdicts):
    """Prints the end of (what, whether it holds) pairs; returns the exit code, 0 only if all of them hold."""
    found = list(verdicts)
    for what, holds in found:
        if not holds:
            print(f"FAILED {what}")
    passed = sum(bool(holds) for _, holds in found)
    print(f"{passed} passed, {len(found) - passed} failed")
    return 0 if found and passed == len(found) else 1
