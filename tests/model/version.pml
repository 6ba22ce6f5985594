// The ring of limit versions alone: writers that change the limit, readers, a clock.  What is
// asserted, and the mutations, are in ring.inc.
//
//   WRITERS CHANGES   writers, and how often each changes the limit
//   READERS READS     readers, and how often each reads; those with an even number try the short
//                     cut first
//   RING              entries; a sleeper's entry is used again, whichever it was, when
//                     WRITERS * CHANGES > RING
//   TICKS             how far the clock runs
//
// A writer or reader that is killed leaves what one leaves that is not scheduled again, so every
// state after a kill is among the states checked.

#ifndef READERS
#define READERS 2
#endif
#ifndef READS
#define READS 1
#endif
#ifndef TICKS
#define TICKS 2
#endif

byte clk;
#define read_clock() t = clk
#define version_begun(t) skip

#include "ring.inc"

#define NOT_READY 255
inline init_ready() {
    k = 1;
    do
    :: k < RING -> ring[k].ready = NOT_READY; k++
    :: else -> break
    od;
    ring[0].V0 = V_BASE;
    ring[0].e0 = BURST0
}

inline forget_reading() {
    forget_copy();
    c.V0 = 0;
    c.e0 = 0;
    c.ready = 0;
    t = 0;
    V = 0;
    e = 0
}

// The short cut.  It leaves V and e if the version is ready and the reading not before its start,
// else nothing.
inline try_ready() {
    d_step { v = idx_version; g = idx_entry }
    d_step { read_clock() }
    d_step { c.ready = ring[g].ready }
    d_step { COPY_T0; c.V0 = ring[g].V0; c.e0 = ring[g].e0 }
    d_step { COPY_OWN }
    d_step {
        if
        :: STILL(v) && c.ready == v && t >= c.t0 ->
            V = c.V0 + c.rate * (t - c.t0);
            e = MIN(c.burst, c.e0 + V - c.V0);
            hand_out();
            had = 1
        :: else
        fi;
        forget_reading()
    }
}

proctype reader(byte id) {
    READ_VARIABLES;
    byte todo = READS;
    bit had;
    do
    :: todo > 0 ->
        if
        :: id % 2 == 0 -> try_ready()
        :: id % 2 == 1
        fi;
        if
        :: had -> skip
        :: !had ->
            read_limit();
            atomic { skip; d_step { value_limit(); forget_reading() } }
        fi;
        atomic { todo--; had = 0 }
    :: todo == 0 -> break
    od
}

// Claims the lowest free entry that is not the published one: mine.
inline claim() {
    atomic {
        mine = 0;
        do
        :: mine < RING && (mine == g || claimed[mine]) -> mine++
        :: else -> break
        od;
        if
        :: mine < RING -> claimed[mine] = 1; has = 1
        :: else -> assert(RING < WRITERS + 2); goto busy  // R4
        fi
    }
}

inline store_start() {
    ring[mine].V0 = C_V0;
    ring[mine].e0 = MIN(c.burst, MIN(c.prev_burst, c.prev_e + C_V0 - c.prev_V))
}

// After the claim: an entry that was published meanwhile is not mine to fill.  And where idx has
// moved on, there has been a version v + 1, perhaps in this very entry, which a sleeper may be about
// to date: it must not find UNSET(v + 1) there again.
#ifdef NO_CLAIM_CHECK
#define CLAIM_CHECKED 0
#else
#define CLAIM_CHECKED 1
#endif
#if defined(NO_CLAIM_CHECK) || defined(CLAIM_CHECKS_ENTRY)
#define VERSION_CHECKED 0
#else
#define VERSION_CHECKED 1
#endif

#ifdef NO_RESOLVE
inline copy_prev(m) {  // as if the copy c had never been in force
    ring[m].prev_rate = c.prev_rate;
    ring[m].prev_burst = c.prev_burst;
    ring[m].prev_t0 = c.prev_t0;
    ring[m].prev_V = c.prev_V;
    ring[m].prev_e = c.prev_e
}
#endif

proctype writer(byte id) {
    READ_VARIABLES;
    byte mine, mine_version, nth;
    bit has;
    do
    :: nth < CHANGES ->
again:
#ifdef NO_RESOLVE
        resolving = 0;
#endif
        read_limit();
        atomic { skip; d_step { value_limit(); t = 0; V = 0; e = 0 } }
        if
        :: !has ->
            claim();
            atomic {
                if
                :: idx_entry == mine && CLAIM_CHECKED ->
                    claimed[mine] = 0;
                    has = 0;
                    mine = 0;
                    d_step { forget_reading() }
                    goto again
                :: idx_entry != mine && idx_version != v && VERSION_CHECKED ->
                    d_step { forget_reading() }
                    goto again
                :: else
                fi
            }
        :: has
        fi;
        d_step { fill_own(mine, id, nth) }
#ifdef NO_RESOLVE
        d_step {
            if
            :: IS_UNSET(c.t0) -> copy_prev(mine)
            :: else -> fill_prev(mine)
            fi
        }
#else
        d_step { fill_prev(mine) }
#endif
        d_step { ring[mine].t0 = UNSET(v + 1) }
        atomic {
            if
            :: idx_version == v && idx_entry == g ->
                d_step { publish(mine, id, nth); mine_version = v + 1; forget_reading() }
            :: else -> d_step { forget_reading() } goto again
            fi
        }
#ifdef READY_UNCLAIMED
        claimed[mine] = 0;
#endif
#ifdef NO_RESOLVE
        resolving = 1;
#endif
        read_limit();  // so that an idle limiter does not run on at the old rate
        atomic {
            if
            :: v == mine_version -> d_step { value_limit(); store_start() }
            :: else -> goto release
            fi
        }
        d_step { ring[mine].ready = mine_version }
release:
        atomic {
            skip;
            d_step {
                forget_reading();
#ifndef READY_UNCLAIMED
                claimed[mine] = 0;
#endif
                mine_version = 0;
                has = 0;
                mine = 0;
                nth++
            }
        }
    :: nth == CHANGES -> break
    od;
busy:
    skip
}

proctype ticker() {
    do
    :: clk < TICKS -> clk++
    :: else -> break
    od
}

init {
    byte k;
    atomic {
        d_step { init_ring(); init_ready() }
        run ticker();
        k = 0;
        do
        :: k < WRITERS -> run writer(k); k++
        :: else -> break
        od;
        k = 0;
        do
        :: k < READERS -> run reader(k); k++
        :: else -> k = 0; break
        od
    }
}
