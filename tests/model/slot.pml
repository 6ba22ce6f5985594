// The slot protocol: takes, refunds and displacement on the ways of one set, without a lock.
//
// A way is EMPTY; FRESH(key, nonce): announced, nothing consumed, anyone may drop it; or
// LIVE(key, zero): a bucket.  V is the tokens made so far, e the effective burst, and the floor
// V - e is the zero of a full bucket.  A take costs one token.  A transition is one access to a
// shared word.
//
// What is asserted (slot_ghost.inc):
//   P1  a key is LIVE at most once;
//   P2  grants keep the limit: each fits a sequential bucket of its key, at the grant's own
//       reading; with WINDOW also counted directly: grants in a window of readings <= burst +
//       tokens made + refunds + what displacement forgave;
//   P3  a denial is true at some moment of its call: the sequential bucket lacked the token.  With
//       the caller's readings an absent key counts as full at the newest drop of its shard where
//       that is later than the reading: an early reading may be denied for another key's drop;
//   P4  no deadlock (an invalid end state), and no cycle (pan -DNP, pan -l): whatever the scheduler
//       does, also if it never again runs some takers, the others finish;
//   P5  a refund that finds no bucket loses nothing: it was full at some moment of the call (not
//       with the caller's readings);
//   P6  with SOLO: a call that ran alone finds no room only among buckets.
//
// Size and variations:
//   WAYS TAKERS KEYS TAKES TICKS
//   BURST             the limit, when it does not change: one token a tick
//   CHANGES n         the limit changes n times meanwhile: rates, bursts and mutations in ring.inc
//   RING_FINE         a take reads the limit in small steps, not as one
//   CALLERS_CLOCK     readings are the caller's, up to STALE ticks old and FUTURE ticks ahead
//   DISPLACE          no free way: displace a bucket (else: no room)
//   REFUND            a granted token may be given back
//   CRASHES n         n takers stop for ever, at any moment
//   FULL_SCAN         the first scan reads every way, also after it has met LIVE(key)
//   RESCAN            after its own announcement a call starts again
//   NO_DROPPED_AT     right with the limiter's own clock, a mutation with the caller's
//
// Mutations, each must be found wrong:
//   NO_SECOND_SCAN NO_NONCE NO_ABORT
//   NO_BUDGET NO_EVICTION  a call evicts FRESH of others without end, or not at all (SOLO)
//   CLOCK_BEFORE_FIRST_SCAN CLOCK_BEFORE_SECOND_SCAN   (the limit is read with the clock)
//   RAISE_AFTER_DROP DROPPED_READ_EARLY DISPLACE_NO_RAISE
//   DROPPED_AFTER_CLOCK   own clock: a drop between clock and dropped_at denies what it should not
//   REFUND_RAISES         the caller's clock: a refund to a bucket more than full takes it down to
//                         full, which an earlier reading then misses
//   DROPPED_AS_V          dropped_at is a value of V to which an activation applies its own burst,
//                         not a floor: wrong when the burst changes
//
// What the code does, the model does: a scan stops at the first LIVE(key), by P1 there is no other;
// after its own announcement a call goes straight to the second scan.  Where the code has a rule
// for choosing, the model allows every choice: which free way, whose FRESH is evicted, which bucket
// is displaced.  A nonce comes from a counter and is unique.  Here it is the least number that no
// word still to be compared holds, which is as good: nonces are only compared for equality.

#ifndef WAYS
#define WAYS 2
#endif
#ifndef TAKERS
#define TAKERS 2
#endif
#ifndef KEYS
#define KEYS 2
#endif
#ifndef TAKES
#define TAKES 1
#endif
#ifndef TICKS
#define TICKS 2
#endif
#ifndef BURST
#define BURST 1
#endif
#ifndef CHANGES
#define CHANGES 0
#endif
#ifndef STALE
#define STALE 1
#endif
#ifndef FUTURE
#define FUTURE 0
#endif
#ifndef CRASHES
#define CRASHES 0
#endif

#ifdef NO_EVICTION
#define BUDGET 0
#else
#define BUDGET 1
#endif

#include "slot_word.inc"
#include "slot_ghost.inc"
#include "slot_step.inc"

// ---- a taker ----

#if CRASHES > 0
byte crashes = CRASHES;
bit crashed[TAKERS];
#define KILLABLE unless { atomic { crashed[id] -> d_step { forget(); forget_limit() } } }
#else
#define KILLABLE
#endif

