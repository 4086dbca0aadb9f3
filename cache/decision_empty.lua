-- Empties the block of each decision that has one, and returns how many.
-- KEYS: the set of emptied decisions; the decisions. ARGV: now, in ms.
local n = 0
for i = 2, #KEYS do
	local had = redis.call('GET', KEYS[i])
	local left = redis.call('PTTL', KEYS[i])
	if had and left > 0 then
		local decision = cjson.decode(had)
		if decision.Block ~= '' then
			n = n + 1
			decision.Block = ''
			redis.call('SET', KEYS[i], cjson.encode(decision), 'PX', left)
			redis.call('ZADD', KEYS[1], ARGV[1] + left, KEYS[i])
		end
	end
end
return n
