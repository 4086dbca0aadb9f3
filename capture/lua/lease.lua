-- KEYS: the lease, who wants it. ARGV: token, what is wanted, life in ms.
-- "take" and "keep" hold the lease from now on, unless another does or wants
-- it; "leave" gives it up. Returns who holds it.
local holder = redis.call('GET', KEYS[1])
local wanted = redis.call('GET', KEYS[2])
local ours = not holder or holder == ARGV[1]
if ARGV[2] == 'leave' then
	if holder == ARGV[1] then redis.call('DEL', KEYS[1]) end
	return ''
end
if ARGV[2] == 'want' then
	redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[3])
	wanted = ARGV[1]
end
if ours and (not wanted or wanted == ARGV[1]) then
	if ARGV[2] == 'keep' and not holder then return '' end
	redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
	if wanted then redis.call('DEL', KEYS[2]) end
	return ARGV[1]
end
if holder == ARGV[1] then return 'wanted' end
return holder or ''
