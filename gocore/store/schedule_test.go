package store

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"velocpy/gocore/base/safego"
	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/config"
	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda"
	"velocpy/gocore/device/cuda/double"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
	"velocpy/gocore/policy/plan"
	"velocpy/gocore/tier/devicememory"
)

var (
	schedules = flag.Int("schedules", 0, "how many random schedules of work on devices; 0: 1,000, or what the race detector has time for")
	schedule0 = flag.Uint64("schedule", 0, "the first of them")
)

// This is the race test: whatever the streams, the workers and the application do, and in whatever order, a checkpoint comes back with the bytes that
// its source had when Checkpoint was called.
func TestRandomSchedules(t *testing.T) {
	n := *schedules
	if n == 0 {
		if n = 1000; raceDetector {
			n = 60
		}
		if testing.Short() {
			n /= 10
		}
	}
	const beside = 8 // schedules mostly sleep
	next := make(chan uint64)
	var all sync.WaitGroup
	for range beside {
		all.Add(1)
		safego.Go("schedules", func() {
			defer all.Done()
			for seed := range next {
				t.Run(fmt.Sprint(seed), func(t *testing.T) { runSchedule(t, seed) })
			}
		})
	}
	for i := range uint64(n) {
		if t.Failed() {
			break
		}
		next <- *schedule0 + i
	}
	close(next)
	all.Wait()
}

// workload is one application with one or two devices, beside a store with very little room.
type workload struct {
	t      testing.TB
	r      *rand.Rand
	driver *double.Driver
	store  *Store
	cards  []*card
}

// card is the application's state on one device: a history, streams, memory.
type card struct {
	*client
	sch     *workload
	r       *rand.Rand
	ordinal int
	dev     *cuda.Device
	streams []uint64
	base    device.Address
	size    int64
	used    int64
	truth   map[int64]content
	lent    []onLoan
	checks  []check
	staying []staying
	serial  uint64
}

// staying are borrowed sources that the application may not overwrite before their ticket permits it.
type staying struct {
	ticket uint64
	key    int64
	text   string // of the content
	stream uint64 // the stream that filled them
	after  []func(junk uint64)
}

// content is the bytes of a checkpoint's regions, and their offsets.
type content struct {
	regions [][]byte
	offsets []int64
	slot    int64
	text    string
}

type onLoan struct {
	lease   *operation.Lease
	want    content
	streams []uint64
	flushed bool // a flush in progress when the checkpoint was consumed may still read the lease's slot
}

// check is a place on the device that must have certain bytes once the streams have finished.
type check struct {
	what string
	at   device.Address
	want []byte
}

const (
	cardMemory   = 24 << 20 // for the application's arrays
	deviceMemory = 64 << 20
)

