-- KEYS state, fence (or the state again)  ARGV version loaded, new version, state, TTL s, token (or empty), schema
-- -> 1 saved | 0 another version stands there | -1 the fence has another holder, or none any more
for _, key in ipairs(KEYS) do
  local kind = redis.call('TYPE', key).ok
  if kind ~= 'none' and kind ~= 'hash' then return redis.error_reply('WRONGTYPE hash ' .. key) end
end
if ARGV[5] ~= '' then
  local time = redis.call('TIME')
  local token, untl = unpack(redis.call('HMGET', KEYS[2], 'token', 'until'))
  if token ~= ARGV[5] or (tonumber(untl) or 0) < time[1] * 1000 + math.floor(time[2] / 1000) then return -1 end
end
local version = redis.call('HGET', KEYS[1], 'version')
if not (version and string.match(version, '^%d+$')) then version = '0' end -- a damaged one is that of a fresh state
if version ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'version', ARGV[2], 'state', ARGV[3], 'schema', ARGV[6])
redis.call('EXPIRE', KEYS[1], ARGV[4])
return 1
