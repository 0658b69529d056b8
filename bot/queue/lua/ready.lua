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

-- A key of a wrong type ends a script before its first effect. The error names the key and its right type, so that the
-- client can drop it and call the script again.  -> the error | nil
local function find_damage(kinds)
  for key, kind in pairs(kinds) do
    local found = redis.call('TYPE', key).ok
    if found ~= 'none' and found ~= kind then return redis.error_reply('WRONGTYPE ' .. kind .. ' ' .. key) end
  end
end

-- The sorted sets to which these threads belong, for `find_damage`.
local function ready_sets(threads)
  local kinds = {}
  for _, thread in ipairs(threads) do kinds[ready_of(thread)] = 'zset' end
  return kinds
end

local damage = find_damage({[teams] = 'zset', [lease] = 'zset', [p .. ':dead'] = 'stream', [p .. ':bell'] = 'list'})
if damage then return damage end
