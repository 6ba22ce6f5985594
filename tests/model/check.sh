#!/bin/bash
# Checks the models of the slot protocol, of the ring of limit versions, and of what a synced
# limiter leaves for its thread; and that each of their mutations is found wrong.  Two minutes on
# two cores.  check_large.sh has larger configurations.
#
#   check.sh [BUILD_DIR]     temporary files go below BUILD_DIR, else $TMPDIR
#
# One line a configuration, then `N passed, N failed`.  Exit status 1 if anything is not as it must
# be, 77 if spin is missing.
. "$(dirname "$0")/spin_run.sh"

P1=live_count P2='bucket.*<=V' P3=lacked WRONG_V='ideal|newest' CYCLE='non-progress cycle'
UNCOUNTED='missing|out' UNSEEN='unseen|standing' UNHEARD=unheard
NAMELESS='nameless)' SPILL=nameless_spill
FULL=(-DSIDE -DCOUNT_MAX=1) NAMED=(-DNAMES=2 -DTAKES=1)
FORGOTTEN=(-DNAMES=1 -DTAKES=1 -DFORGET)
UNKEPT=(-DNAMES=1 -DNO_MEMORY -DNAMELESS_SLOTS -DNAMELESS_SPILLS)

# The larger ones first, so that the end is even.
exhaust 'ring: 2 writers, 4 changes, 2 entries' version.pml \
    -DWRITERS=2 -DCHANGES=2 -DREADERS=1 -DRING=2 -DTICKS=0
exhaust "change of limit, caller's clock, slower" slot.pml \
    -DCHANGES=1 -DSLOWER -DCALLERS_CLOCK -DWAYS=1 -DTAKES=2 -DTICKS=1
exhaust 'ring: 2 writers, 2 changes, 4 entries' version.pml \
    -DWRITERS=2 -DCHANGES=1 -DREADERS=1 -DRING=4 -DTICKS=1
exhaust 'change of limit, refund, windows counted' slot.pml \
    -DCHANGES=1 -DREFUND -DWINDOW -DWAYS=1 -DTICKS=1
exhaust "caller's clock, displacement, burst 2" slot.pml \
    -DCALLERS_CLOCK -DDISPLACE -DWAYS=1 -DTAKES=2 -DBURST=2 -DSTALE=2 -DFUTURE=1
exhaust "caller's clock" slot.pml -DCALLERS_CLOCK -DTAKES=2
exhaust "caller's clock, refund" slot.pml -DCALLERS_CLOCK -DREFUND -DWAYS=1 -DTAKES=2
exhaust 'own clock' slot.pml -DTAKES=2
exhaust 'own clock, displacement, windows counted' slot.pml -DDISPLACE -DWINDOW -DWAYS=1 -DTAKES=2
exhaust 'own clock, no dropped_at, burst 2, windows counted' slot.pml \
    -DNO_DROPPED_AT -DWINDOW -DTAKES=2 -DBURST=2
exhaust 'change of limit' slot.pml -DCHANGES=1 -DTICKS=1
exhaust 'limit 0 and back' slot.pml -DCHANGES=2 -DKILL_SWITCH -DWAYS=1 -DTICKS=1
exhaust "limit 0 and back, caller's clock" slot.pml \
    -DCHANGES=2 -DKILL_SWITCH -DCALLERS_CLOCK -DWAYS=1 -DTICKS=1
exhaust "change of limit, caller's clock" slot.pml -DCHANGES=1 -DCALLERS_CLOCK -DTICKS=1
exhaust 'ring: 2 readers' version.pml -DTICKS=1
exhaust '3 takers of a key' slot.pml -DTAKERS=3 -DKEYS=1 -DTICKS=1
exhaust 'full scan, scan again after the announcement' slot.pml \
    -DFULL_SCAN -DRESCAN -DTAKES=2 -DTICKS=1
