-- Stores a turn, or a part of one, for a group that has not had it. Returns its
-- bytes, 0 when the group has had it, or -1 when the group has a beginning in
-- which something else was said; and what all entries come to. KEYS from 14 on:
-- the generations of the group, and of the session.
local groups, promoted, talk, turn, said, cut = KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12], KEYS[13]
local a = cjson.decode(ARGV[2])
local body, life = ARGV[3], ARGV[4]
local function answer(bytes)
	local held = redis.call('HMGET', counts, 'pending', 'pending_bytes', 'dead', 'dead_bytes')
	local reply = {bytes}
	for i = 1, 4 do reply[i + 1] = tonumber(held[i] or '0') end
	return reply
end
local floor = 0
for i = 14, #KEYS do floor = math.max(floor, tonumber(redis.call('GET', KEYS[i]) or '0')) end
-- What is known of a turn: whether its end is missing, what was said in it, and
-- its generation. Of what was said in one: whether it came from a history, and
-- its generation.
local function note(key, flag, what, ...)
	redis.call('SET', key, flag .. ':' .. what .. ':' .. a.generation, 'PX', life, ...)
end
-- known also says whether the group has forgotten it since.
local function known(key)
	local had = redis.call('GET', key)
	if not had then return nil end
	local flag, what, generation = string.match(had, '^(.):?([^:]*):?(%-?%d*)$')
	generation = tonumber(generation) or 0
	return flag, what, floor > generation
end
if floor > tonumber(a.generation) then
	-- A history may bring it whose generation is not known.
	note(turn, '0', a.said, 'NX')
	note(said, '0', '', 'NX')
	return answer(0)
end
-- Its answer came to no clean end, whatever a history shows. That is no matter for
-- what the person said.
if a.later == '1' and a.open ~= '1' and redis.call('EXISTS', cut) == 1 then return answer(0) end
local open, all, gone = known(turn)
if gone and a.again then open = nil end
if open == '1' and not gone and a.ends and all ~= a.said then return answer(-1) end
if open then return answer(0) end
-- What another replica found in a history may come in before the turn itself.
local later, _, before = known(said)
if later and (a.later == '1' or later == '1' and not before) then return answer(0) end
note(turn, a.open, a.said)
note(said, a.later, '')
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
