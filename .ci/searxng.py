"""Search through a real SearXNG on loopback, through the program as its users run it. Usage: searxng.py ASSAY

The instance has one engine, which searches some pages that are served here, and in one case a second one that
nobody answers for. Found, not found, not searched and not allowed have to be told apart.
"""

import http.server
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import e2e

HOSTS = ("herald.example", "roads.example")
TOWNS = ("Ostrow", "Brenlo", "Kattegor", "Vilmersund", "Pellworth", "Tarnholm")
FOUND = "The Marsh Bridge in Ostrow was closed for 14 months."
NOWHERE = "Zebras outnumber violins among quokkas."


def pages():
    """The served pages: address => (title, text)."""
    out = {}
    for n, town in enumerate(TOWNS):
        text = (
            f"The Marsh Bridge in {town} was closed for {14 + n} months, and the ferry carried {900 + n} people on each day of them.",
            f"The office of roads of {town} met on Friday and read the letters of the people who live on the other side of the river.",
            "A brass band played on the quay while the last barriers were taken away, and the ferry went back to its lake.",
        )
        out[f"http://{HOSTS[n % 2]}/marsh-{n}"] = (f"Marsh Bridge of {town}", text)
    return out


PAGES = pages()


def words(text):
    return set(re.findall(r"[a-z]{4,}", text.lower()))


def find(query):
    """Pages that share a word with a query, best first, on the hosts that it names."""
    wanted = words(re.sub(r"site:\S+", " ", query))
    hosts = re.findall(r"site:([\w.]+)", query) or HOSTS
    ranked = [(len(wanted & words(title + " ".join(text))), url, title) for url, (title, text) in PAGES.items() if urllib.parse.urlsplit(url).netloc in hosts]
    return [{"url": url, "title": title, "content": title + ", in short"} for n, url, title in sorted(ranked, reverse=True) if n]


class Web(http.server.BaseHTTPRequestHandler):
    """The engine that SearXNG asks, and the pages that it finds."""

    def do_GET(self):
        at = urllib.parse.urlsplit(self.path)
        args = urllib.parse.parse_qs(at.query)
        page = PAGES.get(f"http://{self.headers.get('Host', '')}{at.path}")
        if at.path == "/find":
            got = find(args["q"][0]) if args["page"] == ["1"] else []
            return self.reply("application/json", json.dumps({"results": got}))
        if page is None:
            return self.reply("text/plain", "User-agent: *\nAllow: /\n", 200 if at.path == "/robots.txt" else 404)
        title, text = page
        body = "".join(f"<p>{p}</p>" for p in text)
        return self.reply("text/html", f"<!DOCTYPE html><html lang=en><title>{title}</title><main><article><h1>{title}</h1>{body}</article></main></html>")

    def reply(self, kind, text, status=200):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind + "; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def start(folder, web, formats, dead):
    """A running SearXNG and its address."""
    port = e2e.free_port()

    def engine(name, at, paging):
        return {
            "name": name, "engine": "json_engine", "shortcut": name[:1], "categories": ["general"], "enable_http": True, "paging": paging,
            "search_url": f"http://127.0.0.1:{at}/find?q={{query}}&page={{pageno}}", "results_query": "results",
            "url_query": "url", "title_query": "title", "content_query": "content",
        }

    settings = {
        "use_default_settings": {"engines": {"keep_only": ["none of them"]}},
        "general": {"enable_metrics": False},
        "server": {"secret_key": "of a test", "limiter": False, "image_proxy": False},
        "search": {"formats": formats},
        "plugins": {},
        "engines": [engine("papers", web, True)] + ([engine("dead", e2e.free_port(), False)] if dead else []),
    }
    path = folder / f"settings-{port}.yml"
    path.write_text(json.dumps(settings))  # which is YAML too
    code = f"import searx.webapp as w, werkzeug.serving as s; s.run_simple('127.0.0.1', {port}, w.app, threaded=True)"
    with open(folder / f"searxng-{port}.log", "w", encoding="utf-8") as log:
        process = subprocess.Popen([sys.executable, "-c", code], env=os.environ | {"SEARXNG_SETTINGS_PATH": str(path), "TMPDIR": str(folder)}, stdout=log, stderr=subprocess.STDOUT)
    return process, f"http://127.0.0.1:{port}", path


