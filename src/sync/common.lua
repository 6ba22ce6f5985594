-- What sync.lua and strict.lua share: both change the same buckets, so the rules of a bucket stand
-- here, once. The build puts this file in front of each (embed.sh): a script is one chunk of both.
--
-- KEYS  1 the node's marker, 2 the group's epoch length, 3.. buckets
-- ARGV  1 sequence number, 2 epoch length E (us), 3 life of marker and epoch length (ms)
-- A bucket is 24 bytes: TAT u64 (us of this clock at which it is full), epoch u32 (index mod 2^32),
--       demand of the epoch before u32 and of this one u32, generation of the limit u32.
--
-- A script checks the rest of its request, asks key_fault, passes each bucket through open_bucket
-- and close_bucket, and calls write. All that can be refused is refused before that, and no write
-- can fail: so an error means that nothing was applied, and the marker that all was.
-- All numbers are whole and below 2^53, exact in a double.

local up, pk, call, fmt = struct.unpack, struct.pack, redis.call, string.format

local function refuse(kind, ...)
  return redis.error_reply('WEIR' .. kind .. ' ' .. fmt(...))
end

local function whole(text, most)
  local n = tonumber(text)
  return n and n >= 0 and n <= most and n % 1 == 0 and n
end

local seq, E, ttl = whole(ARGV[1], 2^53 - 1), whole(ARGV[2], 2^52), whole(ARGV[3], 2^42)
local nk = #KEYS - 2
local well_formed = nk >= 0 and nk <= 1024 and seq and E and ttl and E > 0 and ttl > 0

-- The time, its epoch, and when the next one ends; and what the keys hold. Nothing if the request
-- is malformed, which the script refuses in its own words.
local now, ep, eend, vals
if well_formed then
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
  ep = (now - now % E) / E % 4294967296
  eend = now - now % E + 2 * E
  vals = call('MGET', unpack(KEYS))
end

-- The refusal if the keys are not what they should be, or nil. A repeated call writes nothing, so
-- it need not ask. `foreign` tells that the marker is none of the script's.
local function key_fault(foreign)
  local length = vals[2] and whole(vals[2], 2^52)
  if length and length ~= E then
    return refuse('EPOCH', '%.0f us is the epoch length of this group', length)
  end
  local missing, bad = {}, {}
  if foreign or vals[2] and not length then bad[1] = 0 end
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

-- Bucket i as it is in this epoch, with this demand more, and under a limit of generation lgen that
-- is `full` us deep. Answers TAT (0: full), both demands, the newest generation, and until when
-- what is stored is of use (-1: unknown).
local function open_bucket(i, demand, lgen, full)
  local v, tat, P, C, gen, used = vals[i + 2], 0, 0, 0, 0, -1
  if v and #v == 24 then
    local e
    tat, e, P, C, gen = up('<I8I4I4I4I4', v)
    if tat > 2^53 then tat = 0 end -- damaged: read as full
    if e == ep then used = tat > eend and tat or eend
    elseif (e + 1) % 4294967296 == ep then used = tat > eend - E and tat or eend - E P = C C = 0
    else P = 0 C = 0 end
  end
  C = C + demand
  if C > 4294967295 then C = 4294967295 end
  -- TAT is time, not tokens: a new limit takes over no more of it than it could have made.
  if lgen > gen then
    gen = lgen
    if tat > now + full then tat = now + full end
  end
  return tat, P, C, gen, used
end

-- Raises bucket i, as open_bucket answered it, to the TAT `to` if that is later; write stores it.
-- Answers the TAT.
--
-- A bucket lives until it is full and its demand is of no use, rounded up to spans of 4 epochs. So
-- what is stored tells how long Redis keeps it at least, and while it stays in its span it is
-- changed in place (2.3 us a key in batches of 128 on Redis 7.0, where SET with a life took 2.9).
local puts, ends = {}, {}
local function close_bucket(i, to, lgen, tat, P, C, gen, used)
  -- A node that has not heard of the newest limit yet (1/day, now 1000/s) cannot put the bucket
  -- behind by days.
  if lgen < gen and to > now + 2 * E then to = now + 2 * E end
  if to > tat then tat = to end
  puts[i] = pk('<I8I4I4I4I4', tat, ep, P, C, gen)
  local last = tat > eend and tat or eend
  local start = last - last % (4 * E)
  if start > used then ends[i] = start + 4 * E end
  return tat
end

local function write(marker)
  local keys, known, life = KEYS, nil, nil
  for i = 1, nk do
    local key, last = keys[i + 2], ends[i]
    if last then
      if last ~= known then -- most buckets of a call have the same
        known, life = last, fmt('%.0f', (last - now - (last - now) % 1000) / 1000 + 1)
      end
      call('SET', key, puts[i], 'PX', life)
    else
      call('SETRANGE', key, '0', puts[i]) -- not 0: a number is printed first, for 0.3 us
    end
  end
  call('SET', keys[2], fmt('%.0f', E), 'PX', fmt('%.0f', ttl))
  call('SET', keys[1], marker, 'PX', fmt('%.0f', ttl))
end

