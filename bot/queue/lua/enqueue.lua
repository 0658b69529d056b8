-- Store one message unless any of its event ids is known. Either way all ids are known afterwards.
-- KEYS prefix  ARGV thread, message id, body, ids' TTL s, bell's TTL s, event id...
-- -> 0 duplicate | 1 stored | 2 stored, and somebody should be woken
local thread, known = ARGV[1], false
for i = 6, #ARGV do
  if not redis.call('SET', p .. ':seen:' .. ARGV[i], ARGV[2], 'NX', 'EX', ARGV[4]) then known = true end
end
if known then return 0 end

-- What was said earlier goes before what waits and was said later, but never before a head that somebody tried.
local mailbox, said, before = p .. ':mb:' .. thread, string.match(ARGV[2], '^(%S+)/'), nil
for place = redis.call('LLEN', mailbox) - 1, redis.call('EXISTS', p .. ':head:' .. thread), -1 do
  local other = redis.call('LINDEX', mailbox, place)
  if not said or (string.match(other, '^([%d.]+)/') or '') <= said then break end
  before = other
end
local entry = ARGV[2] .. ' ' .. string.format('%d', now) .. ' ' .. ARGV[3]
if before then redis.call('LINSERT', mailbox, 'BEFORE', before, entry) else redis.call('RPUSH', mailbox, entry) end
-- A thread that is leased or ready already gets its turn: whoever ends the turn sees this message in the same step.
if redis.call('ZSCORE', lease, thread) or redis.call('ZSCORE', ready_of(thread), thread) then return 1 end
-- A direct chat goes before what was said in channels within the last half minute: a burst there is nobody's own.
make_ready(thread, string.match(thread, '^[^:]*:D') and now - 30000 or now)
ring(ARGV[5])
return 2
