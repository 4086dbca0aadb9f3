-- Takes delivered entries out. ARGV: whether they were verified, the numbers.
local turns, bytes = 0, 0
for i = 3, #ARGV do
	local entry = find(ARGV[i])
	if entry then
		remove(ARGV[i], entry)
		turns, bytes = turns + 1, bytes + #entry.body
	end
end
if turns > 0 then redis.call('HINCRBY', counts, 'delivered', turns) end
if turns > 0 and ARGV[2] == '1' then redis.call('HINCRBY', counts, 'verified', turns) end
return {turns, bytes}
