-- Notes what became of entries. ARGV: numbers and marks, in turn.
for i = 2, #ARGV, 2 do
	if find(ARGV[i]) then redis.call('HSET', marks, ARGV[i], ARGV[i + 1]) end
end
return 0
