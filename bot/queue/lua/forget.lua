-- Remove one message from its thread's mailbox, or all of them, but never one that a worker holds.
-- KEYS prefix  ARGV thread, entry ('': all)  -> number of removed messages | -1 a worker holds it (or the first of them)
local thread, entry = ARGV[1], ARGV[2]
local mailbox = p .. ':mb:' .. thread
damage = find_damage({[ready_of(thread)] = 'zset', [mailbox] = 'list'})
if damage then return damage end
local first = redis.call('LINDEX', mailbox, 0)
local held = tonumber(redis.call('ZSCORE', lease, thread) or 0) > now
if held and (entry == '' or first == entry) then return -1 end

local gone
if entry == '' then
  gone = redis.call('LLEN', mailbox)
  redis.call('DEL', mailbox)
else
  gone = redis.call('LREM', mailbox, 1, entry)
end
if held or redis.call('LINDEX', mailbox, 0) == first then return gone end
-- The head was removed: delete its hash and its lease, which had run out.
redis.call('DEL', p .. ':head:' .. thread)
if redis.call('ZREM', lease, thread) == 1 then make_ready(thread, now) end
if redis.call('EXISTS', mailbox) == 0 then take_from_ready(thread) end
return gone
