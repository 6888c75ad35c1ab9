package schedule

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var fastLink = Terms{Link: Link{Rate: 50e9, Fixed: 10_000}, Cache: 256 << 20}

// play lets checkpoints pass whose size, encoded bytes and interval come from at. What is not left whole is encoded. It returns the course's time.
func play(c *Course, now int64, count int, terms Terms, at func(i int) Checkpoint) int64 {
	for i := range count {
		x := at(i)
		now += x.Interval
		number := c.Begin(now, x.Size)
		c.End(now)
		if c.Decision(number) == Whole {
			c.Flushed(number, -1)
		} else {
			c.Flushed(number, x.Encoded)
			c.Call(x.Size, 100_000+x.Size/500)
		}
		if s := c.Due(terms); s != nil {
			p, err := s.Find()
			c.Take(s, p, err)
		}
	}
	return now
}

func even(int) Checkpoint { return Checkpoint{Size: 16 << 20, Encoded: 4 << 20, Interval: 100_000} }

func TestLettersRepeat(t *testing.T) {
	repeat, err := ParsePlan("UAAXC")
	if err != nil {
		t.Fatal(err)
	}
	c := NewCourse(nil, repeat)
	for i, last := range []int{0, 3, 3, 3, 4, 5, 8} {
		if number := c.Begin(int64(i), 1); number != i || c.Last(i) != last {
			t.Errorf("checkpoint %d: number %d, its run ends with %d, not %d", i, number, c.Last(i), last)
		}
	}
	if c.Letters() != "UAAXCUA" || c.Due(fastLink) != nil {
		t.Errorf("%q", c.Letters())
	}
}

// The plan for a run like an earlier one is that of a search with what the earlier one has observed.
func TestAProfilePlansTheRun(t *testing.T) {
	const count = 60
	first := NewCourse(nil, nil)
	play(first, 0, count, fastLink, even)
	p := first.Profile()
	if len(p.Observations) != count || p.Check() != nil {
		t.Fatalf("%d observations: %v", len(p.Observations), p.Check())
	}
	second := NewCourse(&p, nil)
	s := second.Due(fastLink)
	if s == nil || second.Due(fastLink) != nil {
		t.Fatal("one search is due, and no other beside it")
	}
	plan, err := s.Find()
	if err != nil {
		t.Fatal(err)
	}
	second.Take(s, plan, nil)
	play(second, 0, count-1, fastLink, even)
	if second.Letters() != plan.String()[:count-1] || second.Plans() != 1 {
		t.Errorf("%q by %d plans, not %q", second.Letters(), second.Plans(), plan)
	}
	if s.Instance.Checkpoints[7] != even(7) {
		t.Errorf("%+v", s.Instance.Checkpoints[7])
	}
}

// A long profile is planned part by part, each before the one before has ended.
func TestALongProfileIsPlannedInParts(t *testing.T) {
	p := Profile{Observations: make([]Observation, 2*mostPlanned)}
	for i := range p.Observations {
		p.Observations[i] = Observation(even(i))
	}
	p.Observations[0].Interval = 0 // nothing was captured before
	c := NewCourse(&p, nil)
	for first, search := 0, c.Due(fastLink); ; search = c.Due(fastLink) {
		if search == nil || search.from != first || len(search.Instance.Checkpoints) != min(mostPlanned, 2*mostPlanned-first) {
			t.Fatalf("no search from %d: %+v", first, search)
		}
		plan := Plan(strings.Repeat("C", len(search.Instance.Checkpoints)))
		c.Take(search, plan, nil)
		if first += mostPlanned - early; first >= 2*mostPlanned-early {
			break
		}
		for c.Captured() < first {
			if c.Due(fastLink) != nil {
				t.Fatalf("a search is due at %d", c.Captured())
			}
			number := c.Begin(int64(c.Captured())*even(0).Interval, even(0).Size)
			c.End(int64(number) * even(0).Interval)
			c.Flushed(number, even(0).Encoded)
		}
	}
	if strings.Trim(c.Letters(), "C") != "" {
		t.Errorf("%q", c.Letters())
	}
}

