-- SPDX-License-Identifier: MIT
-- ends.lua FILE on|off HOW: the profiler is not stopped
local file, how = arg[1], arg[3]
local sysprof = require "seam.sysprof"

assert(sysprof.start { mode = "C", interval = 1, path = file })
local function deep(n) return n == 0 and 0 or 1 + deep(n - 1) end
local start = os.clock()
while os.clock() - start < (how == "kill" and 1.2 or 0.3) do deep(100) end
if how == "exit" then os.exit(0) end
if how == "close" then os.exit(0, true) end
if how == "kill" then
  local ffi = require "ffi"
  ffi.cdef "int raise(int);"
  ffi.C.raise(9)
end
if how == "error" then error("on purpose") end
