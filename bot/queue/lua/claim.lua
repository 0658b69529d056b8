-- Claim up to `limit` threads that are due. The first message of each stays in its list until the turn ends.
-- Workspaces take turns, one thread each. The one that waited longest comes first, and none gets more than `cap` leases.
-- A message whose workers died several times is a suspect. A worker holds one suspect at a time: with two, an innocent
-- message would share the deaths of the other one.
-- KEYS prefix
-- ARGV worker, lease ms, limit, last try, dead letters kept, dead letters' TTL s, deaths of a suspect, cap (0: none)
-- -> { {thread, token, tries, entry}... }
local worker, lease_ms, limit, last_try = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local deaths_of_a_suspect, cap = tonumber(ARGV[7]), tonumber(ARGV[8])

-- Times further ahead than any wait were written before Redis' clock was set back. Such a thread is due, and such a lease
-- begins again.
local beyond = '(' .. string.format('%d', now + math.max(600000, 2 * lease_ms))
for _, thread in ipairs(redis.call('ZRANGEBYSCORE', lease, beyond, '+inf', 'LIMIT', 0, 100)) do
  redis.call('ZADD', lease, now + lease_ms, thread)
end

local expired = redis.call('ZRANGEBYSCORE', lease, '-inf', now, 'LIMIT', 0, 100)
damage = find_damage(ready_sets(expired))
if damage then return damage end

-- A set of the queue was dropped: each thread with messages returns to the set in which it belongs.
if redis.call('EXISTS', p .. ':rebuild') == 1 then
  local cursor, start, threads = '0', p .. ':mb:', {}
  repeat
    local page = redis.call('SCAN', cursor, 'MATCH', start .. '*', 'COUNT', 1000)
    cursor = page[1]
    for _, mailbox in ipairs(page[2]) do threads[#threads + 1] = string.sub(mailbox, #start + 1) end
  until cursor == '0'
  damage = find_damage(ready_sets(threads))
  if damage then return damage end
  for _, thread in ipairs(threads) do
    local untl = tonumber(redis.pcall('HGET', p .. ':head:' .. thread, 'until') or nil)
    if untl then redis.call('ZADD', lease, untl, thread)
    else make_ready(thread, redis.call('ZSCORE', ready_of(thread), thread) or now) end
  end
  redis.call('DEL', p .. ':rebuild')
end

-- A damaged counter begins anew, and the fence at the time, which is beyond every token so far: it must stop no worker.
local function count(thread, name)
  local head = p .. ':head:' .. thread
  local counted = redis.pcall('HINCRBY', head, name, 1)
  if type(counted) == 'number' then return counted end
  if redis.call('TYPE', head).ok ~= 'hash' then redis.call('DEL', head) end
  redis.call('HSET', head, name, 1)
  return 1
end

local function next_token()
  local token = redis.pcall('INCR', p .. ':fence')
  if type(token) == 'number' then return token end
  redis.call('SET', p .. ':fence', now)
  return now
end

-- A lease that ran out loses its token: from now on every script refuses the old holder.
for _, thread in ipairs(expired) do
  redis.call('ZREM', lease, thread)
  count(thread, 'deaths')
  redis.call('HDEL', p .. ':head:' .. thread, 'token', 'until', 'worker')
  make_ready(thread, now)
end

local function suspected(thread)
  return (tonumber(redis.pcall('HGET', p .. ':head:' .. thread, 'deaths')) or 0) >= deaths_of_a_suspect
end

local running, holds_a_suspect = {}, false
for _, thread in ipairs(redis.call('ZRANGE', lease, 0, -1)) do
  local team = team_of(thread)
  running[team] = (running[team] or 0) + 1
  if redis.pcall('HGET', p .. ':head:' .. thread, 'worker') == worker and suspected(thread) then holds_a_suspect = true end
end

-- Give up the first message of a thread, or a mailbox that is missing or no list, so that the thread can go on.
local function bury(thread, tries, reason)
  local mailbox = p .. ':mb:' .. thread
  local entry = redis.pcall('LPOP', mailbox)
  if type(entry) ~= 'string' then redis.call('DEL', mailbox) end
  redis.call('XADD', p .. ':dead', 'MAXLEN', '~', ARGV[5], '*', 'thread', thread,
    'entry', type(entry) == 'string' and entry or '', 'reason', reason, 'tries', tries)
  redis.call('EXPIRE', p .. ':dead', ARGV[6])
  redis.call('DEL', p .. ':head:' .. thread)
  if redis.call('EXISTS', mailbox) == 1 then make_ready(thread, now) else take_from_ready(thread) end
end

local claimed = {}
local function try(thread)
  local head = p .. ':head:' .. thread
  local tries = count(thread, 'tries')
  local entry = redis.pcall('LINDEX', p .. ':mb:' .. thread, 0)
  if type(entry) ~= 'string' then return bury(thread, tries, 'unreadable message') end
  -- Even the last tries, which only notify the person, killed their workers.
  if tries > last_try then return bury(thread, tries - 1, 'killed its worker each time') end
  local token, team = next_token(), team_of(thread)
  holds_a_suspect = holds_a_suspect or suspected(thread)
  redis.call('ZADD', teams, token, team)
  take_from_ready(thread)
  redis.call('ZADD', lease, now + lease_ms, thread)
  redis.call('HSET', head, 'token', token, 'until', now + lease_ms, 'worker', worker)
  running[team] = (running[team] or 0) + 1
  claimed[#claimed + 1] = {thread, tostring(token), tries, entry}
end

-- Claim one thread of this workspace.  -> false if none is due
local function serve(team)
  if cap > 0 and (running[team] or 0) >= cap then return false end
  local due = redis.pcall('ZRANGEBYSCORE', p .. ':ready:' .. team, '-inf', now, 'LIMIT', 0, 1)
  if due.err then damage = find_damage({[p .. ':ready:' .. team] = 'zset'}) end
  if #due == 0 and not due.err then
    due = redis.call('ZRANGEBYSCORE', p .. ':ready:' .. team, beyond, '+inf', 'LIMIT', 0, 1)
  end
  local thread = due[1]
  if not thread then return false end
  if suspected(thread) and holds_a_suspect then
    make_ready(thread, now + 500) -- threads after it need not wait for it
  else
    try(thread)
  end
  return true
end

local served
repeat
  served = false
  for _, team in ipairs(redis.call('ZRANGE', teams, 0, -1)) do
    if #claimed < limit and serve(team) then served = true end
  end
until not served
if damage and #claimed == 0 then return damage end -- else the next claim meets it
-- Nothing is due any more, so delete the bell: each entry that a burst left would wake a worker for nothing.
if #claimed < limit and not damage then redis.call('DEL', p .. ':bell') end
return claimed
