-- The server's half of the sync: one call applies one node's report on the buckets of one group and
-- answers with their state. Repeating a call changes nothing and is answered again.
--
-- KEYS  1 the node's marker (its last sequence number), 2 the group's epoch length, 3.. buckets
-- ARGV  1 sequence number, 2 epoch length E (us), 3 life of marker and epoch length (ms),
--       4 limits, 20 bytes each: cap u64 (us), cap of a backlog u64 (us), generation u32
--       5 reports, 16 bytes a bucket: cost u56 (us), limit u8 (index; +128 for a backlog),
--         age u32 (us), demand u32 (tokens)
-- A bucket is 24 bytes: TAT u64 (us of this clock at which it is full), epoch u32 (index mod 2^32),
--       demand of the epoch before u32 and of this one u32, generation of the limit u32.
-- The answer: 'WRS1', count u32, TIME u64 (us), the marker as found i64 (-1: none), and 16 bytes a
--       bucket: TAT - TIME i64 (-2^62: unknown, so full), demand before u32, demand now u32.
--
-- All that can be refused is refused before the first write, and no later write can fail: so an
-- error means that nothing was applied, and the marker that all was.
-- All numbers are whole and below 2^53, exact in a double.

local up, pk, call, fmt = struct.unpack, struct.pack, redis.call, string.format

local function refuse(kind, ...)
  return redis.error_reply('WEIR' .. kind .. ' ' .. fmt(...))
end

local function whole(text, most)
  local n = tonumber(text)
  return n and n >= 0 and n <= most and n % 1 == 0 and n
end

-- 1. The request is well formed.
local seq, E, ttl = whole(ARGV[1], 2^53 - 1), whole(ARGV[2], 2^52), whole(ARGV[3], 2^42)
local limits, reports, nk = ARGV[4], ARGV[5], #KEYS - 2
if #ARGV ~= 5 or nk < 0 or nk > 1024 or not (seq and E and ttl) or E == 0 or ttl == 0
  or #limits % 20 ~= 0 or #reports ~= 16 * nk then
  return refuse('ARGS', 'malformed report; the client is of another version than its script')
end
local caps, backlogs, gens = {}, {}, {}
for i = 1, #limits / 20 do
  caps[i], backlogs[i], gens[i] = up('<I8I8I4', limits, 20 * i - 19)
  if caps[i] > 6e15 or backlogs[i] > caps[i] then
    return refuse('ARGS', 'limit %d: a cap over 6e15 us, or a backlog cap over the cap', i - 1)
  end
end

-- 2. The keys are what they should be. A repeated report writes nothing, so it is not checked.
local t = call('TIME')
local now = t[1] * 1000000 + t[2]
local vals = call('MGET', unpack(KEYS))
local mark = vals[1] and whole(vals[1], 2^53 - 1)
local prev = mark or -1
local fresh = seq > prev
if fresh then
  local length = vals[2] and whole(vals[2], 2^52)
  if length and length ~= E then
    return refuse('EPOCH', '%.0f us is the epoch length of this group', length)
  end
  local missing, bad = {}, {}
  if vals[1] and not mark or vals[2] and not length then bad[1] = 0 end
  for i = 1, nk + 2 do
    local v = vals[i]
    if not v then missing[#missing + 1] = KEYS[i]
    elseif i > 2 and #v ~= 24 then bad[#bad + 1] = i - 2 end
  end
  if #missing > 0 and call('EXISTS', unpack(missing)) > 0 then
    for i = 1, nk + 2 do
      if not vals[i] and call('EXISTS', KEYS[i]) > 0 then bad[#bad + 1] = math.max(i - 2, 0) end
    end
  end
  if #bad > 0 then
    table.sort(bad)
    return refuse('KEY', '%s', table.concat(bad, ' ', 1, math.min(#bad, 32)))
  end
end

-- 3. Compute; still nothing is written.
local ep = (now - now % E) / E % 4294967296
local eprev = (ep - 1) % 4294967296
local eend = now - now % E + 2 * E
-- A bucket lives until it is full and its demand is of no use, rounded up to spans of 4 epochs. So
-- what is stored tells how long Redis keeps it at least, and while it stays in its span it is
-- changed in place (2.3 us a key in batches of 128 on Redis 7.0, where SET with a life took 2.9).
local span = 4 * E
local function span_end(tat, fallow)
  local last = tat > fallow and tat or fallow
  return last - last % span + span
end
local out, puts, lives, at = {}, {}, {}, 1
for i = 1, nk do
  local cost, limit, age, demand
  cost, limit, age, demand, at = up('<I7BI4I4', reports, at)
  local which = limit % 128 + 1
  local full = caps[which]
  local cap = limit > 127 and backlogs[which] or full
  if not full or cost > 4503599627370496 then
    return refuse('ARGS', 'report %d names no limit, or costs over 2^52 us', i)
  end
  local v, tat, e, P, C, gen, kept = vals[i + 2], 0, ep, 0, 0, 0, 0
  if v and #v == 24 then
    tat, e, P, C, gen = up('<I8I4I4I4I4', v)
    if tat > 2^53 then tat = 0 end -- damaged: read as full
    if e == ep then kept = span_end(tat, eend)
    elseif e == eprev then kept = span_end(tat, eend - E) P = C C = 0
    else P = 0 C = 0 end
  end
  if fresh then
    C = C + demand
    if C > 4294967295 then C = 4294967295 end
    -- TAT is time, not tokens: a new limit takes over no more of it than it could have made, and a
    -- node that has not heard of it yet (1/day, now 1000/s) cannot put the bucket behind by days.
    if gens[which] > gen then
      gen = gens[which]
      if tat > now + full then tat = now + full end
    elseif gens[which] < gen and cap > 2 * E then
      cap = 2 * E
    end
    if cost > 0 then
      local base = now - age
      local nt = (tat > base and tat or base) + cost
      if nt > now + cap then nt = now + cap end
      if nt > tat then tat = nt end
    end
    local last = span_end(tat, eend)
    puts[i] = pk('<I8I4I4I4I4', tat, ep, P, C, gen)
    lives[i] = last > kept and fmt('%.0f', (last - now - (last - now) % 1000) / 1000 + 1)
  end
  out[i] = pk('<i8I4I4', tat > 0 and tat - now or -4611686018427387904, P, C)
end

-- 4. Write.
if fresh then
  for i = 1, nk do
    if lives[i] then call('SET', KEYS[i + 2], puts[i], 'PX', lives[i])
    else call('SETRANGE', KEYS[i + 2], 0, puts[i]) end
  end
  call('SET', KEYS[2], fmt('%.0f', E), 'PX', fmt('%.0f', ttl))
  call('SET', KEYS[1], fmt('%.0f', seq), 'PX', fmt('%.0f', ttl))
end
return pk('<c4I4I8i8', 'WRS1', nk, now, prev) .. table.concat(out)
