package main

/*
#include "velocpy_abi.h"
typedef const char veloc_const_char;
typedef const veloc_key veloc_const_key;
typedef const veloc_hint_item veloc_const_hint_item;
typedef const veloc_retention veloc_const_retention;
*/
import "C"

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"unsafe"

	"velocpy/gocore/base/description"
	"velocpy/gocore/base/quantity"
	"velocpy/gocore/base/status"
	"velocpy/gocore/config"
	"velocpy/gocore/inspect"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
	"velocpy/gocore/policy/plan"
	"velocpy/gocore/store"
	"velocpy/gocore/tier/disk/bucket"
	"velocpy/gocore/tier/disk/catalog"
)

//export veloc_open
func veloc_open(settings *C.veloc_const_char, length C.int64_t, handle *C.uint64_t, failure *C.veloc_error) C.int32_t {
	return guard(failure, func() (status.Code, error) {
		if err := need(unsafe.Pointer(handle)); err != nil {
			return 0, err
		}
		text, err := bytesAt(settings, length)
		if err != nil {
			return 0, err
		}
		c, err := config.ParseConfig(text)
		if err != nil {
			return 0, err
		}
		c.OpenDevice, c.WatchDevices, c.LinkRates, c.Describes = openDevice, watchFaults, linkRates, description.Check
		constants(&c)
		if err := fromBucket(&c); err != nil {
			return 0, err
		}
		s, err := store.Open(c)
		if err != nil {
			return 0, err
		}
		*handle = C.uint64_t(stores.Put(s))
		return status.OK, nil
	})
}

// fromBucket lets a store that is open for reading read an archive in a bucket.
func fromBucket(c *config.Config) error {
	if !bucket.IsPlace(c.Path) {
		return nil
	}
	if !c.ReadOnly {
		return status.New(status.Invalid, "an archive in a bucket opens for reading only")
	}
	o, err := inspect.FromBucket(&buckets, c.Path)
	if err != nil {
		if known := inspect.ExplainBucket(err, c.Path); known != nil {
			return known
		}
		return status.Wrap(status.IO, err, "the archive in %q", c.Path).AtTier(status.TierArchive)
	}
	c.FS, c.Direct = o.FS, false
	return nil
}

//export veloc_close
func veloc_close(handle C.uint64_t, fd C.int32_t, out *C.veloc_outcome, failure *C.veloc_error) C.int32_t {
	return begin(out, failure, func(o *operation.Outcome) (*operation.Op, status.Code, error) {
		s, err := storeOf(handle)
		if err != nil {
			return nil, 0, err
		}
		forget(uint64(handle), s)
		op := s.Close(int32(fd))
		code, err := op.Step(o)
		return op, code, err
	})
}

// forget frees the handles of a store that has ended. A caller that still has one of them closes the store a second time when it is done.
func forget(handle uint64, s *store.Store) {
	numbers, ok := s.Ended()
	if !ok {
		return
	}
	stores.Take(handle)
	for _, number := range numbers {
		histories.Take(number)
	}
}

//export veloc_abandon
func veloc_abandon(handle C.uint64_t, failure *C.veloc_error) C.int32_t {
	return withStore(handle, failure, func(s *store.Store) error {
		s.WhenEnded(func() { forget(uint64(handle), s) })
		return nil
	})
}

//export veloc_resize
func veloc_resize(handle C.uint64_t, budgets *C.veloc_const_char, length C.int64_t, fd C.int32_t, out *C.veloc_outcome, failure *C.veloc_error) C.int32_t {
	return begin(out, failure, func(o *operation.Outcome) (*operation.Op, status.Code, error) {
		s, err := storeOf(handle)
		if err != nil {
			return nil, 0, err
		}
		text, err := bytesAt(budgets, length)
		if err != nil {
			return nil, 0, err
		}
		b, err := config.ParseBudgets(text)
		if err != nil {
			return nil, 0, err
		}
		return s.Resize(b, int32(fd), o)
	})
}

// withStore runs body with an existing store.
func withStore(handle C.uint64_t, failure *C.veloc_error, body func(s *store.Store) error) C.int32_t {
	return guard(failure, func() (status.Code, error) {
		s, err := storeOf(handle)
		if err != nil {
			return 0, err
		}
		return status.OK, body(s)
	})
}

//export veloc_stats
func veloc_stats(handle C.uint64_t, buf *C.char, capacity C.int64_t, length *C.int64_t, failure *C.veloc_error) C.int32_t {
	return withStore(handle, failure, func(s *store.Store) error {
		st, err := s.Stats()
		if err != nil {
			return err
		}
		text, err := json.Marshal(st)
		if err != nil {
			return err
		}
		return give(string(text), buf, capacity, length)
	})
}

