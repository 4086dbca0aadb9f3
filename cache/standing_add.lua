-- Adds an entry to a list, unless one of its scopes has a newer generation.
-- KEYS: the list; the set of each scope; the generation of each scope.
-- ARGV: the entry with its scopes before it, its generation, its score, the most
-- entries of a list, the list's life in ms.
local scopes = (#KEYS - 1) / 2
for i = 2 + scopes, #KEYS do
	if tonumber(redis.call('GET', KEYS[i]) or '0') > tonumber(ARGV[2]) then return 0 end
end
for i = 2, 1 + scopes do -- first: what is not listed cannot be forgotten
	redis.call('SADD', KEYS[i], KEYS[1])
	redis.call('PEXPIRE', KEYS[i], ARGV[5])
end
redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -1 - tonumber(ARGV[4]))
redis.call('PEXPIRE', KEYS[1], ARGV[5])
return 1
