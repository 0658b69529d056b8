-- Renew leases. A lease that ran out still belongs to its holder until another worker takes it over.
-- KEYS prefix  ARGV lease ms, (thread, token)...  -> { 1 renewed | 0 refused ... }
local answer = {}
local untl = now + ARGV[1]
for i = 2, #ARGV, 2 do
  local head = p .. ':head:' .. ARGV[i]
  local held = redis.pcall('HGET', head, 'token') == ARGV[i + 1]
  if held then
    redis.call('ZADD', lease, untl, ARGV[i])
    redis.call('HSET', head, 'until', untl)
  end
  answer[#answer + 1] = held and 1 or 0
end
return answer
