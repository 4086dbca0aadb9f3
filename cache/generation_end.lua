-- Removes the fields that were not raised above a generation since.
-- KEYS: the hash of forgets under way. ARGV: the generation; the fields.
for i = 2, #ARGV do
	local had = redis.call('HGET', KEYS[1], ARGV[i])
	if had and tonumber(string.match(had, '^%d+')) <= tonumber(ARGV[1]) then redis.call('HDEL', KEYS[1], ARGV[i]) end
end
return 1
