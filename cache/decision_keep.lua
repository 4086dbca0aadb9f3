-- KEYS: the decision, the sets of its groups, the generations of its scopes, as
-- many as groups. ARGV: the decision, what the others are told of it, both once
-- more without what it shows, its generation, its life in ms, the events in
-- which the others are told, how many events are kept, and when it is too late.
-- Returns the decision that the key has had, or has now.
local had = redis.call('GET', KEYS[1])
if had then
	return had
end
local now = redis.call('TIME')
if now[1] * 1000 + now[2] / 1000 > tonumber(ARGV[9]) then
	return redis.error_reply('LATE nobody waits for it any more')
end
local decision, event, groups = ARGV[1], ARGV[2], (#KEYS - 1) / 2
for i = 2 + groups, #KEYS do
	if tonumber(redis.call('GET', KEYS[i]) or '0') > tonumber(ARGV[5]) then
		decision, event, groups = ARGV[3], ARGV[4], 0
		break
	end
end
for i = 2, 1 + groups do
	redis.call('SADD', KEYS[i], KEYS[1])
	redis.call('PEXPIRE', KEYS[i], ARGV[6])
end
redis.call('SET', KEYS[1], decision, 'PX', ARGV[6])
-- A group that is always in use would keep the names of all that have ended: of
-- those, more are removed than one that is added.
for i = 2, 1 + groups do
	for _, name in ipairs(redis.call('SRANDMEMBER', KEYS[i], 3)) do
		if redis.call('EXISTS', name) == 0 then redis.call('SREM', KEYS[i], name) end
	end
end
redis.call('XADD', ARGV[7], 'MAXLEN', '~', ARGV[8], '*', 'm', event)
return decision
