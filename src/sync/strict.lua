-- The server's half of a strict limit: one call grants or denies one node's asks for one limiter,
-- in one group, and answers. Repeating the last call changes nothing and gets the same answer.
--
-- common.lua stands in front: what a bucket is, its rules, KEYS and the first of ARGV.
-- KEYS  1 the node's marker for this limiter: its last answer; 3.. no two the same
-- ARGV  4 the limit, 28 bytes: burst u64 (us) and its rest u64 (1/den us), den u64, generation u32
--       5 buckets, 8 bytes each: number of asks u32, their tokens u32 (for the demand)
--       6 asks, 16 bytes each, in the order of their buckets: cost u64 (us) and its rest u64
-- TAT is in whole us, rounded up once a call and bucket.
-- The answer: 'WST1', buckets u32, sequence number u64, TIME u64 (us), asks u32; then TAT - TIME
--       u64 of each bucket (0: full), after the grants; then a byte an ask, 1: granted.

-- 1. The request is well formed.
local limit, buckets, asks = ARGV[4], ARGV[5], ARGV[6]
if #ARGV ~= 6 or not well_formed or nk > 128
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

-- 2. The keys are what they should be.
local mark, mseq = vals[1], -1
local ours = mark and #mark >= 28 and mark:sub(1, 4) == 'WST1'
if ours then mseq = up('<I8', mark, 9) end
if seq == mseq then return mark end
if seq < mseq then return refuse('SEQ', '%.0f is the last number of this node', mseq) end
local fault = key_fault(mark and not ours)
if fault then return fault end

-- 3. Compute; still nothing is written.
local full = burst + (brest > 0 and 1 or 0)
local lags, flags, at = {}, {}, 1
for i = 1, nk do
  local tat, P, C, gen, kept = open_bucket(i, demands[i], lgen, full)
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
  local to = (w > 0 or r > 0) and base + w + (r > 0 and 1 or 0) or 0
  tat = close_bucket(i, to, lgen, tat, P, C, gen, kept)
  lags[i] = pk('<I8', tat > now and tat - now or 0)
end
local answer = pk('<c4I4I8I8I4', 'WST1', nk, seq, now, total) .. table.concat(lags)
  .. table.concat(flags)

-- 4. Write.
write(answer)
return answer
