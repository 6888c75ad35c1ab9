package workers

import (
	"errors"
	"fmt"
	"runtime"

	"velocpy/gocore/base/description"
	"velocpy/gocore/base/logring"
	"velocpy/gocore/base/memory"
	"velocpy/gocore/model"
	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/object"
	"velocpy/gocore/reduction/regions"
	"velocpy/gocore/tier"
	"velocpy/gocore/tier/disk"
)

// resumeWindow bounds the bytes of a past checkpoint that are in memory at once. The disk's watchdog must hear from the worker between two of them.
const resumeWindow = 256 << 20

// resumeDecoders bounds how many goroutines decode a past checkpoint.
const resumeDecoders = 4

// mostResumed bounds the number of a resumed lineage's next checkpoint: a damaged catalog must not bring a lineage to the end of its numbers.
const mostResumed = difference.MaxCheckpoint / 2

// Reasons to store the first checkpoint of a lineage whole that are no damage.
var (
	errStopping = errors.New("the store is closing")
	errTight    = errors.New("there is no memory to decode the last checkpoint")
	errNumbers  = errors.New("the lineage has no numbers left")
)

// resume lets a lineage without a checkpoint go on with one of the same options that was stored before the store was opened: the next draft may refer to its
// objects. It happens once, in the worker that has the turn, and reads without a lock. If it fails, the next draft refers to none.
func (l *lineage) resume() {
	if l.state.Begun {
		return
	}
	l.state.Begun = true
	past := l.takePast()
	if past == nil {
		return
	}
	w, err := l.continued(past)
	l.s.Lock()
	defer l.s.Leave()
	if err == nil {
		l.state.Continue(past.Difference.Lineage, w, places(past, w.Known()))
		l.state.Last = l.numberOf(past)
	} else {
		l.tell(err)
	}
	l.s.Disk.LetGo(past.Held) // a draft holds what it refers to, and finds out what was dropped meanwhile
}

// takePast returns the checkpoint with which the lineage goes on, and holds it; nil: there is none.
func (l *lineage) takePast() *disk.Past {
	o := &l.state.Options
	l.s.Lock()
	defer l.s.Unlock()
	return l.s.Disk.TakePast(l.x.Rec.Hist.Name, func(lineage uint64, sections bool) bool {
		return o.Method != difference.Full && o.Numbered(lineage) && sections == l.state.Sections
	})
}

// continued returns a writer whose last checkpoint is a past one.
func (l *lineage) continued(past *disk.Past) (*object.Writer, error) {
	if past.Next > mostResumed {
		return nil, errNumbers
	}
	o := l.state.Options
	o.Lineage, o.First = past.Difference.Lineage, past.Next
	w, err := object.NewWriter(o)
	if err != nil {
		return nil, err
	}
	window := min(resumeWindow, l.state.Most-w.Memory(sizesOf(past.Layout.Spans)))
	if window < object.LeastWindow {
		return nil, errTight
	}
	from, err := l.openPast(past)
	if err != nil {
		return nil, err
	}
	r, err := object.Open(past.Difference, description.Names(past.Layout), past.Layout.Spans, from.read)
	if err != nil {
		return nil, err
	}
	slot, err := memory.MapSparse("lineage", max(past.Layout.Slot, 1))
	if err != nil {
		return nil, err
	}
	defer func() { _ = slot.Unmap() }() // no other goroutine uses it
	through := object.Window{Slot: slot.Bytes(0, slot.Size()), Bytes: window, Free: slot.Discard}
	return w, w.Resume(r, through, regions.Options{Goroutines: min(resumeDecoders, runtime.GOMAXPROCS(0)), Room: l.room})
}

// numberOf returns the engine's number of a past checkpoint; 0: it has none. The lock is held.
func (l *lineage) numberOf(past *disk.Past) uint64 {
	h := l.x.Rec.Hist
	if !h.Has(past.Key) { // Get would make a record of a row
		return 0
	}
	if r := h.Get(past.Key); r != nil && r.Version.Serial == past.Serial {
		return r.ID
	}
	return 0
}

func sizesOf(spans []model.Span) []uint64 {
	sizes := make([]uint64, len(spans))
	for i := range spans {
		sizes[i] = uint64(spans[i].Bytes)
	}
	return sizes
}

// places returns where the objects lie that the next draft may refer to.
func places(past *disk.Past, known []uint32) map[uint32]model.Source {
	all := map[uint32]model.Source{}
	for _, number := range known {
		for i := range past.Held {
			if past.Held[i].Number == number {
				all[number] = past.Held[i]
			}
		}
	}
	return all
}

// tell logs why the next checkpoint is stored whole.
func (l *lineage) tell(err error) {
	level := logring.Warning
	if errors.Is(err, errStopping) || errors.Is(err, errTight) || errors.Is(err, errNumbers) {
		level = logring.Info
	}
	logring.Add(level, fmt.Sprintf("history %.80q: its next checkpoint is stored whole, as it cannot be compared with the last one on the disk: %v", l.x.Rec.Hist.Name, err))
}

// pastObjects read the objects of a past checkpoint.
type pastObjects struct {
	l    *lineage
	open []tier.Source // as disk.Past.Held
}

func (l *lineage) openPast(past *disk.Past) (*pastObjects, error) {
	p := &pastObjects{l: l, open: make([]tier.Source, len(past.Held))}
	for i := range past.Held {
		s := &past.Held[i]
		var err error
		if p.open[i], err = l.s.Disk.Objects().Open(tier.Object{Offset: s.Offset, Bytes: s.Bytes()}); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// read is an object.Read. Each read is a sign of life to the disk's watchdog: it knows only the transfer that waits for the lineage.
func (p *pastObjects) read(source int, at int64, room []byte) error {
	if source < 0 {
		source = len(p.open) - 1
	}
	if err := p.l.goesOn(); err != nil {
		return err
	}
	from := p.open[source]
	if err := from.Read(at, room, func(int64, int64) {}); err != nil {
		return err
	}
	if files, ok := from.(tier.Prover); ok { // no checksum of the store tells whose bytes these are, so the files must
		if err := files.Proves(at, int64(len(room))); err != nil {
			return err
		}
	}
	return p.l.goesOn()
}

// goesOn notes that the disk has answered. It fails once the store closes.
func (l *lineage) goesOn() error {
	l.s.Lock()
	defer l.s.Unlock()
	if l.s.Closing {
		return errStopping
	}
	l.s.Disk.Began(l.x)
	return nil
}
