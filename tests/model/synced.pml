// What the decisions of a synced limiter leave for its thread: the count in a slot's tag, the side,
// the marks, and the rings of names and spills.  The argument is in src/synced.c.
//
// A slot is EMPTY, FRESH(key, who) or LIVE(key, named, spilled, count).  That a key is LIVE once is
// for slot.pml to show: an activation sees to it here in one step.  The bucket's level is left out,
// so a compare-and-swap succeeds here wherever it would in the code, and oftener.  A grant is of
// one token.  A transition is one access to a shared word; all are sequentially consistent.
//
// What is asserted (synced_ghost.inc):
//   I1  a grant is taken once, for its own key; with SIDE once, for whichever key (I2);
//   I3  what a LIVE slot holds is marked, or a decision is about to mark it, or the thread to look
//       at it.  At rest, after a scan, none holds anything but one whose key has no record: that is
//       marked, and not NAMED.  All that was granted was taken or stands in such a slot, but for
//       what stands in the side of a slot that is not LIVE;
//   S1  the same of denials, with DENY;
//   I4  nobody waits for anybody: no invalid end state;
//   N1  a slot that says NAMED has a record, or its name where the thread finds it; and so has what
//       a slot spilled that said so;
//   N2  nothing is taken from a slot whose key has no record;
//   U1  with EARLY: a count that came to its early threshold, and whose decision has marked that,
//       is taken or visited as urgent.
//
// Size and variations:
//   SLOTS DECIDERS KEYS TAKES SPILLS
//   COUNT_MAX  what a tag can count; with SIDE more is added to the side
//   ONE_LINE   slots share a mark (else one each, in one word)
//   DENY       an ask of a LIVE key may be denied
//   REFUND     or give back a grant that was not taken yet
//   RESET      somebody empties a slot
//   EARLY n    a count that comes to n is marked urgent
//   NAMES n    the thread goes by names, from a ring of n cells (else it takes from every slot)
//   NO_MEMORY  a name may find no memory for a record
//   FORGET     a record that a whole scan has not seen may go.  The code does so after forget_us (a
//              minute or more), and a decision is taken not to sleep for so long: the time begins
//              when none is about its key that was when it was last seen
//   NAMELESS_SLOTS    N1 of slots is not asserted: with NO_MEMORY, and with FORGET of two SLOTS,
//                     where a late name moves a record to a slot that the key has left.  The thread
//                     asks for the name anew, and by I1 and N2 nothing is lost
//   NAMELESS_SPILLS   nor of spills: with NO_MEMORY what such a slot spills is lost.  So it may be
//                     with FORGET of two slots, which takes more asks than could be exhausted: in
//                     the sizes of check.sh and check_large.sh N1 of spills holds
//
// Left out: the line of records between a visit and its report, which are one here (so what is
// urgent of a count that a name moves is not asked); a key that Redis holds something else for; an
// abandoned member; a detach.
//
// Mutations, each must be found wrong:
//   MARK_BEFORE_CAS MARK_BEFORE_SIDE   a mark before what it announces
//   CLEAR_AFTER_LOOK  the thread clears marks behind its look, as it also would where the look is
//                     not ordered behind the clearing
//   TOUCHED_FIRST     a decision marks touched, then urgent
//   URGENT_TAKEN_FIRST  the thread takes the urgent marks, then the touched ones
//   WIPE_URGENT       it clears the urgent marks of lines too that it did not take
//   NO_LOOK_AT_SIDE   it looks at the tag alone
//   TAKE_BY_STORE     a freeze loads a tag, and stores it without the count
//   COUNT_CAS         a freeze compares the count alone: ABA, another key has come to the same
//   FREEZE_ANY_KEY    a freeze does not look whose slot it is
//   DROP_UNREPORTED RESET_UNREPORTED   no spill of what a displaced or reset key had not reported
//   SPILL_UNCLAIMED   a cell is filled that was found free, without a claim
//   NAME_AFTER_CAS    NAMED is set before the name is in the ring
//   NO_SECOND_LOOK    the thread does not look into the names again before it thinks that a slot's
//                     key has no record
//   NO_LOOK_FOR_SPILLS  nor for a spill's
//   FORGET_NAMED      it forgets a name and leaves NAMED
//   UNNAME_BY_STORE   it takes NAMED away by a store
//   FORGET_AT_ONCE    it does not wait until decisions are past the name they handed over
//   FORGET_AT_FIRST   it forgets a record at the first look that finds another key in its slot
//   FORGET_AT_NEXT    or a tick after it, and not forget_us: a decision may sleep over both between
//                     its drop and its spill
//   MOVED_UNQUEUED    a name that moves a record, and finds something in the old slot, does not put
//                     the record into line; and the scan does not find it there any more
//   LOSE_NAMELESS     it takes what is in a NAMED slot without a record: nobody's
//   RENAME_BY_STORE   it asks for a name anew by a store
//   RENAME_UNTOUCHED  or does not touch the slot again
//   MARKER_KILLED     a decision stops for ever between its CAS and its mark.  Not a mutation: what
//                     I3 needs, since grants that find a count leave the mark to the first one

#ifndef SLOTS
#define SLOTS 1
#endif
#ifndef DECIDERS
#define DECIDERS 2
#endif
#ifndef KEYS
#define KEYS 2
#endif
#ifndef TAKES
#define TAKES 2
#endif
#ifndef COUNT_MAX
#define COUNT_MAX 7
#endif
#ifndef SPILLS
#define SPILLS 2
#endif
#ifndef EARLY
#define EARLY 7
#endif
#ifndef NAMES
#define NAMES 0
#endif

#if defined(FORGET) && DECIDERS > 2
#error "SEE and ASLEEP know two deciders"
#endif

#ifdef RESET
#define PARTIES (DECIDERS + 1)
#else
#define PARTIES DECIDERS
#endif

#include "synced_word.inc"
#include "synced_ghost.inc"

// Each mark is looked at first, and left alone where it is set.
inline mark(bits, i) {
    atomic { unset = !(bits & BIT(i)) }
    if
    :: unset -> atomic { bits = bits | BIT(i); unset = 0 }
    :: !unset
    fi
}

#include "synced_decide.inc"
#include "synced_take.inc"
#include "synced_thread.inc"

// Asserts what holds at every moment.
proctype watch() {
    bit unseen, unheard;
end:
    atomic {
        UNSEEN(0) || UNSEEN(SLOTS - 1) || UNHEARD(0) || UNHEARD(SLOTS - 1) ->
        unseen = UNSEEN(0) || UNSEEN(SLOTS - 1);
        unheard = UNHEARD(0) || UNHEARD(SLOTS - 1);
        assert(!unseen);
        assert(!unheard)
    }
}

init {
    byte k;
    atomic {
        do
        :: k < DECIDERS -> run decider(k); k++
        :: else -> k = 0; break
        od;
#ifdef RESET
        run resetter();
#endif
        run sync();
        run watch()
    }
}