//export veloc_timeline
func veloc_timeline(handle C.uint64_t, forget C.int32_t, buf *C.char, capacity C.int64_t, length *C.int64_t, failure *C.veloc_error) C.int32_t {
	return withStore(handle, failure, func(s *store.Store) error {
		events := s.Timeline()
		text, err := json.Marshal(events)
		if err != nil {
			return err
		}
		if forget != 0 && len(text) <= int(capacity) {
			s.ForgetTimeline(len(events))
		}
		return give(string(text), buf, capacity, length)
	})
}

//export veloc_history
func veloc_history(handle C.uint64_t, name *C.veloc_const_char, length C.int64_t, history *C.uint64_t, failure *C.veloc_error) C.int32_t {
	return withStore(handle, failure, func(s *store.Store) error {
		if err := need(unsafe.Pointer(history)); err != nil {
			return err
		}
		text, err := bytesAt(name, length)
		if err != nil {
			return err
		}
		h, err := s.History(string(text))
		if err != nil {
			return err
		}
		*history = C.uint64_t(h.Number(histories.Put))
		return nil
	})
}

// withHistory runs body with an existing history.
func withHistory(handle C.uint64_t, failure *C.veloc_error, body func(h *store.History) error) C.int32_t {
	return guard(failure, func() (status.Code, error) {
		h, err := historyOf(handle)
		if err != nil {
			return 0, err
		}
		return status.OK, body(h)
	})
}

//export veloc_history_clear
func veloc_history_clear(history C.uint64_t, failure *C.veloc_error) C.int32_t {
	return withHistory(history, failure, (*store.History).Clear)
}

//export veloc_history_len
func veloc_history_len(history C.uint64_t, n *C.int64_t, failure *C.veloc_error) C.int32_t {
	return withHistory(history, failure, func(h *store.History) error {
		if err := need(unsafe.Pointer(n)); err != nil {
			return err
		}
		got, err := h.Len()
		*n = C.int64_t(got)
		return err
	})
}

//export veloc_keys
func veloc_keys(history C.uint64_t, buf *C.char, capacity C.int64_t, length *C.int64_t, failure *C.veloc_error) C.int32_t {
	return withHistory(history, failure, func(h *store.History) error {
		keys, err := h.Keys()
		if err != nil {
			return err
		}
		var b []byte
		for _, k := range keys {
			b = appendKey(b, k)
		}
		return give(string(b), buf, capacity, length)
	})
}

// appendKey writes a key in the form of veloc_keys.
func appendKey(b []byte, k model.Key) []byte {
	kind := uint32(C.VELOC_KEY_INT)
	if k.IsText {
		kind = C.VELOC_KEY_STR
	}
	b = binary.LittleEndian.AppendUint32(b, kind)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(k.Text)))
	b = binary.LittleEndian.AppendUint64(b, uint64(k.Number))
	return append(b, k.Text...)
}

//export veloc_lookup
func veloc_lookup(history C.uint64_t, key *C.veloc_const_key, info *C.veloc_info, failure *C.veloc_error) C.int32_t {
	return withHistory(history, failure, func(h *store.History) error {
		if err := need(unsafe.Pointer(info)); err != nil {
			return err
		}
		k, err := keyOf(key)
		if err != nil {
			return err
		}
		i, err := h.Lookup(k)
		if err != nil {
			return err
		}
		info.ticket, info.layout = C.uint64_t(i.Ticket), C.uint64_t(i.Layout)
		info.slot_bytes, info.payload_bytes, info.meta_len = C.int64_t(i.Slot), C.int64_t(i.Payload), C.int64_t(i.Meta)
		info.captured_ns = C.int64_t(i.Time)
		info.tiers, info.ready = C.int32_t(i.Tiers), 0
		if i.Ready {
			info.ready = 1
		}
		return nil
	})
}

//export veloc_describe
func veloc_describe(history C.uint64_t, key *C.veloc_const_key, buf *C.char, capacity C.int64_t, length *C.int64_t, failure *C.veloc_error) C.int32_t {
	return withHistory(history, failure, func(h *store.History) error {
		k, err := keyOf(key)
		if err != nil {
			return err
		}
		d, err := h.Describe(k)
		if err != nil {
			return err
		}
		return give(string(appendDescription(nil, &d)), buf, capacity, length)
	})
}

