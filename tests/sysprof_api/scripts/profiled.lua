-- SPDX-License-Identifier: MIT
-- profiled.lua: profile(function), by the arguments
--	SCRIPT FILE|none on|off SECONDS [MODE]
-- The JIT is on or off.  Without a file nothing is profiled.
local file, jit_mode = arg[1], arg[2]
local seconds, mode = tonumber(arg[3]), arg[4] or "C"

jit[jit_mode]()
if jit_mode == "off" then jit.flush() end

function profile(work)
  if file == "none" then return work(seconds) end
  local sysprof = require "seam.sysprof"
  assert(sysprof.start { mode = mode, interval = 1, path = file })
  work(seconds)
  assert(sysprof.stop())
  local report = sysprof.report()
  io.stderr:write("samples ", report.samples)
  for state, n in pairs(report.vmstate) do
    io.stderr:write(" ", state, " ", n)
  end
  io.stderr:write("\n")
end

-- Call work(i) for i = 1, 2, ... until the time is over, and then until n is
-- a multiple of 1000, so that what it computed is known.
function rounds(seconds, work)
  local start, i = os.clock(), 0
  while os.clock() - start < seconds or i % 1000 ~= 0 do
    i = i + 1
    work(i)
  end
  return i
end
