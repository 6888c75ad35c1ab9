package store

import (
	"encoding/json"

	"velocpy/gocore/base/status"
	"velocpy/gocore/policy/encoding"
	"velocpy/gocore/policy/schedule"
)

// Schedule says which checkpoints of a device are encoded on their way to the host, and which of them together. It has a profile, letters that repeat, or neither:
// then it is planned from the last checkpoints.
type Schedule struct {
	Profile json.RawMessage `json:"profile"` // null: none
	Repeat  string          `json:"repeat"`  // "": none
}

// course begins the course of a schedule; nil without one.
func (r *Reduction) course() (*schedule.Course, error) {
	if r.Schedule == nil {
		return nil, nil
	}
	if m := methods[r.Method]; m.encodes != encoding.Codec || r.Compressor != "" || m.refers {
		return nil, status.New(status.Invalid, "a schedule is for the method \"codec\" without a compressor, with which a device encodes")
	}
	repeat, err := schedule.ParseRepeat(r.Schedule.Repeat)
	if err != nil {
		return nil, status.Wrap(status.Invalid, err, "the letters that repeat are none of a schedule")
	}
	if len(r.Schedule.Profile) == 0 || string(r.Schedule.Profile) == "null" {
		return schedule.NewCourse(nil, repeat), nil
	}
	p, err := schedule.ParseProfile(r.Schedule.Profile)
	if err != nil {
		return nil, status.Wrap(status.Invalid, err, "the profile of the schedule is not understood")
	}
	return schedule.NewCourse(&p, repeat), nil
}

// Course is what a history's schedule has come to.
type Course struct {
	Letters string          `json:"letters"` // of its checkpoints so far; '-': no plan was made for one
	Plans   int             `json:"plans"`   // that were made
	Profile json.RawMessage `json:"profile"` // for a run like this one
}

// Course describes the schedule of the history; nil if it has none.
func (h *History) Course() ([]byte, error) {
	s := h.s
	if err := s.Enter(); err != nil {
		return nil, err
	}
	r := s.Reductions[h.h.Name]
	if r == nil || r.Course == nil {
		s.Unlock()
		return []byte("null"), nil
	}
	c, p := Course{Letters: r.Course.Letters(), Plans: r.Course.Plans()}, r.Course.Profile()
	s.Unlock()
	var err error
	if c.Profile, err = p.JSON(); err != nil {
		return nil, status.Wrap(status.Internal, err, "the profile of history %q cannot be written", h.h.Name)
	}
	return json.Marshal(c)
}
