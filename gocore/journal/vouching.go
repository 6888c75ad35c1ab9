package journal

import "errors"

// A batch may rely on data in other files. Syncing those first and the batch after costs two waits for the medium; AppendBeside lets both be done at once. So a
// crash may leave a batch without its data. That can be only the last one of a log that was not closed, as the next one is written when both are down: whoever
// reads such a log has it proved (Options.Vouched), and leaves it out where its data is not there.

// vouching is what a batch relies on.
type vouching struct {
	beside func() error // waits until it is down; nil: it is
	failed error        // of beside
}

// AppendBeside puts records, in their order, into a batch of their own, while what they rely on is brought down: beside waits for that, and is called when the
// batch is on the medium. After an error of beside the batch does not count any more when a later one has been acknowledged.
func (l *Log) AppendBeside(records [][]byte, beside func() error) error {
	b := &batch{done: make(chan struct{}), vouching: vouching{beside: beside}}
	if size := payloadBytes(records); size > MostPayload {
		return tooLarge(size)
	}
	for _, record := range records {
		b.payload = appendRecord(b.payload, record)
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.pendingBytes() > 0 {
		l.writePending()
	}
	if l.isClosed() {
		return ErrClosed
	}
	return l.commit(b)
}

func (l *Log) pendingBytes() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.pending.payload)
}

func (l *Log) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// putBatch writes a batch, and returns when it and what it relies on have been synced.
func (l *Log) putBatch(b *batch) error {
	if b.beside == nil {
		return l.put(kindBatch, l.last+1, b.payload)
	}
	err := l.put(kindVouching, l.last+1, b.payload)
	b.failed = b.beside()
	b.beside = nil // a second attempt need not wait for it
	return errors.Join(err, b.failed)
}

// release gives out the records of a batch that was held back: what follows it tells that its data is on the medium.
func (r *reader) release() error {
	if !r.held {
		return nil
	}
	r.held = false
	return r.give(r.heldAt, r.state.number, r.state.batch)
}

// decide tells what becomes of a batch that was held back to the end of the log. If another one was begun behind it, it had been acknowledged.
func (r *reader) decide(file opened) error {
	if !r.held {
		return nil
	}
	next, err := file.scan.bytes(r.heldAt.end, grain, leastRead)
	if err != nil || beginsFrame(next) || r.state.Last > r.state.number || r.o.Vouched == nil {
		return errors.Join(err, r.release())
	}
	var records [][]byte
	whole, err := eachRecord(r.state.batch, func(record []byte) error {
		records = append(records, record)
		return nil
	})
	proved := true
	if whole && err == nil {
		proved, err = r.o.Vouched(records)
	}
	switch {
	case err != nil:
		return err
	case proved:
		r.state.Vouched = true
		return r.release()
	}
	r.held = false
	r.state.Last--
	r.state.batch, r.state.number = nil, 0
	r.state.Torn += r.heldAt.end - r.heldAt.offset
	r.state.Unproved = true
	return nil
}
