-- KEYS: the block, the sets of its groups. ARGV: the block, its life in ms.
-- The block that the key has had, or has now.
local had = redis.call('GET', KEYS[1])
if had then
	return had
end
for i = 2, #KEYS do
	redis.call('SADD', KEYS[i], KEYS[1])
	redis.call('PEXPIRE', KEYS[i], ARGV[2])
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return ARGV[1]
