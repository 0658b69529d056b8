-- Store one message unless any of its event ids is known. Either way all ids are known afterwards.
-- KEYS prefix  ARGV thread, message id, body, ids' TTL s, bell's TTL s, event id...  -> 1 stored | 0 duplicate
local p, thread, known = KEYS[1], ARGV[1], false
for i = 6, #ARGV do
  if not redis.call('SET', p .. ':seen:' .. ARGV[i], ARGV[2], 'NX', 'EX', ARGV[4]) then known = true end
end
if known then return 0 end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local entry = ARGV[2] .. ' ' .. string.format('%d', now) .. ' ' .. ARGV[3]
redis.call('RPUSH', p .. ':mb:' .. thread, entry)
-- A thread that is leased or ready already gets its turn: whoever ends the turn sees this message in the same step.
if not redis.call('ZSCORE', p .. ':lease', thread) and not redis.call('ZSCORE', p .. ':ready', thread) then
  redis.call('ZADD', p .. ':ready', now, thread)
  redis.call('LPUSH', p .. ':bell', 1)
  redis.call('LTRIM', p .. ':bell', 0, 63)
  redis.call('EXPIRE', p .. ':bell', ARGV[5])
end
return 1
