#!/usr/bin/env python3
"""Label real pairs with a real small model, through the program as its users run it.

    ASSAY_REAL=<folder of captures> python3 .ci/e2e_model.py bin/assay

Server and model are those of e2e.py, which says what can be set. Settings of its own, all optional:

    E2E_PAIRS    how many pairs (24)
    E2E_ATTACKS  yes: run assay doctor --model too
    E2E_SECONDS  what the labels may take (300)
"""

import collections
import glob
import json
import os
import re
import time

import e2e


def pairs(real, count):
    """Pairs of the published sample with a body to read, the labels in turn."""
    by_label = collections.defaultdict(list)
    for c in e2e.sample(real):
        for d in c["documents"]:
            body = re.sub(r"https?://\S+", "", d["Full Text"]).strip()
            if len(body) < 150 or body in ("[Link Post]", "[deleted]", "[removed]") or not d["Link"]:
                continue
            by_label[d["Document Label"]].append(e2e.pair(c, d))
    chosen = []
    while len(chosen) < count and any(by_label.values()):
        for label in sorted(by_label):
            if by_label[label] and len(chosen) < count:
                by_label[label].sort(key=lambda p: len(p["text"]))
                chosen.append(by_label[label].pop(0))
    return chosen


def workspace(folder, address, name):
    with open(os.path.join(folder, "assay.yaml"), "w", encoding="utf-8") as f:
        f.write(f"""recipe:
  name: e2e-model
  discover: [imported]
  evidence: [pairs]
  planner: {{variants: 0}}
  label: {{mode: normal, zero_context: true, document_chars: 1200}}
  models:
    annotate: {{endpoint: local, model: {name}, temperature: 0, seed: 1, max_tokens: 260}}
    keywords: {{endpoint: local, model: {name}, temperature: 0, max_tokens: 60}}
    zero: {{endpoint: local, model: {name}, temperature: 0, seed: 1, max_tokens: 60}}
runtime:
  workers: 2
  endpoints:
    local: {{provider: openai, base_url: "{address}", profile: llama_cpp, canary: true, concurrency: 2}}
""")


def tell(report, release, failed, seconds):
    """Print what the labels are worth."""
    released = e2e.rows(os.path.join(release, "data", "pairs.jsonl"))
    calls = {a["id"]: a for a in e2e.rows(os.path.join(release, "data", "annotations.jsonl"))}
    answers = collections.Counter(p["answer"] for p in released)
    asked = len(released) + len(failed)
    valid = sum(calls[p["call"]]["parse"] == "strict" for p in released if p["call"] in calls)
    decided = [p for p in released if p["answer"] != "unrelated"]
    quoted = sum("quote_unverified" not in p["flags"] for p in decided)
    zero = collections.Counter()
    for claim in {p["claim_id"]: p for p in released}.values():
        zero[claim["zero_answer"]] += 1
    print(f"pairs asked about: {asked}, labelled: {len(released)}, in {seconds:.0f} s, {report['llm']['calls']} calls, {report['llm']['tokens']} tokens")
    for k in report.get("canaries") or []:
        print(f"canary: constrains {k['constrains'] or '?'}, order kept {k['ordered'] or '?'}, temperature 0 taken {k['temperature']}, "
              f"the same answer twice {k['steady'] or '?'}, bounded by {k.get('token_field', '?')}")
    if failed:
        print("without a label:", dict(collections.Counter(re.sub(r"^label p_[0-9a-f]+: ", "", f.get("reason", "?")) for f in failed)))
    print("answers:", dict(sorted(answers.items())))
    print("labels:", report.get("labels"))
    print("schema-valid:", e2e.share(valid, asked))
    print("quote verified:", e2e.share(quoted, len(decided)), "of the answers true and false")
    print("answers without a document:", dict(sorted(zero.items())))
    for reading in (report.get("agreement") or {}).get("readings") or []:
        print("kappa with the published labels:", json.dumps({k: reading[k] for k in reading if k != "confusion"}))
    for p in decided[:3]:
        print(f"for example: {p['answer']}, quoting {p['quote'][:100]!r}{', which is not in the document' if 'quote_unverified' in p['flags'] else ''}")
    if len(answers) == 1 and len(released) >= 10:
        print(f"NOTE: this model always says {next(iter(answers))}; its labels mean nothing")
    if len(zero) == 1 and sum(zero.values()) >= 10:
        print(f"NOTE: without a document this model always says {next(iter(zero))}")


def play(binary, real, folder, address, name):
    workspace(folder, address, name)
    e2e.load(binary, folder, pairs(real, int(os.environ.get("E2E_PAIRS", "24"))))
    started = time.time()
    e2e.assay(binary, folder, "build", "--max-duration", os.environ.get("E2E_SECONDS", "300") + "s", codes=(0, 3, 4))
    seconds = time.time() - started
    # What is there counts, whether time was up or not: the second build asks nothing.
    report = json.loads(e2e.assay(binary, folder, "build", "--replay", "--json", codes=(0, 3)))
    report["llm"] = {"calls": report["llm"]["hits"], "tokens": report["llm"]["saved_tokens"]}
    failed = json.loads(e2e.assay(binary, folder, "ls", "label", "--state", "failed", "--json")) or []
    release = glob.glob(os.path.join(folder, "release", "*", ""))
    tell(report, max(release, key=os.path.getmtime), [f for f in failed if f.get("reason") != "not_stored"], seconds)
    if os.environ.get("E2E_ATTACKS") == "yes":
        print(e2e.assay(binary, folder, "doctor", "--model", codes=(0, 1)))


if __name__ == "__main__":
    e2e.main(play, "server.log")
