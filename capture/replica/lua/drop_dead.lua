-- Removes dead entries: those of the numbers, or all.
local turns, bytes = raise(numbers(2))
if turns > 0 then redis.call('HINCRBY', counts, 'dropped', turns) end
return {0, 0, turns, bytes}
