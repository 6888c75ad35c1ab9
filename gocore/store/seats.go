package store

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/vfs"
)

// seatThreads is the number of threads that a process may use to touch pages, for each seat that it has. There is a seat for so many processors:
// processes of a node that begin at once and each touch with threads enough for all of it are slower than those that share it.
const seatThreads = 4

// seatsBeside are the files of the seats for the processors that this process may run on, and how many of them it may have at once. A seat stands for
// the same processors in every process, so that processes whose processors overlap meet at it.
func seatsBeside(turn string) (files []string, most int) {
	var may unix.CPUSet
	if unix.SchedGetaffinity(0, &may) != nil {
		return nil, 0 // then no process is waited for
	}
	return seatsOf(&may, turn)
}

func seatsOf(may *unix.CPUSet, turn string) (files []string, most int) {
	last := -1
	for cpu, left := 0, may.Count(); left > 0; cpu++ {
		if !may.IsSet(cpu) {
			continue
		}
		left--
		if seat := cpu / seatThreads; seat != last {
			files = append(files, fmt.Sprintf("%s-seat%d", turn, seat))
			last = seat
		}
	}
	return files, min((may.Count()+seatThreads-1)/seatThreads, touchers/seatThreads)
}

// turnAgain is how soon a turn is asked for again.
const turnAgain = time.Millisecond

// queued is a file at which a store waits for the turn, and its place in the queue there.
type queued struct {
	file  string
	place *vfs.Place
}

// takeTurns waits for the turn at one of the files and takes more of them, up to a number, that are free at once; false when the store closes. Stores of all
// processes stand in the queue of every file that they ask for, and all of them join in one order: at each file they are served in the order in which they
// came. None are taken where there is no file to meet at: then the store does not wait.
func (s *Store) takeTurns(files []string, most int) (taken []*vfs.Turn, open bool) {
	if len(files) == 0 {
		return nil, true
	}
	line, open, err := s.lineUp(files)
	defer leaveAll(line)
	for open && err == nil && len(taken) == 0 {
		if taken, err = freeTurns(line, most); len(taken) == 0 && err == nil {
			open = s.pauseInQueue()
		}
	}
	return taken, open
}

// lineUp takes a place in the queue of every file, while no other store does; false when the store closes. The error is that of a file at which there is no queue.
func (s *Store) lineUp(files []string) (line []queued, open bool, err error) {
	for open = true; open; open = s.pauseInQueue() {
		joining, err := vfs.TryTurn(s.pin.turn + "-joining")
		if err == nil {
			line, err = joinAll(files)
			_ = joining.End() // the lock is gone either way
		}
		if !errors.Is(err, vfs.ErrTaken) {
			return line, true, err
		}
	}
	return nil, false, nil
}

// joinAll takes a place at the end of every queue, or none.
func joinAll(files []string) (line []queued, err error) {
	for _, file := range files {
		place, err := vfs.LineUp(file + "-queue")
		if err != nil {
			leaveAll(line)
			return nil, err
		}
		line = append(line, queued{file, place})
	}
	return line, nil
}

// leaveAll gives places up; the locks are gone either way.
func leaveAll(line []queued) {
	for _, q := range line {
		_ = q.place.Leave()
	}
}

// freeTurns takes the turns that are free and that no other store asked for earlier, up to a number. The error is that of a file at which there is none.
func freeTurns(line []queued, most int) (taken []*vfs.Turn, err error) {
	for _, q := range line {
		if ahead, err := q.place.Ahead(); ahead > 0 || err != nil {
			if err != nil {
				return taken, err
			}
			continue
		}
		turn, err := vfs.TryTurn(q.file)
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
