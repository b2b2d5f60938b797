# SPDX-License-Identifier: MIT
"""Programs whose stacks are deep, for bench/joins: none has served to choose
the rule by which frames of other samples are trusted."""

FILES = {
    "load.el": r"""
;; -*- lexical-binding: t -*-
(defun deep (n) (if (< n 1) (length (split-string (make-string 200 ?a) "b"))
  (1+ (apply #'deep (list (1- n))))))
(let ((max-lisp-eval-depth 5000) (max-specpdl-size 20000))
  (dotimes (i 26000) (deep (+ 50 (% (* i 7) 200))))
  (with-temp-buffer
    (dotimes (i 500) (insert (format "(defun f%d (a b) (let ((x (+ a %d)))
(when (> x b) (mapcar (lambda (y) (* y x)) (list a b x)))))\n" i i)))
    (write-region (point-min) (point-max) "gen.el" nil 'q))
  (byte-compile-file "gen.el"))
""",
    "load.zsh": r"""
f() { if (( $1 < 1 )); then local x=${(l:300::a:)}; x=${x//a/bc}; return; fi
  f $(( $1 - 1 )); }
g() { if (( $1 < 1 )); then :; else for k in 1; do case $1 in
  *) if true; then g $(( $1 - 1 )); fi;; esac; done; fi; }
for i in {1..4000}; do f $(( i % 60 )); g $(( i % 40 )); done
""",
    "load.ml": r"""
type t = L | N of t * int * t
let rec build d = if d = 0 then L else N (build (d-1), d, build (d-1))
let rec sum = function L -> 0 | N (a, v, b) -> sum a + v + sum b
let rec deep n f = if n = 0 then f () else 1 + deep (n-1) f
let rec app f n = if n = 0 then 0 else
  List.fold_left (fun a x -> a + x) (app f (n-1)) [f n; n]
let () =
  let e = Sys.time () +. 4. in let s = ref 0 in let i = ref 0 in
  while Sys.time () < e do incr i;
    s := !s + sum (build 12) + app (fun x -> x * 2) (300 + !i mod 700)
      + deep (100 + !i mod 1900) (fun () -> List.length
          (List.sort compare (List.init 500 (fun i -> i * 7919 mod 501))))
  done; print_int !s
""",
    "load.lua": r"""
local function deep(n)
  if n < 1 then return #string.rep('x', 300):gsub('x', 'y') end
  local ok, v = pcall(deep, n - 1); return (v or 0) + 1 end
local function g(n) if n < 1 then return 'z' end
  return (('ab'):gsub('a', function() return g(n - 1) end)) end
local e = os.clock() + 4
local i = 0
while os.clock() < e do i = i + 1; deep(20 + i % 150); g(10 + i % 60) end
""",
    "load.pl": r"""
:- initialization(main).
nrev([],[]). nrev([H|T],R) :- nrev(T,S), append(S,[H],R).
d(0) :- !. d(N) :- M is N-1, findall(X, (member(X,[1]), d(M)), _), !.
c(0) :- !. c(N) :- M is N-1, catch(c(M), _, true), !.
main :- statistics(cputime,T), numlist(1,200,L), loop(T,L,0), halt.
loop(S,L,I) :- nrev(L,_), N is 10 + I mod 80, d(N), c(N), length(G,200),
  maplist(=(a(I)),G), sort(G,_), format(atom(_),"~w",[G]),
  statistics(cputime,T), ( T-S < 4 -> J is I+1, loop(S,L,J) ; true ).
""",
    "load.ps": r"""
/fib { dup 2 lt { } { dup 1 sub fib exch 2 sub fib add } ifelse } def
/tree { dup 0 le { pop } { gsave 0 0 moveto 0 40 rlineto stroke
  0 40 translate 0.75 dup scale gsave 25 rotate dup 1 sub tree grestore
  gsave -25 rotate dup 1 sub tree grestore grestore pop } ifelse } def
1 1 400 { pop 300 100 translate 2 2 scale 12 tree 19 fib pop
  /Times-Roman findfont 20 scalefont setfont 0 0 moveto
  (Hello world) true charpath fill showpage } for
quit
""",
    "load.m4": r"""
define(`deep',`ifelse($1,0,`x',
`len(deep(decr($1)))patsubst(`aaaaaaaaa',`a',`bb')')')dnl
define(`r',`ifelse($1,0,,`deep(eval($1 % 150 + 10))r(decr($1))')')dnl
""" + "r(90)dnl\n" * 12000,
    "load.rb": r"""
def deep(n, &b)
  n < 1 ? b.call : [n].each { |x| return deep(x - 1, &b) + 1 }
end
def m(n)
  n < 1 ? (1..50).map { |i| (i * 7919 % 53).to_s }.sort.size :
          [1].map { m(n - 1) }.first + 1
end
e = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) + 4; i = 0
while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < e
  i += 1; m(20 + i % 140); deep(10 + i % 60) { "x" * 300 =~ /(x+x+)+y/; 1 }
end
""",
    "load.tcl": r"""
proc deep n { if {$n < 1} { return [string length [string repeat a 300]] }
  return [expr {[uplevel 1 [list deep [expr {$n-1}]]] + 1}] }
proc cmp {n a b} { if {$n > 0} {
  lsort -command [list cmp [expr {$n-1}]] {2 1} }; expr {$a-$b} }
set e [expr {[clock milliseconds] + 4000}]; set i 0
while {[clock milliseconds] < $e} { incr i
  deep [expr {$i % 150}]; cmp [expr {$i % 40}] 1 2 }
""",
    "load.rs": "trait V { fn v(&self) -> u64; }\n" + "".join(f"""
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum E{i} {{ A(u32, Box<E{i}>), B(String), C(Vec<E{i}>) }}
impl V for E{i} {{ fn v(&self) -> u64 {{ match self {{
  E{i}::A(a, b) => *a as u64 + b.v(), E{i}::B(s) => s.len() as u64,
  E{i}::C(x) => x.iter().map(|y| y.v()).sum() }} }} }}
""" for i in range(60)) + "fn main() {\n" + "".join(
        f'println!("{{:?}}", E{i}::C(vec![E{i}::B("a".into())]).v());\n'
        for i in range(60)) + "}\n",
    # Compiled while it runs.
    "compiled.js": r"""
const src = 'function R(n) { if (n < 1) return work();' +
  'let a = [n, n + 1].map(x => x * 2); return R(n - 1) + a.length; }';
globalThis.work = function() {
  let s = 0; for (let i = 0; i < 3000; i++) s += (i * 7919) % 13; return s; }
const end = Date.now() + 4000; let t = 0, k = 0;
while (Date.now() < end) {
  globalThis.R = (0, eval)(
    '(' + src.replace('work()', 'work() + ' + k++) + ')');
  for (let i = 0; i < 40; i++) t += R(900);
}
""",
    "mutual.js": r"""
function A(n) { return n < 1 ? JSON.stringify([...Array(100).keys()]).length :
  (n % 3 ? B(n - 1) : C(n - 1)) + 1; }
function B(n) { return n < 1 ? 'x'.repeat(100).replace(/x/g, 'y').length :
  [n].map(x => A(x - 1))[0] + 1; }
function C(n) { return n < 1 ? parseInt('' + n) :
  n % 2 ? B(n - 1) : A(n - 1); }
const end = Date.now() + 4000; let t = 0, k = 0;
while (Date.now() < end) { k++; t += A(300 + k * 37 % 600); }
""",
    "tree.js": r"""
function walk(t) { if (!t) return 0; let s = 0;
  for (const k of Object.keys(t)) { const v = t[k];
    s += typeof v === 'object' ? walk(v) : String(v).length; } return s; }
function build(n) { let t = { v: 0 }; for (let i = 0; i < n; i++)
  t = { v: i, l: t, r: i % 50 ? null : { v: [1, 2, 3] } }; return t; }
const end = Date.now() + 4000; let t = 0;
while (Date.now() < end) { t += walk(build(900)); t += walk(build(300));
  JSON.stringify(build(400)); }
""",
    # Deep calls from two places, shallow ones from a third.
    "callers.js": r"""
let o = {}; let c = 0;
function f(n) { c++; if (n < 1) { for (let i = 0; i < 300; i++)
    o['k' + (c + i) % 5000] = JSON.stringify({ i, a: [i, c] }); return 0; }
  return f(n - 1) + 1; }
const end = Date.now() + 4000;
while (Date.now() < end) { f(900); f(450); f(c % 900); }
""",
}

