# SPDX-License-Identifier: MIT
"""The programs of bench/stacks: loads of a few seconds, and what they need.

Each is a shell command that runs in a folder of its own, with the files below
in it; PROGRAMS names the executable that must be there, and the Debian package
that has it.
"""

FILES = {
    "load.py": """
import ast, collections, json, re, sys
x = [{str(i): [i] * 20} for i in range(4000)]
for _ in range(60): json.loads(json.dumps(x))
s = open(ast.__file__).read() * 2
for _ in range(10): compile(ast.parse(s), 'x', 'exec')
for _ in range(200): collections.Counter(re.findall(r'\\w+', s)).most_common(5)
""",
    "load.pl": """
my %h; for my $i (1..4000000){ $h{$i%5000}.=sprintf('%d',$i) if $i%3; }
sub f { my $n=shift; return $n<1?0:f($n-1)+1 } for(1..2000){ f(90) }
my @a=sort { $a <=> $b } map { ($_*7919)%100003 } 1..2000000;
""",
    "load.rb": """
h = Hash.new(0); 6000000.times { |i| h[(i % 5000).to_s] += i }
def f(n) n < 1 ? 0 : f(n - 1) + 1 end
100000.times { f(60) }
(1..1200000).sort_by { |x| -x }.map(&:to_s).join.gsub(/7+/) { |m| m.size.to_s }
""",
    "load.php": """<?php
$h=[];for($i=0;$i<4000000;$i++){$h[md5((string)($i%5000))]=$i;}
function f($n){return $n<2?$n:array_sum(array_map('f',[$n-1]))+1;}
for($i=0;$i<3000;$i++) f(200);
""",
    "load.js": """
function f(n) { return n < 1 ? 0 : f(n - 1) + 1; }
let o = {};
for (let i = 0; i < 4e6; i++) {
  o['k' + i % 5000] = JSON.stringify({ i, a: [i, i + 1] });
  if (i % 100 == 0) f(60);
}
[...Array(300000).keys()].sort((a, b) => b % 997 - a % 997);
""",
    "load.sh": """
f() { local n=$1; if [ $n -gt 0 ]; then f $((n-1)); fi; }
for i in $(seq 150); do f 60; done
x=0; for ((i=0;i<500000;i++)); do x=$((x+i%7)); case $x in *9) y=${x//1/2};;
esac; done
for i in $(seq 200); do y=$(echo $(echo $i)); done
""",
    "load.gdb": """
info functions perf_event
set $i = 0
while $i < 25
  info types x
  info functions seam
  set $i = $i + 1
end
""",
    "load.awk": """
function f(n) { return n < 1 ? 0 : f(n - 1) + 1 }
BEGIN { for (i = 0; i < 6000000; i++) h[i % 5000] = h[i % 5000] + length(i "x")
  for (i = 0; i < 30000; i++) s += f(60)
  for (i = 0; i < 800000; i++) { t = "a" i "b"; gsub(/[0-9]+/, "<&>", t) } }
""",
    "load.tcl": """
proc f n { expr {$n < 1 ? 0 : [f [expr {$n-1}]] + 1} }
for {set i 0} {$i < 2400000} {incr i} { dict incr d [expr {$i % 5000}] $i }
for {set i 0} {$i < 24000} {incr i} { f 60 }
for {set i 0} {$i < 600000} {incr i} { regsub -all {[0-9]+} a${i}b <&> q }
""",
    "load.sql": """
with recursive c(x) as (select 1 union all select x+1 from c where x<3000000)
select sum(x*x%7), count(distinct x%1000) from c;
create table t(a, b); create index ti on t(b);
with recursive c(x) as (select 1 union all select x+1 from c where x<200000)
insert into t select x, hex(x*7919) from c;
select count(*) from t a join t b on a.a = b.a+1 where a.b > b.b;
""",
    "load.pg": """
select count(distinct n%97), sum(n) from generate_series(1,3000000) n;
create table t as select n a, md5(n::text) b from generate_series(1,600000) n;
select count(*) from
  (select regexp_replace(b, '([0-9]+)', '<1>', 'g') from t) x;
select a.a from t a join t b on a.a = b.a + 1 order by b.b limit 3;
""",
    "load.cmake": """
function(r n)
 if(n GREATER 0)
  math(EXPR m "${n}-1")
  r(${m})
 endif()
endfunction()
foreach(i RANGE 240)
 r(60)
endforeach()
foreach(i RANGE 80000)
 string(REGEX REPLACE "([0-9]+)" "<\\\\1>" q "a${i}b")
 list(APPEND l ${q})
endforeach()
list(SORT l)
""",
    "load.vim": """
let i = 0
let l = []
while i < 240000
  call add(l, substitute('abc' . i . 'def', '\\v(\\d+)', '<\\1>', 'g'))
  let i += 1
endwhile
function! F(n)
  return a:n < 1 ? 0 : F(a:n - 1) + 1
endfunction
for k in range(1200)
  call F(80)
endfor
call setline(1, l)
%s/\\v(abc)(.{-})(def)/\\3\\2\\1/g
sort n
qa!
""",
    "load.cc": """
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <regex>
#include <sstream>
#include <unordered_map>
template<int N> struct F { static constexpr long v = F<N-1>::v + F<N-2>::v; };
template<> struct F<0> { static constexpr long v = 0; };
template<> struct F<1> { static constexpr long v = 1; };
template<class... T> auto sum(T... t) { return (t + ...); }
template<int... I> long go(std::integer_sequence<int, I...>)
{ return sum(F<I % 60>::v...); }
int main(int c, char **v) {
  std::regex r("(a|b)*c[0-9]+"); std::map<std::string, std::vector<int>> m;
  for (int i = 0; i < c; i++) m[v[i]] = std::vector<int>(i, 3);
  std::ostringstream o;
  for (auto &[k, x] : m) { std::sort(x.begin(), x.end(), std::greater<>{});
    for (auto z : x) o << k << z; }
  std::cout << o.str() << std::regex_match(o.str(), r)
            << go(std::make_integer_sequence<int, 200>{}); }
""",
    "load.go": """
package main

import ("encoding/json"; "fmt"; "regexp"; "sort"; "strconv")

func f(n int) int { if n < 1 { return 0 }; return f(n-1) + 1 }

func main() {
	h := map[string]int{}
	for i := 0; i < 3000000; i++ { h[strconv.Itoa(i%5000)] += i }
	for i := 0; i < 200; i++ {
		b, _ := json.Marshal(h); json.Unmarshal(b, &h)
	}
	r := regexp.MustCompile("[0-9]+"); s := 0
	for i := 0; i < 300000; i++ {
		s += len(r.ReplaceAllString("a"+strconv.Itoa(i), "<>")) + f(60)
	}
	l := make([]int, 2000000); for i := range l { l[i] = i * 7919 % 100003 }
	sort.Ints(l); fmt.Println(len(h), s)
}
""",
    "nginx.conf": """
daemon off; master_process off; pid nginx.pid; error_log /dev/null;
events {}
http { access_log off; client_body_temp_path b; proxy_temp_path p;
 fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
 server { listen unix:nginx.sock; root .; gzip on; gzip_types *;
  gzip_http_version 1.0; } }
""",
    "client.py": """
import os, socket
open('page', 'w').write(os.urandom(50000).hex())
for i in range(700):
    s = socket.socket(socket.AF_UNIX); s.connect('nginx.sock')
    s.sendall(b'GET /page HTTP/1.0\\r\\nAccept-Encoding: gzip\\r\\n\\r\\n')
    while s.recv(65536): pass
""",
}

