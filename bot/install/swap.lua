-- KEYS installation  ARGV what stood there ('' nothing), what shall stand -> 1 written | 0 something else stands there
-- Two replicas may read, renew and write at once: only the one that still finds what it read may write.
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1
