-- KEYS: what a search found, the names of all that were found in its group, the
-- generation of what was found there. ARGV: what was found, its generation, its
-- life in ms, that of the names, now in ms.
if tonumber(redis.call('GET', KEYS[3]) or '0') > tonumber(ARGV[2]) then return 0 end
redis.call('ZADD', KEYS[2], ARGV[5] + ARGV[3], KEYS[1]) -- first: what is not listed cannot be forgotten
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', ARGV[5])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
return 1
