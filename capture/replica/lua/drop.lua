-- Removes entries, the dead first, the oldest first: at most ARGV[2], and only
-- when there are more than ARGV[3] turns or ARGV[4] bytes, until ARGV[6] turns
-- and ARGV[7] bytes are free, or as far as they came in before ARGV[5].
local pending, pendingBytes, gone, goneBytes = 0, 0, 0, 0
local most, before = tonumber(ARGV[2]), tonumber(ARGV[5])
local function held(what) return tonumber(redis.call('HGET', counts, what) or '0') end
local turns = held('pending') + held('dead') - tonumber(ARGV[3])
local bytes = held('pending_bytes') + held('dead_bytes') - tonumber(ARGV[4])
if turns > 0 or bytes > 0 then turns, bytes = turns + tonumber(ARGV[6]), bytes + tonumber(ARGV[7]) end
local function over(entry)
	return most > pending + gone and (turns > pending + gone or bytes > pendingBytes + goneBytes or tonumber(entry.born) < before)
end
if held('dead') > 0 then
	for _, n in ipairs(eldest(most)) do
		local had = redis.call('HGET', dead, n)
		local entry = had and cjson.decode(had)
		if entry and not over(entry) then break end
		if entry then
			undie(n, entry)
			gone, goneBytes = gone + 1, goneBytes + #entry.body
		else
			redis.call('ZREM', order, n)
		end
	end
end
while true do
	local first = redis.call('XRANGE', stream, '-', '+', 'COUNT', 1)
	if #first == 0 then break end
	local entry = fields(first[1][2])
	if not over(entry) then break end
	remove(string.match(first[1][1], '^%d+'), entry)
	pending, pendingBytes = pending + 1, pendingBytes + #entry.body
end
if pending + gone > 0 then redis.call('HINCRBY', counts, 'dropped', pending + gone) end
return {pending, pendingBytes, gone, goneBytes}
