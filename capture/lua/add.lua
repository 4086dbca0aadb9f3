-- Stores a turn, or a part of one, for a group that has not had it. Returns its
-- bytes, 0 when the group has had it, or -1 when the group has a beginning in
-- which something else was said; and what all entries come to.
local forgot, groups, promoted, turn, said, cut = KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12], KEYS[13]
local a = cjson.decode(ARGV[2])
local body, life = ARGV[3], ARGV[4]
local function answer(bytes)
	local held = redis.call('HMGET', counts, 'pending', 'pending_bytes', 'dead', 'dead_bytes')
	local reply = {bytes}
	for i = 1, 4 do reply[i + 1] = tonumber(held[i] or '0') end
	return reply
end
local at = redis.call('GET', forgot)
if at and a.at <= tonumber(at) then return answer(0) end
-- Its answer came to no clean end, whatever a history shows.
if a.later == '1' and redis.call('EXISTS', cut) == 1 then return answer(0) end
-- Of a turn it is known whether its end is missing, and what was said in it.
local had = redis.call('GET', turn)
if had and a.ends and string.sub(had, 1, 1) == '1' and string.sub(had, 3) ~= a.said then return answer(-1) end
if had then return answer(0) end
-- What another replica found in a history may come in before the turn itself.
local heard = redis.call('GET', said)
if heard and (a.later == '1' or heard == '1') then return answer(0) end
redis.call('SET', turn, a.open .. ':' .. a.said, 'PX', life)
redis.call('SET', said, a.later, 'PX', life)
redis.call('HSETNX', groups, a.grp .. '\n' .. a.owner, a.whose)
if a.promoted then redis.call('SADD', promoted, a.grp) end
a.body = body
insert(a)
-- It was answered again, and to the end. Last: what has written is not refused
-- by a server that is full.
if a.later ~= '1' and a.open ~= '1' then redis.call('DEL', cut) end
return answer(#body)