func runSchedule(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 77))
	devices := 1 + r.IntN(2)
	delays := []time.Duration{0, 20 * time.Microsecond, 100 * time.Microsecond, 400 * time.Microsecond}
	d := double.New(double.Config{
		Devices: devices, Seed: seed, Delay: delays[r.IntN(len(delays))], Memory: deviceMemory,
		Granularity: []int64{64 << 10, granule}[r.IntN(2)], // the tier is one piece, or several
	})
	sch := &workload{t: t, r: r, driver: d}
	disk := int64(64 << 20)
	host := 384<<10 + r.Int64N(3<<20)
	c := config.Config{Path: "/d", Host: &host, Disk: &disk, Checksum: r.IntN(5) > 0, Prefetch: r.IntN(5) > 0, Guess: r.IntN(2) > 0, Direct: true}
	c.FS = jitter{vfs.NewMem(96 << 20), 100 * time.Microsecond}
	c.Flush = []string{"lazy", "eager"}[r.IntN(2)]
	c.Verify = []string{"moved", "first", "always", "off"}[r.IntN(4)]
	c.Pinning = []string{"auto", "pipeline", "off", "direct", "concurrent", "sequential"}[r.IntN(6)]
	c.PinPiece = []int64{0, 64 << 10, 256 << 10}[r.IntN(3)]
	c.Cut = []int64{0, 16 << 10, 100_000}[r.IntN(3)]
	c.Turns = filepath.Join(t.TempDir(), "turn")
	c.LookEvery = []time.Duration{0, time.Millisecond}[r.IntN(2)]
	for i := range devices {
		c.Devices = append(c.Devices, config.Device{Ordinal: i, Bytes: 192<<10 + r.Int64N(1<<20)})
	}
	c.OpenDevice = func(ordinal int, _ string) (device.Device, error) { return cuda.Open(d, ordinal, []byte("twins")) }
	s, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	sch.store = s
	for i := range devices {
		sch.cards = append(sch.cards, sch.newCard(i))
	}
	steps := 40 + r.IntN(60)
	if devices == 1 || r.IntN(2) == 0 {
		for range steps {
			sch.cards[r.IntN(devices)].step()
		}
	} else {
		var all sync.WaitGroup
		for _, k := range sch.cards {
			all.Add(1)
			safego.Go("application", func() {
				defer all.Done()
				for range steps {
					k.step()
				}
			})
		}
		all.Wait()
	}
	sch.end()
}

func (sch *workload) newCard(ordinal int) *card {
	k := &card{client: newClient(sch.t, sch.store, fmt.Sprint("h", ordinal)), sch: sch, ordinal: ordinal, truth: map[int64]content{}, size: cardMemory}
	k.r = rand.New(rand.NewPCG(sch.r.Uint64(), uint64(ordinal)))
	k.serial = sch.r.Uint64() &^ 0xffff
	var err error
	if k.dev, err = cuda.Open(sch.driver, ordinal, []byte("twins")); err != nil {
		sch.t.Fatal(err)
	}
	at, err := sch.driver.Allocate(ordinal, k.size)
	if err != nil {
		sch.t.Fatal(err)
	}
	k.base = at
	if letters := []string{"AX", "AAAAX", "UAAX", "C"}; *reduced == "raw" && k.r.IntN(3) == 0 {
		k.must(k.h.Reduce(Reduction{Method: "codec", Schedule: &Schedule{Repeat: letters[k.r.IntN(len(letters))]}}))
	}
	for range 3 {
		k.streams = append(k.streams, uint64(sch.driver.Foreign(ordinal, k.r.IntN(2) == 0)))
	}
	if k.r.IntN(4) == 0 {
		k.streams[0] = 0
	}
	return k
}

func (k *card) must(err error) {
	k.t.Helper()
	if err != nil {
		k.t.Error(err)
	}
}

// may tells whether a call succeeded. An error that is not allowed fails the test.
func (k *card) may(err error, allowed ...status.Code) bool {
	k.t.Helper()
	if err == nil {
		return true
	}
	for _, c := range allowed {
		if status.CodeOf(err) == c {
			return false
		}
	}
	k.t.Errorf("%v: %v", status.CodeOf(err), err)
	return false
}

// alloc returns fresh memory of the device. When none is left, it first runs all pending checks and then starts over.
func (k *card) alloc(n int64) device.Address {
	n = (n + 255) &^ 255
	if k.used+n > k.size {
		k.verify()
		k.used = 0
	}
	at := k.base + device.Address(k.used)
	k.used += n
	return at
}

// verify waits for all streams and runs the checks.
func (k *card) verify() {
	k.settleSources(true)
	for _, s := range k.streams {
		m, err := k.dev.Borrow(s).Event()
		k.must(err)
		k.must(m.Wait())
		m.Drop()
	}
	for _, c := range k.checks {
		if len(c.want) > 0 && !bytes.Equal(k.sch.driver.Bytes(c.at, int64(len(c.want))), c.want) {
			k.t.Errorf("%s differs", c.what)
		}
	}
	k.checks = nil
}

