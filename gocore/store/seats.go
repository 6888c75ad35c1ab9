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

// takeTurns waits for the turn at one of the files and takes more of them, up to a number, that are free at once; false when the store closes. None
// are taken where there is no file to meet at: then nobody is waited for.
func (s *Store) takeTurns(files []string, most int) (taken []*vfs.Turn, open bool) {
	for len(files) > 0 {
		for _, file := range files {
			turn, err := vfs.TryTurn(file)
			switch {
			case err == nil:
				taken = append(taken, turn)
			case !errors.Is(err, vfs.ErrTaken):
				return taken, true
			}
			if len(taken) == most {
				break
			}
		}
		if len(taken) > 0 {
			break
		}
		select {
		case <-s.pin.stop:
			return nil, false
		case <-time.After(turnAgain):
		}
	}
	return taken, true
}

// stand gives seats up, and lets others have them: they ask now and then only.
func (s *Store) stand(seats []*vfs.Turn) {
	endAll(seats)
	if len(seats) == 0 || !s.wholePinning() && !s.pin.refused {
		return // registering comes between
	}
	select {
	case <-s.pin.stop:
	case <-time.After(2 * turnAgain):
	}
}

// endAll gives turns up; the locks are gone either way.
func endAll(turns []*vfs.Turn) {
	for _, turn := range turns {
		_ = turn.End()
	}
}
