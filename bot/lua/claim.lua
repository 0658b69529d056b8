-- Take up to `limit` threads that are due; their first message stays in the list until it is done.
-- KEYS prefix  ARGV worker, lease ms, limit, last try, dead letters kept, dead letters' TTL s
-- -> { {thread, token, tries, entry}... }
local p, worker, lease_ms, limit, last_try = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ready, lease, later = p .. ':ready', p .. ':lease', p .. ':later'

for _, item in ipairs(redis.call('ZRANGEBYSCORE', later, '-inf', now, 'LIMIT', 0, 100)) do
  local thread, entry = unpack(cjson.decode(item))
  redis.call('ZREM', later, item)
  redis.call('RPUSH', p .. ':mb:' .. thread, entry)
  if not redis.call('ZSCORE', lease, thread) then redis.call('ZADD', ready, 'NX', now, thread) end
end

-- The token goes with the lease: from here on the old holder is refused everywhere.
for _, thread in ipairs(redis.call('ZRANGEBYSCORE', lease, '-inf', now, 'LIMIT', 0, 100)) do
  redis.call('ZREM', lease, thread)
  redis.call('HDEL', p .. ':head:' .. thread, 'token', 'until', 'worker')
  redis.call('ZADD', ready, now, thread)
end

local claimed = {}
for _, thread in ipairs(redis.call('ZRANGEBYSCORE', ready, '-inf', now, 'LIMIT', 0, limit)) do
  local mailbox, head = p .. ':mb:' .. thread, p .. ':head:' .. thread
  local tries = redis.call('HINCRBY', head, 'tries', 1)
  if tries > last_try then
    -- Even burying it killed its worker, again and again: off with it, so that the thread can go on.
    redis.call('XADD', p .. ':dead', 'MAXLEN', '~', ARGV[5], '*', 'thread', thread, 'entry', redis.call('LPOP', mailbox),
      'reason', 'killed its worker each time', 'tries', tries - 1)
    redis.call('EXPIRE', p .. ':dead', ARGV[6])
    redis.call('DEL', head)
    if redis.call('EXISTS', mailbox) == 1 then redis.call('ZADD', ready, now, thread) else redis.call('ZREM', ready, thread) end
  else
    local token = redis.call('INCR', p .. ':fence')
    redis.call('ZREM', ready, thread)
    redis.call('ZADD', lease, now + lease_ms, thread)
    redis.call('HSET', head, 'token', token, 'until', now + lease_ms, 'worker', worker)
    claimed[#claimed + 1] = {thread, tostring(token), tries, redis.call('LINDEX', mailbox, 0)}
  end
end
return claimed
