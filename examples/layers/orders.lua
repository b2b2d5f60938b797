-- SPDX-License-Identifier: MIT
--
-- orders.lua - the shop's rules, which server.c calls for each request
--
-- tax() is of the server, in C: a stack may be C, Lua, C.

local function discount(customer, step)
	local rate = customer % 97
	for _ = 1, 20 do
		rate = (rate * 31 + step) % 1009
	end
	return rate / 10090
end

local function price_item(customer, item)
	return tax(100 + item) * (1 - discount(customer, item))
end

function price_order(customer, items)
	local sum = 0
	for item = 1, items do
		sum = sum + price_item(customer, item)
	end
	return sum
end

-- Found by luck and kept by habit: every item against every other one.
function recommend(customer, items)
	local best, found = -1, 0
	for a = 1, items do
		for b = 1, items do
			local score = discount(customer + a, b)
			if score > best then
				best, found = score, a
			end
		end
	end
	return found
end
