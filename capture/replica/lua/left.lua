-- Returns those of the numbers, ARGV from 2 on, that are in the stream no more, and not
-- among the dead.
local left = {}
for i = 2, #ARGV do
	if not find(ARGV[i]) and redis.call('HEXISTS', dead, ARGV[i]) == 0 then left[#left + 1] = tonumber(ARGV[i]) end
end
return left