// Without a profile nothing is decided of the first checkpoints. Then the letters repeat that are the best for checkpoints like them, until these change.
func TestWithoutAProfileTheLastCheckpointsTell(t *testing.T) {
	c := NewCourse(nil, nil)
	play(c, 0, 500, fastLink, even)
	letters := c.Letters()
	if n := strings.Count(letters, "-"); n != least || !strings.HasPrefix(letters, "----") || c.Plans() != 1 {
		t.Errorf("%d undecided, %d plans: %q", n, c.Plans(), letters)
	}
	play(c, 1e9, 200, fastLink, func(int) Checkpoint { return Checkpoint{Size: 16 << 20, Encoded: 4 << 20, Interval: 10_000_000} })
	if c.Plans() < 2 || !strings.HasSuffix(c.Letters(), "UUUUUUUUUU") { // the link keeps up with them
		t.Errorf("%d plans: %q", c.Plans(), c.Letters())
	}
}

// A run that is slower or larger than its profile is planned anew, with the rest of the profile scaled. One within the tolerance is not.
func TestARunThatDeviatesIsPlannedAnew(t *testing.T) {
	const count = 100
	p := Profile{Observations: make([]Observation, count)}
	for i := range p.Observations {
		p.Observations[i] = Observation(even(i))
	}
	p.Observations[0].Interval = 0 // nothing was captured before
	for name, x := range map[string]Checkpoint{
		"as it was":           even(0),
		"a tenth off":         {Size: 16 << 20, Encoded: 4 << 20 * 11 / 10, Interval: 90_000},
		"four times as slow":  {Size: 16 << 20, Encoded: 4 << 20, Interval: 400_000},
		"less compressible":   {Size: 16 << 20, Encoded: 15 << 20, Interval: 100_000},
		"of half of the size": {Size: 8 << 20, Encoded: 2 << 20, Interval: 100_000},
	} {
		c := NewCourse(&p, nil)
		first := c.Due(fastLink)
		plan, err := first.Find()
		c.Take(first, plan, err)
		play(c, 0, count-1, fastLink, func(int) Checkpoint { return x })
		if steady := name == "as it was" || name == "a tenth off"; steady != (c.Plans() == 1) {
			t.Errorf("%s: %d plans", name, c.Plans())
		}
		for i, got := range c.planned {
			if off := relative(x.Size, got.Size); i > 0 && (off > 0.3 || off < -0.3) {
				t.Errorf("%s: %+v expected at last, not %+v", name, got, x)
				break
			}
		}
	}
}

// A search that fails is not repeated for the same checkpoints.
func TestASearchThatFails(t *testing.T) {
	c := NewCourse(nil, nil)
	play(c, 0, 30, Terms{Cache: -1}, even) // no cache can have that
	if c.Plans() != 0 || strings.Trim(c.Letters(), "-") != "" || c.Due(fastLink) != nil {
		t.Errorf("%d plans: %q", c.Plans(), c.Letters())
	}
	play(c, 0, 500, fastLink, even)
	if c.Plans() == 0 {
		t.Error("no plan for those behind")
	}
}

