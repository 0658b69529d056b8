-- Say when a call of one method of one workspace (and channel) may go out. `tat` is the time of the next call if no burst
-- were allowed. Nothing goes out before `not_before`, which a refusal sets. A caller that must wait longer than `patience`
-- keeps a place under its name, if it gave one, and comes back for it.
-- KEYS place  ARGV now's method: interval ms, burst, patience ms, caller ('': none), refused for ms (0: it was not)
-- -> ms to wait
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'none' and kind ~= 'hash' then return redis.error_reply('WRONGTYPE hash ' .. KEYS[1]) end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local interval, burst, patience, refused = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[5])
local tat, not_before, seen = unpack(redis.call('HMGET', KEYS[1], 'tat', 'not_before', 'seen'))
tat, not_before = tonumber(tat or 0) or 0, tonumber(not_before or 0) or 0
if (tonumber(seen or 0) or 0) > now + 10000 then -- Redis' clock was set back: these times would hold calls up
  redis.call('DEL', KEYS[1])
  tat, not_before = 0, 0
end
local caller = 'caller:' .. ARGV[4]

if refused > 0 then
  -- The following callers come one by one, not all at once.
  redis.call('HSET', KEYS[1], 'not_before', math.max(not_before, now + refused), 'tat',
    math.max(tat, now + refused + (burst - 1) * interval), 'seen', now)
  redis.call('PEXPIRE', KEYS[1], refused + 3600000)
  return refused
end

local kept = ARGV[4] ~= '' and tonumber(redis.call('HGET', KEYS[1], caller) or nil)
local at = kept and kept >= not_before and kept
  or math.max(now, not_before, math.max(tat, now) - (burst - 1) * interval)
local fresh = at ~= kept
local patient = at - now <= patience
if fresh and (patient or ARGV[4] ~= '') then
  redis.call('HSET', KEYS[1], 'tat', math.max(tat, at) + interval, 'seen', now)
  redis.call('PEXPIRE', KEYS[1], math.max(tat, at) + interval - now + 3600000)
end
if patient then
  if kept then redis.call('HDEL', KEYS[1], caller) end
elseif ARGV[4] ~= '' then
  redis.call('HSET', KEYS[1], caller, at)
end
return math.max(0, at - now)
