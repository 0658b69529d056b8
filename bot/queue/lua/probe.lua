-- Do what the other scripts do, on keys of its own that are gone afterwards: fails if Redis would refuse a question.
-- KEYS prefix  -> 1
local key = p .. ':probe'
redis.call('SET', key, now, 'EX', 60)
redis.call('DEL', key)
redis.call('RPUSH', key, now)
redis.call('DEL', key)
redis.call('ZADD', key, now, 'probe')
redis.call('ZRANGEBYSCORE', key, '-inf', now)
redis.call('DEL', key)
redis.call('HSET', key, 'token', 1)
redis.call('DEL', key)
redis.call('XADD', key, '*', 'probe', 1)
redis.call('DEL', key)
return 1
