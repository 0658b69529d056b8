-- List messages whose authors should hear that they wait: those due for `since` ms, and the newest one after a running
-- turn of its thread. Each is listed once in `again` ms. One process looks once in `each` ms, at a part of the waiting
-- threads. The next look goes on with the following workspace.
-- KEYS prefix  ARGV since ms, again ms, at most, each ms (0: always)
-- -> { {thread, entry, place in the queue from 1, 0 after a running turn}... }
local since, again, most, each = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local looked_at_most = 400
local names, told, due = redis.call('ZRANGE', teams, 0, -1), {}, nil
damage = find_damage(ready_sets(names)) or find_damage({[p .. ':swept'] = 'string', [p .. ':swept_to'] = 'string'})
if damage then return damage end
if each > 0 and not redis.call('SET', p .. ':swept', 1, 'NX', 'PX', each) then return {} end

local function entry_of(thread, place)
  local entry = redis.pcall('LINDEX', p .. ':mb:' .. thread, place)
  return type(entry) == 'string' and entry or nil
end

local function tell(thread, entry)
  local new = #told < most and redis.call('SET', p .. ':told:' .. (string.match(entry or '', '^%S+') or thread), 1, 'NX', 'PX', again)
  if new then told[#told + 1] = {thread, entry, 0} end
  return new
end

-- Workspaces take turns: of each other one, as many threads come first as this one has before it.
local function place(team_number, rank)
  if not due then
    due = {}
    for i, team in ipairs(names) do due[i] = redis.call('ZCOUNT', p .. ':ready:' .. team, '-inf', now) end
  end
  local before = rank
  for i, count in ipairs(due) do
    if i ~= team_number then before = before + math.min(count, rank + (i < team_number and 1 or 0)) end
  end
  return before + 1
end

local last, first = redis.call('GET', p .. ':swept_to'), 1
for i, team in ipairs(names) do if team == last then first = i % #names + 1 end end
local looked = 0
for step = 0, #names - 1 do
  if looked >= looked_at_most or #told >= most then break end
  local i = (first + step - 1) % #names + 1
  for rank, thread in ipairs(redis.call('ZRANGEBYSCORE', p .. ':ready:' .. names[i], '-inf', now - since, 'LIMIT', 0, 200)) do
    looked = looked + 1
    if tell(thread, entry_of(thread, 0)) then told[#told][3] = place(i, rank - 1) end
  end
  -- A workspace of which not all could be listed is looked at again.
  if #told < most then redis.call('SET', p .. ':swept_to', names[i], 'EX', 3600) end
end

for _, thread in ipairs(redis.call('ZRANGE', lease, 0, -1)) do
  if #told >= most then break end
  local newest = entry_of(thread, 1) and entry_of(thread, -1)
  if newest and tonumber(string.match(newest, '^%S+ (%d+)') or 0) <= now - since then tell(thread, newest) end
end
return told
