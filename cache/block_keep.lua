-- KEYS: the block, the sets of its groups. ARGV: the block, its life in ms, the
-- news in which the others hear of it, what they hear, how much news is
-- kept, and when it is too late. The block that the key has had, or has now.
local had = redis.call('GET', KEYS[1])
if had then
	return had
end
local now = redis.call('TIME')
if now[1] * 1000 + now[2] / 1000 > tonumber(ARGV[6]) then
	return redis.error_reply('LATE nobody waits for it any more')
end
for i = 2, #KEYS do
	redis.call('SADD', KEYS[i], KEYS[1])
	redis.call('PEXPIRE', KEYS[i], ARGV[2])
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
-- A group that is always in use would keep the names of all that have ended: of
-- those, more are removed than one that is added.
for i = 2, #KEYS do
	for _, name in ipairs(redis.call('SRANDMEMBER', KEYS[i], 3)) do
		if redis.call('EXISTS', name) == 0 then redis.call('SREM', KEYS[i], name) end
	end
end
redis.call('XADD', ARGV[3], 'MAXLEN', '~', ARGV[5], '*', 'm', ARGV[4])
return ARGV[1]
