-- SPDX-License-Identifier: MIT
-- rfc.lua: the RFC's program, which measures itself; PAYLOAD is in the
-- environment
dofile(arg[0]:gsub("[^/]*$", "") .. "profiled.lua")

local ffi = require "ffi"
local c = ffi.load(os.getenv("PAYLOAD"))
ffi.cdef "double c_payload(double n);"

function lua_payload(n)
  if n <= 1 then return n end
  return lua_payload(n - 1) + lua_payload(n - 2)
end

profile(function(seconds)
  local in_lua, in_c, start = 0, 0, os.clock()
  local before = start
  local i = 0
  while before - start < seconds do
    if i % 2 == 0 then c.c_payload(24) else lua_payload(21) end
    local after = os.clock()
    if i % 2 == 0 then in_c = in_c + after - before
    else in_lua = in_lua + after - before end
    before = after
    i = i + 1
  end
  print("share", in_c / (in_c + in_lua))
end)
