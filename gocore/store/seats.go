package store

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"velocpy/gocore/vfs"
)

// seatThreads is with how many threads one touches who has a seat. There is a seat for so many processors: processes of a node that begin at once
// and each touch with threads enough for all of it are slower than those that share it.
const seatThreads = 4

// seatsBeside are the files of the seats on the processors that this process may run on. Processes that are bound to other processors have others.
func seatsBeside(turn string) []string {
	var may unix.CPUSet
	if unix.SchedGetaffinity(0, &may) != nil {
		return nil // then nobody is waited for
	}
	var files []string
	for cpu, n := 0, 0; n < may.Count(); cpu++ {
		if !may.IsSet(cpu) {
			continue
		}
		if n%seatThreads == 0 {
			files = append(files, fmt.Sprintf("%s-cpu%d", turn, cpu))
		}
		n++
	}
	return files
}

// turnAgain is how soon a turn is asked for again.
const turnAgain = time.Millisecond

// takeTurns waits for the turn at one of the files and takes more of them, up to a number, that are free at once; false when the store closes. Stores of all
// processes that ask for these files are served in the order in which they came. None are taken where there is no file to meet at: then the store does not wait.
func (s *Store) takeTurns(files []string, most int) (taken []*vfs.Turn, open bool) {
	if len(files) == 0 {
		return nil, true
	}
	place, open := s.lineUp(files[0] + "-queue")
	if place != nil {
		defer func() { _ = place.Leave() }() // the lock is gone either way
	}
	for open && len(taken) == 0 {
		var err error
		if taken, err = freeTurns(files, most); err != nil {
			return taken, true
		}
		open = len(taken) > 0 || s.pauseInQueue()
	}
	return taken, open
}

// lineUp waits until the store is the first in a queue; false when it closes. The place is nil where there is no queue.
func (s *Store) lineUp(file string) (place *vfs.Place, open bool) {
	for open = true; open; open = s.pauseInQueue() {
		var err error
		ahead := int64(0)
		if place == nil {
			place, err = vfs.LineUp(file)
		}
		if place != nil {
			ahead, err = place.Ahead()
		}
		if ahead == 0 && !errors.Is(err, vfs.ErrTaken) {
			break
		}
	}
	return place, open
}

// freeTurns takes the turns that are free, up to a number. The error is that of a file at which there is none.
func freeTurns(files []string, most int) (taken []*vfs.Turn, err error) {
	for _, file := range files {
		turn, err := vfs.TryTurn(file)
		switch {
		case err == nil:
			taken = append(taken, turn)
		case !errors.Is(err, vfs.ErrTaken):
			return taken, err
		}
		if len(taken) == most {
			break
		}
	}
	return taken, nil
}

// pauseInQueue waits until it is time to look again; false when the store closes.
func (s *Store) pauseInQueue() (open bool) {
	select {
	case <-s.pin.stop:
		return false
	case <-time.After(turnAgain):
		return true
	}
}

// endAll gives turns up; the locks are gone either way.
func endAll(turns []*vfs.Turn) {
	for _, turn := range turns {
		_ = turn.End()
	}
}
