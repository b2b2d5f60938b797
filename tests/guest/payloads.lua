-- SPDX-License-Identifier: MIT
-- payloads.lua LIBRARIES JIT PERIOD_US - Fibonacci numbers in Lua and in C
--
-- Prints which share of the samples has whole stacks, and which share of the
-- time was spent in Lua: of the samples, and by the program's own clock.
package.cpath = arg[1] .. "/?.so"
local probe, ffi = require "guest_probe", require "ffi"
if arg[2] == "off" then jit.off() jit.flush() end
ffi.cdef "double c_payload(double n);"
local c = ffi.load(arg[1] .. "/guest_payload.so")
local file = os.tmpname()

function lua_payload(n)
  if n <= 1 then return n end
  return lua_payload(n - 1) + lua_payload(n - 2)
end
local function call_c(n)
  local r = c.c_payload(n)
  return r
end

local in_lua, in_c = 0, 0
probe.start(tonumber(arg[3]))
while in_lua + in_c < 1.2 do
  local start = os.clock()
  for _ = 1, 12 do lua_payload(20) end
  local middle = os.clock()
  for _ = 1, 12 do call_c(25) end
  in_lua, in_c = in_lua + middle - start, in_c + os.clock() - middle
end
probe.stop(file)

local n, whole, lua = 0, 0, 0
for line in io.lines(file) do
  local guest, host, weight = line:match "^%d+ (%d+) (%d+) %d+ %x+ (%d+)|"
  weight = tonumber(weight)
  n = n + weight
  if guest == "0" and host == "0" then whole = whole + weight end
  if line:find("lua_payload", 1, true) then lua = lua + weight end
end
os.remove(file)
print(("samples=%d complete=%.2f lua_sampled=%.2f lua_spent=%.2f"):format(n, 100 * whole / n,
  100 * lua / n, 100 * in_lua / (in_lua + in_c)))
