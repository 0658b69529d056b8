-- KEYS installation  ARGV expected value ('' none), new value -> 1 written | 0 another value is there
-- Several processes may read, renew and write at once. Only one that still finds the value it read may write.
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1
