-- SPDX-License-Identifier: MIT
-- stress.lua - a random program whose every call is known
--
--	luajit stress.lua LIBRARIES SEED JIT ROUNDS PERIOD_US FILE
--
-- A chunk of functions is generated that call each other in all ways a VM has:
-- directly, through pcall, error, coroutines, sort, gsub, metamethods,
-- varargs, FFI callbacks and lua_call().  It prints numbers that depend on all
-- of them: the same with a profiler and without.  PERIOD_US is "none", or 0: a
-- sample after each instruction.
--
-- Then the oracle: in the stacks of all samples, each two Lua functions that
-- follow each other are a line of the generated chunk and a function that
-- this line calls.  Figures are written to FILE.figures; STRESS_SHOW=1 prints
-- wrong pairs, STRESS_PCS=N has as many program counters without frames.
package.cpath = arg[1] .. "/?.so"
local seed, rounds = tonumber(arg[2]), tonumber(arg[4])
local period, file = tonumber(arg[5]), arg[6] -- nil: none
local probe, ffi = require "guest_probe", require "ffi"

if arg[3] == "off" then jit.off() jit.flush() end

-- Numbers of its own: the VM's generator may be another one elsewhere.
local state = seed
local function random(n)
  state = (state * 16807) % 2147483647
  return state % n + 1
end

