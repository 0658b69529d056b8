-- End the turn that `token` stands for. Accepted as long as nobody took over, for what it reports has already happened.
-- KEYS prefix  ARGV thread, token, ok|retry|dead|giveback, backoff ms, reason, dead letters kept, their TTL s, bell's TTL s
-- -> 1 accepted | 0 refused
local p, thread, verb = KEYS[1], ARGV[1], ARGV[3]
local mailbox, head = p .. ':mb:' .. thread, p .. ':head:' .. thread
if redis.call('HGET', head, 'token') ~= ARGV[2] then return 0 end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREM', p .. ':lease', thread)
redis.call('HDEL', head, 'token', 'until', 'worker')
if verb == 'retry' then
  -- The message keeps its place: what came later waits, or the order would be lost.
  redis.call('ZADD', p .. ':ready', now + ARGV[4], thread)
  return 1
end
if verb == 'giveback' then
  redis.call('HINCRBY', head, 'tries', -1)
  if tonumber(ARGV[4]) > 0 then
    redis.call('ZADD', p .. ':ready', now + ARGV[4], thread)
    return 1
  end
else
  local entry = redis.call('LPOP', mailbox)
  if verb == 'dead' then
    redis.call('XADD', p .. ':dead', 'MAXLEN', '~', ARGV[6], '*', 'thread', thread, 'entry', entry,
      'reason', ARGV[5], 'tries', redis.call('HGET', head, 'tries'))
    redis.call('EXPIRE', p .. ':dead', ARGV[7])
  end
  redis.call('DEL', head)
end
if redis.call('EXISTS', mailbox) == 1 then
  -- At the end of the queue: a busy thread does not starve the others.
  redis.call('ZADD', p .. ':ready', now, thread)
  redis.call('LPUSH', p .. ':bell', 1)
  redis.call('LTRIM', p .. ':bell', 0, 63)
  redis.call('EXPIRE', p .. ':bell', ARGV[8])
end
return 1