// some returns streams for one call. The application continues in the first; the others take part.
func (k *card) some() []uint64 {
	all := append([]uint64(nil), k.streams...)
	k.r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:1+k.r.IntN(2)]
}

// fill queues a write of bytes in a stream.
func (k *card) fill(stream uint64, at device.Address, p []byte) {
	if len(p) > 0 {
		k.must(k.dev.Borrow(stream).Copy(at, device.AddressOf(p), int64(len(p))))
		runtime.KeepAlive(p)
	}
}

// expect queues a copy of the bytes at an address to memory where verify compares them.
func (k *card) expect(what string, stream uint64, from device.Address, want []byte) {
	if len(want) == 0 {
		return
	}
	to := k.alloc(int64(len(want)))
	k.must(k.dev.Borrow(stream).Copy(to, from, int64(len(want))))
	k.checks = append(k.checks, check{what, to, want})
}

func (k *card) bytes() []byte {
	k.serial++
	n := []int{k.r.IntN(3000), 10_000 + k.r.IntN(50_000), 60_000 + k.r.IntN(90_000), 4096 * (1 + k.r.IntN(30))}[k.r.IntN(4)]
	if k.r.IntN(25) == 0 {
		n = 400_000 + k.r.IntN(900_000)
	}
	return random(n, k.serial)
}

func (k *card) step() {
	defer k.settleSources(false)
	key := k.r.Int64N(14)
	switch x := k.r.IntN(100); {
	case x < 40:
		k.write(key)
	case x < 58:
		k.restore(key, false)
	case x < 62:
		k.restore(key, true)
	case x < 75:
		k.lend(key)
	case x < 84:
		k.letGo()
	case x < 88:
		if _, ok := k.truth[key]; ok {
			if err := k.h.Drop(model.Key{Number: key}); !k.lost(key, err) {
				k.must(err)
			}
			delete(k.truth, key)
		}
	case x < 94:
		k.hint()
	case x < 95:
		k.shrinkOrGrow()
	case x < 97:
		k.may(k.wait(0, []int{status.TierNone, status.TierHost, status.TierDisk}[k.r.IntN(3)]), status.TierFull)
	case x < 99:
		time.Sleep(time.Duration(k.r.IntN(500)) * time.Microsecond)
	default:
		_, err := k.s.Stats()
		k.must(err)
	}
}

// shrinkOrGrow changes the budget of the device's tier or of the host's, and waits for that or not. Or it has another process occupy nearly all
// memory of the device for a while.
func (k *card) shrinkOrGrow() {
	var b config.Budgets
	some := func(most int64) int64 { return []int64{0, most, k.r.Int64N(most)}[k.r.IntN(3)] }
	switch k.r.IntN(3) {
	case 0:
		k.sch.driver.Occupy(k.ordinal, []int64{0, deviceMemory - cardMemory - k.r.Int64N(1<<20)}[k.r.IntN(2)])
		return
	case 1:
		b.Devices = []config.Device{{Ordinal: k.ordinal, Bytes: some(k.s.DeviceByOrdinal(k.ordinal).Reserved())}}
	default:
		b = hostBudget(some(k.s.Host.Size()))
		b.Trim = k.r.IntN(2) == 0
	}
	var out operation.Outcome
	op, code, err := k.s.Resize(b, k.fd, &out)
	if err == nil && code == status.Pending && k.r.IntN(2) == 0 {
		op.Cancel()
		return
	}
	if err == nil {
		err = drive(k.t, op, code, k.fd, &out)
	}
	k.may(err, status.TierFull)
}

