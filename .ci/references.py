"""Compare what assay writes and decides with reference libraries. Usage: references.py ASSAY

Archives are read by warcio and cdxj-indexer and checked by wacz; archives that warcio and wget make are
read by assay; charsets are compared with html5lib's sniffing (the encoding standard's), dates with
dateutil and dateparser, coefficients of agreement with scikit-learn, krippendorff and irrCAC. Agreements are counted; a disagreement that no row of EXPECTED_* explains fails.
"""

import datetime
import gzip
import hashlib
import html
import http.client
import http.server
import io
import json
import math
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import warnings
import zipfile

from warcio.capture_http import capture_http  # before anything else brings http.client along

import dateparser
import dateutil.parser
import html5lib._inputstream
import irrCAC.raw
import krippendorff
import numpy
import pandas
import sklearn.metrics
import surt
import webencodings
from cdxj_indexer.main import CDXJIndexer
from warcio.archiveiterator import ArchiveIterator

ROOT = pathlib.Path(__file__).resolve().parent.parent
VENV = pathlib.Path(sys.executable).parent
REAL = pathlib.Path(os.environ["ASSAY_REAL"]) if os.environ.get("ASSAY_REAL") else None
failures = []
warnings.simplefilter("ignore")  # of dateutil, about names of zones


def fail(text):
    failures.append(text)
    print("  FAILS: " + text)


def tell(explained):
    for reason, lines in explained.items():
        print(f"  {len(lines)} differ: {reason}")
        for line in lines:
            print(f"    {line}")


def run(*args, code=0, **kwargs):
    done = subprocess.run([str(a) for a in args], capture_output=True, text=True, **kwargs)
    if done.returncode not in (code if isinstance(code, tuple) else (code,)):
        print(done.stdout, done.stderr)
        raise SystemExit(f"{' '.join(map(str, args))}: exit {done.returncode}, want {code}")
    return done


# Archives that we write.


def records(path):
    """Every record with its place, its bytes as they stand, and its HTTP head."""
    with open(path, "rb") as f:
        it = ArchiveIterator(f, check_digests=True)
        for r in it:
            raw = r.raw_stream.read()
            yield r, it.get_record_offset(), raw


def check_warc(path):
    done = subprocess.run([VENV / "warcio", "check", "-v", path], capture_output=True, text=True)
    if done.returncode:
        fail(f"warcio check {path.name}: {done.stdout.strip()}")
    passed = done.stdout.count("digest pass")
    ids, kinds, requests = {}, {}, set()
    for r, offset, raw in records(path):
        get = r.rec_headers.get_header
        kinds[r.rec_type] = kinds.get(r.rec_type, 0) + 1
        if get("WARC-Record-ID") in ids:
            fail(f"{path.name}: two records are {get('WARC-Record-ID')}")
        ids[get("WARC-Record-ID")] = (r.rec_type, get("WARC-Target-URI"), get("WARC-Date"), get("WARC-Payload-Digest"))
        if r.rec_type == "request":
            requests.add(get("WARC-Record-ID"))
        if get("WARC-Concurrent-To") and get("WARC-Concurrent-To") not in requests:
            fail(f"{path.name}: the {r.rec_type} record at {offset} answers no request")
        if r.rec_type == "revisit" and get("WARC-Refers-To"):
            first = ids.get(get("WARC-Refers-To"))
            told = ("response", get("WARC-Refers-To-Target-URI"), get("WARC-Refers-To-Date"), get("WARC-Payload-Digest") or (first or [None])[-1])
            if first != told:
                fail(f"{path.name}: the revisit at {offset} refers to {told}, and there is {first}")
        if r.rec_type == "response" and get("WARC-Payload-Digest") != "sha256:" + hashlib.sha256(raw).hexdigest():
            fail(f"{path.name}: the payload of {get('WARC-Target-URI')} has another SHA-256")
    print(f"  {path.name}: {passed} digests pass, {sum(kinds.values())} records: " + ", ".join(f"{n} {k}" for k, n in sorted(kinds.items())))


