"""Read a release with foreign readers: Python's json and csv. Usage: interop.py RELEASE..."""

import ast
import csv
import hashlib
import json
import pathlib
import re
import sys

FORMULA = re.compile(r"'+[=+\-@\t\r]")


def restore(cell):
    """The documented inverse of the formula neutralisation."""
    return cell[1:] if FORMULA.match(cell) else cell


def table(root, name):
    raw = (root / "data" / f"{name}.jsonl").read_bytes()
    text = raw.decode("utf-8")
    assert raw.count(b"\n") == len(text.splitlines()), f"{name}: lines depend on the reader"
    return [json.loads(line) for line in text.splitlines()]


def rows(path):
    with open(path, encoding="utf-8", newline="") as f:
        read = csv.reader(f, strict=True)
        header = next(read)
        out = [dict(zip(header, row, strict=True)) for row in read]
    return out


def check(root):
    claims = {c["id"]: c for c in table(root, "claims")}
    documents = {d["id"]: d for d in table(root, "documents")}
    pairs, calls = table(root, "pairs"), {c["id"] for c in table(root, "annotations")}
    for p in pairs:
        assert p["claim_id"] in claims and p["document_id"] in documents and p["call"] in calls, p
    for d in documents.values():
        content = d["title"] + "\n\n" + d["text"] if d["title"] and d["text"] else d["title"] or d["text"]
        assert hashlib.sha256(content.encode()).hexdigest() == d["sha256"], d["id"]
    manifest = json.loads((root / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["counts"]["pairs"] == len(pairs)

    compat = root / "compat" / "raguard"
    by_number = {}
    for row in rows(compat / "claims.csv"):
        # How existing scripts read the list columns.
        ids, labels = ast.literal_eval(row["Document IDs"]), ast.literal_eval(row["Document Labels"])
        assert len(ids) == len(labels) and row["Verdict"] in ("True", "False"), row
        by_number[row["Claim ID"]] = (restore(row["Claim"]), dict(zip(ids, labels)))
    assert sorted(t for t, _ in by_number.values()) == sorted(c["text"] for c in claims.values())
    seen = 0
    for row in rows(compat / "documents.csv"):
        _, labels = by_number[row["Claim ID"]]
        assert labels[int(row["Document ID"])] == row["Document Label"], row
        seen += 1
    assert seen == len(pairs)
    texts = sorted((d["title"], d["text"]) for p in pairs for d in [documents[p["document_id"]]])
    assert texts == sorted((restore(r["Title"]), restore(r["Full Text"])) for r in rows(compat / "documents.csv"))
    print(f"{root.name}: {len(claims)} claims, {len(documents)} documents, {len(pairs)} pairs read alike by json and csv")


for name in sys.argv[1:]:
    check(pathlib.Path(name))