// write makes a checkpoint of regions on the device, and some in host memory, and overwrites their sources at once.
func (k *card) write(key int64) {
	streams := k.some()
	from := streams[k.r.IntN(len(streams))]
	c := content{text: fmt.Sprint(k.serial)}
	var regions []model.Region
	var after []func(junk uint64)
	for range 1 + k.r.IntN(3)*k.r.IntN(2) {
		p := k.bytes()
		var g model.Region
		switch {
		case k.r.IntN(5) == 0: // in host memory
			own := bytes.Clone(p)
			g = region(own, c.slot)
			after = append(after, func(uint64) { clear(own) })
		case k.r.IntN(4) == 0 && len(p) >= 64: // rows with gaps
			p = p[:len(p)/16*16]
			g, after = k.rows(p, c.slot, from, after)
		default:
			at := k.alloc(int64(len(p)))
			k.fill(from, at, p)
			g = onDevice(at, len(p), c.slot)
			g.Place = int32(k.ordinal + 1)
			after = append(after, func(junk uint64) { k.fill(junk, at, make([]byte, len(p))) })
		}
		c.regions, c.offsets = append(c.regions, p), append(c.offsets, c.slot)
		regions = append(regions, g)
		c.slot = (c.slot + int64(len(p)) + 63) &^ 63
	}
	a := &operation.CheckpointArgs{Key: model.Key{Number: key}, Regions: regions, Layout: []byte(c.text), Slot: c.slot, FD: k.fd, Tier: status.TierNone, Streams: streams}
	if k.r.IntN(6) == 0 {
		a.Tier = []int{status.TierHost, status.TierDisk}[k.r.IntN(2)]
	}
	a.SourceStays = k.r.IntN(4) == 0
	var out operation.Outcome
	op, code, err := k.h.Checkpoint(a, &out)
	if err == nil && code == status.OK && a.SourceStays {
		k.truth[key] = c
		k.staying = append(k.staying, staying{out.Ticket, key, c.text, from, after})
		return
	}
	if err == nil && code == status.Pending && k.r.IntN(4) == 0 {
		op.Cancel()
		for _, f := range after {
			f(from)
		}
		return
	}
	if err == nil {
		err = drive(k.t, op, code, k.fd, &out)
	}
	for _, f := range after {
		if err == nil { // otherwise no call has ordered the streams
			from = streams[k.r.IntN(len(streams))]
		}
		f(from)
	}
	if k.may(err, status.TierFull) {
		k.truth[key] = c
	}
}

// settleSources overwrites the sources that are captured at once, in any stream, and those of versions that are gone. It removes checkpoints from the
// expected state that turn out to be lost for lack of room.
func (k *card) settleSources(all bool) {
	rest := k.staying[:0]
	for _, x := range k.staying {
		if all {
			k.may(k.wait(x.ticket, status.TierNone), status.TierFull, status.Dropped)
		}
		st, err := k.s.Ticket(x.ticket)
		k.must(err)
		if !st.Captured && !st.Gone {
			rest = append(rest, x)
			continue
		}
		if c, ok := k.truth[x.key]; ok && st.Failed != 0 && st.Gone && c.text == x.text {
			delete(k.truth, x.key)
		}
		for _, f := range x.after {
			if st.Captured && !st.Gone { // otherwise it is unknown whether they were filled
				x.stream = k.streams[k.r.IntN(len(k.streams))]
			}
			f(x.stream)
		}
	}
	k.staying = rest
}

// lost tells whether a version is missing because there was no room for it in the end.
func (k *card) lost(key int64, err error) bool {
	if c := status.CodeOf(err); err == nil || c != status.NotFound && c != status.TierFull {
		return false
	}
	k.settleSources(true)
	_, ok := k.truth[key]
	return !ok
}

// rows arranges bytes with gaps between rows of 16.
func (k *card) rows(p []byte, offset int64, from uint64, after []func(uint64)) (model.Region, []func(uint64)) {
	const row, pitch = 16, 48
	n := int64(len(p) / row)
	wide := make([]byte, n*pitch)
	for i := range n {
		copy(wide[i*pitch:], p[i*row:(i+1)*row])
	}
	at := k.alloc(int64(len(wide)))
	k.fill(from, at, wide)
	g := model.Region{Mem: model.Strided{Base: devicememory.Pointer(at), Shape: []int64{n, row}, Strides: []int64{pitch, 1}, Item: 1}, Offset: offset, Bytes: int64(len(p)), Place: int32(k.ordinal + 1)}
	return g, append(after, func(junk uint64) { k.fill(junk, at, make([]byte, len(wide))) })
}

