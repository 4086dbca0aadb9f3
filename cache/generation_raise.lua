-- Raises the number of forgets by one and returns it, for the forget and for its
-- scopes.
-- KEYS: the number; the hash of forgets under way; the generation of each scope.
-- ARGV: the highest number that the caller has seen, the forget's field in the
-- hash, what stands in it behind the generation, the life of a scope's generation
-- in ms.
local n = math.max(tonumber(redis.call('GET', KEYS[1]) or '1'), tonumber(ARGV[1])) + 1
redis.call('SET', KEYS[1], n)
redis.call('HSET', KEYS[2], ARGV[2], n .. ARGV[3])
for i = 3, #KEYS do redis.call('SET', KEYS[i], n, 'PX', ARGV[4]) end
return n
