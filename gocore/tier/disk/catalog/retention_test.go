package catalog

import (
	"bytes"
	"errors"
	"testing"

	"velocpy/gocore/model"
)

// A retention without a rule about the best ones is encoded as in version 0.1. With such a rule, a flag makes older readers refuse it.
func TestRetentionOnDisk(t *testing.T) {
	old := model.Retention{Named: true, Last: 3, Every: 100, Keys: []model.Key{model.NumberKey(5)}}
	said := body(uint32(7), uint32(1), uint64(3), uint64(100), uint32(1), uint8(0), uint8(0), uint64(5))
	if p := appendRetention(nil, 7, &old); !bytes.Equal(p, encode(kindRetention, said)) {
		t.Errorf("% x", p)
	}
	best := old
	best.Best = model.Best{Count: 2, By: []string{"val", ""}, Largest: true}
	said[4] = 1 | 2 | 4
	said = append(said, body(uint64(2), uint32(2), uint32(3), "val", uint32(0))...)
	if p := appendRetention(nil, 7, &best); !bytes.Equal(p, encode(kindRetention, said)) {
		t.Errorf("% x", p)
	}
	smallest := model.Retention{Best: model.Best{Count: 1, By: []string{"loss"}}}
	for _, r := range []*model.Retention{&old, &best, &smallest} {
		p := item(appendRetention(nil, 7, r))
		if _, got, err := parseRetention(p.body()); err != nil || got == nil || !bytes.Equal(appendRetention(nil, 7, got), p) {
			t.Errorf("%+v is read as %+v, %v", r, got, err)
		}
	}
}

// A Writer refuses a rule about the best ones that a reader would refuse.
func TestWriterRefusesTheBest(t *testing.T) {
	r := NewWriter(New()).Record()
	for _, b := range []model.Best{{Count: 1}, {Count: 1, By: make([]string, MostPath+1)}, {Count: 1, By: []string{string(make([]byte, MostName+1))}}} {
		if err := r.Retain("h", &model.Retention{Best: b}); !errors.Is(err, ErrMalformed) {
			t.Errorf("%d names: %v", len(b.By), err)
		}
	}
}

// Meta returns the meta of a row with its layout; an unreadable row has none.
func TestMeta(t *testing.T) {
	s := applied(t, samples(t)[:1]...)
	id, _ := s.History("wave")
	if l, meta, ok := s.Meta(id, model.NumberKey(-7)); !ok || meta != `{"t": 0.5}` || l.Text != "velocity pressure" {
		t.Errorf("%q of %+v, %v", meta, l, ok)
	}
	s = applied(t, samples(t)...)
	for _, k := range []model.Key{model.TextKey("codec"), model.NumberKey(1)} {
		if _, _, ok := s.Meta(id, k); ok {
			t.Errorf("%s has a meta", k)
		}
	}
}
