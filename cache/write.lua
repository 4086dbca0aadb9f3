-- Stores or removes a record, and returns the value that its key has then.
-- KEYS: the record; its indexes: one of each scope and, last, that of its list;
-- the generation of each scope.
-- ARGV: 1 what to do: set, first (for a key that has none), remove; 2 the value, or
-- the one that it must have to be removed, if any; 3 what is stored when a scope has
-- a newer generation, if anything; 4 the record's generation; 5 now, and 6 when the
-- oldest was written that has not expired, in µs; 7 the record's life in ms; 8 how
-- many scopes it has; 9 how many records its list keeps, 0: all, -1: it has no list;
-- 10 the deadline in ms of the server's clock, if any; 11 the event to publish, if
-- any, without the value; 12 the stream of events; 13 how many events it keeps.
local what, value, event = ARGV[1], ARGV[2], ARGV[11]
local scopes, most = tonumber(ARGV[8]), tonumber(ARGV[9])
local last = 1 + scopes
if most >= 0 then last = last + 1 end

local function publish(text)
	if event ~= '' then redis.call('XADD', ARGV[12], 'MAXLEN', '~', ARGV[13], '*', 'm', event .. text) end
end

if what == 'remove' then
	if value == '' or redis.call('GET', KEYS[1]) == value then
		redis.call('DEL', KEYS[1])
		for i = 2, last do redis.call('ZREM', KEYS[i], KEYS[1]) end
		publish('')
	end
	return ''
end
if what == 'first' then
	local had = redis.call('GET', KEYS[1])
	if had then return had end
end
if ARGV[10] ~= '' then
	local now = redis.call('TIME')
	if now[1] * 1000 + now[2] / 1000 > tonumber(ARGV[10]) then
		return redis.error_reply('LATE nobody waits for it any more')
	end
end
for i = last + 1, #KEYS do
	if tonumber(redis.call('GET', KEYS[i]) or '0') > tonumber(ARGV[4]) then
		if ARGV[3] == '' then return '' end
		value, last = ARGV[3], 1
		break
	end
end
for i = 2, last do -- first: what is not listed cannot be forgotten
	redis.call('ZADD', KEYS[i], ARGV[5], KEYS[1])
	redis.call('ZREMRANGEBYSCORE', KEYS[i], '-inf', '(' .. ARGV[6])
	redis.call('PEXPIRE', KEYS[i], ARGV[7])
end
redis.call('SET', KEYS[1], value, 'PX', ARGV[7])
if most > 0 and last > 1 then
	for _, name in ipairs(redis.call('ZRANGE', KEYS[last], 0, -1 - most)) do
		redis.call('DEL', name)
		redis.call('ZREM', KEYS[last], name)
	end
end
publish(value)
return value
