package schedule

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestProfileJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Profile{
			Observations: rapid.SliceOf(rapid.Custom(func(t *rapid.T) Observation {
				n := rapid.Int64Range(0, math.MaxInt64)
				return Observation{n.Draw(t, "size"), n.Draw(t, "encoded"), n.Draw(t, "interval")}
			})).Draw(t, "observations"),
			Measurements: rapid.SliceOf(rapid.Custom(func(t *rapid.T) Measurement {
				return Measurement{rapid.Int64Range(0, math.MaxInt64).Draw(t, "bytes"), rapid.Float64Range(0, longestCall).Draw(t, "seconds")}
			})).Draw(t, "measurements"),
		}
		text, err := p.JSON()
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseProfile(text)
		if err != nil || !slices.Equal(got.Observations, p.Observations) || !slices.Equal(got.Measurements, p.Measurements) {
			t.Fatalf("%+v, %v from %s", got, err, text)
		}
	})
}

func TestParseProfileRefuses(t *testing.T) {
	const whole = `{"observations": [{"size": 1, "encoded": 2, "interval": 3}], "measurements": [{"bytes": 1, "seconds": 0.5}]}`
	if _, err := ParseProfile([]byte(whole)); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string][2]string{
		"unknown name":       {`"size"`, `"length"`},
		"missing number":     {`"size": 1, `, ``},
		"null":               {`"size": 1`, `"size": null`},
		"below zero":         {`"size": 1`, `"size": -1`},
		"fraction":           {`"size": 1`, `"size": 1.5`},
		"too large":          {`"size": 1`, `"size": 9223372036854775808`},
		"text":               {`"size": 1`, `"size": "1"`},
		"missing list":       {`, "measurements": [{"bytes": 1, "seconds": 0.5}]`, ``},
		"no seconds":         {`, "seconds": 0.5`, ``},
		"seconds below zero": {`0.5`, `-0.5`},
		"too many seconds":   {`0.5`, `1e10`},
		"infinite seconds":   {`0.5`, `1e400`},
		"something behind":   {`0.5}]}`, `0.5}]} {}`},
		"cut":                {`0.5}]}`, `0.5}]`},
	} {
		if p, err := ParseProfile([]byte(strings.Replace(whole, change[0], change[1], 1))); !errors.Is(err, ErrProfile) {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	if _, err := (&Profile{Observations: []Observation{{Interval: -1}}}).JSON(); !errors.Is(err, ErrProfile) {
		t.Error(err)
	}
}

func FuzzParseProfile(f *testing.F) {
	f.Add([]byte(`{"observations": [{"size": 1, "encoded": 2, "interval": 3}], "measurements": [{"bytes": 1, "seconds": 0.5}]}`))
	f.Add([]byte(`{"observations": [], "measurements": []}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := ParseProfile(text)
		if err != nil {
			if !errors.Is(err, ErrProfile) {
				t.Fatal(err)
			}
			return
		}
		again, err := p.JSON()
		if err != nil {
			t.Fatal(err)
		}
		if q, err := ParseProfile(again); err != nil || !reflect.DeepEqual(p, q) {
			t.Fatalf("%+v, %v, not %+v", q, err, p)
		}
	})
}

func TestProfileCheckpoints(t *testing.T) {
	p := Profile{Observations: []Observation{{1, 2, 3}, {4, 5, 6}}}
	if got := p.Checkpoints(); !slices.Equal(got, []Checkpoint{{Size: 1, Encoded: 2, Interval: 3}, {Size: 4, Encoded: 5, Interval: 6}}) {
		t.Errorf("%+v", got)
	}
}

// Exact measurements give the exact model; one of them may be anything.
func TestFitCostWithstandsOneOutlier(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Cost{Fixed: rapid.Float64Range(0, 1e-3).Draw(t, "fixed"), Rate: rapid.Float64Range(1e9, 1e12).Draw(t, "rate")}
		n := rapid.IntRange(5, 20).Draw(t, "measurements")
		var all []Measurement
		for i := range n {
			bytes := int64(i+1) * rapid.Int64Range(1<<20, 2<<20).Draw(t, "bytes")
			all = append(all, Measurement{bytes, want.Fixed + float64(bytes)/want.Rate})
		}
		if rapid.Bool().Draw(t, "outlier") {
			all[rapid.IntRange(0, n-1).Draw(t, "which")].Seconds *= rapid.Float64Range(3, 1000).Draw(t, "factor")
		}
		got, err := FitCost(all)
		if err != nil {
			t.Fatal(err)
		}
		for _, bytes := range []int64{1 << 20, 16 << 20} {
			x, y := float64(got.Time(bytes)), float64(want.Time(bytes))
			if math.Abs(x-y) > 1e-3*y+2 {
				t.Fatalf("%+v, want %+v", got, want)
			}
		}
	})
}

func TestFitCost(t *testing.T) {
	for name, c := range map[string]struct {
		all  []Measurement
		want Cost
	}{
		"two":                     {[]Measurement{{10, 3}, {20, 5}}, Cost{1, 5}},
		"below zero at zero":      {[]Measurement{{10, 1}, {20, 4}}, Cost{0, 1 / (90.0 / 500)}}, // through the origin: (10 + 80) / (100 + 400)
		"falls":                   {[]Measurement{{10, 4}, {20, 2}}, Cost{3, math.Inf(1)}},
		"noise is no outlier":     {[]Measurement{{0, 1}, {1, 0}, {2, 1}, {3, 0}}, Cost{0.5, math.Inf(1)}}, // falls by 0.2, so the mean
		"outlier":                 {[]Measurement{{10, 3}, {20, 5}, {30, 7}, {40, 90}}, Cost{1, 5}},
		"outlier of another size": {[]Measurement{{10, 3}, {10, 3}, {10, 3}, {20, 5}}, Cost{1, 5}}, // all of them fit
	} {
		got, err := FitCost(c.all)
		if err != nil || math.Abs(got.Fixed-c.want.Fixed) > 1e-9 || got.Rate != c.want.Rate && !(math.Abs(got.Rate-c.want.Rate) < 1e-9) {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, c.want)
		}
	}
	for name, all := range map[string][]Measurement{
		"none": nil, "one": {{1, 1}}, "one size": {{5, 1}, {5, 2}, {5, 3}, {5, 4}}, "NaN": {{1, math.NaN()}, {2, 1}}, "below zero": {{1, -1}, {2, 1}}, "bytes below zero": {{-1, 1}, {2, 1}},
		"infinite": {{1, math.Inf(1)}, {2, 1}},
	} {
		if c, err := FitCost(all); !errors.Is(err, ErrFit) {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
	if got := (Cost{Fixed: 1e-6, Rate: math.Inf(1)}).Time(5); got != 1000 {
		t.Errorf("%d ns", got)
	}
	if got := (Cost{}).Time(5); got != 1<<60 {
		t.Errorf("%d ns without a rate", got)
	}
	if got := (Cost{Fixed: 1e300, Rate: 1}).Time(0); got != 1<<60 {
		t.Errorf("%d ns of fixed time", got)
	}
}

func TestForecast(t *testing.T) {
	var f Forecast
	if f.Next(3) != nil {
		t.Error("predicts before it has seen anything")
	}
	f.Observe(Observation{1000, 500, 80})
	if got := f.Next(2); !slices.Equal(got, []Checkpoint{{1000, 500, 80}, {1000, 500, 80}}) {
		t.Errorf("%+v", got)
	}
	f.Observe(Observation{2000, 500, 160}) // a quarter of the way: size 1250, ratio 0.4375, interval 100
	if got := f.Next(1); !slices.Equal(got, []Checkpoint{{1250, 547, 100}}) {
		t.Errorf("%+v", got)
	}
	for range 60 {
		f.Observe(Observation{64, 32, 7})
	}
	if got := f.Next(1); got[0] != (Checkpoint{64, 32, 7}) {
		t.Errorf("%+v", got)
	}
	var late Forecast // an empty checkpoint has no ratio
	late.Observe(Observation{0, 0, 80})
	late.Observe(Observation{1000, 500, 80})
	if got := late.Next(1); got[0] != (Checkpoint{250, 125, 80}) {
		t.Errorf("%+v", got)
	}
}

func TestDeviation(t *testing.T) {
	planned := Checkpoint{1000, 500, 100}
	after := func(o func(i int) Observation) int {
		var d Deviation
		for i := range 100 {
			if d.Observe(planned, o(i)) {
				return i + 1
			}
		}
		return 0
	}
	for name, c := range map[string]struct {
		o    func(i int) Observation
		want int // the observation that makes the plan be remade; 0: none
	}{
		"as planned":      {func(int) Observation { return Observation(planned) }, 0},
		"ten percent":     {func(int) Observation { return Observation{1000, 550, 110} }, 0},
		"ten percent off": {func(i int) Observation { return Observation{1000, 500 + int64(i%2)*400 - 200, 100} }, 0}, // -40 % and +40 % in turn
		"one stray value": {func(i int) Observation { return Observation{1000, 500, 100 + 50*int64(max(1-i, 0))} }, 0},
		"twice as large":  {func(int) Observation { return Observation{2000, 500, 100} }, 1},
		"half the ratio":  {func(int) Observation { return Observation{1000, 250, 100} }, 2},           // -0.125, -0.219
		"slower by 20 %":  {func(int) Observation { return Observation{1000, 500, 120} }, 5},           // 0.2 (1 - 0.75^5) = 0.153
		"from nothing":    {func(int) Observation { return Observation{1000, 500, math.MaxInt64} }, 1}, // counts as 1
	} {
		if got := after(c.o); got != c.want {
			t.Errorf("%s: after %d, want %d", name, got, c.want)
		}
	}
}
