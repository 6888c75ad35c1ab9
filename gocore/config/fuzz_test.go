package config

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"velocpy/gocore/base/status"
)

// A configuration that was parsed has the same meaning when it is encoded again, and one that passes the check is within the limits. The same holds
// for budgets, which equal those of the configuration.
func FuzzConfig(f *testing.F) {
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := ParseConfig(text)
		budgets, err2 := ParseBudgets(text)
		for _, err := range []error{err, err2} {
			if err != nil && !errors.Is(err, status.Of(status.Invalid)) {
				t.Fatal(err)
			}
		}
		if err != nil {
			return
		}
		if err2 != nil || !reflect.DeepEqual(Budgets{Devices: budgets.Devices, Host: budgets.Host, Disk: budgets.Disk}, Budgets{Devices: c.Devices, Host: c.Host, Disk: c.Disk}) {
			t.Fatalf("budgets %+v, %v, of %+v", budgets, err2, c)
		}
		said, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseConfig(said)
		if err != nil || !reflect.DeepEqual(again, c) {
			t.Fatalf("%s becomes %+v, %v", said, again, err)
		}
		s, err := c.Check()
		if err != nil {
			if !errors.Is(err, status.Of(status.Invalid)) {
				t.Fatal(err)
			}
			return
		}
		withinLimits(t, &s)
	})
}

func withinLimits(t *testing.T, s *Settings) {
	t.Helper()
	for _, n := range []*int64{s.Host, s.Disk} {
		if n != nil && (*n <= 0 || *n > MostBytes) {
			t.Fatalf("a budget of %d bytes", *n)
		}
	}
	seen := map[int]bool{}
	for _, d := range s.Devices {
		if seen[d.Ordinal] || d.Ordinal < 0 || d.Bytes < 0 || d.Bytes > MostBytes || !(d.Share >= 0 && d.Share <= 1) || d.Bytes == 0 && d.Share == 0 {
			t.Fatalf("devices %+v", s.Devices)
		}
		seen[d.Ordinal] = true
	}
	if s.Workers < 1 || s.Workers > mostThreads || s.Copiers < 0 || s.Copiers > mostThreads || s.Timeline < 0 || len(s.Devices) > mostDevices {
		t.Fatalf("%+v", s.Config)
	}
	if s.Host == nil && s.Disk == nil && !s.ReadOnly || s.ReadOnly && !s.Durable || (s.Disk != nil || s.Durable) && s.Path == "" {
		t.Fatalf("a store without a place: %+v", s.Config)
	}
	if again, err := s.Config.Check(); err != nil || again.Workers != s.Workers {
		t.Fatalf("the second check says %v", err)
	}
}
