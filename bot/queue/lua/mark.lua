-- Record once that an effect happened. Only the holder of a running lease may.
-- KEYS prefix  ARGV thread, token, name, value, TTL s  -> the recorded value | false if the lease is lost
local token, untl = unpack(redis.pcall('HMGET', p .. ':head:' .. ARGV[1], 'token', 'until'))
if token ~= ARGV[2] or (tonumber(untl) or 0) < now then return false end
local key = p .. ':mark:' .. ARGV[3]
damage = find_damage({[key] = 'string'})
if damage then return damage end
redis.call('SET', key, ARGV[4], 'NX', 'EX', ARGV[5])
return redis.call('GET', key)
