-- Whom to tell that they wait: messages at the head of their thread that could have been claimed since `since` ms and
-- that nobody told within the last `again` ms. To be in the answer is to be marked as told.
-- KEYS prefix  ARGV since ms, again ms, at most  -> { {thread, entry, place in the queue, from 1}... }
local since, again, most = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local names, due = redis.call('ZRANGE', teams, 0, -1), {}
for i, team in ipairs(names) do due[i] = redis.call('ZCOUNT', p .. ':ready:' .. team, '-inf', now) end

-- Workspaces take turns: of another one, as many come first as this one has before it.
local function place(team_number, rank)
  local before = rank
  for i, count in ipairs(due) do
    if i ~= team_number then before = before + math.min(count, rank + (i < team_number and 1 or 0)) end
  end
  return before + 1
end

local told = {}
for i, team in ipairs(names) do
  for rank, thread in ipairs(redis.call('ZRANGEBYSCORE', p .. ':ready:' .. team, '-inf', now - since, 'LIMIT', 0, 200)) do
    if #told >= most then return told end
    local entry = redis.call('LINDEX', p .. ':mb:' .. thread, 0)
    local mark = p .. ':told:' .. string.match(entry, '^%S+')
    if redis.call('SET', mark, 1, 'NX', 'PX', again) then told[#told + 1] = {thread, entry, place(i, rank - 1)} end
  end
end
return told
