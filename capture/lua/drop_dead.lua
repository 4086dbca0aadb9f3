-- Removes dead entries: those of the numbers, or all.
local turns, bytes = raise(numbers(2))
redis.call('HINCRBY', counts, 'dropped', turns)
return {0, 0, turns, bytes}
