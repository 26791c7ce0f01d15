"""Compares the table of kind.rs with the registry: `compare.py DB.JSON`, from the root of the repository."""

import json
import os
import re
import sys

SOURCE = "crates/files/src/kind.rs"
REASONS = "interop/media-types/differences.tsv"
DEBIAN = "/etc/mime.types"


def table():
    """Returns the type of each suffix in the table, without parameters."""
    source = open(SOURCE, encoding="utf-8").read()
    source = source.split("const TABLE", 1)[1].split("\n];", 1)[0]
    rows = re.findall(r'\(\s*"([^"]+)",\s*&\[([^\]]*)\],?\s*\)', source)
    types = {}
    for kind, suffixes in rows:
        for suffix in re.findall(r'"([^"]+)"', suffixes):
            types[suffix] = kind.split(";")[0]
    return types


def registry(path):
    """Returns the registered types, and by suffix the types that the registry names for it."""
    names, by_suffix = set(), {}
    for name, entry in json.load(open(path, encoding="utf-8")).items():
        if entry.get("source") != "iana":
            continue
        names.add(name.lower())
        for suffix in entry.get("extensions", []):
            by_suffix.setdefault(suffix, set()).add(name.lower())
    return names, by_suffix


def debian():
    """Returns the types of each suffix in Debian's file, which is empty where there is no such file."""
    by_suffix = {}
    if os.path.exists(DEBIAN):
        for line in open(DEBIAN, encoding="utf-8"):
            name, *suffixes = line.split("#")[0].split() or [""]
            for suffix in suffixes:
                by_suffix.setdefault(suffix, set()).add(name.lower())
    return by_suffix


def difference(suffix, kind, registered, by_suffix, others):
    """Returns how a type differs from the registry, or from Debian if the registry has no type for the suffix."""
    named = by_suffix.get(suffix, set())
    if named:
        return None if kind in named else "registered as " + " or ".join(sorted(named))
    if kind not in registered:
        return "not registered"
    named = others.get(suffix, set())
    return None if kind in named or not named else "in Debian " + " or ".join(sorted(named))


def main():
    types = table()
    assert len(types) > 200, f"only {len(types)} suffixes found in {SOURCE}"
    registered, by_suffix = registry(sys.argv[1])
    others = debian()
    reasons = {}
    for line in open(REASONS, encoding="utf-8"):
        suffix, kind, reason = line.rstrip("\n").split("\t")
        reasons[suffix] = kind
        assert reason, f"{suffix} has no reason"
    failed = False
    for suffix, kind in types.items():
        how = difference(suffix, kind, registered, by_suffix, others)
        if how and reasons.get(suffix) != kind:
            print(f"{suffix}: {kind} is {how}, and {REASONS} does not say why")
            failed = True
        # Without Debian's file, its differences cannot be found.
        if not how and suffix in reasons and others:
            print(f"{suffix}: {kind} does not differ, but {REASONS} explains it")
            failed = True
    for suffix in reasons.keys() - types.keys():
        print(f"{suffix}: {REASONS} explains a suffix that is not in {SOURCE}")
        failed = True
    print(f"{len(types)} suffixes, {len(reasons)} explained differences")
    sys.exit(failed)


main()
