-- SPDX-License-Identifier: MIT
-- late.lua: loads its library when it is profiled already
dofile(arg[0]:gsub("[^/]*$", "") .. "profiled.lua")

profile(function(seconds)
  local ffi = require "ffi"
  local c = ffi.load(os.getenv("PAYLOAD"))
  ffi.cdef "double c_payload(double n);"
  local start = os.clock()
  while os.clock() - start < seconds do c.c_payload(20) end
  print("right")
end)
