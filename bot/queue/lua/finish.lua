-- End the turn of this `token`. It is accepted unless another worker took over: what it reports has happened already.
-- KEYS prefix  ARGV thread, token, ok|retry|dead|give_back, backoff ms, reason, dead letters kept, their TTL s, bell's TTL s,
-- mark to delete, or ''
-- -> 0 refused | 1 accepted | 2 accepted, and a worker should be woken
local thread, verb, after = ARGV[1], ARGV[3], tonumber(ARGV[4])
local mailbox, head = p .. ':mb:' .. thread, p .. ':head:' .. thread
damage = find_damage({[ready_of(thread)] = 'zset'})
if damage then return damage end
if redis.pcall('HGET', head, 'token') ~= ARGV[2] then return 0 end

if ARGV[9] ~= '' then redis.call('DEL', p .. ':mark:' .. ARGV[9]) end
redis.call('ZREM', lease, thread)
redis.call('HDEL', head, 'token', 'until', 'worker')
if verb == 'give_back' then redis.call('HINCRBY', head, 'tries', -1) end
if verb == 'retry' or (verb == 'give_back' and after > 0) then
  -- The message keeps its place, and later ones wait: the order must stay.
  make_ready(thread, now + after)
else
  if verb ~= 'give_back' then
    local entry = redis.pcall('LPOP', mailbox)
    if verb == 'dead' then
      redis.call('XADD', p .. ':dead', 'MAXLEN', '~', ARGV[6], '*', 'thread', thread, 'entry',
        type(entry) == 'string' and entry or '',
        'reason', ARGV[5], 'tries', redis.call('HGET', head, 'tries') or 0)
      redis.call('EXPIRE', p .. ':dead', ARGV[7])
    end
    redis.call('DEL', head)
  end
  -- The thread goes to the end of its workspace's queue, so that a busy thread does not starve the others.
  if redis.call('EXISTS', mailbox) == 1 then make_ready(thread, now) end
end
-- Wake a worker for its next message, or for a thread that waits until its workspace has fewer turns than its share.
if redis.call('ZCOUNT', ready_of(thread), '-inf', now) == 0 then return 1 end
ring(ARGV[8])
return 2
