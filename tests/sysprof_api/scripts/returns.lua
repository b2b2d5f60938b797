-- SPDX-License-Identifier: MIT
-- returns.lua: Lua calls C that calls Lua, and returns: what ends the original
dofile(arg[0]:gsub("[^/]*$", "") .. "profiled.lua")

local function add(a, b) return a + b end
local function fail() error("on purpose", 0) end
local object = setmetatable({}, {
  __index = function(_, key) return call(add, key, 1) end,
  __add = function(_, b) return call(add, b, 10) end,
  __call = function(_, a) return call(add, a, 100) end,
  __lt = function() return call(add, 1, 1) == 2 end,
})

local function nest(n)
  if n == 0 then return 1 end
  return call(nest, n - 1) + select(2, pcall_in_c(add, 0, 0))
end

profile(function(seconds)
  local sum
  rounds(seconds, function(i)
    local ok, message = pcall_in_c(fail)
    local list = { 3, 1, 2 }
    table.sort(list, function(a, b) return call(add, a, 0) < b end)
    local text = ("abc"):gsub("%w", function(c) return call(tostring, c) end)
    sum = nest(5) + object[1] + (object + 1) + object(1) +
          (object < object and 1 or 0) + list[1] + #text + #message
    if ok or sum ~= 1 + 2 + 11 + 101 + 1 + 1 + 3 + 10 then
      error("wrong: " .. sum)
    end
  end)
  print("right", sum)
end)
