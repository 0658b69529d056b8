-- Put a message that was given up back at the end of its thread's mailbox, or drop it. Either happens once.
-- KEYS prefix  ARGV entry id, retry|drop, bell's TTL s  -> 0 no such dead letter | 1 done | 2 done, and a worker should be woken
local found = redis.call('XRANGE', p .. ':dead', ARGV[1], ARGV[1])[1]
if not found then return 0 end
local letter = {}
for i = 1, #found[2], 2 do letter[found[2][i]] = found[2][i + 1] end
local thread = letter.thread
local id, body = string.match(letter.entry or '', '^(%S+) %d+ (.*)$')
-- A damaged entry cannot be retried.
if ARGV[2] == 'retry' and not (id and thread) then return 0 end

-- The same message with a new time of arrival: it waits for services that are away as long as a new one.
if ARGV[2] == 'retry' then
  damage = find_damage({[ready_of(thread)] = 'zset', [p .. ':mb:' .. thread] = 'list'})
  if damage then return damage end
  redis.call('RPUSH', p .. ':mb:' .. thread, id .. ' ' .. string.format('%d', now) .. ' ' .. body)
end
redis.call('XDEL', p .. ':dead', ARGV[1])
if redis.call('XLEN', p .. ':dead') == 0 then redis.call('DEL', p .. ':dead') end
if ARGV[2] == 'drop' then return 1 end
if redis.call('ZSCORE', lease, thread) or redis.call('ZSCORE', ready_of(thread), thread) then return 1 end
make_ready(thread, now)
ring(ARGV[3])
return 2
