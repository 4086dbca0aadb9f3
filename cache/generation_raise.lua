-- KEYS: the number, what is being forgotten, the generations of the scopes.
-- ARGV: the number that the caller has seen, the field of what is being
-- forgotten, what follows its generation there, the life of a generation in ms.
-- Returns the number, one higher than any before.
local n = math.max(tonumber(redis.call('GET', KEYS[1]) or '1'), tonumber(ARGV[1])) + 1
redis.call('SET', KEYS[1], n)
redis.call('HSET', KEYS[2], ARGV[2], n .. ARGV[3])
for i = 3, #KEYS do redis.call('SET', KEYS[i], n, 'PX', ARGV[4]) end
return n
