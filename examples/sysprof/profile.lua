-- SPDX-License-Identifier: MIT
--
-- profile.lua - run a Lua script under sysprof
--
--	luajit profile.lua FILE SCRIPT [ARGUMENT]...
--	seam flamegraph FILE
--
-- The script is not changed.  FILE has its stacks in C and Lua, once in each
-- millisecond of CPU time; at the end the VM's states are printed to stderr.
local sysprof = require "seam.sysprof"

local file, script = arg[1], arg[2]
if not script then
	io.stderr:write("usage: luajit profile.lua FILE SCRIPT [ARGUMENT]...\n")
	os.exit(2)
end

-- What the script would find if it ran alone.
local given = arg
arg = { [0] = script, unpack(given, 3) }

local run = assert(loadfile(script))
assert(sysprof.start { mode = "C", interval = 1, path = file })
local ok, message = xpcall(function() run(unpack(arg)) end, debug.traceback)
assert(sysprof.stop())

local report = sysprof.report()
io.stderr:write(report.samples, " ms in ", file, ":")
for state, n in pairs(report.vmstate) do
	if n > 0 then io.stderr:write(" ", state, " ", n) end
end
io.stderr:write("\n")
if not ok then
	io.stderr:write(message, "\n")
	os.exit(1)
end
