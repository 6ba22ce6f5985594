#!/bin/bash
# Larger configurations of the models than check.sh has time for, one at a time.
#
#   check_large.sh [BUILD_DIR]
COMPRESS=-DCOLLAPSE LIMIT_S=1200 MEMORY_MIB=8000 JOBS=1
. "$(dirname "$0")/spin_run.sh"

exhaust '3 takers' slot.pml -DTAKERS=3 -DTICKS=1
exhaust '3 takers, 2 ticks' slot.pml -DTAKERS=3
exhaust '3 ways' slot.pml -DWAYS=3 -DTAKES=2 -DTICKS=1
exhaust '3 keys, displacement' slot.pml -DKEYS=3 -DTAKES=2 -DTICKS=1 -DDISPLACE
exhaust '3 ticks, burst 2, windows counted' slot.pml -DTAKES=2 -DTICKS=3 -DBURST=2 -DWINDOW
exhaust 'refund' slot.pml -DREFUND -DTAKES=2
exhaust 'refund, displacement, windows counted' slot.pml -DREFUND -DDISPLACE -DWINDOW -DWAYS=1 -DTAKES=2
exhaust 'a taker killed, 2 takes' slot.pml -DCRASHES=1 -DTAKES=2
exhaust "caller's clock, 3 takers" slot.pml -DCALLERS_CLOCK -DTAKERS=3 -DTICKS=1
exhaust "caller's clock, stale by 2, ahead by 1, burst 2" slot.pml \
    -DCALLERS_CLOCK -DTAKES=2 -DBURST=2 -DSTALE=2 -DFUTURE=1
exhaust "caller's clock, 3 keys, displacement" slot.pml -DCALLERS_CLOCK -DKEYS=3 -DTAKES=2 -DTICKS=1 -DDISPLACE
exhaust "caller's clock, refund" slot.pml -DCALLERS_CLOCK -DREFUND -DTAKES=2
exhaust '2 changes of limit' slot.pml -DCHANGES=2
exhaust "2 changes of limit, caller's clock" slot.pml -DCHANGES=2 -DCALLERS_CLOCK
exhaust 'change of limit, 2 takes' slot.pml -DCHANGES=1 -DWAYS=1 -DTAKES=2 -DWINDOW
exhaust "change of limit, 2 takes, caller's clock" slot.pml -DCHANGES=1 -DCALLERS_CLOCK -DWAYS=1 -DTAKES=2
exhaust "change of limit, 2 takes, caller's clock, slower" slot.pml \
    -DCHANGES=1 -DSLOWER -DCALLERS_CLOCK -DWAYS=1 -DTAKES=2
exhaust 'change of limit, 2 ways, 2 takes of a key' slot.pml -DCHANGES=2 -DTAKES=2 -DKEYS=1
exhaust 'change of limit, read in small steps' slot.pml -DCHANGES=1 -DRING_FINE -DTICKS=1
exhaust 'ring: 2 readers, 2 ticks' version.pml
exhaust 'ring: 2 readers, a whole turn' version.pml -DCHANGES=3 -DRING=2
exhaust 'ring: 2 writers, 4 changes, 1 tick' version.pml -DWRITERS=2 -DCHANGES=2 -DREADERS=1 -DRING=2 -DTICKS=1
exhaust 'ring: 2 writers, 4 changes, 4 entries' version.pml -DWRITERS=2 -DCHANGES=2 -DREADERS=1 -DRING=4 -DTICKS=0
exhaust 'ring: 2 writers, 2 readers' version.pml -DWRITERS=2 -DCHANGES=1 -DRING=4 -DTICKS=1
cycle '2 takes' slot.pml -DTAKES=2 -DTICKS=1
cycle '3 takers' slot.pml -DTAKERS=3 -DTICKS=0
cycle "caller's clock, 2 takes" slot.pml -DCALLERS_CLOCK -DTAKES=2 -DTICKS=1
cycle 'change of limit' slot.pml -DCHANGES=1

finish
