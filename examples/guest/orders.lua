-- SPDX-License-Identifier: MIT
--
-- orders.lua - a program whose time goes to every layer of the machine
--
--	luajit orders.lua FOLDER [SECONDS [ROUNDS]]
--
-- Each round makes orders in a coroutine, prices them in Lua, ranks them with
-- the C library's qsort(), which calls back into Lua, packs them with zlib,
-- and writes them in many small pieces, which is the kernel's work.
local ffi = require "ffi"

ffi.cdef [[
typedef struct { int id, customer, items, cents; } order;
typedef int (*compare)(const order *, const order *);
void qsort(void *base, size_t n, size_t size, compare by);
unsigned long compressBound(unsigned long size);
int compress2(char *to, unsigned long *n, const char *from, unsigned long size,
              int level);
]]

local zlib = ffi.load("libz.so.1")
local file = (arg[1] or ".") .. "/orders.txt"
local seconds = tonumber(arg[2]) or 2
local most = tonumber(arg[3]) or math.huge
local PIECE = 64

local function random(seed)
  return (seed * 16807) % 2147483647
end

-- Orders, one after the other.
local function next_order(n)
  local seed = n
  for i = 1, n do
    seed = random(seed)
    coroutine.yield(i, seed % 97, 1 + seed % 9, 100 + seed % 9900)
  end
end

local function make_orders(n)
  local orders = ffi.new("order[?]", n)
  local generate = coroutine.wrap(next_order)
  for i = 0, n - 1 do
    local o = orders[i]
    o.id, o.customer, o.items, o.cents = generate(n)
  end
  return orders
end

local function discount(customer)
  local rate = 0
  for step = 1, 120 do
    rate = (rate * 31 + customer + step) % 1009
  end
  return rate / 10090
end

local function price_orders(orders, n)
  local sum = 0
  for i = 0, n - 1 do
    local o = orders[i]
    sum = sum + o.items * o.cents * (1 - discount(o.customer))
  end
  return sum
end

local function dearer(a, b)
  return b.items * b.cents - a.items * a.cents
end

local by_price = ffi.cast("compare", dearer)

-- C that calls back into Lua must not be called from compiled code.
local function rank_orders(orders, n)
  ffi.C.qsort(orders, n, ffi.sizeof("order"), by_price)
end
jit.off(rank_orders)

local function describe(orders, n)
  local lines = {}
  for i = 0, n - 1 do
    local o = orders[i]
    lines[#lines + 1] = ("order %d of customer %d: %d for %d"):format(o.id,
      o.customer, o.items, o.cents)
  end
  local text = table.concat(lines, "\n")
  return (text:gsub("customer (%d+)", function(c) return "C" .. c end))
end

local function pack(text)
  local n = ffi.new("unsigned long[1]", zlib.compressBound(#text))
  local to = ffi.new("char[?]", n[0])
  assert(zlib.compress2(to, n, text, #text, 6) == 0)
  return ffi.string(to, n[0])
end

local function save(text)
  local out = assert(io.open(file, "wb"))
  out:setvbuf("no")
  for at = 1, #text, PIECE do
    out:write(text:sub(at, at + PIECE - 1))
  end
  out:close()
end

local function round(n)
  local orders = make_orders(n)
  local sum = price_orders(orders, n)
  rank_orders(orders, n)
  local text = describe(orders, n)
  save(text)
  pack(text)
  return sum
end

local function main()
  local rounds, sum = 0, 0
  while os.clock() < seconds and rounds < most do
    sum = round(1000)
    rounds = rounds + 1
  end
  os.remove(file)
  print(("%d rounds, %.0f a round"):format(rounds, sum))
end

main()
