-- SPDX-License-Identifier: MIT
-- A build without the profiler; prints TAP.
local sysprof = require "seam.sysprof"
require "seam.misc"

local function show(...)
  local texts = {}
  for i = 1, select("#", ...) do texts[i] = tostring((select(i, ...))) end
  return table.concat(texts, " | ")
end

local function is(number, promise, got, wanted)
  print((got == wanted and "ok " or "not ok ") .. number .. " - " .. promise)
  if got ~= wanted then print("# got " .. got) end
end

is(1, "start is false", show(sysprof.start { mode = "D" }), "false")
is(2, "stop is false", show(misc.sysprof.stop()), "false")
is(3, "report fails", show(sysprof.report()), "nil | profiler misuse | 22")
print "1..3"
