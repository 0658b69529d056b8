-- Store one message unless any of its event ids is known. Either way all ids are known afterwards. What says more than
-- the event that was stored first (`fuller`) takes its place, if nobody has claimed that yet.
-- KEYS prefix  ARGV thread, message id, body, ids' TTL s, bell's TTL s, ms it may wait for a fuller one, fuller ('': no),
-- event id...  -> 0 duplicate | -2 duplicate, and somebody should be woken | 1 stored | 2 stored, and likewise
local thread, known = ARGV[1], nil
local mailbox = p .. ':mb:' .. thread
for i = 8, #ARGV do
  local seen = p .. ':seen:' .. ARGV[i]
  if not redis.call('SET', seen, ARGV[2], 'NX', 'EX', ARGV[4]) then known = known or redis.call('GET', seen) end
end

local function take_its_place()
  for place = redis.call('EXISTS', p .. ':head:' .. thread), redis.call('LLEN', mailbox) - 1 do
    local id, stored = string.match(redis.call('LINDEX', mailbox, place), '^(%S+) (%d+) ')
    if id == known then
      redis.call('LSET', mailbox, place, id .. ' ' .. stored .. ' ' .. ARGV[3])
      -- What stands before it keeps its own time: it may rest until a far end is back.
      if place > 0 or tonumber(redis.call('ZSCORE', ready_of(thread), thread) or 0) <= now then return 0 end
      make_ready(thread, stored)
      ring(ARGV[5])
      return -2
    end
  end
  return 0
end
if known then return ARGV[7] ~= '' and take_its_place() or 0 end

-- What was said earlier goes before what waits and was said later, but never before a head that somebody tried.
local said, before = string.match(ARGV[2], '^(%S+)/'), nil
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
make_ready(thread, string.match(thread, '^[^:]*:D') and now - 30000 or now + ARGV[6])
if tonumber(ARGV[6]) > 0 then return 1 end
ring(ARGV[5])
return 2
