-- Whom to tell that they wait: messages that could have been claimed since `since` ms, and the newest behind a turn that
-- runs in its thread; each only if nobody told it within the last `again` ms. To be in the answer is to be marked as told.
-- KEYS prefix  ARGV since ms, again ms, at most  -> { {thread, entry, place in the queue from 1, 0 behind a turn}... }
local since, again, most = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local names, due, told = redis.call('ZRANGE', teams, 0, -1), {}, {}
for i, team in ipairs(names) do due[i] = redis.call('ZCOUNT', p .. ':ready:' .. team, '-inf', now) end

local function tell(thread, entry, place)
  if #told < most and redis.call('SET', p .. ':told:' .. string.match(entry, '^%S+'), 1, 'NX', 'PX', again) then
    told[#told + 1] = {thread, entry, place}
  end
end

-- Workspaces take turns: of another one, as many come first as this one has before it.
local function place(team_number, rank)
  local before = rank
  for i, count in ipairs(due) do
    if i ~= team_number then before = before + math.min(count, rank + (i < team_number and 1 or 0)) end
  end
  return before + 1
end

for i, team in ipairs(names) do
  for rank, thread in ipairs(redis.call('ZRANGEBYSCORE', p .. ':ready:' .. team, '-inf', now - since, 'LIMIT', 0, 200)) do
    tell(thread, redis.call('LINDEX', p .. ':mb:' .. thread, 0), place(i, rank - 1))
  end
end
for _, thread in ipairs(redis.call('ZRANGE', lease, 0, -1)) do
  local newest = redis.call('LINDEX', p .. ':mb:' .. thread, 1) and redis.call('LINDEX', p .. ':mb:' .. thread, -1)
  if newest and tonumber(string.match(newest, '^%S+ (%d+)')) <= now - since then tell(thread, newest, 0) end
end
return told
