-- Take up to `limit` threads that are due; their first message stays in the list until it is done.
-- A message whose workers died under it again and again is a suspect: a worker holds one of those at a time, so that
-- it cannot drag the same bystanders along until they look guilty too.
-- KEYS prefix  ARGV worker, lease ms, limit, last try, dead letters kept, dead letters' TTL s, deaths of a suspect
-- -> { {thread, token, tries, entry}... }
local p, worker, lease_ms, limit, last_try = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ready, lease = p .. ':ready', p .. ':lease'

-- The token goes with the lease: from here on the old holder is refused everywhere.
for _, thread in ipairs(redis.call('ZRANGEBYSCORE', lease, '-inf', now, 'LIMIT', 0, 100)) do
  redis.call('ZREM', lease, thread)
  redis.call('HINCRBY', p .. ':head:' .. thread, 'deaths', 1)
  redis.call('HDEL', p .. ':head:' .. thread, 'token', 'until', 'worker')
  redis.call('ZADD', ready, now, thread)
end

local function suspected(thread)
  return tonumber(redis.call('HGET', p .. ':head:' .. thread, 'deaths') or 0) >= tonumber(ARGV[7])
end

local function holds_a_suspect()
  for _, thread in ipairs(redis.call('ZRANGE', lease, 0, -1)) do
    if redis.call('HGET', p .. ':head:' .. thread, 'worker') == worker and suspected(thread) then return true end
  end
  return false
end

local function try(thread)
  local mailbox, head = p .. ':mb:' .. thread, p .. ':head:' .. thread
  local tries = redis.call('HINCRBY', head, 'tries', 1)
  if tries > last_try then
    -- Even burying it killed its worker, again and again: off with it, so that the thread can go on.
    redis.call('XADD', p .. ':dead', 'MAXLEN', '~', ARGV[5], '*', 'thread', thread, 'entry', redis.call('LPOP', mailbox),
      'reason', 'killed its worker each time', 'tries', tries - 1)
    redis.call('EXPIRE', p .. ':dead', ARGV[6])
    redis.call('DEL', head)
    if redis.call('EXISTS', mailbox) == 1 then redis.call('ZADD', ready, now, thread) else redis.call('ZREM', ready, thread) end
    return nil
  end
  local token = redis.call('INCR', p .. ':fence')
  redis.call('ZREM', ready, thread)
  redis.call('ZADD', lease, now + lease_ms, thread)
  redis.call('HSET', head, 'token', token, 'until', now + lease_ms, 'worker', worker)
  return {thread, tostring(token), tries, redis.call('LINDEX', mailbox, 0)}
end

local claimed = {}
for _, thread in ipairs(redis.call('ZRANGEBYSCORE', ready, '-inf', now, 'LIMIT', 0, limit)) do
  if suspected(thread) and holds_a_suspect() then
    redis.call('ZADD', ready, now + 500, thread) -- out of the way of those behind it
  else
    claimed[#claimed + 1] = try(thread)
  end
end
return claimed
