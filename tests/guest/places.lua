-- SPDX-License-Identifier: MIT
-- places.lua LIBRARIES FILE - what each line may call, at each instruction
--
-- The VM calls functions of libm without storing where it is: what it has stored
-- is a function that has returned, whose frame may still be there.
package.cpath = arg[1] .. "/?.so"
local probe = require "guest_probe"
jit.off()

local allowed = {} -- by line: functions that it calls, by name
local function here(...)
  local names = {}
  for _, name in ipairs { ... } do names[name] = true end
  return names
end

local function helper(n) debug.sethook() end
local function direct(n) return n + 1 end
local function work(n)
  local s = n do local a, b, c, d, e = n, n, n, n, n helper(n) end
  s = s + math.sin(n) + math.cos(n)
  s = s + math.fmod(n, 3) + math.log(n)
  helper(s)
  s = s + 2 ^ n + n % 7
  s = s + probe.call(direct, n)
  s = s + math.floor(s) + math.exp(1)
  return s
end
local first = debug.getinfo(work, "S").linedefined
allowed[first + 1] = here("helper")
allowed[first + 2] = here("math.sin", "math.cos")
allowed[first + 3] = here("math.fmod", "math.log")
allowed[first + 4] = here("helper")
allowed[first + 5] = here()
allowed[first + 6] = here("", "direct")
allowed[first + 7] = here("math.floor", "math.exp")

work(1)
probe.start(0)
for i = 1, 5 do work(i) end
probe.stop(arg[2])

local n, wrong, entered, in_math = 0, 0, 0, 0
local direct_line = debug.getinfo(direct, "S").linedefined
for text in io.lines(arg[2]) do
  local stack = text:match "|(.*)$"
  n = n + 1
  local name = stack:match("L:work:.-:" .. first .. "@%d+/%d+;%a:([^:]*):")
  local line = tonumber(stack:match("L:work:.-:" .. first .. "@(%d+)/"))
  if name and line and line > 0 and not (allowed[line] and allowed[line][name]) then
    wrong = wrong + 1
    if os.getenv "STRESS_SHOW" then print(name, line, text) end
  end
  if name and name:match "^math" then in_math = in_math + 1 end
  -- what C called is in another part of the host's stack
  local outer, inner = stack:match("L:work:[^;]*/(%d+).-:" .. direct_line .. "@%d+/(%d+)$")
  if outer then
    entered = entered + 1
    if tonumber(outer) <= tonumber(inner) + 1 then wrong = wrong + 1 end
  end
  -- a C function that nothing on the host shows is one that is called now
  if stack:match "L:work:.*C:[^;]*$" and not stack:match("@" .. first + 6 .. "/") then
    wrong = wrong + 1
  end
end
print(("samples=%d wrong=%d entered=%d in_math=%d"):format(n, wrong, entered, in_math))