def index_of(path):
    """Lines of cdxj-indexer about pages, as sets of what both indexes tell."""
    out = io.StringIO()
    CDXJIndexer(output=out, inputs=[str(path)], sort=True).process_all()
    return lines_of(out.getvalue())


def lines_of(text):
    lines = {}
    for line in text.splitlines():
        key, stamp, fields = line.split(" ", 2)
        f = json.loads(fields)
        if f["url"].startswith("http"):
            lines[f["offset"]] = (key, stamp, f["url"], f.get("status", "-"), f.get("digest", "-"), f["length"], f["filename"], f.get("mime", "-"))
    return lines


# In these two points our index tells less than cdxj-indexer's, or more.
def indexed_alike(ours, theirs):
    if ours[:4] + ours[5:7] != theirs[:4] + theirs[5:7]:
        return False
    # Of a 304, whose record has no payload digest, it tells none; we tell that of the page it confirms.
    if ours[4] != theirs[4] and theirs[4] != "-":
        return False
    # It names no type where the head has none; we do not either.
    return ours[7] == theirs[7] or "-" in (ours[7], theirs[7])


def check_wacz(path, tmp):
    done = subprocess.run([VENV / "wacz", "validate", "-f", path], capture_output=True, text=True)
    if done.returncode or "is valid" not in done.stdout:
        fail(f"wacz validate {path.name}: {done.stdout} {done.stderr}")
    folder = tmp / (path.name + ".files")
    with zipfile.ZipFile(path) as z:
        if z.testzip():
            fail(f"{path.name}: {z.testzip()} has another CRC")
        if z.getinfo("archive/data.warc.gz").compress_type != zipfile.ZIP_STORED:
            fail(f"{path.name}: the WARC file is packed again")
        z.extractall(folder)
    warc = folder / "archive" / "data.warc.gz"
    check_warc(warc)
    text = (folder / "indexes" / "index.cdxj").read_text("utf-8")
    if sorted(text.encode().splitlines()) != text.encode().splitlines():
        fail(f"{path.name}: the index is not sorted by bytes")
    ours, theirs = lines_of(text), index_of(warc)
    # An attempt without an answer is a metadata record of fields, which no index has.
    for offset in sorted(set(ours) | set(theirs)):
        a, b = ours.get(offset), theirs.get(offset)
        if a is None or b is None or not indexed_alike(a, b):
            fail(f"{path.name} at {offset}: our index has {a}, cdxj-indexer {b}")
    for line in ours.values():
        offset, length = next(int(o) for o, l in ours.items() if l is line), int(line[5])
        with open(warc, "rb") as f:
            f.seek(offset)
            member = gzip.decompress(f.read(length))
        if b"WARC-Target-URI: " + line[2].encode() + b"\r\n" not in member:
            fail(f"{path.name}: at {offset} is not {line[2]}")
    pages = [json.loads(l) for l in (folder / "pages" / "pages.jsonl").read_text("utf-8").splitlines()][1:]
    stamps = {(l[2], l[1]) for l in ours.values()}
    for p in pages:
        if (p["url"], re.sub(r"\D", "", p["ts"])) not in stamps:
            fail(f"{path.name}: the page {p['url']} is not in the index")
    print(f"  {path.name}: valid; {len(ours)} lines of the index as cdxj-indexer's; {len(pages)} pages")


# Archives that others make.


