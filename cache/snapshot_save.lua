-- KEYS: the snapshot, the sets of its groups. ARGV: the snapshot, its life in ms.
-- It is listed first: what is not listed cannot be forgotten. Of names that have
-- ended more are removed than one that is added.
for i = 2, #KEYS do
	redis.call('SADD', KEYS[i], KEYS[1])
	redis.call('PEXPIRE', KEYS[i], ARGV[2])
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
for i = 2, #KEYS do
	for _, name in ipairs(redis.call('SRANDMEMBER', KEYS[i], 3)) do
		if redis.call('EXISTS', name) == 0 then redis.call('SREM', KEYS[i], name) end
	end
end
return 0
