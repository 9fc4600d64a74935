#!/usr/bin/env python3
"""Let a real small model direct the agentic search for real claims, through the program as its users run it.

    ASSAY_REAL=<folder of captures> python3 .ci/e2e_agent.py bin/assay

Server and model are those of e2e_model.py, which says what can be set. The claims and documents are those of
the published sample; searches go to the local index, so that nothing leaves the machine. It prints actions,
sources, stop reasons and parse failures. Settings of its own, all optional:

    E2E_CLAIMS   how many claims (10)
    E2E_ACTIONS  actions of a claim (6)
    E2E_SECONDS  what the searches may take (900); what is done by then is told
"""

import collections
import json
import os
import signal
import sys
import tempfile
import time

import e2e_model as e2e


def pairs(real, count):
    """All documents of some claims of the sample."""
    with open(os.path.join(real, "raguard", "sample-20-claims.json"), encoding="utf-8") as f:
        claims = json.load(f)
    return [{"claim": c["claim"], "verdict": c["verdict"], "title": d["Title"], "text": d["Full Text"], "url": d["Link"], "label": d["Document Label"]}
            for c in claims[:count] for d in c["documents"] if d["Link"]]


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


def main():
    binary = os.path.abspath(sys.argv[1])
    real = os.environ.get("ASSAY_REAL")
    if not real:
        raise e2e.Skip("ASSAY_REAL is not set")
    folder = os.path.abspath(os.environ.get("E2E_DIR", ".e2e"))
    os.makedirs(folder, exist_ok=True)
    name = os.environ.get("E2E_MODEL", "smollm2")
    if name not in e2e.MODELS:
        raise SystemExit(f"E2E_MODEL is none of {', '.join(e2e.MODELS)}")
    python = e2e.private_python(folder)
    e2e.runtime(python)
    model = e2e.weights(folder, python, name)
    with tempfile.TemporaryDirectory() as tmp, open(os.path.join(folder, "server-agent.log"), "w", encoding="utf-8") as log:
        process, address, threads = e2e.start(python, model, name, log)
        try:
            print(f"model {name} at llama.cpp's server, {threads} thread(s)")
            with open(os.path.join(tmp, "pairs.jsonl"), "w", encoding="utf-8") as f:
                f.writelines(json.dumps(p) + "\n" for p in pairs(real, int(os.environ.get("E2E_CLAIMS", "10"))))
            workspace(tmp, address, name)
            e2e.assay(binary, tmp, "import", "pairs", os.path.join(tmp, "pairs.jsonl"))
            started = time.time()
            out = e2e.assay(binary, tmp, "build", "--until", "plan", "--json", "--max-duration", os.environ.get("E2E_SECONDS", "900") + "s", codes=(0, 3, 4))
            seconds = time.time() - started
            done = json.loads(e2e.assay(binary, tmp, "ls", "plan", "--state", "done", "--json")) or []
            traces = [json.loads(e2e.assay(binary, tmp, "show", i["key"]))["trace"] for i in done]
            tell(traces, json.loads(out), seconds)
            if done:
                print(e2e.assay(binary, tmp, "show", done[0]["key"], "--trace"))
        finally:
            process.send_signal(signal.SIGTERM)
            _, _, used = os.wait4(process.pid, 0)
            process.returncode = 0
            print(f"the server used {used.ru_utime + used.ru_stime:.0f} s of processor time")


if __name__ == "__main__":
    try:
        main()
    except e2e.Skip as why:
        print(f"skipped: {why}")