exhaust 'a taker killed' slot.pml -DCRASHES=1
exhaust 'a taker killed, a call alone finds room' slot.pml -DCRASHES=1 -DSOLO -DWAYS=1
exhaust 'refund, windows counted' slot.pml -DREFUND -DWINDOW -DBURST=2
exhaust 'ring: a reader sleeps a whole turn' version.pml \
    -DCHANGES=3 -DRING=2 -DREADERS=1 -DREADS=2
exhaust 'ring: 3 changes, 3 entries' version.pml -DCHANGES=3 -DRING=3 -DREADERS=1
exhaust '3 keys, 2 ways, displacement' slot.pml -DDISPLACE -DKEYS=3 -DTAKES=2 -DTICKS=0

exhaust 'synced: names, 2 slots' synced.pml -DSLOTS=2 "${NAMED[@]}"
exhaust 'synced: names forgotten' synced.pml "${FORGOTTEN[@]}"
exhaust 'synced: urgent marks' synced.pml -DEARLY=2
exhaust 'synced: 3 deciders, full counts' synced.pml "${FULL[@]}" -DDECIDERS=3 -DTAKES=1
exhaust 'synced: 3 deciders' synced.pml -DDECIDERS=3 -DTAKES=1
exhaust 'synced: full counts' synced.pml "${FULL[@]}"
exhaust 'synced: denials' synced.pml -DDENY
exhaust 'synced' synced.pml
exhaust 'synced: refunds' synced.pml -DREFUND
exhaust 'synced: names, urgent marks' synced.pml -DEARLY=2 "${NAMED[@]}"
exhaust 'synced: names, no memory, urgent marks' synced.pml "${UNKEPT[@]}" -DEARLY=2 -DTAKES=1
exhaust 'synced: names, no memory, 1 key' synced.pml "${UNKEPT[@]}" -DKEYS=1
exhaust 'synced: names forgotten, 2 slots, 1 key' synced.pml \
    -DNAMELESS_SLOTS -DSLOTS=2 -DKEYS=1 "${FORGOTTEN[@]}"
exhaust 'synced: a reset, full counts' synced.pml -DRESET "${FULL[@]}" -DTAKES=1
exhaust 'synced: a reset' synced.pml -DRESET -DTAKES=1
exhaust 'synced: 2 slots, urgent marks' synced.pml -DEARLY=1 -DSLOTS=2 -DTAKES=1
exhaust 'synced: 2 slots, urgent marks, 1 key' synced.pml -DEARLY=2 -DSLOTS=2 -DKEYS=1
exhaust 'synced: 2 slots of a line, urgent marks' synced.pml \
    -DEARLY=2 -DSLOTS=2 -DONE_LINE -DTAKES=1
exhaust 'synced: 2 slots, full counts' synced.pml "${FULL[@]}" -DSLOTS=2 -DTAKES=1
exhaust 'synced: 2 slots of a line, denials' synced.pml -DDENY -DSLOTS=2 -DONE_LINE -DTAKES=1
exhaust 'synced: denials, full counts' synced.pml -DDENY "${FULL[@]}" -DTAKES=1

cycle 'own clock' slot.pml
cycle "caller's clock" slot.pml -DCALLERS_CLOCK -DTICKS=1
cycle '3 takers, 1 way' slot.pml -DTAKERS=3 -DWAYS=1 -DTICKS=0
cycle '3 keys, 2 ways, displacement' slot.pml -DDISPLACE -DKEYS=3 -DTAKES=2 -DTICKS=0
cycle 'change of limit' slot.pml -DCHANGES=1 -DWAYS=1 -DTICKS=0
cycle 'ring: 2 writers' version.pml -DWRITERS=2 -DCHANGES=1 -DREADERS=1 -DRING=4 -DTICKS=0