class Replay(http.server.BaseHTTPRequestHandler):
    """A proxy that answers from an archive."""

    protocol_version = "HTTP/1.1"
    pages = {}

    def do_GET(self):
        url = self.path if self.path.startswith("http") else "http://" + self.headers["Host"] + self.path
        status, headers, body = self.pages.get(url, ("404 Not Found", [], b"not archived"))
        code, _, reason = status.partition(" ")
        self.send_response_only(int(code), reason)
        for name, value in headers:
            if name.lower() not in ("content-length", "connection"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def pages_of(warc):
    pages, bodies = {}, {}
    for r, _, raw in records(warc):
        get = r.rec_headers.get_header
        if r.rec_type not in ("response", "revisit") or not r.http_headers:
            continue
        if r.rec_type == "response":
            bodies[get("WARC-Record-ID")] = raw
        body = raw if r.rec_type == "response" else bodies[get("WARC-Refers-To")]
        pages[get("WARC-Target-URI")] = (r.http_headers.statusline, r.http_headers.headers, body)
    return pages


def table(release, name):
    rows = [json.loads(line) for line in (release / "data" / f"{name}.jsonl").read_text("utf-8").splitlines()]
    for row in rows:
        row.pop("retrieved_at", None)  # another crawler came at another time
    return rows


def check_import(assay, tmp, demo, name, warc, release, pages):
    if not warc.exists():
        return fail(f"{name} wrote no {warc.name}")
    home = tmp / ("by-" + name)
    home.mkdir()
    shutil.copy(demo / "assay.yaml", home)
    run(assay, "-C", home, "import", "reddit", demo / "posts.ndjson")
    told = json.loads(run(assay, "-C", home, "--json", "import", "warc", warc).stdout)[0]
    if told["counts"]["stored"] != len(pages) or told["problems"]:
        fail(f"{name}: {told['counts']['stored']} of {len(pages)} pages were imported: {told['problems']}")
    done = run(assay, "-q", "-C", home, "build", "--replay", code=3)
    if not re.search(r"^0 requests, ", done.stderr, re.M):
        fail(f"{name}: the build asked somebody:\n{done.stderr}")
    again = next((home / "release").iterdir())
    for t in ("claims", "documents", "pairs", "annotations"):
        if table(again, t) != table(release, t):
            fail(f"{name}: table {t} of the release is another one")
    print(f"  {warc.name} of {name}: {told['counts']['stored']} pages imported, the release is the demo's")


def check_foreign(assay, tmp, demo, warc):
    release = next((demo / "release").iterdir())
    Replay.pages = pages = pages_of(warc)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Replay)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    proxy = f"127.0.0.1:{server.server_port}"
    made = tmp / "warcio.warc.gz"
    with capture_http(str(made)):
        for url in pages:
            c = http.client.HTTPConnection(proxy)
            c.request("GET", url)
            c.getresponse().read()
            c.close()
    check_import(assay, tmp, demo, "warcio", made, release, pages)
    if not shutil.which("wget"):
        print("  skipped: no wget")
    else:
        (tmp / "urls.txt").write_text("\n".join(pages) + "\n")
        env = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")} | {"http_proxy": "http://" + proxy}
        run("wget", "-q", "--no-config", "--content-on-error", "--tries=1", "--max-redirect=0", "--input-file", "urls.txt", "--warc-file=wget", "-O", "/dev/null", code=(0, 8), cwd=tmp, env=env)
        check_import(assay, tmp, demo, "wget", tmp / "wget.warc.gz", release, pages)
    server.shutdown()


# Charsets.

SENTENCES = {
    "windows-1252": "Les Français travaillent-ils trop peu ? Voilà où mène l’été, dit-elle.",
    "iso-8859-2": "Příliš žluťoučký kůň úpěl ďábelské ódy nad zelenou loukou.",
    "windows-1251": "Проверка фактов: утверждение министра о дорогах оказалось ложным.",
    "koi8-r": "Проверка фактов: утверждение министра о дорогах оказалось ложным.",
    "shift_jis": "首相の発言は事実ではなく、資料と一致しないことが分かった。",
    "euc-jp": "首相の発言は事実ではなく、資料と一致しないことが分かった。",
    "gbk": "记者核查了部长关于公路的说法，发现与资料不符，属于错误信息。",
    "big5": "記者查核了部長關於公路的說法，發現與資料不符，屬於錯誤訊息。",
    "euc-kr": "장관의 도로에 관한 발언은 자료와 맞지 않아 거짓으로 드러났다.",
    "utf-8": "Příliš žluťoučký kůň; Проверка; 首相の発言; 장관의 도로.",
}

