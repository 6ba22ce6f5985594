-- The server's half of a strict limit: one call grants or denies one node's asks for one limiter,
-- in one group, and answers. Repeating the last call changes nothing and gets the same answer.
--
-- KEYS  1 the node's marker for this limiter (its last answer), 2 the group's epoch length,
--       3.. buckets, no two the same
-- ARGV  1 sequence number, 2 epoch length E (us), 3 life of marker and epoch length (ms),
--       4 the limit, 28 bytes: burst u64 (us) and its rest u64 (1/den us), den u64, generation u32
--       5 buckets, 8 bytes each: number of asks u32, their tokens u32 (for the demand)
--       6 asks, 16 bytes each, in the order of their buckets: cost u64 (us) and its rest u64
-- A bucket's 24 bytes are those of sync.lua; TAT is in whole us, rounded up once a call and bucket.
-- The answer: 'WST1', buckets u32, sequence number u64, TIME u64 (us), asks u32; then TAT - TIME
--       u64 of each bucket (0: full), after the grants; then a byte an ask, 1: granted.
--
-- All that can be refused is refused before the first write, and no later write can fail.
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
local limit, buckets, asks, nk = ARGV[4], ARGV[5], ARGV[6], #KEYS - 2
if #ARGV ~= 6 or nk < 0 or nk > 128 or not (seq and E and ttl) or E == 0 or ttl == 0
  or #limit ~= 28 or #buckets ~= 8 * nk or #asks % 16 ~= 0 then
  return refuse('ARGS', 'malformed ask; the client is of another version than its script')
end
local burst, brest, den, lgen = up('<I8I8I8I4', limit)
local counts, demands, total = {}, {}, 0
for i = 1, nk do
  counts[i], demands[i] = up('<I4I4', buckets, 8 * i - 7)
  total = total + counts[i]
end
if burst > 6e15 or den < 1 or den > 2^51 or brest >= den or #asks ~= 16 * total then
  return refuse('ARGS', 'a burst over 6e15 us, or asks of no bucket')
end

-- 2. The keys are what they should be. A repeated call writes nothing, so it is not checked.
local t = call('TIME')
local now = t[1] * 1000000 + t[2]
local vals = call('MGET', unpack(KEYS))
local mark, mseq = vals[1], -1
local ours = mark and #mark >= 28 and mark:sub(1, 4) == 'WST1'
if ours then mseq = up('<I8', mark, 9) end
if seq == mseq then return mark end
if seq < mseq then return refuse('SEQ', '%.0f is the last number of this node', mseq) end
local length = vals[2] and whole(vals[2], 2^52)
if length and length ~= E then
  return refuse('EPOCH', '%.0f us is the epoch length of this group', length)
end
local missing, bad = {}, {}
if mark and not ours or vals[2] and not length then bad[1] = 0 end
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

-- 3. Compute; still nothing is written.
local ep = (now - now % E) / E % 4294967296
local eprev = (ep - 1) % 4294967296
local eend = now - now % E + 2 * E
-- How long a bucket lives: see sync.lua, which changes the same buckets by the same rule.
local span = 4 * E
local function span_end(tat, fallow)
  local last = tat > fallow and tat or fallow
  return last - last % span + span
end
local lags, flags, puts, lives, at = {}, {}, {}, {}, 1
for i = 1, nk do
  local v, tat, e, P, C, gen, kept = vals[i + 2], 0, ep, 0, 0, 0, 0
  if v then
    tat, e, P, C, gen = up('<I8I4I4I4I4', v)
    if tat > 2^53 then tat = 0 end -- damaged: read as full
    if e == ep then kept = span_end(tat, eend)
    elseif e == eprev then kept = span_end(tat, eend - E) P = C C = 0
    else P = 0 C = 0 end
  end
  C = C + demands[i]
  if C > 4294967295 then C = 4294967295 end
  -- As in sync.lua: TAT is time, so a new limit takes over no more of it than it could have made,
  -- and a node that has not heard of it yet cannot put the bucket behind by days.
  if lgen > gen then
    gen = lgen
    local full = burst + (brest > 0 and 1 or 0)
    if tat > now + full then tat = now + full end
  end
  -- Granted so far: whole + rest/den us. An ask fits while base + that <= now + burst.
  local base = tat > now and tat or now
  local room, w, r = burst - (base - now), 0, 0
  for _ = 1, counts[i] do
    local cost, rest
    cost, rest, at = up('<I8I8', asks, at)
    local nw, nr = w + cost, r + rest
    if nr >= den then nw = nw + 1 nr = nr - den end
    local fits = nw < room or nw == room and nr <= brest
    if fits then w = nw r = nr end
    flags[#flags + 1] = fits and '\1' or '\0'
  end
  if w > 0 or r > 0 then
    local nt = base + w + (r > 0 and 1 or 0)
    if lgen < gen and nt > now + 2 * E then nt = now + 2 * E end
    if nt > tat then tat = nt end
  end
  local last = span_end(tat, eend)
  puts[i] = pk('<I8I4I4I4I4', tat, ep, P, C, gen)
  lives[i] = last > kept and fmt('%.0f', (last - now - (last - now) % 1000) / 1000 + 1)
  lags[i] = pk('<I8', tat > now and tat - now or 0)
end
local answer = pk('<c4I4I8I8I4', 'WST1', nk, seq, now, total) .. table.concat(lags)
  .. table.concat(flags)

-- 4. Write.
for i = 1, nk do
  if lives[i] then call('SET', KEYS[i + 2], puts[i], 'PX', lives[i])
  else call('SETRANGE', KEYS[i + 2], 0, puts[i]) end
end
call('SET', KEYS[2], fmt('%.0f', E), 'PX', fmt('%.0f', ttl))
call('SET', KEYS[1], answer, 'PX', fmt('%.0f', ttl))
return answer
