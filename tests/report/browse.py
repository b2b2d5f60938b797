#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Drive a flame graph in a headless browser: browse.py DRAW

DRAW makes the picture from folded stacks (draw.c).  A page holds it in a
frame, uses it by mouse and keyboard, and sends what it saw to the test, which
waits for that and for no length of time.
"""
import http.server
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

STACKS = """\
app;main;parse;lex_[k] 30
app;main;parse 10
app;main;run;fib;fib 40
app;main;run(<img src=x onerror=parent.pwned=1> 10
app;main;run;lex_[k] 10
"""

# Of 40,000 samples, frames of fewer than 4 are not drawn.
NARROW = "app;main;work 39600\napp;main;deeper 100\n" + "".join(
    f"app;main;n{i};deep;deep 3\n" for i in range(100))

PAGE = """\
<!DOCTYPE html><meta charset="utf-8"><body>
<iframe id="f" src="graph.svg" width="1280" height="600"></iframe>
<iframe id="n" src="narrow.svg" width="1280" height="600"></iframe>
<img id="i" src="graph.svg">
<script>
const seen = {};
/* What the picture does at once is seen after one turn of the page's loop. */
const pause = () => new Promise((done) => setTimeout(done, 0));
/* The browser goes to another address when it likes, and says so then. */
const event = (w, kind) => new Promise((done) =>
	w.addEventListener(kind, done, { once: true }));
async function useNarrow() {
	const w = document.getElementById("n").contentWindow;
	const d = w.document, input = d.querySelector("input");

	seen.narrow = {};
	for (const text of ["deep", "^deep$", "^n7$", "work|n1", "none"]) {
		input.value = text;
		input.dispatchEvent(new w.Event("input"));
		await pause();
		seen.narrow[text] = d.querySelector("output").textContent;
		seen.narrow[text + " marked"] =
			d.querySelectorAll(".hit").length;
	}
	w.location.hash = "#zoom=4&search=deep";
	await event(w, "hashchange");
	seen.narrow.zoomed = d.querySelector("output").textContent;
}
async function use() {
	const w = document.getElementById("f").contentWindow;
	const d = w.document;
	const frames = [...d.querySelectorAll(".f")];
	const name = (f) => f.getAttribute("aria-label").split(", ")[0];
	const called = (n) => frames.find((f) => name(f) === n);
	const wide = (n) =>
		called(n).querySelector("rect").getBoundingClientRect().width;
	const press = (key, more) => d.activeElement.dispatchEvent(
		new w.KeyboardEvent("keydown",
			{ key, bubbles: true, cancelable: true, ...more }));
	const input = d.querySelector("input");

	seen.names = frames.map(name);
	seen.roles = [...new Set(frames.map((f) => f.getAttribute("role")))];
	seen.levels = frames.map((f) => f.getAttribute("aria-level"));
	seen.all = Math.round(wide("all"));
	seen.parse = Math.round(wide("parse"));
	seen.label = called("parse").querySelector("text").textContent;
	seen.tabbable = frames.filter((f) => f.tabIndex === 0).map(name);

	called("parse").querySelector("rect").dispatchEvent(
		new w.MouseEvent("click", { bubbles: true }));
	await pause();
	seen.zoomed = Math.round(wide("parse"));
	seen.hash = w.location.hash;
	seen.hidden = called("fib").style.display;
	seen.above = called("main").classList.contains("above");
	const back = event(w, "popstate");
	w.history.back();
	await back;
	seen.back = Math.round(wide("parse"));
	seen.backHash = w.location.hash;

	press("f", { ctrlKey: true });
	seen.focus = d.activeElement.nodeName;
	for (const text of ["lex", "^fib$", "main|fib", "(", "nothing"]) {
		input.value = text;
		input.dispatchEvent(new w.Event("input"));
		await pause();
		seen["search " + text] = d.querySelector("output").textContent;
	}
	seen.searchHash = w.location.hash;
	press("Escape");
	await pause();
	seen.cleared = [input.value, d.querySelector("output").textContent,
		w.location.hash];

	/* as in a window without focus, whose elements get no such event */
	w.addEventListener("focusin", (e) => e.stopImmediatePropagation(),
		true);
	called("all").focus();
	const walk = [];
	for (const key of ["ArrowUp", "ArrowUp", "ArrowUp", "ArrowRight",
			   "ArrowUp", "ArrowDown", "ArrowLeft"]) {
		press(key);
		walk.push(name(d.activeElement));
	}
	seen.walk = walk;
	press("Enter");
	await pause();
	seen.entered = w.location.hash;
	seen.tip = d.querySelector(".tip").textContent;
	press("Escape");
	await pause();
	seen.escaped = Math.round(wide("all")) === seen.all;
	seen.markup = d.querySelectorAll("img").length;
	seen.pwned = window.pwned === undefined;
	seen.image = document.getElementById("i").naturalWidth;

	/* 600 pixels: the search is in sight and takes what is typed */
	const frame = document.getElementById("f");
	const place = (e) => e.getBoundingClientRect();
	let sized = event(w, "resize");
	frame.width = 600;
	await sized;
	seen.search = place(input).toJSON();
	seen.reset = place([...d.querySelectorAll("button")][1]).toJSON();
	seen.legend = place([...d.querySelectorAll(".key")].pop()).bottom;
	seen.first = Math.min(...frames.map((f) =>
		place(f.querySelector("rect")).top));
	seen.overflow = d.documentElement.scrollWidth;
	sized = event(w, "resize");
	frame.width = 1280;
	await sized;

	/* too many steps a second: the browser takes no more of them */
	const push = w.history.pushState;
	for (const broken of [() => {}, () => { throw new Error("denied"); }]) {
		called("parse").querySelector("rect").dispatchEvent(
			new w.MouseEvent("click", { bubbles: true }));
		w.history.pushState = broken;
		press("Escape");
		seen.stuck = (seen.stuck || "") + " " + Math.round(wide("parse"));
		called("parse").querySelector("rect").dispatchEvent(
			new w.MouseEvent("click", { bubbles: true }));
		seen.stuck += " " + Math.round(wide("parse"));
		[...d.querySelectorAll("button")][1].click();
		seen.stuck += " " + Math.round(wide("parse"));
		w.history.pushState = push;
	}

	const gone = event(w, "hashchange");
	w.location.hash = "#zoom=99999&search=%5B";
	await gone;
	seen.survived = Math.round(wide("all")) === seen.all;
}
window.onload = () => use().then(useNarrow).catch((e) => { seen.error = String(e); })
	.then(() => fetch("http://127.0.0.1:PORT/", { method: "POST",
		mode: "no-cors", body: JSON.stringify(seen) }));
</script>
"""

CHECKS = [
    ("its frames are in depth-first order, largest first",
     lambda s: s["names"] == [
         "all", "app", "main", "run", "fib", "fib", "lex", "parse", "lex",
         "run(<img src=x onerror=parent.pwned=1>"]),
    ("every frame is a tree item with a level",
     lambda s: s["roles"] == ["treeitem"] and
     s["levels"] == list("1234565454")),
    ("frames fill the window by their share",
     lambda s: s["all"] in (1255, 1256) and abs(s["parse"] - 502) <= 1),
    ("labels fit", lambda s: s["label"] == "parse"),
    ("one frame is reached by Tab", lambda s: s["tabbable"] == ["all"]),
    ("a click zooms and is in the address",
     lambda s: s["zoomed"] == s["all"] and s["hash"] == "#zoom=7"
     and s["hidden"] == "none" and s["above"]),
    ("the browser's back undoes a zoom",
     lambda s: s["back"] == s["parse"] and s["backHash"] == ""),
    ("Ctrl-F is the picture's search", lambda s: s["focus"] == "input"),
    ("a search shows the matched share, nothing twice",
     lambda s: s["search lex"] == "40.00 % matched"
     and s["search ^fib$"] == "40.00 % matched"
     and s["search main|fib"] == "100.00 % matched"
     and s["search nothing"] == "no match"),
    ("a search counts what is too narrow to be drawn, nothing twice",
     lambda s: s["narrow"]["deep"] == "1.00 % matched"
     and s["narrow"]["^deep$"] == "0.75 % matched"
     and s["narrow"]["^n7$"] == "0.01 % matched"
     and s["narrow"]["work|n1"] == "99.08 % matched"
     and s["narrow"]["none"] == "no match"),
    ("a search marks the frame in place of narrow ones",
     lambda s: s["narrow"]["^deep$ marked"] == 1
     and s["narrow"]["deep marked"] == 2
     and s["narrow"]["none marked"] == 0),
    ("a search counts what is below the zoomed frame",
     lambda s: s["narrow"]["zoomed"] == "100.00 % matched"),
    ("a broken expression is said to be one, and searched for as text",
     lambda s: s["search ("] == "bad regex, taken as text: 10.00 % matched"),
    ("at 600 pixels the search has room of its own",
     lambda s: s["search"]["left"] >= 0 and s["search"]["width"] >= 200
     and s["reset"]["right"] <= 600 and s["overflow"] <= 600
     and s["search"]["top"] >= s["legend"]
     and s["search"]["bottom"] <= s["first"]),
    ("Escape and Reset bring the view back where the address stays",
     lambda s: s["stuck"].split() == ["502", "1255", "502"] * 2
     or s["stuck"].split() == ["502", "1256", "502"] * 2),
    ("a search is in the address",
     lambda s: s["searchHash"] == "#search=nothing"),
    ("Escape clears search and zoom",
     lambda s: s["cleared"] == ["", "", "#"] or s["cleared"] == ["", "", ""]),
    ("arrows walk to callees, callers and neighbours",
     lambda s: s["walk"] == ["app", "main", "run", "parse", "lex", "parse",
                             "run"]),
    ("Enter zooms to the focused frame", lambda s: s["entered"] == "#zoom=3"),
    ("a tip names the frame that was walked to",
     lambda s: s["tip"].startswith("runnative")),
    ("Escape shows all again", lambda s: s["escaped"]),
    ("no name becomes markup", lambda s: s["markup"] == 0 and s["pwned"]),
    ("as an image it has its size", lambda s: s["image"] == 1200),
    ("a made-up address does no harm", lambda s: s["survived"]),
]


class Listener(http.server.BaseHTTPRequestHandler):
    """Takes what the page saw, which then has come to its end."""

    timeout = 5         # of a connection on which nothing is asked

    def do_POST(self):
        size = int(self.headers["Content-Length"])
        self.server.seen = json.loads(self.rfile.read(size))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


def browse(browser, folder, draw):
    for name, stacks in ("graph", STACKS), ("narrow", NARROW):
        with open(os.path.join(folder, name + ".svg"), "wb") as out:
            subprocess.run([draw], input=stacks.encode(), check=True,
                           stdout=out)
    page = os.path.join(folder, "page.html")
    with http.server.HTTPServer(("127.0.0.1", 0), Listener) as server:
        server.seen, server.timeout = {"error": "the page did not run"}, 30
        with open(page, "w", encoding="utf-8") as out:
            out.write(PAGE.replace("PORT", str(server.server_port)))
        process = subprocess.Popen(
            [browser, "--headless", "--no-sandbox", "--disable-gpu",
             "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-component-update",
             "--disable-sync", "--allow-file-access-from-files",
             "--no-proxy-server", "--remote-debugging-port=0",
             "--user-data-dir=" + os.path.join(folder, "profile"),
             "file://" + page], start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(5):
            if "error" in server.seen:
                server.handle_request()
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return server.seen


def main():
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    print(f"1..{len(CHECKS)}")
    seen = {"error": "no chromium"}
    if browser:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            seen = browse(browser, folder, sys.argv[1])
        print("# " + json.dumps(seen))
    for number, (text, holds) in enumerate(CHECKS, 1):
        try:
            good = holds(seen)
        except KeyError:
            good = False
        print(f"{'ok' if good else 'not ok'} {number} - {text}")


main()
