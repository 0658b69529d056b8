-- Call every command of the other scripts once, on a key that is gone afterwards: fails if Redis would refuse a question.
-- KEYS prefix  -> 1
local key = p .. ':probe'
for _, command in ipairs({
  {'SET', now, 'EX', 60}, {'GET'}, {'EXISTS'}, {'TYPE'}, {'INCR'}, {'DEL'},
  {'RPUSH', 'a'}, {'LPUSH', 'b'}, {'LINSERT', 'BEFORE', 'a', 'c'}, {'LSET', 0, 'd'}, {'LREM', 0, 'd'}, {'LINDEX', 0},
  {'LTRIM', 0, 9}, {'LLEN'}, {'LPOP'}, {'DEL'},
  {'HSET', 'a', 1}, {'HINCRBY', 'a', 1}, {'HGET', 'a'}, {'HMGET', 'a'}, {'HDEL', 'b'}, {'DEL'},
  {'ZADD', now, 'a'}, {'ZSCORE', 'a'}, {'ZCOUNT', '-inf', now}, {'ZRANGE', 0, -1}, {'ZRANGEBYSCORE', '-inf', now},
  {'ZREM', 'b'}, {'DEL'},
  {'XADD', '*', 'a', 1}, {'XRANGE', '-', '+'}, {'XLEN'}, {'XDEL', '1-1'}, {'EXPIRE', 60}, {'DEL'},
}) do
  redis.call(command[1], key, unpack(command, 2))
end
redis.call('SCAN', 0, 'COUNT', 1)
return 1
