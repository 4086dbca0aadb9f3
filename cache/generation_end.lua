-- KEYS: what is being forgotten. ARGV: a generation, fields. Removes those that
-- were not raised above it since.
for i = 2, #ARGV do
	local had = redis.call('HGET', KEYS[1], ARGV[i])
	if had and tonumber(string.match(had, '^%d+')) <= tonumber(ARGV[1]) then redis.call('HDEL', KEYS[1], ARGV[i]) end
end
return 1
