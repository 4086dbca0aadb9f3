-- Stores a snapshot, unless one of its scopes has a newer generation.
-- KEYS: the snapshot; the set of each scope; the generation of each scope.
-- ARGV: the snapshot, its generation, its life in ms.
local scopes = (#KEYS - 1) / 2
for i = 2 + scopes, #KEYS do
	if tonumber(redis.call('GET', KEYS[i]) or '0') > tonumber(ARGV[2]) then return 0 end
end
for i = 2, 1 + scopes do -- first: what is not listed cannot be forgotten
	redis.call('SADD', KEYS[i], KEYS[1])
	redis.call('PEXPIRE', KEYS[i], ARGV[3])
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
-- Each call adds one name to a set and removes up to three of snapshots that have
-- expired.
for i = 2, 1 + scopes do
	for _, name in ipairs(redis.call('SRANDMEMBER', KEYS[i], 3)) do
		if redis.call('EXISTS', name) == 0 then redis.call('SREM', KEYS[i], name) end
	end
end
return 1
