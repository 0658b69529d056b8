-- How much there is to do.  KEYS prefix  -> { messages waiting or in work, threads leased, dead letters }
local p, messages = KEYS[1], 0
local leased = redis.call('ZRANGE', p .. ':lease', 0, -1)
for _, thread in ipairs(leased) do messages = messages + redis.call('LLEN', p .. ':mb:' .. thread) end
for _, thread in ipairs(redis.call('ZRANGE', p .. ':ready', 0, -1)) do messages = messages + redis.call('LLEN', p .. ':mb:' .. thread) end
return {messages, #leased, redis.call('XLEN', p .. ':dead')}