DECLARED = re.compile(rb"""(?i)(?:<meta[^>]{0,300}?charset\s*=|<\?xml[^>]{0,200}?encoding\s*=)\s*["']?\s*([a-z0-9_:.-]+)""")


def nearly_utf8(body):
    """At most one byte of twenty sequences is stray."""
    text = body.decode("utf-8", "replace")
    sequences = sum(c > "\x7f" and c != "\ufffd" for c in text)
    return sequences >= 20 * text.count("\ufffd")


def refuted(body, name):
    """Not all bytes belong to the charset."""
    encoding = webencodings.lookup(name)
    return encoding is None or "\ufffd" in webencodings.decode(body, encoding)[0]


# Where we are not the encoding standard's, and why: whether a row holds of a page, and the reason.
EXPECTED_CHARSETS = [
    (lambda body, ours, theirs, declared: ours["Charset"] == "utf-8" and nearly_utf8(body),
     "bytes that are UTF-8, but for a stray one, are read as UTF-8 whatever is declared: pages are converted and declarations stay"),
    (lambda body, ours, theirs, declared: ours["From"] == "guess" and theirs == "windows-1252" and not declared,
     "without a declaration the standard falls back to windows-1252, and we ask a detector"),
    (lambda body, ours, theirs, declared: ours["From"] == "meta" and theirs == "windows-1252" and body.startswith(b"<?xml"),
     "the reference reads HTML, where an XML declaration says nothing; of XML it is the declaration"),
    (lambda body, ours, theirs, declared: ours["From"] == "meta" and theirs == "windows-1252" and declared and declared.end() > 1000,
     "a declaration behind the first 1,024 bytes counts: archives and tag managers put more before it"),
    (lambda body, ours, theirs, declared: ours["From"] == "guess" and declared and refuted(body, theirs),
     "a declaration that the bytes refute is passed over"),
]


def charset_cases(tmp):
    """Generated pages of every charset, declared in the head, in the page, wrongly and not at all; then captures."""
    folder = tmp / "pages"
    folder.mkdir()
    cases = []

    def add(name, body, kind="text/html"):
        path = folder / name
        path.write_bytes(body)
        cases.append({"File": str(path), "Type": kind})

    for charset, text in SENTENCES.items():
        page = f"<!DOCTYPE html><html><head>%s<title>{text[:20]}</title></head><body><p>{text * 8}</p></body></html>"
        encode = lambda s: s.encode({"windows-1252": "cp1252", "gbk": "gb18030"}.get(charset, charset))
        meta = f'<meta charset="{charset}">'
        add(f"meta-{charset}.html", encode(page % meta))
        add(f"old-meta-{charset}.html", encode(page % f'<meta http-equiv=Content-Type content="text/html; charset={charset}">'))
        add(f"header-{charset}.html", encode(page % ""), f"text/html; charset={charset}")
        add(f"header-against-meta-{charset}.html", encode(page % '<meta charset="iso-8859-15">'), f"text/html; charset={charset}")
        add(f"late-{charset}.html", encode(page % ("<!--" + "x" * 2000 + "-->" + meta)))
        add(f"undeclared-{charset}.html", encode(page % ""))
        add(f"declared-wrongly-{charset}.html", encode(page % '<meta charset="utf-8">'))
        add(f"bom-{charset}.html", b"\xef\xbb\xbf" + (page % meta).encode())
    add("bom-utf-16le.html", b"\xff\xfe" + "<p>Les Français".encode("utf-16-le"))
    add("bom-utf-16be.html", b"\xfe\xff" + "<p>Les Français".encode("utf-16-be"))
    add("ascii.html", b"<html><head><meta charset=iso-8859-1><title>x</title></head><p>Plain words.</html>")
    add("empty.html", b"")
    for root in filter(None, [ROOT / "scrapers" / "testdata", ROOT / "fetch" / "testdata", REAL]):
        for path in sorted(p for p in root.rglob("*") if p.suffix in (".html", ".htm", ".xml", ".rss", ".atom") and p.is_file()):
            kind = "text/html" if path.suffix in (".html", ".htm") else "application/xml"
            cases.append({"File": str(path), "Type": kind})
    return cases