def ready(process, address, settings):
    for _ in range(240):
        if process.poll() is not None:
            raise SystemExit(f"SearXNG ended with {process.returncode}:\n" + settings.with_name(settings.name.replace("settings", "searxng").replace(".yml", ".log")).read_text()[-2000:])
        try:
            with urllib.request.urlopen(address + "/", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.25)
    raise SystemExit("SearXNG does not answer")


def search(binary, folder, address, web):
    """Build a workspace that searches through an instance: claim => its item, and what its search did."""
    folder.mkdir()
    (folder / "assay.yaml").write_text(f"""recipe:
  name: searched
  discover: [imported]
  evidence: [search]
  speakers: []
  dates: {{from: "", to: ""}}
  planner:
    policy: gpe
    agent: {{tools: [web_support, web_refute], engines: {{"*": searxng}}, per_action: 4, max_actions: 4}}
runtime:
  contact: tests@assay.example
  delay: 0s
  allow_private: [{json.dumps(urllib.parse.urlsplit(address).netloc)}]
  resolve: {{{", ".join(f'{h}: "127.0.0.1:{web}"' for h in HOSTS)}}}
  searxng: {{base: "{address}"}}
""")
    (folder / "claims.csv").write_text(f"claim,verdict\n{FOUND},true\n{NOWHERE},false\n")
    e2e.assay(binary, folder, "import", "claims-table", folder / "claims.csv", "--map", "claim=claim,rating=verdict")
    e2e.assay(binary, folder, "build", codes=(0, 3))
    out = {}
    for item in json.loads(e2e.assay(binary, folder, "ls", "plan", "--json")):
        shown = json.loads(e2e.assay(binary, folder, "show", item["key"]))
        failed = [i["fail"]["reason"] for i in shown["items"] if i["stage"] == "plan/gpe" and "fail" in i]
        steps = shown.get("trace", {}).get("steps", [])
        out[shown["claim"]["text"]] = {
            "outcomes": [s["outcome"] for s in steps],
            "read": sorted({r["url"] for s in steps for r in s.get("results", []) if r["kept"]}),
            "why": failed[0] if failed else "",
        }
    return out


def main(binary):
    best = sorted(r["url"] for r in find(FOUND)[:4])
    found = {"outcomes": ["done", "done"], "read": best, "why": ""}
    cases = {
        "an engine that answers": (["html", "json"], False, {FOUND: found, NOWHERE: {"outcomes": ["empty", "empty"], "read": [], "why": ""}}),
        "an engine that answers, and a dead one": (["html", "json"], True, {FOUND: found, NOWHERE: "unresponsive_engines"}),
        "an instance without JSON": (["html"], False, {FOUND: "add json to search.formats", NOWHERE: "add json to search.formats"}),
    }
    with tempfile.TemporaryDirectory() as name:
        tmp = pathlib.Path(name)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Web)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        web = server.server_address[1]
        running = {case: start(tmp, web, formats, dead) for case, (formats, dead, _) in cases.items()}
        wrong = 0
        try:
            for instance in running.values():
                ready(*instance)
            for n, (case, (_, _, wanted)) in enumerate(cases.items()):
                got = search(binary, tmp / str(n), running[case][1], web)
                for claim, want in wanted.items():
                    have = got.get(claim)
                    right = have and (want in have["why"] and not have["read"] if isinstance(want, str) else have == want)
                    wrong += not right
                    print(f"  {case}: {claim} {'as it has to be' if right else f'FAILS: {have}, want {want}'}")
        finally:
            for process, _, _ in running.values():
                process.terminate()
                process.wait()
    if wrong:
        raise SystemExit(f"{wrong} searches that went wrong")


main(os.path.abspath(sys.argv[1]))
