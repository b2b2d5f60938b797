-- SPDX-License-Identifier: MIT
-- The contracts of misc.sysprof, as the original has them, but for what is
-- wrong there.  Prints TAP.
--
-- Run by a VM that finds seam.sysprof and seam.misc; the folder for files is
-- the argument.
local folder = assert(arg[1])
local number, failed = 0, 0

local function ok(is_good, promise, detail)
  number = number + 1
  if not is_good then failed = failed + 1 end
  print((is_good and "ok " or "not ok ") .. number .. " - " .. promise)
  if not is_good and detail then print("# " .. detail) end
end

local function show(...)
  local texts = {}
  for i = 1, select("#", ...) do texts[i] = tostring((select(i, ...))) end
  return table.concat(texts, " | ")
end

-- All results of a call, as text: their number counts as well.
local function is(promise, wanted, ...)
  local got = show(...)
  ok(got == wanted, promise, "got " .. got .. ", not " .. wanted)
end

local MISUSE = "nil | profiler misuse | 22"
local RUNNING = "nil | profiler is running already | 22"
local IDLE = "nil | profiler is not running | 22"

local function exists(path)
  local file = io.open(path, "rb")
  if not file then return false end
  local text = file:read("*a")
  file:close()
  return text
end

-- ---- the modules ----

ok(rawget(_G, "misc") == nil, "a VM has no misc before")
local sysprof = require "seam.sysprof"
ok(rawget(_G, "misc") == nil, "seam.sysprof sets no global")
local misc_module = require "seam.misc"
ok(misc_module == misc and misc.sysprof == sysprof,
   "seam.misc is the global misc, with the same functions")
local names = {}
for name in pairs(sysprof) do names[#names + 1] = name end
table.sort(names)
is("the functions", "report | start | stop", unpack(names))

-- ---- misuse ----

is("stop when idle", IDLE, sysprof.stop())
is("no argument", MISUSE, sysprof.start())
is("two arguments", MISUSE, sysprof.start({ mode = "D" }, 1))
is("a string", MISUSE, sysprof.start("D"))
is("no mode", MISUSE, sysprof.start {})
for _, mode in ipairs { 1, "", "DD", "d", "A", "D\0", true } do
  is("mode " .. ("%q"):format(tostring(mode)), MISUSE,
     sysprof.start { mode = mode })
end
for _, interval in ipairs { 0, 0.5, -1, 2 ^ 31, 1e300, 0 / 0, -1 / 0 } do
  is("interval " .. interval, MISUSE,
     sysprof.start { mode = "D", interval = interval })
end
is("a path that is no string", MISUSE, sysprof.start { mode = "C", path = 1 })
is("a path with a NUL", MISUSE,
   sysprof.start { mode = "C", path = folder .. "/a\0b" })
is("fields by a metatable do not count", MISUSE,
   sysprof.start(setmetatable({}, { __index = { mode = "D" } })))
is("nothing runs after all of that", IDLE, sysprof.stop())

-- ---- what is accepted ----

for _, interval in ipairs { 1, 1.9, 2 ^ 31 - 1, "x", true, {} } do
  is("interval " .. tostring(interval):gsub("0x%x+", "0x..."), "true",
     sysprof.start { mode = "D", interval = interval })
  is("and stop", "true", sysprof.stop())
end
is("a path is ignored in mode D", "true",
   sysprof.start { mode = "D", path = {} })
is("a report while it runs", MISUSE, sysprof.report())
is("a second start", RUNNING, sysprof.start { mode = "D" })
is("a second start with wrong options is misuse", MISUSE,
   sysprof.start { mode = "X" })
is("stop", "true", sysprof.stop())
is("stop again", IDLE, sysprof.stop())

-- ---- files ----

is("a path in no folder", "nil | No such file or directory | 2",
   sysprof.start { mode = "C", path = "/nonexistent/x" })
is("a folder", "nil | Is a directory | 21",
   sysprof.start { mode = "L", path = folder })
is("nothing runs after a file that cannot be opened", IDLE, sysprof.stop())

local function write(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

-- both programs that run this script may do so at once
local first, second = os.tmpname(), os.tmpname()
write(second, "precious")
is("mode C", "true", sysprof.start { mode = "C", path = first })
is("a second start in mode C", RUNNING,
   sysprof.start { mode = "C", path = second })
ok(exists(second) == "precious", "a refused start leaves its file alone")
is("stop", "true", sysprof.stop())
local stream = exists(first)
ok(stream and stream:sub(1, 7) == "ljs\3\0\0\0" and
   stream:find("ljp\2\0\0\0", 1, true) and stream:sub(-1) == "\128",
   "the file has both parts, and its end")

write(first, ("x"):rep(#stream * 2))
is("an existing file", "true", sysprof.start { mode = "L", path = first })
is("stop", "true", sysprof.stop())
ok(exists(first):sub(1, 3) == "ljs" and #exists(first) < #stream * 2,
   "an existing file is emptied")

-- A spin of CPU time: @seconds.
local function spin(seconds)
  local start = os.clock()
  while os.clock() - start < seconds do end
end

is("a full disk", "true",
   sysprof.start { mode = "C", interval = 1, path = "/dev/full" })
spin(0.05)
is("is an error of stop", "nil | No space left on device | 28",
   sysprof.stop())
is("after which it can be started", "true", sysprof.start { mode = "D" })
is("and stopped", "true", sysprof.stop())
is("a full disk without samples", "true",
   sysprof.start { mode = "C", interval = 1e6, path = "/dev/full" })
is("is an error of stop as well", "nil | No space left on device | 28",
   sysprof.stop())

-- ---- reports ----

is("mode D", "true", sysprof.start { mode = "D", interval = 1 })
spin(0.1)
is("stop", "true", sysprof.stop())
local report = sysprof.report()
local keys, sum = {}, 0
for name, n in pairs(report.vmstate) do
  keys[#keys + 1] = name
  sum = sum + n
end
table.sort(keys)
is("the states of a report",
   "ASM | CFUNC | EXIT | FFUNC | GC | INTERP | LFUNC | OPT | RECORD | TRACE",
   unpack(keys))
ok(report.samples >= 90 and report.samples <= 120,
   "as many samples as milliseconds", tostring(report.samples))
ok(sum == report.samples, "samples are the sum of the states")
ok(sysprof.report().samples == report.samples, "a report is kept after stop")
is("an interval longer than the run", "true",
   sysprof.start { mode = "D", interval = 1000 })
spin(0.05)
is("stop", "true", sysprof.stop())
ok(sysprof.report().samples == 0, "counters begin at 0 with each run")

-- ---- coroutines, and the VM's own profiler ----

local co = coroutine.wrap(function()
  coroutine.yield(show(sysprof.start { mode = "D" }))
  coroutine.yield(show(sysprof.stop()))
end)
is("a coroutine starts it", "true", co())
is("the main one stops it", "true", sysprof.stop())
is("and the coroutine has nothing to stop", IDLE, co())

local profile = require "jit.profile"
profile.start("i10", function() end)
is("while jit.p runs", RUNNING,
   sysprof.start { mode = "C", path = second })
ok(exists(second) == "precious", "that leaves the file alone, too")
profile.stop()
is("and after it", "true", sysprof.start { mode = "D" })
is("stop", "true", sysprof.stop())

-- ---- at the end ----

os.remove(first)
os.remove(second)
print("1.." .. number)
os.exit(failed == 0 and 0 or 1)