// restore restores a checkpoint, or some of its regions, to the device or to host memory.
func (k *card) restore(key int64, cancelled bool) {
	want, ok := k.truth[key]
	streams := k.some()
	a := operation.RestoreArgs{Key: model.Key{Number: key}, FD: k.fd, Streams: streams, Peek: k.r.IntN(4) == 0, Last: k.r.IntN(8) == 0}
	chosen := make([]int32, 0, len(want.regions))
	for i := range want.regions {
		if len(want.regions) == 1 || k.r.IntN(4) > 0 {
			chosen = append(chosen, int32(i))
		}
	}
	if len(chosen) == 0 {
		chosen = append(chosen, 0)
	}
	if !ok {
		chosen = nil
	}
	if len(chosen) < len(want.regions) {
		a.Select = chosen
	}
	here := map[int32][]byte{}
	there := map[int32]device.Address{}
	for _, i := range chosen {
		n := len(want.regions[i])
		if k.r.IntN(4) == 0 {
			here[i] = make([]byte, n)
			a.Into = append(a.Into, region(here[i], 0))
			continue
		}
		at := k.alloc(int64(n))
		g := onDevice(at, n, 0)
		g.Place = int32(k.ordinal + 1)
		if n > 0 && n%16 == 0 && k.r.IntN(3) == 0 { // columns: a transposed destination
			at = k.alloc(int64(n))
			g.Mem = model.Strided{Base: devicememory.Pointer(at), Shape: []int64{int64(n / 16), 16}, Strides: []int64{16, 1}, Item: 1}
		}
		there[i] = at
		k.fill(streams[k.r.IntN(len(streams))], at, make([]byte, n)) // the copy must come behind it
		a.Into = append(a.Into, g)
	}
	var out operation.Outcome
	op, code, err := k.h.Restore(&a, &out)
	if cancelled && err == nil && code == status.Pending {
		op.Cancel()
		if a.Last {
			k.h.Drop(a.Key) // it may or may not have been consumed
			delete(k.truth, key)
		}
		return
	}
	if err == nil {
		err = drive(k.t, op, code, k.fd, &out)
	}
	if !ok {
		k.may(err, status.NotFound)
		return
	}
	if k.lost(key, err) || !k.may(err) {
		return
	}
	for i, p := range here {
		if !bytes.Equal(p, want.regions[i]) {
			k.t.Errorf("checkpoint %d, region %d differs in host memory", key, i)
		}
	}
	for i, at := range there {
		s := streams[k.r.IntN(len(streams))]
		k.expect(fmt.Sprintf("checkpoint %d, region %d (tiers hit %v)", key, i, out.Hit), s, at, want.regions[i])
	}
	k.gone(a.Key)
}

// gone removes a key from the expected state if it was consumed by a restore or because of the plan.
func (k *card) gone(key model.Key) {
	if _, err := k.h.Lookup(key); err != nil {
		delete(k.truth, key.Number)
	}
}

func (k *card) lend(key int64) {
	want, ok := k.truth[key]
	streams := k.some()
	l, _, err := k.lease(key, operation.RestoreArgs{Streams: streams, Last: k.r.IntN(3) == 0, Peek: k.r.IntN(2) == 0})
	if !ok {
		k.may(err, status.NotFound)
		return
	}
	if k.lost(key, err) {
		return
	}
	if !k.may(err, status.TierFull) {
		k.gone(model.Key{Number: key})
		return
	}
	k.gone(model.Key{Number: key})
	k.lent = append(k.lent, onLoan{l, want, streams, k.flushing(l)})
	if k.r.IntN(2) == 0 {
		k.look(k.lent[len(k.lent)-1])
	}
}