# Made once, before anything is recorded.
PREPARE = {
    "git": "git init -q repo && cd repo && for i in $(seq 200); do "
           "seq $i $((i*99)) > f$((i%9)); git add -A; git -c user.name=n "
           "-c user.email=e commit -qm $i; done",
    "postgres": "initdb -D pg -A trust >/dev/null",
    "go": "GOCACHE=$PWD/gocache go build -o gobin load.go",
    "zstd": "for i in 1 2; do "
            "cat $(realpath /usr/bin/gdb /usr/bin/git "
            "/usr/bin/python3) >> big; done",
    "clang++": "grep -v ranges load.cc > load17.cc",
}

_git = "for i in 1 2 3; do git -C repo log --stat -p >/dev/null; done; " \
       "git -C repo log -S77 >/dev/null; git -C repo repack -qadf"
_redis = "redis-server --port 0 --unixsocket $PWD/s --save '' & p=$!; " \
    "sleep 0.3; redis-benchmark -s $PWD/s -n 40000 -c 20 -q " \
    "-t set,get,lpush,lrange_100,zadd,mset; redis-cli -s $PWD/s shutdown " \
    "nosave; wait $p"
_nginx = "nginx -p $PWD -c nginx.conf & p=$!; sleep 0.3; " \
    "python3 client.py; kill $p; wait $p"

