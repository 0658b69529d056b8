-- Reserve tokens of a day for a turn, or give its reservation back.
-- KEYS the day's hash  ARGV turn, TTL of the hash: give back
-- ARGV turn, TTL, now, expiry, tokens of a first turn, number of limits, (field, limit)..., the turn's fields: reserve
--   -> 1 reserved | 0 turns under way may use up a budget
-- Reservations are one field, {turn: [expiry, tokens, field, ...]}. A turn that reserves again replaces its own.
-- What is damaged counts as nothing: one entry must not stop a worker.
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'none' and kind ~= 'hash' then return redis.error_reply('WRONGTYPE hash ' .. KEYS[1]) end
local function number(name) return tonumber(redis.call('HGET', KEYS[1], name) or 0) or 0 end
local turn, ttl = ARGV[1], ARGV[2]
local is_whole, held = pcall(cjson.decode, redis.call('HGET', KEYS[1], 'reserved') or '{}')
if not is_whole or type(held) ~= 'table' then held = {} end
local function keep()
  redis.call('HSET', KEYS[1], 'reserved', cjson.encode(held))
  redis.call('EXPIRE', KEYS[1], ttl)
end
if #ARGV == 2 then
  if held[turn] then
    held[turn] = nil
    keep()
  end
  return 1
end
local now, expiry, first, limits = tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
local reserved, fits = {}, 1
for other, one in pairs(held) do
  if type(one) ~= 'table' or (tonumber(one[1]) or 0) <= now or other == turn then held[other] = nil
  else for i = 3, #one do reserved[one[i]] = (reserved[one[i]] or 0) + (tonumber(one[2]) or 0) end end
end
for i = 7, 5 + 2 * limits, 2 do
  if number(ARGV[i]) + (reserved[ARGV[i]] or 0) >= tonumber(ARGV[i + 1]) then fits = 0 end
end
if fits == 1 then
  local turns = number('turns')
  local one = {expiry, turns > 0 and math.ceil(number('workspace') / turns) or first}
  for i = 7 + 2 * limits, #ARGV do one[#one + 1] = ARGV[i] end
  held[turn] = one
end
keep()
return fits
