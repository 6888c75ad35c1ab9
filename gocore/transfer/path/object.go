package path

import (
	"errors"

	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier"
)

// objectSource is an object of a tier that the host cannot address.
type objectSource struct {
	tier.Source
	p *Path
}

func (s *objectSource) prepare() error { return nil }
func (s *objectSource) close()         {}

func (s *objectSource) Read(at int64, to []byte, arrived func(at, n int64)) error {
	err := s.Source.Read(at, to, arrived)
	if err != nil || s.p.verifies() {
		return err
	}
	if files, ok := s.Source.(tier.Prover); ok { // no checksum tells whose bytes these are, so the files must
		return files.Proves(at, int64(len(to)))
	}
	return nil
}

// holds returns an error if the tier lacks spans of the object. A catalog may list more than the files hold.
func (s *objectSource) holds(spans []model.Span) error {
	files, ok := s.Source.(tier.Prover)
	if !ok || !s.p.c.IsDurable() {
		return nil
	}
	for _, span := range spans {
		if err := files.Holds(span.Offset, span.Bytes); err != nil {
			return err
		}
	}
	return nil
}

// objectSink is a new object of a tier.
type objectSink struct{ tier.Sink }

func (s *objectSink) Write(at int64, p []byte) error {
	err := s.Sink.Write(at, p)
	if errors.Is(err, tier.ErrUnwanted) {
		return engine.ErrStopped
	}
	return err
}
