-- SPDX-License-Identifier: MIT
--
-- mixed.lua - a program that is half Lua and half C
--
--	luajit mixed.lua ./libpayload.so [SECONDS]
--
-- It computes Fibonacci numbers in Lua and, through the FFI, in C, in turns,
-- with the JIT off.  A profiler of machine code alone shows the interpreter
-- in the place of Lua functions.  A profiler of Lua alone shows no C.  Seam
-- shows both in one stack.
local ffi = require("ffi")
local payload = ffi.load(arg[1])
local seconds = tonumber(arg[2]) or 2

ffi.cdef [[ double c_payload(double n); ]]

local function lua_payload(n)
	if n <= 1 then
		return n
	end
	return lua_payload(n - 1) + lua_payload(n - 2)
end

jit.off()
jit.flush()

local start = os.clock()
local i = 0
while os.clock() - start < seconds do
	if i % 2 == 0 then
		payload.c_payload(20)
	else
		lua_payload(20)
	end
	i = i + 1
end
