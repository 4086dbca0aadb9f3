-- Stores a turn for a group that has not had it. Returns its bytes, or 0 when
-- the group has had it, and what all entries come to.
local forgot, groups, promoted, turn, said, rest = KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local a = cjson.decode(ARGV[2])
local body, left, life = ARGV[3], ARGV[4], ARGV[5]
local function answer(bytes)
	local held = redis.call('HMGET', counts, 'pending', 'pending_bytes', 'dead', 'dead_bytes')
	local reply = {bytes}
	for i = 1, 4 do reply[i + 1] = tonumber(held[i] or '0') end
	return reply
end
local at = redis.call('GET', forgot)
if at and a.at <= tonumber(at) then return answer(0) end
local had = redis.call('GET', turn)
-- What another replica found in a history may come in before the turn itself.
local heard = redis.call('GET', said)
if not had and heard and (a.later == '1' or heard == '1') then had = '0' end
if had == '1' and left ~= '' then
	turn, body = rest, left
	had = redis.call('GET', turn)
end
if had then return answer(0) end
redis.call('SET', turn, a.open, 'PX', life)
redis.call('SET', said, a.later, 'PX', life)
redis.call('HSETNX', groups, a.grp .. '\n' .. a.owner, a.whose)
if a.promoted then redis.call('SADD', promoted, a.grp) end
a.body = body
insert(a)
return answer(#body)
