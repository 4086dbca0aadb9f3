-- Notes what became of entries. ARGV: numbers and marks, in turn. A server that
-- is full takes it after a removal: without it nothing is delivered.
for i = 2, #ARGV, 2 do
	if find(ARGV[i]) then
		redis.call('HDEL', marks, ARGV[i])
		redis.call('HSET', marks, ARGV[i], ARGV[i + 1])
	end
end
return 0
