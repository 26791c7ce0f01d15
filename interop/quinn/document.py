#!/usr/bin/env python3
"""Writes the document of results: run.tsv, versions.tsv, RESULTS.md.

Adds this run to the table results.tsv beside the document, in the column of the library that was used. Results of
other witnesses and of the other library stay.
"""

import csv
import os
import sys

OWN, QUINN = 3, 4


def read(path):
    """Returns the rows of a table; none if there is no such file."""
    if not os.path.exists(path):
        return []
    with open(path, newline="") as file:
        return list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def merged(table, run, versions, column):
    """Returns the table with the results of a run in a column. Both have one row for each test."""
    table = {(row[0], row[2]): list(row) for row in table}
    for witness in dict.fromkeys(row[0] for row in run):
        for row in table.values():
            if row[0] == witness:
                row[column] = ""
    for witness, name, outcome in run:
        row = table.setdefault((witness, name), [witness, "", name, "", ""])
        row[column] = outcome
    for row in table.values():
        row[1] = versions.get(row[0], row[1])
    rows = [row for row in table.values() if row[OWN] or row[QUINN]]
    order = list(dict.fromkeys(row[0] for row in rows))
    return sorted(rows, key=lambda row: (order.index(row[0]), row[2]))


def differences(rows, reasons):
    """Returns the failures and differences of a witness, as text."""
    lines = []
    for witness, _, name, own, quinn in rows:
        reason = reasons.get((witness, name), "not expected")
        if own == "fail":
            both = " (with quinn too)" if quinn == "fail" else ""
            lines.append(f"`{name}`: {reason}{both}")
        elif quinn == "fail":
            lines.append(f"`{name}`: fails with quinn")
    return "<br>".join(lines)


def passed(rows, column):
    """Returns the number of tests that pass; a dash if the witness did not run."""
    outcomes = [row[column] for row in rows if row[column]]
    return outcomes.count("pass") if outcomes else "–"


def document(rows, reasons):
    """Returns the document."""
    witnesses = {}
    for row in rows:
        witnesses.setdefault(row[0], []).append(row)
    lines = [
        "# Programs and tests that use quinn, on courser",
        "",
        "`interop/quinn/run` builds them unchanged against `courser-quinn` and runs them on loopback; with `QUINN=1` it uses",
        "quinn itself. This document is its output (`REPORT`). [expected.tsv](expected.tsv) has the reason of each failure.",
        "",
        "| crate | version | pass | with quinn | failures and differences |",
        "|---|---|---|---|---|",
    ]
    for witness, own in witnesses.items():
        notes = differences(own, reasons)
        lines.append(f"| {witness} | {own[0][1]} | {passed(own, OWN)} | {passed(own, QUINN)} | {notes} |")
    for witness, own in witnesses.items():
        lines += ["", f"## {witness}", ""]
        lines += [f"- `{row[2]}`: {row[OWN] or 'not run'}" for row in own]
    return "\n".join(lines) + "\n"


def main():
    """Merges and writes."""
    run, versions, path = sys.argv[1:]
    table = os.path.join(os.path.dirname(path) or ".", "results.tsv")
    expected = os.path.join(os.path.dirname(os.path.abspath(__file__)), "expected.tsv")
    reasons = {(row[0], row[1]): row[2] for row in read(expected)[1:]}
    column = QUINN if os.environ.get("QUINN") else OWN
    rows = merged(read(table)[1:], read(run), dict(read(versions)), column)
    with open(table, "w") as file:
        for row in [["crate", "version", "test", "courser", "quinn"], *rows]:
            file.write("\t".join(row) + "\n")
    with open(path, "w") as file:
        file.write(document(rows, reasons))


main()
