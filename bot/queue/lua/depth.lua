-- Count the work.  KEYS prefix  -> { messages waiting or in work, threads leased, dead letters }
local messages, leased = 0, redis.call('ZRANGE', lease, 0, -1)
local function add(threads)
  for _, thread in ipairs(threads) do messages = messages + (tonumber(redis.pcall('LLEN', p .. ':mb:' .. thread)) or 0) end
end
add(leased)
for _, team in ipairs(redis.call('ZRANGE', teams, 0, -1)) do
  local ready = redis.pcall('ZRANGE', p .. ':ready:' .. team, 0, -1)
  if ready.err then return find_damage({[p .. ':ready:' .. team] = 'zset'}) end
  add(ready)
end
return {messages, #leased, redis.call('XLEN', p .. ':dead')}
