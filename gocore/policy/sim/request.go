package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"velocpy/gocore/base/quantity"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/policy/evict"
)

// ErrRequest marks invalid requests.
var ErrRequest = errors.New("not a shot that can be simulated")

// Request is a shot and the machine for it, as JSON.
type Request struct {
	Sizes    []int64 `json:"sizes"`        // bytes, in the order of writing
	Order    []Turn  `json:"order"`        // the restores: indices into Sizes
	Tracks   []Track `json:"histories"`    // instead of these two: histories that take part in each step, in this order
	Interval float64 `json:"interval"`     // seconds of computation in each step
	Tiers    []Level `json:"tiers"`        // fastest first
	CopyRate float64 `json:"copy_rate"`    // bytes/s of copies into and out of the fastest tier
	Hints    string  `json:"hints"`        // none, one, all
	Policy   string  `json:"policy"`       // score, lru, fifo
	Flush    string  `json:"flush"`        // lazy, eager
	Last     bool    `json:"last"`         // every restore consumes
	WaitDown bool    `json:"wait_flushed"` // the restores begin when all checkpoints are in the lowest tier
}

// Level is one tier and its link to the next.
type Level struct {
	Capacity  int64   `json:"capacity"`
	WriteRate float64 `json:"write_rate"` // bytes/s; not used for the last tier
	ReadRate  float64 `json:"read_rate"`
}

// Answer is the cost of the shot, in seconds and bytes.
type Answer struct {
	Blocked        float64 `json:"blocked"`
	CaptureBlocked float64 `json:"capture_blocked"`
	RestoreBlocked float64 `json:"restore_blocked"`
	Copying        float64 `json:"copying"`
	LowerBound     float64 `json:"lower_bound"` // no policy blocks for less time
	Elapsed        float64 `json:"elapsed"`
	Hits           int64   `json:"hits"`
	Restores       int64   `json:"restores"`
	Distance       float64 `json:"prefetch_distance_mean"`
	Written        int64   `json:"written"` // to the lowest tier
	Read           int64   `json:"read"`

	Histories map[string]Share `json:"histories,omitempty"` // by name, if the request lists histories
}

// Share is the cost of the calls of one history.
type Share struct {
	CaptureBlocked float64 `json:"capture_blocked"`
	RestoreBlocked float64 `json:"restore_blocked"`
	Hits           int64   `json:"hits"`
	Restores       int64   `json:"restores"`
	Distance       float64 `json:"prefetch_distance_mean"`
}

// transfersAtOnce is how many transfers the workers of the store carry out at once, per direction.
const transfersAtOnce = 2