def sniffed(case, body):
    """The encoding standard's answer."""
    kind = re.search(r"charset=([\w-]+)", case["Type"])
    stream = html5lib._inputstream.HTMLBinaryInputStream(body, transport_encoding=kind and kind[1], useChardet=False)
    return stream.charEncoding[0].name


def expected_in_index():
    """What INDEX.tsv of the captures says about charsets: path => (name, what its text holds)."""
    real = {}
    if REAL:
        for line in (REAL / "INDEX.tsv").read_text("utf-8").splitlines()[1:]:
            cols = line.split("\t")
            if cols[1] == "encoding":
                told = json.loads(cols[7])
                real[str(REAL / cols[0])] = STANDARD_NAMES.get(told["real_encoding"], told["real_encoding"]), told.get("body_contains", "")
    return real


# Python's names of what the encoding standard calls otherwise. What is broken has no right name.
STANDARD_NAMES = {
    "utf-8-sig": "utf-8", "utf-16": "utf-16le", "cp1252": "windows-1252", "cp1251": "windows-1251", "cp1255": "windows-1255", "cp932": "shift_jis", "cp949": "euc-kr",
    "euc_jp": "euc-jp", "gb18030": "gbk", "iso8859-1": "windows-1252", "broken-utf-8": None,
}


def printed(page):
    """The words of a page as a person reads them."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", "", page)).split())


def check_charsets(cases, decisions):
    same = equal = 0
    explained, captured = {}, expected_in_index()
    known = 0
    for case, ours in zip(cases, decisions, strict=True):
        path = pathlib.Path(case["File"])
        body = path.read_bytes()
        theirs = sniffed(case, body)
        if str(path) in captured:
            want, words = captured[str(path)]
            words = " ".join(words.split())
            got = {"gb18030": "gbk"}.get(ours["Charset"], ours["Charset"])
            if want not in (None, got) or words not in printed(ours["Text"]):
                fail(f"charset of {path.name}: we say {got}, INDEX.tsv {want}, with the words {words!r}")
            known += 1
        if ours["Charset"] == theirs:
            same += 1
            continue
        # Two charsets that read the bytes alike are one answer.
        text = webencodings.decode(body, webencodings.lookup(theirs))[0].removeprefix("\ufeff")
        if text.replace("\r\n", "\n") == ours["Text"].replace("\r\n", "\n"):
            equal += 1
            continue
        line = f"{path.name}: {ours['Charset'] or 'no text'} ({ours['From']}), the reference says {theirs}"
        declared = DECLARED.search(body)
        reason = next((why for holds, why in EXPECTED_CHARSETS if holds(body, ours, theirs, declared)), None)
        if reason is None:
            fail(f"charset of {line}")
        else:
            explained.setdefault(reason, []).append(line)
    print(f"  {len(cases)} pages: {same} of the same charset, {equal} that read the same; {known} captures as INDEX.tsv says")
    tell(explained)


# Dates.

ZONES = {"UT": 0, "GMT": 0, "UTC": 0, "Z": 0, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7, "BST": 1, "CET": 1, "CEST": 2, "IST": 5.5, "JST": 9, "SAST": 2}
FIELDS = re.compile(
    r"""(?:"(?:date(?:Published|Modified|Created)|uploadDate|reviewDate|published(?:_at|At)?|created_at|updated_at|date(?:_gmt)?|pubDate)"\s*:\s*"([^"\\]{6,60})")"""
    r"""|<(?:pubDate|updated|published|dc:date|lastmod|lastBuildDate)[^>]*>\s*(?:<!\[CDATA\[)?([^<\]]{6,60})"""
    r"""|datetime=["']([^"']{6,60})["']"""
    r"""|(?:published_time|modified_time)["'][^>]{0,20}content=["']([^"']{6,60})["']"""
    r"""|stated on ([A-Z][a-z]+ \d{1,2}, \d{4})"""
)

