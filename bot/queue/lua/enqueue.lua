-- Store one message unless one of its event ids is known. In both cases all ids are known afterwards. A `fuller` event
-- about the same message replaces the stored one until a worker claims it.
-- KEYS prefix  ARGV thread, message id, body, ids' TTL s, bell's TTL s, ms it may wait for a fuller one, fuller ('': no),
-- event id...  -> 0 duplicate | -2 duplicate, and a worker should be woken | 1 stored | 2 stored, and the same
local thread, known = ARGV[1], nil
local mailbox = p .. ':mb:' .. thread
local kinds = {[ready_of(thread)] = 'zset', [mailbox] = 'list', [p .. ':head:' .. thread] = 'hash'}
for i = 8, #ARGV do kinds[p .. ':seen:' .. ARGV[i]] = 'string' end
damage = find_damage(kinds)
if damage then return damage end
for i = 8, #ARGV do
  local seen = p .. ':seen:' .. ARGV[i]
  if not redis.call('SET', seen, ARGV[2], 'NX', 'EX', ARGV[4]) then known = known or redis.call('GET', seen) end
end

local function take_its_place()
  for place = redis.call('EXISTS', p .. ':head:' .. thread), redis.call('LLEN', mailbox) - 1 do
    local id, stored = string.match(redis.call('LINDEX', mailbox, place), '^(%S+) (%d+) ')
    if id == known then
      redis.call('LSET', mailbox, place, id .. ' ' .. stored .. ' ' .. ARGV[3])
      -- A message before it keeps its own time: it may wait until a service is back.
      if place > 0 or tonumber(redis.call('ZSCORE', ready_of(thread), thread) or 0) <= now then return 0 end
      make_ready(thread, stored)
      ring(ARGV[5])
      return -2
    end
  end
  return 0
end
if known then return ARGV[7] ~= '' and take_its_place() or 0 end

-- A message that was written earlier goes before later ones that wait, but never before a head that was tried.
local slack_ts, before = string.match(ARGV[2], '^(%S+)/'), nil
for place = redis.call('LLEN', mailbox) - 1, redis.call('EXISTS', p .. ':head:' .. thread), -1 do
  local other = redis.call('LINDEX', mailbox, place)
  if not slack_ts or (string.match(other, '^([%d.]+)/') or '') <= slack_ts then break end
  before = other
end
local entry = ARGV[2] .. ' ' .. string.format('%d', now) .. ' ' .. ARGV[3]
if before then redis.call('LINSERT', mailbox, 'BEFORE', before, entry) else redis.call('RPUSH', mailbox, entry) end
-- A thread that is leased or ready needs no bell: the script that ends its turn finds this message.
if redis.call('ZSCORE', lease, thread) or redis.call('ZSCORE', ready_of(thread), thread) then return 1 end
-- A direct message goes before the channel messages of the last half minute, so that a burst in channels does not delay it.
make_ready(thread, now + (ARGV[6] == '0' and string.match(thread, '^[^:]*:D') and -30000 or ARGV[6]))
if ARGV[6] ~= '0' then return 1 end
ring(ARGV[5])
return 2