mutant 'no second scan' $P1 slot.pml -DNO_SECOND_SCAN
mutant 'no nonce' $P1 slot.pml -DNO_NONCE -DTAKERS=3 -DKEYS=1 -DTICKS=1
mutant 'a higher FRESH is not aborted' $P1 slot.pml -DNO_ABORT
mutant 'no budget' "$CYCLE" slot.pml -DNO_BUDGET -DTAKERS=3 -DWAYS=1 -DTICKS=0
mutant 'no eviction' alone slot.pml -DNO_EVICTION -DCRASHES=1 -DSOLO -DWAYS=1
mutant 'clock before the first scan' $P3 slot.pml -DCLOCK_BEFORE_FIRST_SCAN
mutant 'clock before the second scan' "$P2" slot.pml \
    -DCLOCK_BEFORE_SECOND_SCAN -DNO_DROPPED_AT -DTAKES=2
mutant 'limit before the second scan' "$P2" slot.pml \
    -DCLOCK_BEFORE_SECOND_SCAN -DNO_DROPPED_AT -DCHANGES=1 -DSLOWER -DTAKES=2 -DTICKS=1
mutant 'dropped_at read after the clock' $P3 slot.pml -DDROPPED_AFTER_CLOCK -DTAKES=2
mutant "caller's clock without dropped_at" "$P2" slot.pml \
    -DCALLERS_CLOCK -DNO_DROPPED_AT -DTAKES=2
mutant 'dropped_at raised after the drop' "$P2" slot.pml \
    -DCALLERS_CLOCK -DRAISE_AFTER_DROP -DTAKES=2
mutant 'dropped_at read before the second scan' "$P2" slot.pml \
    -DCALLERS_CLOCK -DDROPPED_READ_EARLY -DTAKES=2
mutant 'displacement does not raise dropped_at' "$P2" slot.pml \
    -DCALLERS_CLOCK -DDISPLACE -DDISPLACE_NO_RAISE -DWAYS=1 -DTAKES=2
mutant 'dropped_at a V, not a floor' "$P2|$P3" slot.pml \
    -DCALLERS_CLOCK -DDROPPED_AS_V -DCHANGES=1 -DSLOWER -DWAYS=1 -DTAKES=2 -DTICKS=1
mutant 'a refund lowers a full bucket' $P3 slot.pml \
    -DCALLERS_CLOCK -DREFUND -DREFUND_RAISES -DTAKES=2
mutant 'a larger burst at once' "$P2|$P3" slot.pml \
    -DCHANGES=2 -DNO_RAMP -DNO_LIMIT_CHECK -DWAYS=1 -DTAKES=2
mutant 'ring: no tag in UNSET' "$WRONG_V" version.pml -DNO_TAG -DCHANGES=3 -DRING=2 -DREADERS=1
mutant 'ring: idx not read again' "$WRONG_V" version.pml -DNO_RECHECK
mutant 'ring: clock before idx' "$WRONG_V" version.pml -DCLOCK_BEFORE_IDX
mutant 'ring: the t0 that a failed CAS found' "$WRONG_V" version.pml \
    -DUSE_FOUND_T0 -DCHANGES=3 -DRING=2 -DREADERS=1
mutant 'ring: no claim check' "$WRONG_V" version.pml \
    -DNO_CLAIM_CHECK -DWRITERS=2 -DCHANGES=1 -DREADERS=1 -DRING=4 -DTICKS=1
mutant 'ring: claim check of the entry only' "$WRONG_V" version.pml \
    -DCLAIM_CHECKS_ENTRY -DWRITERS=2 -DCHANGES=2 -DREADERS=1 -DRING=2 -DTICKS=0
mutant 'ring: t0 of the predecessor not set' "$WRONG_V" version.pml \
    -DNO_RESOLVE -DWRITERS=2 -DCHANGES=1 -DREADERS=1 -DRING=4 -DTICKS=1
mutant 'ring: a larger burst at once' "$WRONG_V" version.pml -DNO_RAMP
mutant 'ring: short cut stored without the claim' "$WRONG_V" version.pml \
    -DREADY_UNCLAIMED -DWRITERS=2 -DCHANGES=2 -DREADERS=1 -DRING=2 -DTICKS=0