# Made once, before anything is recorded.
PREPARE = {"ocaml": "ocamlopt -O3 load.ml -o ocaml-load 2>/dev/null"}

# name: (executable, package, command)
PROGRAMS = {
    "emacs": ("emacs", "emacs-nox", "emacs -Q --batch -l load.el"),
    "zsh": ("zsh", "zsh", "zsh load.zsh"),
    "ocaml": ("ocamlopt", "ocaml-nox", "./ocaml-load"),
    "lua": ("lua5.4", "lua5.4", "lua5.4 load.lua"),
    "swipl": ("swipl", "swi-prolog-nox", "swipl load.pl"),
    "gs": ("gs", "ghostscript", "gs -q -dNODISPLAY -dBATCH load.ps"),
    "m4": ("m4", "m4", "m4 load.m4"),
    "ruby": ("ruby", "ruby", "ruby load.rb"),
    "tclsh": ("tclsh", "tcl", "tclsh load.tcl"),
    "rustc": ("rustc", "rustc",
              "rustc -O --edition 2021 -o rust-load load.rs"),
    "node compiled": ("node", "nodejs", "node compiled.js"),
    "node mutual": ("node", "nodejs", "node mutual.js"),
    "node tree": ("node", "nodejs", "node tree.js"),
    "node callers": ("node", "nodejs", "node callers.js"),
}
