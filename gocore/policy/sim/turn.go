package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Turn is one element of a restore order.
type Turn struct {
	Key   int64 // of the checkpoint that is restored, if Steps is 0
	Steps int64 // above 0: so many steps pass without a restore of this history
}

// Turns is an order of restores in consecutive steps.
func Turns(keys []int64) []Turn {
	list := make([]Turn, len(keys))
	for i, k := range keys {
		list[i].Key = k
	}
	return list
}

type advance struct {
	Steps *int64 `json:"advance"`
}

// MarshalJSON writes a key as a number, and steps as {"advance": steps}.
func (t Turn) MarshalJSON() ([]byte, error) {
	if t.Steps > 0 {
		return json.Marshal(advance{&t.Steps})
	}
	return json.Marshal(t.Key)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (t *Turn) UnmarshalJSON(text []byte) error {
	*t = Turn{}
	if text = bytes.TrimSpace(text); len(text) == 0 || text[0] != '{' {
		return json.Unmarshal(text, &t.Key)
	}
	var a advance
	if err := json.Unmarshal(text, &a); err != nil {
		return err
	}
	if a.Steps == nil || *a.Steps <= 0 || *a.Steps > mostSteps {
		return fmt.Errorf("an advance in a restore order takes 1 to %d steps", int64(mostSteps))
	}
	t.Steps = *a.Steps
	return nil
}

// mostSteps is the maximum number of steps in one element of a restore order.
const mostSteps = 1 << 24

// Track is one of the histories of a shot, with a restore order of its own.
type Track struct {
	Name  string  `json:"name"`
	Sizes []int64 `json:"sizes"` // bytes, in the order of writing
	Order []Turn  `json:"order"` // the restores: indices into Sizes
	Top   int     `json:"-"`     // the fastest tier of its checkpoints
}

// call is a capture or restore of a shot.
type call struct {
	track int
	key   int64
	next  int   // restores: index of the following element in its track's order
	wait  int64 // ns that the application computes between the previous call and this one
}

// tracks are the histories of the shot.
func (s *Shot) tracks() []Track {
	if s.Tracks != nil {
		return s.Tracks
	}
	return []Track{{Name: "shot", Sizes: s.Sizes, Order: Turns(s.Order)}}
}

// captures lists the captures of the forward sweep. In each step the application computes, then captures one checkpoint of each history that has
// any left, in the order of the histories.
func (s *Shot) captures() (list []call) {
	tracks := s.tracks()
	for step, some := 0, true; some; step++ {
		some = false
		wait := s.Compute
		for i := range tracks {
			if step < len(tracks[i].Sizes) {
				list = append(list, call{track: i, key: int64(step), wait: wait})
				wait, some = 0, true
			}
		}
	}
	return list
}

// restores lists the restores of the backward sweep, step by step like captures. rest is how long the application computes after the last one, while
// histories let steps pass.
func (s *Shot) restores() (list []call, rest int64) {
	tracks := s.tracks()
	at, resting := make([]int, len(tracks)), make([]int64, len(tracks))
	for {
		steps, over := idle(tracks, at, resting)
		if over {
			return list, rest
		}
		rest += steps * s.Compute
		for i := range resting {
			resting[i] = max(resting[i]-steps, 0)
		}
		if steps > 0 {
			continue
		}
		rest += s.Compute
		for i := range tracks {
			switch {
			case resting[i] > 0:
				resting[i]--
			case at[i] < len(tracks[i].Order):
				t := tracks[i].Order[at[i]]
				if at[i]++; t.Steps > 0 {
					resting[i] = t.Steps - 1
					continue
				}
				list = append(list, call{track: i, key: t.Key, next: at[i], wait: rest})
				rest = 0
			}
		}
	}
}

// idle is how many steps pass before one of the histories has an element; over: none has any left.
func idle(tracks []Track, at []int, resting []int64) (steps int64, over bool) {
	over = true
	for i := range tracks {
		if resting[i] == 0 && at[i] == len(tracks[i].Order) {
			continue
		}
		if over || resting[i] < steps {
			steps, over = resting[i], false
		}
	}
	return steps, over
}
