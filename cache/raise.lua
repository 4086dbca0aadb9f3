-- Raises the number of forgets by one and returns it, for the forget and for its
-- scopes.
-- KEYS: the number; the forget; the list of forgets; the list of scopes; the generation of
-- each scope.
-- ARGV: the highest number that the caller has seen, what stands in the forget
-- behind the number, now in µs, the life of a scope's generation in ms.
local n = math.max(tonumber(redis.call('GET', KEYS[1]) or '1'), tonumber(ARGV[1])) + 1
redis.call('SET', KEYS[1], n)
redis.call('SET', KEYS[2], n .. ARGV[2])
redis.call('ZADD', KEYS[3], ARGV[3], KEYS[2])
for i = 5, #KEYS do
  redis.call('SET', KEYS[i], n, 'PX', ARGV[4])
  redis.call('ZADD', KEYS[4], ARGV[3], KEYS[i])
end
redis.call('ZREMRANGEBYSCORE', KEYS[4], '-inf', ARGV[3] - ARGV[4] * 1000)
return n
