-- The server's half of the sync: one call applies one node's report on the buckets of one group and
-- answers with their state. Repeating a call changes nothing and is answered again.
--
-- common.lua stands in front: what a bucket is, its rules, KEYS and the first of ARGV.
-- KEYS  1 holds the last sequence number
-- ARGV  4 limits, 20 bytes each: cap u64 (us), cap of a backlog u64 (us), generation u32
--       5 reports, 16 bytes a bucket: cost u56 (us), limit u8 (index; +128 for a backlog),
--         age u32 (us), demand u32 (tokens)
-- The answer: 'WRS1', count u32, TIME u64 (us), the marker as found i64 (-1: none), and 16 bytes a
--       bucket: TAT - TIME i64 (-2^62: unknown, so full), demand before u32, demand now u32.

-- 1. The request is well formed.
local limits, reports = ARGV[4], ARGV[5]
if #ARGV ~= 5 or not well_formed or #limits % 20 ~= 0 or #reports ~= 16 * nk then
  return refuse('ARGS', 'malformed report; the client is of another version than its script')
end
local caps, backlogs, gens = {}, {}, {}
for i = 1, #limits / 20 do
  caps[i], backlogs[i], gens[i] = up('<I8I8I4', limits, 20 * i - 19)
  if caps[i] > 6e15 or backlogs[i] > caps[i] then
    return refuse('ARGS', 'limit %d: a cap over 6e15 us, or a backlog cap over the cap', i - 1)
  end
end

-- 2. The keys are what they should be.
local mark = vals[1] and whole(vals[1], 2^53 - 1)
local prev = mark or -1
local fresh = seq > prev
if fresh then
  local fault = key_fault(vals[1] and not mark)
  if fault then return fault end
end

-- 3. Compute; still nothing is written.
local out, at = {}, 1
for i = 1, nk do
  local cost, limit, age, demand
  cost, limit, age, demand, at = up('<I7BI4I4', reports, at)
  local which = limit % 128 + 1
  local full, lgen = caps[which], gens[which]
  if not full or cost > 4503599627370496 then
    return refuse('ARGS', 'report %d names no limit, or costs over 2^52 us', i)
  end
  if not fresh then demand = 0 lgen = -1 end -- as it was left
  local tat, P, C, gen, kept = open_bucket(i, demand, lgen, full)
  if fresh then
    local to = 0
    if cost > 0 then
      local base, last = now - age, now + (limit > 127 and backlogs[which] or full)
      to = (tat > base and tat or base) + cost
      if to > last then to = last end
    end
    tat = close_bucket(i, to, lgen, tat, P, C, gen, kept)
  end
  out[i] = pk('<i8I4I4', tat > 0 and tat - now or -4611686018427387904, P, C)
end

-- 4. Write.
if fresh then write(fmt('%.0f', seq)) end
return pk('<c4I4I8i8', 'WRS1', nk, now, prev) .. table.concat(out)
