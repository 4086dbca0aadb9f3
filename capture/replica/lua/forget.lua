-- Takes entries of a group out. ARGV: how many of the numbers are of entries
-- that wait, the numbers of those, the numbers of the dead. That the group has
-- had them is still known.
local first = 3 + tonumber(ARGV[2]) -- of the dead
local pending, bytes = 0, 0
for i = 3, first - 1 do
	local entry = find(ARGV[i])
	if entry then
		remove(ARGV[i], entry)
		pending, bytes = pending + 1, bytes + #entry.body
	end
end
return {pending, bytes, raise({unpack(ARGV, first)})}
