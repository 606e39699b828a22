"""Runs the vectors of docs/keys.md through the second implementation.

    python3 tools/keys/test_vectors.py [--phonenumbers]

With --phonenumbers (PyPI's `phonenumbers` must be there) each region's example numbers, in three ways of writing, are
compared with that library: the same E.164 form, or refused. Ends with `N passed, N failed`.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "reference"))
import with_numpy  # noqa: E402

with_numpy.ensure()

import identifiers  # noqa: E402
import near  # noqa: E402
from keys import REGIONS, Refused, normalise  # noqa: E402

VECTORS = Path(__file__).resolve().parents[2] / "docs/keys-vectors.json"


def outcome(kind, value):
    try:
        return {"normal": normalise(kind, value)}
    except Refused as refused:
        return {"refused": str(refused)}


def vectors():
    cases = json.loads(VECTORS.read_text(encoding="utf-8"))["vectors"]
    wrong = []
    for case in cases:
        got = outcome(case["type"], case["value"])
        if any(case.get(key) != got.get(key) for key in ("normal", "refused")):
            wrong.append(f"{case}: {got}")
    return len(cases), wrong


def several():
    """Rows with any of several identifiers: the published part is what the tables here come to."""
    published = json.loads(VECTORS.read_text(encoding="utf-8"))["identifiers"]
    made = identifiers.vectors()
    wrong = [f"table {at}: {one}" for at, (one, other) in enumerate(zip(published, made, strict=True)) if one != other]
    return len(made), wrong


def near_matches():
    """Types for near matches: their variants, and tables whose rows match by these."""
    published, made = json.loads(VECTORS.read_text(encoding="utf-8"))["near"], near.vectors()
    wrong = []
    for part in ("values", "tables"):
        both = zip(published[part], made[part], strict=True)
        wrong += [f"{part} {at}: {one}" for at, (one, other) in enumerate(both) if one != other]
    return len(made["values"]) + len(made["tables"]), wrong


def telephones():
    import phonenumbers as library

    written = {
        "national": library.PhoneNumberFormat.NATIONAL,
        "international": library.PhoneNumberFormat.INTERNATIONAL,
        "E.164": library.PhoneNumberFormat.E164,
    }
    wrong, taken, refused = [], 0, 0
    for region in REGIONS:
        for kind in (library.PhoneNumberType.FIXED_LINE, library.PhoneNumberType.MOBILE):
            number = library.example_number_for_type(region, kind)
            if number is None:
                continue
            expected = library.format_number(number, library.PhoneNumberFormat.E164)
            for how, form in written.items():
                value = library.format_number(number, form)
                got = outcome(f"phone:{region}", value)
                if "refused" in got:
                    # What has a calling code can always be read.
                    if how == "national":
                        refused += 1
                    else:
                        wrong.append(f"{region} {value}: {got}")
                elif got["normal"] == expected:
                    taken += 1
                else:
                    wrong.append(f"{region} {value}: {got}, not {expected}")
    print(f"{taken} telephone numbers alike, {refused} refused")
    return taken + refused + len(wrong), wrong


def main():
    tried, wrong = vectors()
    tables, others = several()
    tried, wrong = tried + tables, wrong + others
    cases, others = near_matches()
    tried, wrong = tried + cases, wrong + others
    if "--phonenumbers" in sys.argv[1:]:
        more, differing = telephones()
        tried, wrong = tried + more, wrong + differing
    for line in wrong:
        print(f"FAILED {line}")
    print(f"{tried - len(wrong)} passed, {len(wrong)} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