# Where we refuse what dateutil reads, and why, by what is printed. Any other disagreement fails.
REFUSED_DATES = [
    (r"\d{1,2}[-/.]\d{1,2}[-/.]\d{4}.*", "day and month cannot be told apart without a hint, and no date is made up"),
    (r"0\d{3}-.*", "a year before 1000 is the zero value of a program"),
    (r"\d{2} \w{3} \d{2}", "which of the two numbers is the year cannot be told without a clock time behind it"),
    (r"\d{4}-1[3-9]-\d{2}", "there is no such month, and month and day do not change places in this form"),
    (r"\d{9,10}", "a bare number is no date where nobody says what it counts"),
    (r"yesterday", "no date is printed; what it means depends on when it is read"),
]


def date_cases():
    cases = set()
    for year, month, day, hour, minute in [(2023, 3, 9, 14, 5), (1999, 12, 31, 23, 59), (2024, 2, 29, 0, 0), (2020, 11, 1, 9, 30), (2025, 6, 3, 21, 30)]:
        at = datetime.datetime(year, month, day, hour, minute, 7)
        for form in ["%Y-%m-%d", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S-04:00", "%Y-%m-%dT%H:%M:%S.123+0530", "%Y-%m-%d %H:%M:%S", "%Y%m%d", "%Y%m%dT%H%M%SZ", "%Y/%m/%d",
                     "%B %d, %Y", "%b %d, %Y", "%b. %d, %Y", "%d %B %Y", "%d %b %Y", "%A, %B %d, %Y", "%a, %d %b %Y %H:%M:%S GMT", "%a, %d %b %Y %H:%M:%S EDT", "%a, %d %b %Y %H:%M:%S +0200",
                     "%a %b %d %H:%M:%S UTC %Y", "%B %d, %Y, %I:%M %p EST", "%B %d, %Y at %I:%M %p", "%d-%m-%Y", "%m/%d/%Y", "%d %b %y", "%B %Y", "%Y-%m", "%H:%M"]:
            cases.add(at.strftime(form))
    cases |= {"2023-02-30", "2023-13-01", "February 29, 2023", "", "yesterday", "soon", "0000-00-00", "3 juin 2025", "3 de junio de 2025", "3. Juni 2025", "12 giugno 2025", "5 de março de 2024", "21 décembre 2023"}
    roots = [ROOT / "scrapers" / "testdata", ROOT / "planner" / "testdata"] + ([REAL] if REAL else [])
    for root in roots:
        for path in root.rglob("*"):
            if path.is_file() and path.suffix in (".html", ".xml", ".json", ".rss", ".atom", ".txt") and path.stat().st_size < 4 << 20:
                for m in FIELDS.finditer(path.read_bytes().decode("utf-8", "replace")):
                    cases.add(next(g for g in m.groups() if g).strip())
    return sorted(c for c in cases if "\ufffd" not in c)


