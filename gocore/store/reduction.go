package store

import (
	"velocpy/gocore/base/status"
	"velocpy/gocore/cache"
	"velocpy/gocore/figures"
	"velocpy/gocore/policy/encoding"
)

// methods are the names of the methods, as callers give them.
var methods = map[string]encoding.Method{"raw": encoding.Raw, "codec": encoding.Codec, "auto": encoding.Auto}

// Reduce sets how the checkpoints of the history are reduced from now on. Those that exist stay as they are.
func (h *History) Reduce(method string) error {
	m, ok := methods[method]
	if !ok {
		return status.New(status.Invalid, "no method of reduction is called %.40q", method)
	}
	s := h.s
	if err := s.EnterToWrite(); err != nil {
		return err
	}
	defer s.Leave()
	if r := s.Reductions[h.h.Name]; r != nil && r.Figures.Method != method {
		r.Planner, r.Figures.Method = encoding.New(m), method
	} else if r == nil {
		s.Reductions[h.h.Name] = &cache.Reduction{Planner: encoding.New(m), Figures: figures.Reduction{Method: method}}
	}
	return nil
}

// reductionOf is what the reduction of a history did; nil without one.
func (s *Store) reductionOf(history string) *figures.Reduction {
	r := s.Reductions[history]
	if r == nil {
		return nil
	}
	f := r.Figures
	return &f
}
