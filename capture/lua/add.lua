-- Stores a turn, or a part of one, for a group that has not had it. Returns its
-- bytes, 0 when the group has had it, or -1 when the group has a beginning in
-- which something else was said; and what all entries come to. KEYS from 14 on:
-- when the group, and the session, were forgotten.
local groups, promoted, talk, turn, said, cut = KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12], KEYS[13]
local a = cjson.decode(ARGV[2])
local body, life = ARGV[3], ARGV[4]
local function answer(bytes)
	local held = redis.call('HMGET', counts, 'pending', 'pending_bytes', 'dead', 'dead_bytes')
	local reply = {bytes}
	for i = 1, 4 do reply[i + 1] = tonumber(held[i] or '0') end
	return reply
end
local forgot = 0
for i = 14, #KEYS do forgot = math.max(forgot, tonumber(redis.call('GET', KEYS[i]) or '0')) end
-- What is known of a turn: whether its end is missing, what was said in it, and
-- since when that is known. Of what was said in one: whether it came from a
-- history, and since when.
local function note(key, flag, what, at, ...)
	redis.call('SET', key, flag .. ':' .. what .. ':' .. at, 'PX', life, ...)
end
-- known also says whether the group has forgotten it since.
local function known(key)
	local had = redis.call('GET', key)
	if not had then return nil end
	local flag, what, at = string.match(had, '^(.):?([^:]*):?(%-?%d*)$')
	return flag, what, forgot > 0 and (tonumber(at) or 0) <= forgot
end
if forgot > 0 and tonumber(a.at) <= forgot then
	-- Whoever tells of it later does not say when it was said.
	note(turn, '0', a.said, a.at, 'NX')
	note(said, '0', '', a.at, 'NX')
	return answer(0)
end
-- Its answer came to no clean end, whatever a history shows.
if a.later == '1' and redis.call('EXISTS', cut) == 1 then return answer(0) end
local open, all, gone = known(turn)
if gone and a.again then open = nil end
if open == '1' and not gone and a.ends and all ~= a.said then return answer(-1) end
if open then return answer(0) end
-- What another replica found in a history may come in before the turn itself.
local later, _, before = known(said)
if later and (a.later == '1' or later == '1' and not before) then return answer(0) end
note(turn, a.open, a.said, a.now)
note(said, a.later, '', a.now)
redis.call('HSETNX', groups, a.grp .. '\n' .. a.owner, a.whose)
if a.talk ~= '' then
	redis.call('SADD', talk, a.grp .. '\n' .. a.owner)
	redis.call('PEXPIRE', talk, life)
end
if a.promoted then redis.call('SADD', promoted, a.grp) end
a.body = body
insert(a)
-- It was answered again, and to the end. Last: what has written is not refused
-- by a server that is full.
if a.later ~= '1' and a.open ~= '1' then redis.call('DEL', cut) end
return answer(#body)