// Play answers a request given as JSON.
func Play(text []byte) (Answer, error) {
	var q Request
	if err := json.Unmarshal(text, &q); err != nil {
		return Answer{}, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	m, s, err := q.build()
	if err != nil {
		return Answer{}, err
	}
	r, err := s.Run(m)
	if err != nil {
		return Answer{}, err
	}
	return Answer{
		Blocked: seconds(r.CaptureBlocked + r.RestoreBlocked), CaptureBlocked: seconds(r.CaptureBlocked), RestoreBlocked: seconds(r.RestoreBlocked),
		Copying: seconds(r.Copying), LowerBound: seconds(m.LowerBound(s)), Elapsed: seconds(r.Elapsed),
		Hits: r.Hits, Restores: r.Restores, Distance: r.Distance, Written: r.Written, Read: r.Read,
		Histories: shares(q.Tracks, r.Tracks),
	}, nil
}

// shares are the parts of the histories in the request.
func shares(tracks []Track, parts []Part) map[string]Share {
	if len(tracks) == 0 {
		return nil
	}
	all := map[string]Share{}
	for i, p := range parts {
		all[tracks[i].Name] = Share{seconds(p.CaptureBlocked), seconds(p.RestoreBlocked), p.Hits, p.Restores, p.Distance}
	}
	return all
}

func seconds(ns int64) float64 { return float64(ns) / 1e9 }

// build makes the machine and the shot, after it has checked every number.
func (q *Request) build() (*Machine, *Shot, error) {
	cfg := engine.Config{Prefetch: true, Guess: true}
	s := &Shot{Tracks: q.tracks(), Compute: int64(q.Interval * 1e9), Last: q.Last, WaitDown: q.WaitDown}
	var ok bool
	if cfg.Policy, ok = evict.ParseKind(or(q.Policy, "score")); !ok {
		return nil, nil, fmt.Errorf("%w: policy %q", ErrRequest, q.Policy)
	}
	switch or(q.Flush, "lazy") {
	case "lazy":
	case "eager":
		cfg.Flush = engine.Eager
	default:
		return nil, nil, fmt.Errorf("%w: flush %q", ErrRequest, q.Flush)
	}
	switch or(q.Hints, "all") {
	case "none":
	case "one":
		s.Hints = OneHint
	case "all":
		s.Hints = AllHints
	default:
		return nil, nil, fmt.Errorf("%w: hints %q", ErrRequest, q.Hints)
	}
	if err := q.check(); err != nil {
		return nil, nil, err
	}
	var media []Medium
	for i, l := range q.Tiers {
		cfg.Tiers = append(cfg.Tiers, engine.TierConfig{Name: fmt.Sprintf("tier %d", i), Capacity: l.Capacity})
		if i < len(q.Tiers)-1 {
			media = append(media, Medium{WriteRate: l.WriteRate, ReadRate: l.ReadRate, Workers: transfersAtOnce})
		}
	}
	return NewMachine(cfg, media, q.CopyRate), s, nil
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func (q *Request) check() error {
	if len(q.Tiers) == 0 || len(q.Tiers) > engine.MaxTiers {
		return fmt.Errorf("%w: %d tiers", ErrRequest, len(q.Tiers))
	}
	for i, l := range q.Tiers {
		if l.Capacity > mostBytes {
			return fmt.Errorf("%w: a tier of %s; %s is the most", ErrRequest, quantity.Exact(l.Capacity), quantity.Sized(mostBytes))
		}
		if l.Capacity <= 0 || (i < len(q.Tiers)-1 && !(positive(l.WriteRate) && positive(l.ReadRate))) {
			return fmt.Errorf("%w: capacities and rates must be above zero", ErrRequest)
		}
	}
	if !positive(q.CopyRate) || q.Interval < 0 || q.Interval > 1e6 || math.IsNaN(q.Interval) {
		return fmt.Errorf("%w: the copy rate must be above zero, the interval from 0 to 1e6 s", ErrRequest)
	}
	if err := q.checkTracks(); err != nil {
		return err
	}
	return q.checkLength()
}

// tracks are the histories: those listed, or the only one.
func (q *Request) tracks() []Track {
	if len(q.Tracks) > 0 {
		return q.Tracks
	}
	return []Track{{Name: "shot", Sizes: q.Sizes, Order: q.Order}}
}

// mostTracks is the maximum number of histories in a request.
const mostTracks = 256

func (q *Request) checkTracks() error {
	if len(q.Tracks) > 0 && (len(q.Sizes) > 0 || len(q.Order) > 0) {
		return fmt.Errorf("%w: sizes and order beside histories, each of which has its own", ErrRequest)
	}
	if len(q.Tracks) > mostTracks {
		return fmt.Errorf("%w: %d histories; %d are the most", ErrRequest, len(q.Tracks), mostTracks)
	}
	names := map[string]bool{}
	for _, track := range q.tracks() {
		if names[track.Name] {
			return fmt.Errorf("%w: two histories called %q", ErrRequest, track.Name)
		}
		names[track.Name] = true
		if err := track.check(); err != nil {
			return fmt.Errorf("%w: history %q: %w", ErrRequest, track.Name, err)
		}
	}
	return nil
}

func (t *Track) check() error {
	for _, n := range t.Sizes {
		if n < 0 {
			return fmt.Errorf("a checkpoint of %s", quantity.Exact(n))
		}
	}
	for _, turn := range t.Order {
		if turn.Steps == 0 && (turn.Key < 0 || turn.Key >= int64(len(t.Sizes))) {
			return fmt.Errorf("restore of checkpoint %d of %d", turn.Key, len(t.Sizes))
		}
	}
	return nil
}

// Sums of bytes, and of moments in ns, stay in 64 bits within these bounds of a shot.
const (
	mostBytes   = 1 << 60
	mostSeconds = 1e8
)

// checkLength adds up how long every call would take if it had to cross the slowest link of all.
func (q *Request) checkLength() error {
	bytes, steps, slowest := 0.0, 0.0, q.CopyRate
	for _, track := range q.tracks() {
		steps += float64(len(track.Sizes))
		for _, n := range track.Sizes {
			bytes += float64(n)
		}
		for _, turn := range track.Order {
			if steps += float64(max(turn.Steps, 1)); turn.Steps == 0 {
				bytes += float64(track.Sizes[turn.Key])
			}
		}
	}
	for _, l := range q.Tiers[:len(q.Tiers)-1] {
		slowest = min(slowest, l.WriteRate, l.ReadRate)
	}
	seconds := q.Interval*steps + bytes/slowest
	if bytes > mostBytes || seconds > mostSeconds {
		return fmt.Errorf("%w: %g bytes that take %g s; 2^60 and 1e8 are the most", ErrRequest, bytes, seconds)
	}
	return nil
}

func positive(x float64) bool { return x > 0 && !math.IsInf(x, 0) }
