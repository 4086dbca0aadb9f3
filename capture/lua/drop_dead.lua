-- Removes dead entries: those of the numbers, or all.
local turns, bytes = 0, 0
for _, n in ipairs(numbers(2)) do
	local had = redis.call('HGET', dead, n)
	if had then
		local entry = cjson.decode(had)
		undie(n, entry)
		turns, bytes = turns + 1, bytes + #entry.body
	end
end
redis.call('HINCRBY', counts, 'dropped', turns)
return {0, 0, turns, bytes}
