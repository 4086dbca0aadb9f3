-- Puts an entry aside. ARGV: its number, its mark.
local entry = find(ARGV[2])
if not entry then return {0, 0} end
remove(ARGV[2], entry)
entry.mark = ARGV[3]
redis.call('HSET', dead, ARGV[2], cjson.encode(entry))
redis.call('ZADD', order, ARGV[2], ARGV[2])
count('dead', 1, #entry.body)
return {1, #entry.body}
