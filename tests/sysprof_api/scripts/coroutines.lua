-- SPDX-License-Identifier: MIT
-- coroutines.lua: switches all the time, which the original does not survive
dofile(arg[0]:gsub("[^/]*$", "") .. "profiled.lua")

local function leaf(n)
  if n == 0 then return coroutine.yield(1) or 0 end
  return leaf(n - 1) + 1
end

local function generate(depth)
  return coroutine.wrap(function()
    if depth == 0 then
      while true do leaf(5) end
    end
    local inner = generate(depth - 1)
    while true do coroutine.yield(inner() + 1) end
  end)
end

local function short()
  local co = coroutine.create(function(a) return a + coroutine.yield(a) end)
  local _, a = coroutine.resume(co, 1)
  local _, b = coroutine.resume(co, 2)
  return a + b
end

local function fails()
  local co = coroutine.create(function() local x = nil; return x.y end)
  return coroutine.resume(co) and 1 or 0
end

profile(function(seconds)
  local next_value, sum = generate(4), 0
  rounds(seconds, function(i)
    sum = next_value() + short() + fails() + i % 2
    if sum ~= 5 + 4 + i % 2 then error("wrong: " .. sum) end
  end)
  print("right", sum)
end)
