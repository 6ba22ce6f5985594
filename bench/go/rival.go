// Go's golang.org/x/time/rate under the same asks as weir: alone, in a sync.Map, in a sharded map.
//
//	rival [-rows hot,keys,overgrant] [-keys 1M] [-threads 1,2] [-seconds 0.3]
//
// Prints one JSON object a row: its name and the nanoseconds that one thread takes for one ask.
// Keys and their order are those of bench/keys.c. Build (Debian: golang-golang-x-time-dev), no
// network:
//
//	GO111MODULE=off GOPATH=/usr/share/gocode go build -o rival rival.go
package main

import (
	"flag"
	"fmt"
	"math/bits"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

const shards = 64

// A limiter by key, and the single one that ignores the key.
type limiter interface {
	take(key string, cost int) bool
}

type limit struct {
	perSecond rate.Limit
	burst     int
}

// The limits of bench_take.c.
var (
	fast  = limit{1e10, 1 << 20}
	spent = limit{1.0 / 86400, 1}
	roomy = limit{100000, 1 << 32}
)

const roomySpent = 1 << 31

func (l limit) create() *rate.Limiter { return rate.NewLimiter(l.perSecond, l.burst) }

type single struct{ of *rate.Limiter }

func (s *single) take(_ string, cost int) bool { return s.of.AllowN(time.Now(), cost) }

type syncMap struct {
	limit limit
	of    sync.Map
}

func (m *syncMap) take(key string, cost int) bool {
	found, ok := m.of.Load(key)
	if !ok {
		found, _ = m.of.LoadOrStore(key, m.limit.create())
	}
	return found.(*rate.Limiter).AllowN(time.Now(), cost)
}

type shard struct {
	mutex sync.Mutex
	of    map[string]*rate.Limiter
	_     [40]byte
}

type sharded struct {
	limit  limit
	shards [shards]shard
}

func (s *sharded) take(key string, cost int) bool {
	hash := uint64(14695981039346656037)
	for i := 0; i < len(key); i++ {
		hash = (hash ^ uint64(key[i])) * 1099511628211
	}
	part := &s.shards[hash%shards]
	part.mutex.Lock()
	found, ok := part.of[key]
	if !ok {
		found = s.limit.create()
		part.of[key] = found
	}
	part.mutex.Unlock()
	return found.AllowN(time.Now(), cost)
}

func newSharded(l limit) limiter {
	s := &sharded{limit: l}
	for i := range s.shards {
		s.shards[i].of = map[string]*rate.Limiter{}
	}
	return s
}

func newSyncMap(l limit) limiter { return &syncMap{limit: l} }
func newSingle(l limit) limiter  { return &single{l.create()} }

type rival struct {
	name   string
	create func(limit) limiter
	keyed  bool
}

var rivals = []rival{
	{"go-single", newSingle, false},
	{"go-syncmap", newSyncMap, true},
	{"go-sharded", newSharded, true},
}

// The asks of a walk: texts one behind the other in one long string, 16 bytes apart.
type sequence struct {
	texts   string
	lengths []uint8
	mask    int
}

func random(index uint64) uint64 {
	z := (index + 1) * 0x9E3779B97F4A7C15
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
	z = (z ^ (z >> 27)) * 0x94D049BB133111EB
	return z ^ (z >> 31)
}

func newSequence(keys int) *sequence {
	asks := 1 << 16
	for asks < 4*keys && asks < 1<<24 {
		asks *= 2
	}
	texts := make([]byte, 16*asks)
	lengths := make([]uint8, asks)
	for i := 0; i < asks; i++ {
		number, _ := bits.Mul64(random(uint64(i)), uint64(keys))
		text := strconv.AppendUint(append(texts[16*i:16*i], "user:"...), number, 10)
		lengths[i] = uint8(len(text))
	}
	return &sequence{string(texts), lengths, asks - 1}
}

func (s *sequence) at(i int) string {
	i &= s.mask
	return s.texts[16*i : 16*i+int(s.lengths[i])]
}

// One thread's asks until told to stop.
type worker struct {
	next    int
	asked   uint64
	granted uint64
	first   time.Duration
	last    time.Duration
	_       [64]byte
}

func (w *worker) run(l limiter, walk *sequence, stop *int32, start time.Time) {
	w.first = time.Since(start)
	for atomic.LoadInt32(stop) == 0 {
		for i := 0; i < 256; i++ {
			key := "user:1234567"
			if walk != nil {
				key = walk.at(w.next)
				w.next++
			}
			w.asked++
			if l.take(key, 1) {
				w.granted++
			}
		}
	}
	w.last = time.Since(start)
}

type outcome struct {
	asked, granted uint64
	window         time.Duration // from the first thread's start to the last one's end
	each           float64       // nanoseconds of one thread for one ask
}

func measure(l limiter, walk *sequence, threads int, seconds float64) outcome {
	workers := make([]worker, threads)
	var stop int32
	var all sync.WaitGroup
	start := time.Now()
	for i := range workers {
		if walk != nil {
			workers[i].next = (walk.mask + 1) / threads * i
		}
		all.Add(1)
		go func(w *worker) {
			w.run(l, walk, &stop, start)
			all.Done()
		}(&workers[i])
	}
	time.Sleep(time.Duration(seconds * float64(time.Second)))
	atomic.StoreInt32(&stop, 1)
	all.Wait()
	return addUp(workers)
}

func addUp(workers []worker) outcome {
	var o outcome
	var busy, last time.Duration
	first := workers[0].first
	for i := range workers {
		w := &workers[i]
		o.asked += w.asked
		o.granted += w.granted
		busy += w.last - w.first
		if w.first < first {
			first = w.first
		}
		if w.last > last {
			last = w.last
		}
	}
	o.window = last - first
	o.each = float64(busy.Nanoseconds()) / float64(o.asked)
	return o
}

func fail(format string, arguments ...interface{}) {
	fmt.Fprintf(os.Stderr, "rival: "+format+"\n", arguments...)
	os.Exit(1)
}

func say(name string, threads int, o outcome, wanted uint64, more string) {
	if o.granted != wanted {
		fail("%s: %d of %d asks were granted, not %d", name, o.granted, o.asked, wanted)
	}
	fmt.Printf("{\"name\": \"%s/threads:%d\", \"threads\": %d, \"ns\": %g%s}\n", name, threads,
		threads, o.each, more)
}

func hotRows(threads []int, seconds float64) {
	for _, r := range rivals {
		for _, t := range threads {
			o := measure(r.create(fast), nil, t, seconds)
			say(r.name+"/hot/granted", t, o, o.asked, "")
			empty := r.create(spent)
			empty.take("user:1234567", 1)
			say(r.name+"/hot/denied", t, measure(empty, nil, t, seconds), 0, "")
		}
	}
}

func residentBytes() int64 {
	text, err := os.ReadFile("/proc/self/smaps_rollup")
	if err != nil {
		fail("%v", err)
	}
	for _, line := range strings.Split(string(text), "\n") {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "Rss:" {
			kib, _ := strconv.ParseInt(fields[1], 10, 64)
			return kib * 1024
		}
	}
	fail("no Rss in /proc/self/smaps_rollup")
	return 0
}

func keyRows(keys int, label string, threads []int, seconds float64) {
	walk := newSequence(keys)
	for _, r := range rivals {
		if !r.keyed {
			continue
		}
		debug.FreeOSMemory()
		before := residentBytes()
		l := r.create(roomy)
		for i := 0; i < keys; i++ {
			l.take("user:"+strconv.Itoa(i), roomySpent)
		}
		debug.FreeOSMemory()
		bytes := float64(residentBytes()-before) / float64(keys)
		for _, t := range threads {
			measure(l, walk, t, seconds/4)
			o := measure(l, walk, t, seconds)
			say(r.name+"/keys:"+label+"/uniform", t, o, o.asked,
				fmt.Sprintf(", \"bytes_a_key\": %.1f", bytes))
		}
		runtime.KeepAlive(l)
	}
}

// The load of overgrant.c: what was granted, beside what burst + rate x time allows.
func overgrantRow(threads int, perSecond float64, burst int, seconds float64) {
	o := measure(newSingle(limit{rate.Limit(perSecond), burst}), nil, threads, seconds)
	bound := float64(burst) + perSecond*(float64(o.window.Nanoseconds())+1)/1e9
	fmt.Printf("{\"name\": \"overgrant/go\", \"asked\": %d, \"granted\": %d, \"bound\": %d}\n",
		o.asked, o.granted, uint64(bound))
}

func parseCount(text string) int {
	unit := 1
	digits := strings.TrimRight(text, "kM")
	switch text[len(digits):] {
	case "k":
		unit = 1000
	case "M":
		unit = 1000000
	case "":
	default:
		fail("'%s' is not a number; write it as 10k or 1M", text)
	}
	count, err := strconv.Atoi(digits)
	if err != nil || count < 1 {
		fail("'%s' is not a number above 0; write it as 10k or 1M", text)
	}
	return count * unit
}

func main() {
	rows := flag.String("rows", "hot,keys,overgrant", "which rows, with commas")
	keys := flag.String("keys", "1M", "how many keys, for the rows with many")
	list := flag.String("threads", "1,2", "thread counts, with commas")
	seconds := flag.Float64("seconds", 0.3, "how long a row runs")
	perSecond := flag.Float64("rate", 2e6, "tokens a second, for overgrant")
	burst := flag.Int("burst", 100000, "burst, for overgrant")
	flag.Parse()
	var threads []int
	for _, text := range strings.Split(*list, ",") {
		threads = append(threads, parseCount(text))
	}
	for _, row := range strings.Split(*rows, ",") {
		switch row {
		case "hot":
			hotRows(threads, *seconds)
		case "keys":
			keyRows(parseCount(*keys), *keys, threads, *seconds)
		case "overgrant":
			overgrantRow(threads[len(threads)-1], *perSecond, *burst, *seconds)
		default:
			fail("'%s' is no row; there are hot, keys, overgrant", row)
		}
	}
}