// appendDescription writes a description in the form of veloc_describe.
func appendDescription(b []byte, d *store.Description) []byte {
	for _, number := range []uint64{d.Ticket, d.Serial, d.Layout, uint64(d.Slot), uint64(len(d.Sums)), uint64(len(d.Meta))} {
		b = binary.LittleEndian.AppendUint64(b, number)
	}
	for i, sum := range d.Sums {
		b = binary.LittleEndian.AppendUint64(b, sum)
		b = binary.LittleEndian.AppendUint64(b, uint64(len(d.Leaves[i])))
		for _, leaf := range d.Leaves[i] {
			b = binary.LittleEndian.AppendUint64(b, leaf)
		}
	}
	return append(b, d.Meta...)
}

//export veloc_drop
func veloc_drop(history C.uint64_t, key *C.veloc_const_key, failure *C.veloc_error) C.int32_t {
	return withHistory(history, failure, func(h *store.History) error {
		k, err := keyOf(key)
		if err != nil {
			return err
		}
		return h.Drop(k)
	})
}

// maxHints bounds the hints and keys of one call: a wrong count must not read out of bounds.
const maxHints = 1 << 24

//export veloc_retain
func veloc_retain(history C.uint64_t, rule *C.veloc_const_retention, failure *C.veloc_error) C.int32_t {
	return withHistory(history, failure, func(h *store.History) error {
		if err := need(unsafe.Pointer(rule)); err != nil {
			return err
		}
		r, err := retentionOf((*C.veloc_retention)(unsafe.Pointer(rule)))
		if err != nil {
			return err
		}
		return h.Retain(r)
	})
}

//export veloc_reduce
func veloc_reduce(history C.uint64_t, json *C.veloc_const_char, length C.int64_t, failure *C.veloc_error) C.int32_t {
	return withHistory(history, failure, func(h *store.History) error {
		text, err := bytesAt(json, length)
		if err != nil {
			return err
		}
		r, err := store.ParseReduction(text)
		if err != nil {
			return err
		}
		return h.Reduce(r)
	})
}

//export veloc_course
func veloc_course(history C.uint64_t, buf *C.char, capacity C.int64_t, length *C.int64_t, failure *C.veloc_error) C.int32_t {
	return withHistory(history, failure, func(h *store.History) error {
		text, err := h.Course()
		if err != nil {
			return err
		}
		return give(string(text), buf, capacity, length)
	})
}

func retentionOf(rule *C.veloc_retention) (r model.Retention, err error) {
	if rule.last < 0 || rule.every < 0 || rule.best < 0 {
		return r, status.New(status.Invalid, "the last %d, every %d-th and the best %d: none can be negative", rule.last, rule.every, rule.best)
	}
	r = model.Retention{Last: uint64(rule.last), Every: uint64(rule.every), Named: rule.named != 0}
	if r.Keys, err = keysOf((*C.veloc_const_key)(unsafe.Pointer(rule.keys)), rule.n_keys); err != nil {
		return r, err
	}
	r.Best, err = bestOf(rule)
	return r, err
}

func bestOf(rule *C.veloc_retention) (b model.Best, err error) {
	if rule.n_by > catalog.MostPath || (rule.best > 0) != (rule.n_by > 0) {
		return b, status.New(status.Invalid, "the best %d by a number behind %d names: there are 1 to %d, and none without best", rule.best, rule.n_by, catalog.MostPath)
	}
	names, err := keysOf((*C.veloc_const_key)(unsafe.Pointer(rule.by)), rule.n_by)
	if err != nil {
		return b, err
	}
	b = model.Best{Count: uint64(rule.best), Largest: rule.best > 0 && rule.largest != 0}
	bytes := 0
	for _, name := range names {
		if bytes += len(name.Text); !name.IsText || bytes > catalog.MostName {
			return b, status.New(status.Invalid, "the names that lead to a number are texts of at most %s together", quantity.Sized(catalog.MostName))
		}
		b.By = append(b.By, name.Text)
	}
	return b, nil
}

// keysOf reads an array of n keys.
func keysOf(keys *C.veloc_const_key, n C.int64_t) (all []model.Key, err error) {
	if n < 0 || n > maxHints || (keys == nil && n > 0) {
		return nil, status.New(status.Invalid, "%d keys", int64(n))
	}
	for i := range int(n) {
		k, err := keyOf((*C.veloc_const_key)(unsafe.Add(unsafe.Pointer(keys), uintptr(i)*unsafe.Sizeof(C.veloc_key{}))))
		if err != nil {
			return nil, err
		}
		all = append(all, k)
	}
	return all, nil
}

