-- KEYS: the set of what was emptied, the blocks. ARGV: now, in ms. Takes the
-- text out of the blocks that have one, and returns how many.
local n = 0
for i = 2, #KEYS do
	local had = redis.call('GET', KEYS[i])
	local left = redis.call('PTTL', KEYS[i])
	if had and left > 0 then
		local block = cjson.decode(had)
		if block.t ~= '' then
			n = n + 1
			block.t = ''
			redis.call('SET', KEYS[i], cjson.encode(block), 'PX', left)
			redis.call('ZADD', KEYS[1], ARGV[1] + left, KEYS[i])
		end
	end
end
return n