def referenced(printed):
    """What dateutil, or for words of other languages dateparser, reads: (day, instant or None), or None."""
    try:
        # Two defaults show what is filled in.
        one, two = (dateutil.parser.parse(printed, default=datetime.datetime(y, m, d), tzinfos={k: v * 3600 for k, v in ZONES.items()}) for y, m, d in [(2001, 1, 1), (2002, 2, 2)])
        if one != two:
            return None
    except (ValueError, OverflowError):
        one = dateparser.parse(printed, settings={"REQUIRE_PARTS": ["day", "month", "year"]})
        if one is None:
            return None
    clock = re.search(r"\d:\d|T\d{6}|T\d{4}", printed)
    instant = one.astimezone(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ") if one.tzinfo and clock else None
    return one.strftime("%Y-%m-%d"), instant


def check_dates(readings):
    days = instants = refused = 0
    explained = {}
    for printed, ours in readings.items():
        theirs = referenced(printed)
        mine = None if ours["error"] else (ours["day"], ours["value"] if ours["precision"] == "instant" else None)
        if mine == theirs:
            if mine is None:
                refused += 1
            elif mine[1]:
                instants += 1
            else:
                days += 1
            continue
        show = lambda r: "refused" if r is None else f"instant {r[1]}" if r[1] else f"day {r[0]}"
        line = f"{printed!r}: {show(mine)}, the reference says {show(theirs)}"
        reason = next((why for pattern, why in REFUSED_DATES if mine is None and re.fullmatch(pattern, printed)), None)
        if reason is None:
            fail(f"date {line}")
        else:
            explained.setdefault(reason, []).append(line)
    print(f"  {len(readings)} dates: {instants} the same instant, {days} the same day, {refused} refused by both")
    tell(explained)


def check_keys(keys):
    for address, ours in keys.items():
        theirs = surt.surt(address)
        if ours != theirs:
            fail(f"index key of {address}: ours {ours}, surt's {theirs}")
    print(f"  {len(keys)} addresses have the keys that surt gives them")


def addresses():
    found = {"http://a.example/%7Euser/%2541/%C3%A9?B=2&a=1&a", "https://www3.a.example:443/x/../Y/?", "http://a.example:8080", "http://[2001:db8::1]/x", "http://a.example/a//b/./c"}
    if REAL:
        for line in (REAL / "INDEX.tsv").read_text("utf-8").splitlines()[1:]:
            url = line.split("\t")[6]
            if re.fullmatch(r"https?://[^\s<>]+", url):
                found.add(url)
    return sorted(found)


# Agreement among raters.


def rating_cases():
    """Ratings of every shape: skewed and even, with gaps, two raters to seven, two labels to six."""
    rng = random.Random(6)
    cases = []
    for n in range(120):
        labels = [f"l{k}" for k in range(rng.randint(2, 6))]
        raters, gaps, own = rng.randint(2, 7), rng.choice([0, 0, 0.2, 0.5]), rng.choice([0.1, 0.5, 0.9])
        shares = [rng.random() ** 3 + 0.001 for _ in labels]
        items = []
        for _ in range(rng.randint(3, 80)):
            truth = rng.choices(labels, shares)[0]
            item = [truth if rng.random() < own else rng.choices(labels, shares)[0] for _ in range(raters)]
            items.append(["" if rng.random() < gaps else label for label in item])
        cases.append({"labels": labels, "items": items})
    # The published pairs, of which most are unrelated; raters who agree on one label; who give one each; who share no item.
    cases.append({"labels": ["supporting", "misleading", "unrelated"], "items": [["unrelated", "unrelated", "unrelated"]] * 95 + [["misleading", "unrelated", "supporting"]] * 5})
    cases.append({"labels": ["supporting", "misleading"], "items": [["supporting", "supporting"]] * 30})
    cases.append({"labels": ["supporting", "misleading"], "items": [["supporting", "misleading"]] * 30})
    cases.append({"labels": ["supporting", "misleading"], "items": [["supporting", ""], ["", "misleading"]]})
    return cases


def reference_agreement(case):
    """The same numbers by the reference libraries; None where a library has no number."""
    labels, items = case["labels"], case["items"]
    pairs = [(i[0], i[1]) for i in items if i[0] and i[1]]
    out = {}
    with numpy.errstate(all="ignore"):
        if pairs:
            a, b = [p[0] for p in pairs], [p[1] for p in pairs]
            out["kappa"] = sklearn.metrics.cohen_kappa_score(a, b, labels=labels)
            out["confusion"] = sklearn.metrics.confusion_matrix(a, b, labels=labels).tolist()
            out["accuracy"] = sklearn.metrics.accuracy_score(a, b)
            out["macro_f1"] = sklearn.metrics.f1_score(a, b, labels=sorted(set(a) | set(b)), average="macro", zero_division=0)
        values = [[labels.index(label) if label else numpy.nan for label in item] for item in items]
        if any(sum(bool(label) for label in item) > 1 for item in items):
            for level in ("nominal", "ordinal"):
                try:
                    out["alpha_" + level] = krippendorff.alpha(reliability_data=numpy.array(values).T, value_domain=list(range(len(labels))), level_of_measurement=level)
                except ValueError:  # it wants two labels
                    pass
            frame = pandas.DataFrame([[label or numpy.nan for label in item] for item in items])
            for weights in ("identity", "linear", "quadratic", "ordinal"):
                cac = irrCAC.raw.CAC(frame.copy(), weights=weights, categories=labels, digits=13)
                gwet = cac.gwet()["est"]
                out["ac1" if weights == "identity" else "ac2_" + weights] = gwet["coefficient_value"]
                if weights == "identity":
                    out["ac1_pe"], out["percent"] = gwet["pe"], gwet["pa"]
                    if len({label for item in items for label in item if label}) > 1:
                        fleiss = cac.fleiss()["est"]
                        out["fleiss"], out["fleiss_pe"] = fleiss["coefficient_value"], fleiss["pe"]
    return {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in out.items()}


def check_agreement(cases, ours):
    numbers, undefined, worst = 0, 0, 0.0
    for n, (case, mine) in enumerate(zip(cases, ours, strict=True)):
        theirs = reference_agreement(case)
        for name in sorted(mine):
            a, b = mine[name], theirs.get(name)
            if name == "confusion":
                if b is not None and a != b:
                    fail(f"ratings {n}: confusion {a}, the reference says {b}")
            elif a is None or b is None:
                if a is not b:
                    fail(f"ratings {n}: {name} is {a}, the reference says {b}")
                undefined += 1
            elif abs(a - b) > 1e-9:
                fail(f"ratings {n}: {name} is {a!r}, the reference says {b!r}")
            else:
                numbers, worst = numbers + 1, max(worst, abs(a - b))
    print(f"  {numbers} coefficients of {len(cases)} sets of ratings the same, apart by {worst:.0e} at most; {undefined} undefined by both")


def main(assay):
    assay = pathlib.Path(assay).resolve()
    with tempfile.TemporaryDirectory() as name:
        tmp = pathlib.Path(name)
        questions = {"pages.json": charset_cases(tmp), "dates.json": date_cases(), "addresses.json": addresses(), "ratings.json": rating_cases()}
        for file, q in questions.items():
            (tmp / file).write_text(json.dumps(q))
        run(os.environ.get("GO", "go"), "test", "-count=1", "-run", "^TestInterop", "./fetch", "./corpus", "./stats", cwd=ROOT, env=os.environ | {"ASSAY_INTEROP": name})
        demo = tmp / "demo"
        run(assay, "-q", "demo", demo)
        for ending in ("warc.gz", "wacz"):
            run(assay, "-q", "-C", demo, "archive", tmp / f"demo.{ending}")
        print("archives that we write")
        for name in ("demo", "odd"):
            check_warc(tmp / f"{name}.warc.gz")
            check_wacz(tmp / f"{name}.wacz", tmp)
        check_keys(json.loads((tmp / "keys.json").read_text()))
        print("archives that others make")
        check_foreign(assay, tmp, demo, tmp / "demo.warc.gz")
        print("charsets, beside html5lib")
        check_charsets(questions["pages.json"], json.loads((tmp / "charsets.json").read_text()))
        print("dates, beside dateutil and dateparser")
        check_dates(json.loads((tmp / "readings.json").read_text()))
        print("agreement, beside scikit-learn, krippendorff and irrCAC")
        check_agreement(questions["ratings.json"], json.loads((tmp / "agreement.json").read_text()))
    if failures:
        raise SystemExit(f"{len(failures)} disagreements that nothing explains")


main(sys.argv[1])