proctype taker(byte id) {
    READ_VARIABLES;
    byte todo, key, budget, i, f, choice, drop, raise, zero;
    {
    todo = TAKES;
idle:
    atomic {
        if
        :: todo == 0 -> goto done
        :: todo > 0 -> key = 1
#if KEYS > 1
        :: todo > 0 -> key = 2
#endif
#if KEYS > 2
        :: todo > 0 -> key = 3
#endif
        fi;
        new_reading();
        todo--;
        budget = BUDGET;
        d_step { begin_asking(key) }
    }
    READ_BEFORE_SCAN

scan:
    atomic {
        SEEN(i) = way[i];
        i++;
        if
        :: SCAN_ENDS -> find_live()
        :: else -> goto scan
        fi;
        if
        :: expected[id] == EMPTY -> goto absent
        :: else
        fi
    }
    READ_AFTER_FIRST_SCAN
    atomic {
        skip;
        d_step { value_limit(); zero = MAX(VALUE(expected[id]), V - e) + 1 }
        if
        :: zero > V -> DENY
        :: zero <= V && way[f] == expected[id] -> grant()
        :: else -> START_AGAIN
        fi
    }

absent:
    DROPPED_BEFORE
    READ_AFTER_FIRST_SCAN
    DROPPED_AFTER
    atomic {
        skip;
        d_step {
            value_limit();
            drop = DROPPED_FLOOR(drop, e);
            zero = MAX(V - e, drop) + 1;
            choose()
        }
        if
        :: zero > V -> DENY
        :: zero <= V && choice == NO_ROOM ->
#ifdef SOLO
            assert(!alone[id] || (IS_LIVE(SEEN(0)) && IS_LIVE(SEEN(WAYS - 1))));  // P6
#endif
            ANSWER
        :: else -> zero = 0; drop = 0; pick()
        fi;
        if
        :: choice == ADOPT ->
            d_step {
                choice = 0;
#ifdef FORGET_BETWEEN
                forget_limit()
#endif
            }
            goto second_scan
        :: else -> choice = 0
        fi
    }
#ifndef RAISE_AFTER_DROP
    atomic {
        if
        :: MUST_RAISE(expected[id]) -> raise = DROP_VALUE(expected[id]); raise_dropped_at()
        :: else
        fi
    }
#endif
    atomic {
        if
        :: way[f] == expected[id] -> announce()
        :: else -> START_AGAIN
        fi
    }
#ifdef RAISE_AFTER_DROP
    atomic {
        if
        :: raise > 0 -> raise_dropped_at()
        :: else
        fi
    }
#endif
#ifdef RESCAN
    atomic { START_AGAIN }
#endif

second_scan:
#ifdef DROPPED_READ_EARLY
    READ_DROPPED_AT
#endif
#ifdef NO_SECOND_SCAN
    goto activate;
#endif
look:
    atomic {
        if
        :: i == f && way[i] != expected[id] -> START_AGAIN
        :: i != f && (LIVE_OF(way[i], key) || (i < f && FRESH_OF(way[i], key))) -> START_AGAIN
#ifndef NO_ABORT
        :: i > f && FRESH_OF(way[i], key) -> aborted[id] = way[i]; goto abort
#endif
        :: else -> i++
        fi;
        if
        :: i < WAYS -> goto look
        :: else -> i = 0; goto activate
        fi
    }
abort:
    atomic {
        if
        :: way[i] == aborted[id] ->
            d_step { way[i] = EMPTY; aborted[id] = EMPTY; i++; wrote() }
        :: else -> START_AGAIN
        fi;
        if
        :: i < WAYS -> goto look
        :: else -> i = 0
        fi
    }

activate:
#ifndef DROPPED_READ_EARLY
    DROPPED_BEFORE
#endif
    READ_AFTER_SECOND_SCAN
    DROPPED_AFTER
    atomic {
        skip;
        d_step {
            value_limit();
            drop = DROPPED_FLOOR(drop, e);
            zero = MAX(V - e, drop) + 1
        }
        if
        :: zero > V -> DENY
        :: zero <= V && way[f] == expected[id] -> grant()
        :: else -> START_AGAIN
        fi
    }

#ifdef REFUND
refund:
    atomic {
        new_reading();
        d_step { forget(); end_asking(); budget = 0; begin_refunding(key) }
    }
find:
    atomic {
        if
        :: LIVE_OF(way[i], key) -> expected[id] = way[i]; f = i; i = 0
        :: !LIVE_OF(way[i], key) && i + 1 < WAYS -> i++; goto find
        :: else ->
#ifndef CALLERS_CLOCK
            assert(was_full[id]);  // P5
#endif
            goto given_back
        fi
    }
    READ_LIMIT
    atomic {
        skip;
        d_step { value_limit(); zero = REFUNDED(VALUE(expected[id])) }
        if
        :: way[f] == expected[id] -> d_step { way[f] = LIVE(key, zero); gave_back(key) }
        :: else -> d_step { forget() } goto find
        fi
    }
given_back:
    atomic {
        d_step { end_refunding() }
        ANSWER
    }
#endif
    } KILLABLE;
done:
    skip
}

#if CRASHES > 0
proctype killer() {
    do
    :: atomic {
        crashes > 0 -> crashes--;
        if
        :: crashed[0] = 1
#if TAKERS > 1
        :: crashed[1] = 1
#endif
#if TAKERS > 2
        :: crashed[2] = 1
#endif
        fi
    }
    :: break
    od
}
#endif

#if CHANGES > 0
// Changes the limit.  With the caller's clock a version begins at a given reading, or with its
// predecessor if that is later, and is never UNSET.
proctype changer() {
    READ_VARIABLES;
    byte id = TAKERS, nth;
    do
    :: nth < CHANGES ->
        read_limit();
        atomic {
            new_reading();
            d_step {
                // There is one changer, so idx is what was read, and an entry is free.
                g = (idx_entry + 1) % RING;
                fill_own(g, 0, nth);
                fill_prev(g);
                publish(g, 0, nth);
#ifdef CALLERS_CLOCK
                t = MAX(reading[id], c.t0);
                reading[id] = 0;
                ring[g].t0 = t;
                begin_version(v + 1, t);
#else
                ring[g].t0 = UNSET(v + 1);
#endif
                changed();
                forget_limit();
                nth++
            }
        }
        read_limit();
        atomic { skip; d_step { forget_limit() } }
    :: nth == CHANGES -> break
    od
}
#endif

proctype ticker() {
    do
    :: clk < TICKS -> d_step { clk++; changed() }
    :: else -> break
    od
}

init {
    byte k;
    atomic {
#if CHANGES > 0
        d_step { init_ring() }
        run changer();
#endif
#if CRASHES > 0
        run killer();
#endif
        run ticker();
        do
        :: k < TAKERS -> run taker(k); k++
        :: else -> k = 0; break
        od
    }
}
