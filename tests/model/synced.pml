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
//       at it.  At rest, after a scan, none holds anything, and all that was granted was taken but
//       for what stands in the side of a slot that is not LIVE;
//   S1  the same of denials, with DENY;
//   I4  nobody waits for anybody: no invalid end state;
//   N1  a slot that says NAMED has its name where the thread finds it.  With NAMED_SPILLS also what
//       a slot spilled that said so: no grant of a key is lost whose name was handed over;
//   U1  with URGENT: a count that came to its early threshold, and whose decision has marked that,
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
//   FORGET     and forgets them at any time.  The code does so after forget_us, and a decision is
//              taken not to sleep for so long between a name and its CAS
//
// Two properties do not hold of the code as it stands.  The remedies, with which they do:
//   URGENT_FIRST      U1: urgent is marked before touched; the thread clears touched, then asks
//                     which of these are urgent, and leaves the other bits of urgent alone
//   SPILL_LOOKS_AGAIN N1 of spills: the thread looks into the names again before it thinks that a
//                     spill has none, as it does for a slot
//
// Mutations, each must be found wrong:
//   MARK_BEFORE_CAS MARK_BEFORE_SIDE   a mark before what it announces
//   CLEAR_AFTER_LOOK  the thread clears marks behind its look, as it also would where the look is
//                     not ordered behind the clearing
//   NO_LOOK_AT_SIDE   it looks at the tag alone
//   TAKE_BY_STORE     a freeze loads a tag, and stores it without the count
//   COUNT_CAS         a freeze compares the count alone: ABA, another key has come to the same
//   FREEZE_ANY_KEY    a freeze does not look whose slot it is
//   DROP_UNREPORTED RESET_UNREPORTED   no spill of what a displaced or reset key had not reported
//   SPILL_UNCLAIMED   a cell is filled that was found free, without a claim
//   NAME_AFTER_CAS    NAMED is set before the name is in the ring
//   NO_SECOND_LOOK    the thread does not look into the names again before it drops a slot's count
//   FORGET_NAMED      it forgets a name and leaves NAMED
//   UNNAME_BY_STORE   it takes NAMED away by a store
//   FORGET_AT_ONCE    it does not wait until decisions are past the name they handed over
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
