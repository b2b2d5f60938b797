#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Drive a flame graph in a headless browser: browse.py DRAW

DRAW makes the picture from folded stacks (draw.c).  A page holds it in a
frame, uses it by mouse and keyboard, and leaves what it saw in its text.
"""
import json
import os
import shutil
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

PAGE = """\
<!DOCTYPE html><meta charset="utf-8"><body>
<iframe id="f" src="graph.svg" width="1280" height="600"></iframe>
<img id="i" src="graph.svg"><pre id="seen"></pre>
<script>
const seen = {};
const pause = () => new Promise((done) => setTimeout(done, 60));
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
	w.history.back();
	await pause();
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

	w.location.hash = "#zoom=99999&search=%5B";
	await pause();
	seen.survived = Math.round(wide("all")) === seen.all;
}
window.onload = () => use().catch((e) => { seen.error = String(e); })
	.then(() => { document.getElementById("seen").textContent =
		"SEEN" + JSON.stringify(seen) + "NEES"; });
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
    ("a broken expression is searched for as text",
     lambda s: s["search ("] == "10.00 % matched"),
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


def browse(browser, folder, draw):
    svg = subprocess.run([draw], input=STACKS.encode(), check=True,
                         stdout=subprocess.PIPE).stdout
    with open(os.path.join(folder, "graph.svg"), "wb") as out:
        out.write(svg)
    page = os.path.join(folder, "page.html")
    with open(page, "w", encoding="utf-8") as out:
        out.write(PAGE)
    dom = subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu",
         "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync",
         "--allow-file-access-from-files", "--virtual-time-budget=20000",
         "--user-data-dir=" + os.path.join(folder, "profile"), "--dump-dom",
         "file://" + page],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=120,
        check=False).stdout.decode("utf-8", "replace")
    if "SEEN{" not in dom:
        return {"error": "the page did not run"}
    text = dom.split("SEEN{", 1)[1].split("}NEES", 1)[0]
    for entity, char in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        text = text.replace(entity, char)
    return json.loads("{" + text + "}")


def main():
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    print(f"1..{len(CHECKS)}")
    seen = {}
    if browser:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            seen = browse(browser, folder, sys.argv[1])
        print("# " + json.dumps(seen))
    for number, (text, holds) in enumerate(CHECKS, 1):
        if not browser:
            print(f"ok {number} - {text} # SKIP no chromium")
            continue
        try:
            good = holds(seen)
        except KeyError:
            good = False
        print(f"{'ok' if good else 'not ok'} {number} - {text}")


main()
