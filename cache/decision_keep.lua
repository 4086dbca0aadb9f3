-- Stores a decision for a key that has none, and returns the decision that the
-- key has then.
-- KEYS: the decision; the set of each group; the generation of each scope, as
-- many as there are groups. ARGV: 1 the decision, 2 the event about it, 3 and 4
-- both again without the block, 5 its generation, 6 its life in ms, 7 the stream
-- of events, 8 how many events the stream keeps, 9 the deadline, in ms of the
-- server's clock.
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
-- The set of a group that is always in use never expires. Each call adds one name
-- and removes up to three of decisions that have expired.
for i = 2, 1 + groups do
	for _, name in ipairs(redis.call('SRANDMEMBER', KEYS[i], 3)) do
		if redis.call('EXISTS', name) == 0 then redis.call('SREM', KEYS[i], name) end
	end
end
redis.call('XADD', ARGV[7], 'MAXLEN', '~', ARGV[8], '*', 'm', event)
return decision
