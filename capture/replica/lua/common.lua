-- What all scripts know. KEYS, of every script: the lease, the stream, the
-- marks, the counts, the dead, the number given last, the numbers of the dead
-- in their order. ARGV[1] is the token of the process that must hold the lease,
-- or empty.
local lease, stream, marks, counts, dead, last, order = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
if ARGV[1] ~= '' and redis.call('GET', lease) ~= ARGV[1] then
	return redis.error_reply('NOTLEADING another replica delivers')
end
local function fields(flat)
	local t = {}
	for i = 1, #flat, 2 do t[flat[i]] = flat[i + 1] end
	return t
end
local function find(n)
	local found = redis.call('XRANGE', stream, n .. '-0', n .. '-0')
	if #found == 0 then return nil end
	return fields(found[1][2])
end
local function count(what, turns, bytes)
	redis.call('HINCRBY', counts, what, turns)
	redis.call('HINCRBY', counts, what .. '_bytes', bytes)
end
local function remove(n, entry)
	redis.call('XDEL', stream, n .. '-0')
	redis.call('HDEL', marks, n)
	count('pending', -1, -#entry.body)
end
local function insert(entry)
	local n = redis.call('INCR', last)
	redis.call('XADD', stream, n .. '-0', 'grp', entry.grp, 'scope', entry.scope, 'born', entry.born,
		'later', entry.later, 'body', entry.body)
	count('pending', 1, #entry.body)
	return n
end
local function undie(n, entry)
	redis.call('HDEL', dead, n)
	redis.call('ZREM', order, n)
	count('dead', -1, -#entry.body)
end
-- raise calls f for the dead of the numbers, which are none any more, and
-- returns how many turns and bytes they were.
local function raise(list, f)
	local turns, bytes = 0, 0
	for _, n in ipairs(list) do
		local had = redis.call('HGET', dead, n)
		if had then
			local entry = cjson.decode(had)
			undie(n, entry)
			if f then f(entry) end
			turns, bytes = turns + 1, bytes + #entry.body
		end
	end
	return turns, bytes
end
-- eldest are the numbers of the first n of the dead, of all for 0.
local function eldest(n) return redis.call('ZRANGE', order, 0, n - 1) end
-- numbers are those that are given from ARGV[from] on, or all of the dead.
local function numbers(from)
	if #ARGV >= from then return {unpack(ARGV, from)} end
	return eldest(0)
end