// Plans come late, checkpoints deviate, and some never leave the cache: what is decided of a captured checkpoint stays, but for the last of a run that is cut
// and for those beside one that is skipped; the letters are a plan; and every run ends with a checkpoint that is captured or foreseen.
func TestCourseAtRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p *Profile
		if rapid.Bool().Draw(t, "has a profile") {
			p = &Profile{Observations: make([]Observation, rapid.IntRange(0, 40).Draw(t, "profile"))}
			for i := range p.Observations {
				p.Observations[i] = Observation(drawn(t))
			}
		}
		c := NewCourse(p, nil)
		var search *Search
		now, before := int64(0), ""
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			skipped := -2
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 0:
				if s := c.Due(fastLink); s != nil {
					if search != nil {
						t.Fatal("two searches at once")
					}
					search = s
				}
			case 1:
				if search != nil {
					plan, err := search.Find()
					c.Take(search, plan, err)
					search = nil
				}
			case 2:
				c.Flushed(rapid.IntRange(-1, c.Captured()).Draw(t, "flushed"), int64(rapid.IntRange(-1, 1<<20).Draw(t, "encoded")))
			case 3:
				skipped = rapid.IntRange(-1, c.Captured()).Draw(t, "skipped")
				c.Skip(skipped)
			default:
				x := drawn(t)
				now += x.Interval
				c.Begin(now, x.Size)
				c.End(now)
			}
			letters := c.Letters()
			for i := range before {
				if i >= skipped-1 && i <= skipped+1 {
					continue
				}
				ends := letters[i] == byte(Bulk) || letters[i] == byte(Alone) // ParsePlan finds which of both is right
				if letters[i] != before[i] && (i != len(before)-1 || before[i] != byte(Accumulate) || !ends) {
					t.Fatalf("%q became %q", before, letters)
				}
			}
			before = letters
			if ended := strings.TrimRight(strings.ReplaceAll(letters, "-", "U"), "A"); ended != "" {
				if _, err := ParsePlan(ended); err != nil {
					t.Fatalf("%q: %v", letters, err)
				}
			}
			for i := range letters {
				if last := c.Last(i); last < i || letters[i] != byte(Accumulate) && last != i {
					t.Fatalf("the run of %d in %q ends with %d", i, letters, last)
				}
			}
		}
	})
}

func drawn(t *rapid.T) Checkpoint {
	x := Checkpoint{Size: int64(rapid.IntRange(0, 64<<20).Draw(t, "size")), Interval: int64(rapid.IntRange(0, 1_000_000).Draw(t, "interval"))}
	x.Encoded = int64(rapid.IntRange(0, int(x.Size)).Draw(t, "encoded"))
	return x
}

// A checkpoint that does not leave the cache ends the run before it, and no profile has it.
func TestSkippedCheckpoints(t *testing.T) {
	repeat, _ := ParsePlan("AAAX")
	c := NewCourse(nil, repeat)
	for i := range 8 {
		c.Begin(int64(10*i), int64(i))
		c.End(int64(10*i + 1))
		if i == 2 || i == 7 {
			before := c.Changes()
			if c.Skip(i); c.Changes() == before {
				t.Error("nobody is told of the change")
			}
		}
	}
	c.Flushed(2, 1)
	c.Skip(-1)
	c.Skip(8)
	if c.Letters() != "AXUCAAXU" || c.Last(0) != 1 || c.Last(4) != 6 {
		t.Errorf("%q", c.Letters())
	}
	p := c.Profile()
	if n := len(p.Observations); n != 6 || p.Observations[2].Size != 3 || p.Check() != nil {
		t.Errorf("%+v", p.Observations)
	}
}

// The profile of a run keeps the last calls of the encoder, and knows what was expected where nothing was encoded.
func TestProfileOfARun(t *testing.T) {
	whole, _ := ParsePlan("U")
	c := NewCourse(&Profile{Observations: []Observation{{Size: 10, Encoded: 3}}}, whole)
	for i := range 3 {
		c.Begin(int64(10*i), 10)
		c.End(int64(10*i + 1))
		c.Flushed(i, -1)
	}
	for i := range 2 * mostCalls {
		c.Call(int64(i), 1)
	}
	p := c.Profile()
	if want := []Observation{{10, 3, 0}, {10, 10, 9}, {10, 10, 9}}; !slices.Equal(p.Observations, want) {
		t.Errorf("%+v", p.Observations)
	}
	if len(p.Measurements) != mostCalls || p.Measurements[0].Bytes != mostCalls {
		t.Errorf("%+v", p.Measurements)
	}
}
