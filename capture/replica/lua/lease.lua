-- KEYS: the lease, who wants it. ARGV: token, what is wanted, life in ms.
-- "take" holds the lease from now on, unless another does or wants it, and
-- "want" asks its holder for it besides; "keep" renews it, and tells whether
-- another wants it; "leave" gives it up. Returns who holds it. A server that is
-- full takes this too: it refuses what needs room only as the first change that
-- a script makes.
local holder = redis.call('GET', KEYS[1])
local what = ARGV[2]
if what == 'leave' then
	if holder == ARGV[1] then redis.call('DEL', KEYS[1]) end
	return ''
end
if what == 'keep' then
	if holder ~= ARGV[1] then return holder or '' end
	redis.call('PEXPIRE', KEYS[1], ARGV[3])
	if redis.call('EXISTS', KEYS[2]) == 1 then return 'wanted' end
	return ARGV[1]
end
if what == 'want' then
	redis.call('DEL', KEYS[2])
	redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[3])
end
local wanted = redis.call('GET', KEYS[2])
if holder and holder ~= ARGV[1] or wanted and wanted ~= ARGV[1] then return holder or '' end
redis.call('DEL', KEYS[2])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
return ARGV[1]
