-- Shared by the mailbox's scripts: each of them begins with this. Every workspace ("team") with work has a sorted set of
-- threads (score: when each may be claimed) and a place in `teams` (score: the token of its latest claim, so that the one
-- that waited longest comes first).
-- KEYS prefix
local p = KEYS[1]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local teams, lease = p .. ':teams', p .. ':lease'

local function team_of(thread) return string.match(thread, '^[^:]*') end
local function ready_of(thread) return p .. ':ready:' .. team_of(thread) end

-- A workspace that has work again comes after all that wait, but before the one that was served last.
local function make_ready(thread, at)
  redis.call('ZADD', ready_of(thread), at, thread)
  redis.call('ZADD', teams, 'NX', (tonumber(redis.pcall('GET', p .. ':fence')) or 0) - 0.5, team_of(thread))
end

local function take_from_ready(thread)
  redis.call('ZREM', ready_of(thread), thread)
  if redis.call('EXISTS', ready_of(thread)) == 0 then redis.call('ZREM', teams, team_of(thread)) end
end

-- Wake one waiting worker. With several shards (TTL 0) the caller rings the one bell that they share.
local function ring(ttl)
  if tonumber(ttl) > 0 then
    redis.call('LPUSH', p .. ':bell', 1)
    redis.call('LTRIM', p .. ':bell', 0, 63)
    redis.call('EXPIRE', p .. ':bell', ttl)
  end
end
