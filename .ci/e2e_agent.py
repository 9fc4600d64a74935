#!/usr/bin/env python3
"""Let a real small model direct the agentic search for real claims, through the program as its users run it.

    ASSAY_REAL=<folder of captures> python3 .ci/e2e_agent.py bin/assay

Server and model are those of e2e.py, which says what can be set. The claims and documents are those of
the published sample; searches go to the local index, so that nothing leaves the machine. It prints actions,
sources, stop reasons and parse failures. Settings of its own, all optional:

    E2E_CLAIMS   how many claims (10)
    E2E_ACTIONS  actions of a claim (6)
    E2E_SECONDS  what the searches may take (900); what is done by then is told
"""

import collections
import json
import os
import time

import e2e


def pairs(real, count):
    """All documents of some claims of the sample."""
    return [e2e.pair(c, d) for c in e2e.sample(real)[:count] for d in c["documents"] if d["Link"]]


def workspace(folder, address, name):
    with open(os.path.join(folder, "assay.yaml"), "w", encoding="utf-8") as f:
        f.write(f"""recipe:
  name: e2e-agent
  discover: [imported]
  evidence: [search]
  speakers: []
  dates: {{from: "", to: ""}}
  planner:
    policy: gpe
    agent: {{engines: {{"*": local}}, max_actions: {os.environ.get("E2E_ACTIONS", "6")}, per_action: 2}}
  models:
    plan: {{endpoint: local, model: {name}, temperature: 0, seed: 1, max_tokens: 160}}
    analyse: {{endpoint: local, model: {name}, temperature: 0, seed: 1, max_tokens: 200}}
runtime:
  contact: e2e@assay.example
  workers: 2
  endpoints:
    local: {{provider: openai, base_url: "{address}", profile: llama_cpp, concurrency: 2}}
""")


def told(counts):
    return ", ".join(f"{k} {n}" for k, n in counts.most_common()) or "none"


def tell(traces, report, seconds):
    steps = [s for t in traces for s in t.get("steps") or []]
    items = [e for t in traces for e in t.get("evidence") or []]
    model = [s for s in steps if s["by"] == "model"]
    lost = [f for e in items for f in e.get("flags") or [] if f.startswith("analysis_")]
    print(f"claims searched for: {len(traces)}, in {seconds:.0f} s, {report['llm']['calls']} calls, {report['llm']['tokens']} tokens")
    print("actions:", told(collections.Counter(s["action"] for s in steps)))
    print("chosen by the model:", e2e.share(len(model), len(steps)))
    print("the model's choices that were refused:", told(collections.Counter(s["refused"] for s in steps if s.get("refused"))))
    print("action sequences:", len({" ".join(s["action"] for s in t.get("steps") or []) for t in traces}))
    print("outcomes:", told(collections.Counter(s["outcome"] for s in steps)))
    print("sources of what was read:", told(collections.Counter(e["source_class"] for e in items)))
    print("stances:", told(collections.Counter(e["stance"] for e in items)))
    print("quotes that stand in no document:", sum("quote_unverified" in (e.get("flags") or []) for e in items), "of", len(items), "items")
    print("stop reasons:", told(collections.Counter(t.get("stop", "?") for t in traces)))
    print("parse failures:", sum(s.get("refused") == "no_answer" for s in steps), "of", len(steps), "choices,", len(lost), "of", len(items), "analyses", dict(collections.Counter(lost)))


def play(binary, real, folder, address, name):
    workspace(folder, address, name)
    e2e.load(binary, folder, pairs(real, int(os.environ.get("E2E_CLAIMS", "10"))))
    started = time.time()
    out = e2e.assay(binary, folder, "build", "--until", "plan", "--json", "--max-duration", os.environ.get("E2E_SECONDS", "900") + "s", codes=(0, 3, 4))
    seconds = time.time() - started
    done = json.loads(e2e.assay(binary, folder, "ls", "plan", "--state", "done", "--json")) or []
    traces = [json.loads(e2e.assay(binary, folder, "show", i["key"]))["trace"] for i in done]
    tell(traces, json.loads(out), seconds)
    if done:
        print(e2e.assay(binary, folder, "show", done[0]["key"], "--trace"))


if __name__ == "__main__":
    e2e.main(play, "server-agent.log")
