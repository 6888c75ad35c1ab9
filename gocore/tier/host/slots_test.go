package host

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/vfs"
)

func TestSlotsOf(t *testing.T) {
	for name, c := range map[string]struct {
		cpus  []int
		seats []int
		most  int
	}{
		"one":               {[]int{5}, []int{1}, 1},
		"a whole seat":      {[]int{4, 5, 6, 7}, []int{1}, 1},
		"across two":        {[]int{3, 4}, []int{0, 1}, 1},
		"far apart":         {[]int{0, 1, 2, 3, 64, 65, 66, 67}, []int{0, 16}, 2},
		"from the third on": {[]int{2, 3, 4, 5, 6, 7, 8, 9}, []int{0, 1, 2}, 2},
		"more than it uses": {[]int{0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, 3},
	} {
		var may unix.CPUSet
		for _, cpu := range c.cpus {
			may.Set(cpu)
		}
		files, most := slotsOf(&may, "/somewhere/turn")
		var want []string
		for _, seat := range c.seats {
			want = append(want, fmt.Sprintf("/somewhere/turn-seat%d", seat))
		}
		if !slices.Equal(files, want) || most != c.most {
			t.Errorf("%s: %d of the seats %v", name, most, files)
		}
	}
	if files, most := cpuSlots("/somewhere/turn"); len(files) == 0 || most == 0 {
		t.Error("no seat for the processors of this process")
	}
}

// waiting takes turns at a file of its own.
func waiting(t *testing.T) *turns {
	t.Helper()
	return waitingAt(filepath.Join(t.TempDir(), "turn"))
}

func waitingAt(turn string) *turns {
	return &turns{file: turn, stop: make(chan struct{})}
}

// A store takes as many turns as are free, up to a number, waits when none is, and can close meanwhile.
func TestTakeTurns(t *testing.T) {
	var files []string
	for i := range 3 {
		files = append(files, filepath.Join(t.TempDir(), fmt.Sprint(i)))
	}
	take := func(most, want int) []*vfs.Turn {
		t.Helper()
		turns, open := waiting(t).take(files, most)
		if !open || len(turns) != want {
			t.Fatalf("%d turns, open %v", len(turns), open)
		}
		return turns
	}
	first := take(2, 2)
	second := take(2, 1)
	closing := waiting(t)
	time.AfterFunc(5*time.Millisecond, func() { close(closing.stop) })
	if turns, open := closing.take(files, 2); open || len(turns) != 0 {
		t.Errorf("%d turns of those that others have, open %v", len(turns), open)
	}
	time.AfterFunc(5*time.Millisecond, func() { endAll(second) })
	third := take(2, 1)
	endAll(first)
	endAll(third)
	endAll(take(3, 3))
	if turns, open := waiting(t).take([]string{filepath.Join(files[0], "below")}, 1); !open || len(turns) != 0 {
		t.Errorf("%d turns without a file, open %v", len(turns), open)
	}
}

// Stores are served in the order in which they asked.
func TestTurnsAreInOrder(t *testing.T) {
	files := []string{filepath.Join(t.TempDir(), "seat")}
	const stores = 5
	held, _ := waitingAt(files[0]).take(files, 1)
	served := make(chan int, stores)
	var all sync.WaitGroup
	for i := range stores {
		all.Go(func() {
			turns, _ := waitingAt(files[0]).take(files, 1)
			served <- i
			endAll(turns)
		})
		eventually(t, "the store stands in the queue", func() bool {
			place, err := vfs.LineUp(files[0] + "-queue")
			if err != nil {
				t.Fatal(err)
			}
			ahead, err := place.Ahead()
			if err != nil {
				t.Fatal(err)
			}
			return place.Leave() == nil && ahead == int64(i)+1
		})
	}
	endAll(held)
	all.Wait()
	for i := range stores {
		if got := <-served; got != i {
			t.Errorf("store %d is served as number %d", got, i)
		}
	}
}

// Stores that ask for some of the same turns are served in the order in which they came, whichever they ask for first, and one that waits does not hold up
// those that want nothing of what it waits for.
func TestTurnsOfOverlappingStores(t *testing.T) {
	turn := filepath.Join(t.TempDir(), "turn")
	seat := func(numbers ...int) (files []string) {
		for _, n := range numbers {
			files = append(files, fmt.Sprintf("%s-seat%d", turn, n))
		}
		return files
	}
	held, _ := waitingAt(turn).take(seat(0, 1, 2), 3)
	if len(held) != 3 {
		t.Fatalf("%d turns of three", len(held))
	}
	served := make(chan string, 10)
	var all sync.WaitGroup
	end := make(chan struct{})
	queue := func(name string, files []string) {
		all.Go(func() {
			turns, _ := waitingAt(turn).take(files, 1)
			served <- name
			<-end
			endAll(turns)
		})
		eventually(t, "the store stands in all queues", func() bool {
			line, _, err := waitingAt(turn).join(files)
			defer leaveAll(line)
			if err != nil {
				t.Fatal(err)
			}
			for _, q := range line {
				if ahead, err := q.place.Ahead(); err != nil || ahead < int64(queuedAt[q.file])+1 {
					return false
				}
			}
			for _, q := range line {
				queuedAt[q.file]++
			}
			return true
		})
	}
	clear(queuedAt)
	queue("first", seat(0, 1))
	queue("second", seat(1, 2))
	queue("third", seat(1))
	expect := func(want string) {
		t.Helper()
		if got := <-served; got != want {
			t.Errorf("%s is served; expected %s", got, want)
		}
	}
	_ = held[1].End() // seat 1, which all of them want
	expect("first")
	_ = held[2].End()
	expect("second") // at another one, as seat 1 is the first's
	other, open := waitingAt(turn).take(seat(3), 1)
	if !open || len(other) != 1 {
		t.Error("a store that wants none of these waits")
	}
	endAll(other)
	close(end)
	expect("third")
	_ = held[0].End()
	all.Wait()
}

// queuedAt is how many stores the test has put into the queue of a file.
var queuedAt = map[string]int{}