mutant 'synced: forgotten while its spill is on the way' $SPILL synced.pml \
    -DFORGET_AT_NEXT "${FORGOTTEN[@]}"
mutant 'synced: what moved with a late name is not queued' missing synced.pml \
    -DMOVED_UNQUEUED -DSLOTS=2 "${NAMED[@]}"
mutant 'synced: touched marked before urgent' $UNHEARD synced.pml -DTOUCHED_FIRST -DEARLY=2
mutant 'synced: urgent taken before touched' $UNHEARD synced.pml -DURGENT_TAKEN_FIRST -DEARLY=2
mutant 'synced: urgent marks of other lines wiped' $UNHEARD synced.pml \
    -DWIPE_URGENT -DEARLY=1 -DSLOTS=2 -DTAKES=1
mutant 'synced: marked before the grant' $UNSEEN synced.pml -DMARK_BEFORE_CAS
mutant 'synced: marked before the side is added to' $UNSEEN synced.pml \
    -DMARK_BEFORE_SIDE "${FULL[@]}"
mutant 'synced: marks cleared behind the look' $UNSEEN synced.pml -DCLEAR_AFTER_LOOK
mutant 'synced: marks of denials cleared behind the look' $UNSEEN synced.pml \
    -DCLEAR_AFTER_LOOK -DDENY -DKEYS=1
mutant 'synced: no look at the side' $UNSEEN synced.pml -DNO_LOOK_AT_SIDE "${FULL[@]}"
mutant 'synced: a count taken by a store' $UNCOUNTED synced.pml -DTAKE_BY_STORE
mutant 'synced: a count taken by a CAS of itself' $UNCOUNTED synced.pml -DCOUNT_CAS
mutant 'synced: a count taken from another key' $UNCOUNTED synced.pml -DFREEZE_ANY_KEY
mutant 'synced: displaced without a spill' $UNCOUNTED synced.pml -DDROP_UNREPORTED
mutant 'synced: reset without a spill' $UNCOUNTED synced.pml -DRESET_UNREPORTED -DRESET -DTAKES=1
mutant 'synced: a spill in a cell not claimed' $UNCOUNTED synced.pml -DSPILL_UNCLAIMED
mutant 'synced: named before the name is there' $NAMELESS synced.pml -DNAME_AFTER_CAS "${NAMED[@]}"
mutant 'synced: no second look into the names' $NAMELESS synced.pml -DNO_SECOND_LOOK "${NAMED[@]}"
mutant 'synced: no look into the names for a spill' $SPILL synced.pml \
    -DNO_LOOK_FOR_SPILLS "${NAMED[@]}"
mutant 'synced: a name forgotten, and its slot named' $NAMELESS synced.pml \
    -DFORGET_NAMED "${FORGOTTEN[@]}"
mutant 'synced: a name forgotten by a store' $UNCOUNTED synced.pml \
    -DUNNAME_BY_STORE "${FORGOTTEN[@]}"
mutant 'synced: a name forgotten at once' $NAMELESS synced.pml -DFORGET_AT_ONCE "${FORGOTTEN[@]}"
mutant 'synced: forgotten at the first look' $SPILL synced.pml \
    -DFORGET_AT_FIRST -DNAMELESS_SLOTS "${FORGOTTEN[@]}"
mutant 'synced: a late name forgotten, its slot named' $NAMELESS synced.pml \
    -DSLOTS=2 "${FORGOTTEN[@]}"
mutant 'synced: what has no record is taken' unrecorded synced.pml \
    -DLOSE_NAMELESS "${UNKEPT[@]}" -DTAKES=1
mutant 'synced: renamed by a store' $UNCOUNTED synced.pml \
    -DRENAME_BY_STORE "${UNKEPT[@]}" -DTAKES=1
mutant 'synced: renamed and not touched again' $UNSEEN synced.pml \
    -DRENAME_UNTOUCHED "${UNKEPT[@]}" -DTAKES=1
mutant 'synced: killed before its mark' $UNSEEN synced.pml -DMARKER_KILLED

finish