# name: (executable, package, command)
PROGRAMS = {
    "python3": ("/usr/bin/python3", "python3", "/usr/bin/python3 load.py"),
    "sqlite3": ("sqlite3", "sqlite3", "sqlite3 :memory: < load.sql"),
    "perl": ("perl", "perl", "perl load.pl"),
    "ruby": ("ruby", "ruby", "ruby load.rb"),
    "php": ("php", "php-cli", "php load.php"),
    "g++": ("g++", "g++", "g++ -O2 -std=c++20 -c load.cc -o load.o"),
    "git": ("git", "git", _git),
    "node": ("node", "nodejs", "node load.js"),
    "bash": ("bash", "bash", "bash load.sh"),
    "gawk": ("gawk", "gawk", "gawk -f load.awk"),
    "tclsh": ("tclsh", "tcl", "tclsh load.tcl"),
    "postgres": ("initdb", "postgresql",
                 "postgres --single -D pg postgres < load.pg"),
    "redis": ("redis-server", "redis-server redis-tools", _redis),
    "nginx": ("nginx", "nginx", _nginx),
    "zstd": ("zstd", "zstd", "zstd -q -f -T2 -9 big -o big.zst"),
    "cmake": ("cmake", "cmake", "cmake -P load.cmake"),
    "gdb": ("gdb", "gdb", "gdb -nx -batch -x load.gdb {seam}"),
    "go": ("go", "golang-go", "./gobin"),
    "clang++": ("clang++", "clang", "clang++ -O2 -std=c++17 -c load17.cc -o "
                "load17.o"),
    "vim": ("vim", "vim", "vim -es -u NONE -S load.vim"),
}

# Deep in different ways; at random, and as deep as a copy of 64 KiB and more.
RECURSION_FILES = {
    "deep.py": """
import functools
def f(n):
    return 0 if n < 1 else functools.reduce(
        lambda a, b: a + b, map(lambda x: f(n - 1), [1]), 1)
class A:
    def __init__(self, n): self.n = n
    def __repr__(self): return 'A(%r)' % (A(self.n - 1) if self.n else 0)
for i in range(1500):
    f(60 + i % 60); repr(A(150 + i % 20))
    sorted(range(300), key=lambda x: f(8))
""",
    "at_random.py": """
import functools, random
random.seed(3)
def a(n): return 1 if n < 1 else sum(map(random.choice([a, b, c]), [n - 1]))
def b(n): return 1 if n < 1 else max(map(random.choice([a, b, c]), [n - 1]))
def c(n):
    return 1 if n < 1 else functools.reduce(
        lambda x, y: x + y, map(random.choice([a, b, c]), [n - 1]), 0)
for i in range(6000): a(110)
""",
    "at_random.sh": """
a() { local n=$1; if [ $n -gt 0 ]; then if ((RANDOM%2)); then b $((n-1));
else a $((n-1)); fi; fi; }
b() { local n=$1; case $n in 0) ;; *) if ((RANDOM%2)); then a $((n-1));
else b $((n-1)); fi;; esac; }
for i in $(seq 200); do a 70; done
""",
    "deep.rb": """
def f(n) n < 1 ? 0 : [1].map { |x| f(n - 1) }.sum + 1 end
3000.times { |i| f(100 + i % 60) }
""",
    "deep.js": """
function f(n) { return n < 1 ? 0 : [1].map(() => f(n - 1)).reduce(
  (a, b) => a + b) + 1; }
function g(n) { return n < 1 ? JSON.stringify({ a: [1, 2, 3], n }).length :
  g(n - 1) + 1; }
for (let i = 0; i < 2500; i++) { f(300 + i % 100); g(900 - i % 50); }
""",
    "deep.php": """<?php
function f($n) {
  return $n < 2 ? $n : array_sum(array_map('f', [$n - 1])) + 1; }
function g($n) { $a = [2, 1]; if ($n > 0) usort($a, function ($x, $y) use ($n) {
  g($n - 1); return $x <=> $y; }); return count($a); }
for ($i = 0; $i < 6000; $i++) { f(150 + $i % 90); g(120 + $i % 50); }
""",
    "deep.lua": """
local function f(n) if n < 1 then return 0 end
  local ok, v = pcall(f, n - 1) return v + 1 end
for i = 1, 4000 do f(120 + i % 50) end
local function g(n) if n < 1 then return 0 end
  local s = ("x"):rep(3):gsub("x", function() g(n - 1) return "y" end, 1)
  return 1 end
for i = 1, 3000 do g(100 + i % 70) end
""",
    "deep.el": """
(setq max-lisp-eval-depth 10000 max-specpdl-size 20000)
(defun f (n) (if (< n 1) 0 (1+ (apply #'f (list (1- n))))))
(defun g (n) (if (< n 1) 0 (car (mapcar (lambda (x) (g (1- n))) '(1)))))
(dotimes (i 700) (f (+ 200 (% i 60))) (g (+ 100 (% i 50))))
""",
}

RECURSIONS = {
    "py deep": ("/usr/bin/python3", "python3", "/usr/bin/python3 deep.py"),
    "py random": ("/usr/bin/python3", "python3",
                  "/usr/bin/python3 at_random.py"),
    "sh random": ("bash", "bash", "bash at_random.sh"),
    "ruby deep": ("ruby", "ruby", "ruby deep.rb"),
    "node deep": ("node", "nodejs", "node deep.js"),
    "php deep": ("php", "php-cli", "php deep.php"),
    "lua deep": ("lua5.4", "lua5.4", "lua5.4 deep.lua"),
    "emacs deep": ("emacs", "emacs-nox", "emacs -Q --batch -l deep.el"),
}
