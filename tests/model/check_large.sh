#!/bin/bash
# Larger configurations of the models than check.sh has time for, one at a time.
#
#   check_large.sh [BUILD_DIR]
#
# Measured once, on one of two busy cores of an AMD EPYC, each exhausted without an error (compiling
# included, states compressed by -DCOLLAPSE):
#
#                                                           million states seconds    MiB
#   exhaust: 3 takers                                               6.4     10    378
#   exhaust: 3 takers, 2 ticks                                     18.0     30    836
#   exhaust: 3 ways                                                 1.9      3    209
#   exhaust: 3 keys, displacement, windows counted                 16.4     23    814
#   exhaust: 3 ticks, burst 2, windows counted                      5.0      7    344
#   exhaust: refund                                                10.0     14    544
#   exhaust: refund, displacement, windows counted                 19.0     28    957
#   exhaust: a taker killed, 2 takes                               12.1     18    611
#   exhaust: caller's clock, 3 takers                               7.4     10    425
#   exhaust: caller's clock, stale by 2, ahead by 1, burst 2        8.4     11    511
#   exhaust: caller's clock, 3 keys, displacement                   4.0      6    301
#   exhaust: caller's clock, refund                                13.2     20    729
#   exhaust: 2 changes of limit                                    15.1     22    713
#   exhaust: 2 changes of limit, caller's clock                    13.1     16    639
#   exhaust: change of limit, 2 takes                              33.7     55   1431
#   exhaust: change of limit, 2 takes, caller's clock              31.4     41   1350
#   exhaust: change of limit, 2 takes, caller's clock, slower      16.6     20    774
#   exhaust: change of limit, 2 ways, 2 takes of a key             17.2     24    793
#   exhaust: change of limit, read in small steps                   8.6     13    457
#   exhaust: ring: 2 readers, 2 ticks                               2.9      5    240
#   exhaust: ring: 2 readers, a whole turn                         15.4     25    715
#   exhaust: ring: 2 writers, 4 changes, 1 tick                    28.9     49   1235
#   exhaust: ring: 2 writers, 4 changes, 4 entries                 21.9     39    967
#   exhaust: ring: 2 writers, 2 readers                            12.6     25    636
#   exhaust: synced: names forgotten, 2 slots                      20.8     39    980
#   exhaust: synced: names forgotten, 2 slots, 1 key               17.9     34    826
#   cycle: 2 takes                                                  0.9      4    213
#   cycle: 3 takers                                                 2.7      7    440
#   cycle: caller's clock, 2 takes                                  1.0      3    227
#   cycle: change of limit                                          8.7     22   1564
COMPRESS=-DCOLLAPSE LIMIT_S=1200 MEMORY_MIB=8000 JOBS=1
. "$(dirname "$0")/spin_run.sh"

exhaust '3 takers' slot.pml -DTAKERS=3 -DTICKS=1
exhaust '3 takers, 2 ticks' slot.pml -DTAKERS=3
exhaust '3 ways' slot.pml -DWAYS=3 -DTAKES=2 -DTICKS=1
exhaust '3 keys, displacement, windows counted' slot.pml -DKEYS=3 -DTAKES=2 -DDISPLACE -DWINDOW
exhaust '3 ticks, burst 2, windows counted' slot.pml -DTAKES=2 -DTICKS=3 -DBURST=2 -DWINDOW
exhaust 'refund' slot.pml -DREFUND -DTAKES=2
exhaust 'refund, displacement, windows counted' slot.pml \
    -DREFUND -DDISPLACE -DWINDOW -DWAYS=1 -DTAKES=2
exhaust 'a taker killed, 2 takes' slot.pml -DCRASHES=1 -DTAKES=2
exhaust "caller's clock, 3 takers" slot.pml -DCALLERS_CLOCK -DTAKERS=3 -DTICKS=1
exhaust "caller's clock, stale by 2, ahead by 1, burst 2" slot.pml \
    -DCALLERS_CLOCK -DTAKES=2 -DBURST=2 -DSTALE=2 -DFUTURE=1
exhaust "caller's clock, 3 keys, displacement" slot.pml \
    -DCALLERS_CLOCK -DKEYS=3 -DTAKES=2 -DTICKS=1 -DDISPLACE
exhaust "caller's clock, refund" slot.pml -DCALLERS_CLOCK -DREFUND -DTAKES=2
exhaust '2 changes of limit' slot.pml -DCHANGES=2
exhaust "2 changes of limit, caller's clock" slot.pml -DCHANGES=2 -DCALLERS_CLOCK
exhaust 'change of limit, 2 takes' slot.pml -DCHANGES=1 -DWAYS=1 -DTAKES=2 -DWINDOW
exhaust "change of limit, 2 takes, caller's clock" slot.pml \
    -DCHANGES=1 -DCALLERS_CLOCK -DWAYS=1 -DTAKES=2
exhaust "change of limit, 2 takes, caller's clock, slower" slot.pml \
    -DCHANGES=1 -DSLOWER -DCALLERS_CLOCK -DWAYS=1 -DTAKES=2
exhaust 'change of limit, 2 ways, 2 takes of a key' slot.pml -DCHANGES=2 -DTAKES=2 -DKEYS=1
exhaust 'change of limit, read in small steps' slot.pml -DCHANGES=1 -DRING_FINE -DTICKS=1
exhaust 'ring: 2 readers, 2 ticks' version.pml
exhaust 'ring: 2 readers, a whole turn' version.pml -DCHANGES=3 -DRING=2
exhaust 'ring: 2 writers, 4 changes, 1 tick' version.pml \
    -DWRITERS=2 -DCHANGES=2 -DREADERS=1 -DRING=2 -DTICKS=1
exhaust 'ring: 2 writers, 4 changes, 4 entries' version.pml \
    -DWRITERS=2 -DCHANGES=2 -DREADERS=1 -DRING=4 -DTICKS=0
exhaust 'ring: 2 writers, 2 readers' version.pml -DWRITERS=2 -DCHANGES=1 -DRING=4 -DTICKS=0
exhaust 'synced: names forgotten, 2 slots' synced.pml \
    -DNAMELESS_SLOTS -DSLOTS=2 -DNAMES=1 -DFORGET -DTAKES=1
exhaust 'synced: names forgotten, 2 slots, 1 key' synced.pml \
    -DNAMELESS_SLOTS -DSLOTS=2 -DNAMES=1 -DFORGET -DKEYS=1
cycle '2 takes' slot.pml -DTAKES=2 -DTICKS=1
cycle '3 takers' slot.pml -DTAKERS=3 -DTICKS=0
cycle "caller's clock, 2 takes" slot.pml -DCALLERS_CLOCK -DTAKES=2 -DTICKS=1
cycle 'change of limit' slot.pml -DCHANGES=1

finish
