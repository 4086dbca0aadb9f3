-- Tells the others how it goes. ARGV: the report, its life in ms. A server that
-- is full takes it after the removal.
redis.call('DEL', KEYS[8])
redis.call('SET', KEYS[8], ARGV[2], 'PX', ARGV[3])
return 0
