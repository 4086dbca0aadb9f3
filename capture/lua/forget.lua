-- Takes entries of a group out. ARGV: how many of the numbers are of entries
-- that wait, the numbers of those, the numbers of the dead. That the group has
-- had them is still known.
local pending, pendingBytes, gone, goneBytes = 0, 0, 0, 0
for i = 3, #ARGV do
	local n = ARGV[i]
	if i - 2 <= tonumber(ARGV[2]) then
		local entry = find(n)
		if entry then
			remove(n, entry)
			pending, pendingBytes = pending + 1, pendingBytes + #entry.body
		end
	else
		local had = redis.call('HGET', dead, n)
		if had then
			local entry = cjson.decode(had)
			undie(n, entry)
			gone, goneBytes = gone + 1, goneBytes + #entry.body
		end
	end
end
return {pending, pendingBytes, gone, goneBytes}