func (k *card) flushing(l *operation.Lease) bool {
	if l.Reads == nil {
		return false
	}
	k.s.Lock()
	defer k.s.Unlock()
	return k.s.Engine.Fragment(l.Reads.Rec, l.Reads.Tier).Transfers > 0
}

// look reads a lease on one of its streams, or from the host.
func (k *card) look(o onLoan) {
	i := k.r.IntN(len(o.want.regions))
	want, offset := o.want.regions[i], o.want.offsets[i]
	if o.lease.Place() == 0 || k.r.IntN(4) == 0 {
		p := make([]byte, len(want))
		k.must(o.lease.Read(p, offset))
		if !bytes.Equal(p, want) {
			k.t.Errorf("lease, region %d differs in host memory", i)
		}
		return
	}
	s := o.streams[k.r.IntN(len(o.streams))]
	k.expect("lease", s, device.Address(o.lease.Base)+device.Address(offset), want)
}

// letGo releases a lease while reads are queued. If the caller may write into it, it has done so.
func (k *card) letGo() {
	if len(k.lent) == 0 {
		return
	}
	i := k.r.IntN(len(k.lent))
	o := k.lent[i]
	k.lent = append(k.lent[:i], k.lent[i+1:]...)
	for range k.r.IntN(3) {
		k.look(o)
	}
	if o.lease.Place() > 0 && o.lease.Writable && len(o.streams) == 1 && !o.flushed {
		k.fill(o.streams[0], device.Address(o.lease.Base), make([]byte, min(o.want.slot, 10_000)))
	}
	if o.lease.Place() == 0 {
		k.must(o.lease.Release())
		return
	}
	k.must(o.lease.Release(o.streams...))
}

func (k *card) hint() {
	var keys []int64
	for key := range k.truth {
		keys = append(keys, key)
	}
	switch k.r.IntN(5) {
	case 0:
		k.must(k.h.ClearHints())
		return
	case 1:
		k.must(k.h.Prefetch())
		return
	case 2:
		for i := 1; i < len(keys); i++ { // descending or ascending
			for j := i; j > 0 && keys[j] > keys[j-1]; j-- {
				keys[j], keys[j-1] = keys[j-1], keys[j]
			}
		}
	}
	hints := make([]plan.Hint, 0, len(keys))
	for _, key := range keys {
		hints = append(hints, plan.Hint{Key: model.Key{Number: key}})
	}
	_, err := k.h.Hint(hints)
	k.must(err)
	k.must(k.h.Prefetch())
}

// end verifies everything, closes the store, sometimes while leases are out, and checks that nothing is left.
func (sch *workload) end() {
	early := sch.r.IntN(2) == 0
	letGo := func() {
		for _, k := range sch.cards {
			for len(k.lent) > 0 {
				k.letGo()
			}
		}
	}
	if !early {
		letGo()
		for _, k := range sch.cards {
			for key := range k.truth {
				k.restore(key, false)
			}
		}
	}
	fd := eventfd(sch.t)
	if err := driveClose(sch.t, sch.store.Close(fd), fd); err != nil {
		sch.t.Errorf("close: %v", err)
	}
	letGo()
	eventually(sch.t, "the store is empty", func() bool {
		sch.store.Lock()
		defer sch.store.Unlock()
		return sch.store.Empty
	})
	for _, k := range sch.cards {
		for _, x := range k.staying {
			for _, f := range x.after {
				f(x.stream)
			}
		}
		k.staying = nil
		k.verify()
		k.must(k.dev.Close())
	}
	sch.driver.Settle()
	for _, text := range sch.driver.Misuse() {
		sch.t.Error(text)
	}
	for end := time.Now().Add(hang); len(sch.driver.Alive()) > 0; time.Sleep(50 * time.Microsecond) {
		if time.Now().After(end) {
			sch.t.Fatalf("not given back: %v", sch.driver.Alive())
		}
	}
	sch.driver.Close()
}
