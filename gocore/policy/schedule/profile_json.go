package schedule

import (
	"encoding/json"
	"fmt"

	"velocpy/gocore/base/strictjson"
)

// written is a profile as JSON; a name that is missing leaves a nil.
type written struct {
	Observations *[]struct {
		Size     *int64 `json:"size"`
		Encoded  *int64 `json:"encoded"`
		Interval *int64 `json:"interval"`
	} `json:"observations"`
	Measurements *[]struct {
		Bytes   *int64   `json:"bytes"`
		Seconds *float64 `json:"seconds"`
	} `json:"measurements"`
}

// ParseProfile reads what JSON has written. It returns ErrProfile for anything else: unknown or missing names, numbers that Check refuses, text behind.
// Its memory is a small multiple of the text's.
func ParseProfile(text []byte) (Profile, error) {
	var w written
	if err := strictjson.Decode(text, &w); err != nil {
		return Profile{}, fmt.Errorf("%w: %w", ErrProfile, err)
	}
	if w.Observations == nil || w.Measurements == nil {
		return Profile{}, fmt.Errorf("%w: observations or measurements are missing", ErrProfile)
	}
	var p Profile
	for i, o := range *w.Observations {
		if o.Size == nil || o.Encoded == nil || o.Interval == nil {
			return Profile{}, fmt.Errorf("%w: observation %d lacks a number", ErrProfile, i)
		}
		p.Observations = append(p.Observations, Observation{*o.Size, *o.Encoded, *o.Interval})
	}
	for i, m := range *w.Measurements {
		if m.Bytes == nil || m.Seconds == nil {
			return Profile{}, fmt.Errorf("%w: measurement %d lacks a number", ErrProfile, i)
		}
		p.Measurements = append(p.Measurements, Measurement{*m.Bytes, *m.Seconds})
	}
	return p, p.Check()
}

// JSON writes the profile, if Check allows it.
func (p *Profile) JSON() ([]byte, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	type plain Profile // has no methods
	w := plain(*p)
	if w.Observations == nil {
		w.Observations = []Observation{}
	}
	if w.Measurements == nil {
		w.Measurements = []Measurement{}
	}
	return json.Marshal(w)
}