//export veloc_hint
func veloc_hint(history C.uint64_t, items *C.veloc_const_hint_item, n C.int64_t, queued *C.int64_t, failure *C.veloc_error) C.int32_t {
	return withHistory(history, failure, func(h *store.History) error {
		if n < 0 || n > maxHints || (items == nil && n > 0) {
			return status.New(status.Invalid, "%d hints", int64(n))
		}
		hints := make([]plan.Hint, 0, int(n))
		for i := range unsafe.Slice((*C.veloc_hint_item)(unsafe.Pointer(items)), int(n)) {
			x, err := hintOf((*C.veloc_hint_item)(unsafe.Add(unsafe.Pointer(items), uintptr(i)*unsafe.Sizeof(C.veloc_hint_item{}))))
			if err != nil {
				return err
			}
			hints = append(hints, x)
		}
		got, err := h.Hint(hints)
		if queued != nil {
			*queued = C.int64_t(got)
		}
		return err
	})
}

func hintOf(item *C.veloc_hint_item) (plan.Hint, error) {
	if item.op == C.VELOC_HINT_ADVANCE {
		return plan.Hint{Op: plan.Advance, Steps: int64(item.key.number)}, nil
	}
	k, err := keyOf((*C.veloc_const_key)(unsafe.Pointer(&item.key)))
	if err != nil {
		return plan.Hint{}, err
	}
	switch item.op {
	case C.VELOC_HINT_RESTORE:
		return plan.Hint{Op: plan.Restore, Key: k}, nil
	case C.VELOC_HINT_LAST:
		return plan.Hint{Op: plan.Last, Key: k}, nil
	case C.VELOC_HINT_DROP:
		return plan.Hint{Op: plan.Drop, Key: k}, nil
	}
	return plan.Hint{}, status.New(status.Invalid, "hint operation %d", int32(item.op))
}

//export veloc_hint_clear
func veloc_hint_clear(history C.uint64_t, failure *C.veloc_error) C.int32_t {
	return withHistory(history, failure, (*store.History).ClearHints)
}

//export veloc_plan_next
func veloc_plan_next(history C.uint64_t, buf *C.char, capacity C.int64_t, length *C.int64_t, out *C.veloc_plan_restore, failure *C.veloc_error) C.int32_t {
	return withHistory(history, failure, func(h *store.History) error {
		if err := need(unsafe.Pointer(out), unsafe.Pointer(length)); err != nil {
			return err
		}
		if capacity < 0 || (buf == nil && capacity > 0) {
			return status.New(status.Invalid, "no place for the key")
		}
		k, last, number, ok, err := h.NextDue()
		if err != nil {
			return err
		}
		if !ok {
			*length = 0
			return nil
		}
		key := appendKey(nil, k)
		if int64(len(key)) > int64(capacity) {
			err = h.ReturnDue(number, k, last)
		}
		out.number, out.last = C.int64_t(number), 0
		if last {
			out.last = 1
		}
		return errors.Join(err, give(string(key), buf, capacity, length))
	})
}

//export veloc_plan_undo
func veloc_plan_undo(history C.uint64_t, key *C.veloc_const_key, number C.int64_t, last C.int32_t, failure *C.veloc_error) C.int32_t {
	return withHistory(history, failure, func(h *store.History) error {
		k, err := keyOf(key)
		if err != nil {
			return err
		}
		return h.ReturnDue(int64(number), k, last != 0)
	})
}

//export veloc_prefetch
func veloc_prefetch(history C.uint64_t, failure *C.veloc_error) C.int32_t {
	return withHistory(history, failure, (*store.History).Prefetch)
}

//export veloc_layout
func veloc_layout(handle C.uint64_t, layout C.uint64_t, buf *C.char, capacity C.int64_t, length *C.int64_t, failure *C.veloc_error) C.int32_t {
	return withStore(handle, failure, func(s *store.Store) error {
		text, err := s.Layout(uint64(layout))
		if err != nil {
			return err
		}
		return give(text, buf, capacity, length)
	})
}

//export veloc_ticket
func veloc_ticket(handle C.uint64_t, ticket C.uint64_t, state *C.veloc_ticket_state, failure *C.veloc_error) C.int32_t {
	return withStore(handle, failure, func(s *store.Store) error {
		if err := need(unsafe.Pointer(state)); err != nil {
			return err
		}
		st, err := s.Ticket(uint64(ticket))
		if err != nil {
			return err
		}
		state.flags = 0
		if st.Captured {
			state.flags |= C.VELOC_TICKET_CAPTURED
		}
		if st.Gone {
			state.flags |= C.VELOC_TICKET_GONE
		}
		state.durable, state.failed = C.int32_t(st.Durable), C.int32_t(st.Failed)
		return nil
	})
}
