package host

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/vfs"
)

// slotThreads is how many threads a process may use to prefault pages for each CPU slot that it holds. There is a slot for so many processors: processes of a node
// that start at once, each with threads enough for the whole node, are slower than processes that share the slots.
const slotThreads = 4

// cpuSlots returns the files of the slots for the processors that this process may run on, and how many of them it may hold at once. A slot stands for the same
// processors in every process, so that processes whose processors overlap contend for the same file.
func cpuSlots(turn string) (files []string, most int) {
	var may unix.CPUSet
	if unix.SchedGetaffinity(0, &may) != nil {
		return nil, 0 // then this process waits for no other
	}
	return slotsOf(&may, turn)
}

func slotsOf(may *unix.CPUSet, turn string) (files []string, most int) {
	last := -1
	for cpu, left := 0, may.Count(); left > 0; cpu++ {
		if !may.IsSet(cpu) {
			continue
		}
		left--
		if slot := cpu / slotThreads; slot != last {
			files = append(files, fmt.Sprintf("%s-seat%d", turn, slot)) // the name that earlier versions use: they share the node with this one
			last = slot
		}
	}
	return files, min((may.Count()+slotThreads-1)/slotThreads, mostThreads/slotThreads)
}

// retryTurn is how soon a turn is asked for again.
const retryTurn = time.Millisecond

// queuePlace is a file at which a store waits for the turn, and its place in the queue there.
type queuePlace struct {
	file  string
	place *vfs.Place
}

// turns takes turns with other processes of the node, by files that they all lock.
type turns struct {
	file string        // of the turn to register
	stop chan struct{} // closed when the store closes
}

// take waits for the turn at one of the files, and takes as many more of them, up to a number, as are free at that moment; false when the store closes. Stores of
// all processes queue at every file that they ask for, and join all queues in one order: at each file they are served in the order in which they came. It
// takes none where there is no file: then the store does not wait.
func (t *turns) take(files []string, most int) (taken []*vfs.Turn, open bool) {
	if len(files) == 0 {
		return nil, true
	}
	line, open, err := t.join(files)
	defer leaveAll(line)
	for open && err == nil && len(taken) == 0 {
		if taken, err = takeFree(line, most); len(taken) == 0 && err == nil {
			open = t.pause()
		}
	}
	return taken, open
}

// join takes a place in the queue of every file while no other store does; false when the store closes. The error is that of a file that cannot have a queue.
func (t *turns) join(files []string) (line []queuePlace, open bool, err error) {
	for open = true; open; open = t.pause() {
		joining, err := vfs.TryTurn(t.file + "-joining")
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
func joinAll(files []string) (line []queuePlace, err error) {
	for _, file := range files {
		place, err := vfs.LineUp(file + "-queue")
		if err != nil {
			leaveAll(line)
			return nil, err
		}
		line = append(line, queuePlace{file, place})
	}
	return line, nil
}

// leaveAll gives places up. The locks are gone even if the call fails.
func leaveAll(line []queuePlace) {
	for _, q := range line {
		_ = q.place.Leave()
	}
}

// takeFree takes the turns that are free and that no other store asked for earlier, up to a number. The error is that of a file at which there is no turn.
func takeFree(line []queuePlace, most int) (taken []*vfs.Turn, err error) {
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

// pause waits until it is time to ask again; false when the store closes.
func (t *turns) pause() (open bool) {
	select {
	case <-t.stop:
		return false
	case <-time.After(retryTurn):
		return true
	}
}

// endAll gives turns up. The locks are gone even if the call fails.
func endAll(turns []*vfs.Turn) {
	for _, turn := range turns {
		_ = turn.End()
	}
}