-- The generated chunk: its lines, for a line what may be called there, and
-- which function a line defines.
local lines, calls, defined = {}, {}, {}
local function emit(text, ...)
  lines[#lines + 1] = text
  for _, callee in ipairs { ... } do
    calls[#lines] = calls[#lines] or {}
    table.insert(calls[#lines], callee)
  end
  return #lines
end

local N = 60
emit "local probe, ffi, callback = ..."
emit "local F = {}"

-- What a leaf of the call tree works on.
local work = {
  "local t = {s, s + 1, s + 2} t[#t + 1] = s s = s + #t",
  "s = s + #(tostring(s) .. 'x')",
  "s = s + #string.rep('ab', s % 9)",
  "s = s + math.floor(math.sin(s) * 10)",
  "s = s + #('%d %s'):format(s, 'q')",
  "local t = {} for k = 1, 20 do t[k] = (k * 7) % 11 end table.sort(t) s = s + t[3]",
  "s = s + #table.concat({s, 'a', s}, ',')",
  "s = s + (tonumber('0x' .. s % 7) or 0)",
  "for w in ('a b c'):gmatch('%a') do s = s + #w end",
  "s = s + select('#', unpack({1, 2, 3})) + math.max(s % 5, 2)",
  "local b = ffi.new('int[4]', s) s = s + b[3] % 3",
  "s = s + math.floor(s ^ 0.5 + math.fmod(s, 3)) % 7",
}

-- Ways to call function C from one line, or from a function of its own; the
-- line of that function is its name.
local function inner(open, body, close, callee)
  local line = emit(open)
  defined[line] = true
  calls[line] = calls[line] or {}
  table.insert(calls[line], line)
  emit(body:format(callee), callee)
  local last = emit(close, line)
  table.insert(calls[last], line)
end

local ways = {
  function(c) emit((" r = r + F[%d](d - 1)"):format(c), c) end,
  function(c) emit((" r = r + F[%d](d - 1, 1, 2)"):format(c), c) end,
  function(c) emit((" local ok, v = pcall(F[%d], d - 1) r = r + v"):format(c), c) end,
  function(c) emit((" r = r + coroutine.wrap(F[%d])(d - 1)"):format(c), c) end,
  function(c) emit((" r = r + (select(1, F[%d](d - 1, nil, r, ...)))"):format(c), c) end,
  function(c) emit((" r = r + probe.call(F[%d], d - 1)"):format(c), c) end,
  function(c) inner(" table.sort({2, 1}, function(a, b)", "  r = r + F[%d](d - 1)",
                    "  return a < b end)", c) end,
  function(c) inner(" string.gsub('a', 'a', function(m)", "  r = r + F[%d](d - 1)", " end)", c) end,
  function(c) inner(" probe.call(function(m)", "  r = r + F[%d](d - 1)", " end, 1)", c) end,
  function(c) inner(" pcall(function()", "  r = r + F[%d](d - 1) error('x')", " end)", c) end,
  function(c) inner(" xpcall(function()", "  r = r + F[%d](d - 1)",
                    " end, function(e) return e end)", c) end,
  function(c) inner(" local co = coroutine.create(function(...)",
                    "  coroutine.yield(1) r = r + F[%d](d - 1)",
                    " end) coroutine.resume(co, 1, 2) coroutine.resume(co)", c) end,
}
local function metamethod(name, params, use)
  ways[#ways + 1] = function(c)
    local line = emit((" local o = setmetatable({}, {%s = function(%s)"):format(name, params))
    defined[line] = true
    emit(("  return 0 + F[%d](d - 1)"):format(c), c)
    emit(" end})")
    emit(" r = r + " .. use, line)
  end
end
metamethod("__index", "t, k", "o.zz")
metamethod("__add", "a, b", "(o + 1)")
metamethod("__call", "self, ...", "o(1, 2)")
metamethod("__concat", "a, b", "(o .. 'x')")
metamethod("__len", "a", "#setmetatable({}, {}) + (o and 0)")
metamethod("__unm", "a", "-o")

local is_function = {}
for i = 1, N do
  local line = emit(("F[%d] = function(d, ...)"):format(i))
  defined[line] = true
  is_function[i] = line
  emit " if d <= 0 then"
  emit("  local s = 0 for k = 1, " .. 3 + random(37) .. " do s = s + k % 7 end")
  emit("  " .. work[random(#work)])
  emit "  return s % 100 end"
  emit " local r = 0"
  for _ = 1, 1 + random(2) do
    ways[random(#ways)](random(N))
  end
  emit " return r % 1000 end"
end
emit "return F"

-- A C function that calls back: the VM's FFI calls it, it calls Lua.
ffi.cdef "void qsort(void *, size_t, size_t, int (*)(const void *, const void *));"
local depth, F = 0, nil
local callback = ffi.cast("int (*)(const void *, const void *)", function(a, b)
  depth = depth + 1
  local r = depth < 3 and F[depth * 7 % N + 1](2) or 0
  depth = depth - 1
  return r % 3 - 1
end)
local two = ffi.new("int[2]", 2, 1)
local function sort() ffi.C.qsort(two, 2, 4, callback) end
jit.off(sort)

F = assert(loadstring(table.concat(lines, "\n"), "@gen"))(probe, ffi, callback)
local function deep(n) if n == 0 then return 0 end return 1 + deep(n - 1) end
local function allocate() local t = {} for i = 1, 200 do t[i] = {i} end return #t end

if period then probe.start(period) end
local sum = 0
for round = 1, rounds do
  local ok, r = pcall(F[random(N)], random(6))
  sum = (sum + (ok and r or 7)) % 1000003
  if round % 50 == 0 then sum = sum + coroutine.wrap(deep)(random(4000)) end
  if round % 20 == 0 then sort() end
  if round % 100 == 0 then
    sum = sum + loadstring("local s = 0 for i = 1, 100 do s = s + i end return s",
                           "=dyn" .. round)()
  end
  if round % 30 == 0 then sum = sum + allocate() end
  if round % 1000 == 0 then collectgarbage() end
end
if period then probe.stop(file) end
callback:free()
print(sum)
if not period then return end

-- The oracle.
local allowed = {}
for line, callees in pairs(calls) do
  allowed[line] = {}
  for _, callee in ipairs(callees) do
    -- a line's own function, or F[callee]
    allowed[line][defined[callee] and callee or is_function[callee] or callee] = true
    if is_function[callee] then allowed[line][is_function[callee]] = true end
  end
end
local n, guest, host, edges, wrong, unknown, shown = 0, 0, 0, 0, 0, 0, 0
for text in io.lines(file) do
  local guest_end, host_end, stack = text:match "^%d+ (%d+) (%d+)|(.*)$"
  n = n + 1
  if guest_end == "0" or guest_end == "2" then guest = guest + 1 end
  if host_end == "0" then host = host + 1 end
  local caller
  for frame in stack:gmatch "[^;]+" do
    local chunk, first, line = frame:match "^L:[^:]*:(.-):(%d+)@(%d+)/%d+$"
    first, line = tonumber(first), tonumber(line)
    if chunk == "@gen" and caller then
      if caller == 0 then unknown = unknown + 1
      elseif allowed[caller] and allowed[caller][first] then edges = edges + 1
      else
        wrong = wrong + 1
        if shown < 8 and os.getenv "STRESS_SHOW" then
          shown = shown + 1
          print("wrong", caller, lines[caller], first, lines[first], text)
        end
      end
    end
    if chunk then caller = chunk == "@gen" and line or nil
    elseif frame:sub(1, 1) == "X" then caller = nil end
  end
end
local out = assert(io.open(file .. ".figures", "w"))
out:write(("samples=%d guest=%d host=%d edges=%d wrong=%d unknown=%d\n"):format(n, guest,
  host, edges, wrong, unknown))
out:close()
