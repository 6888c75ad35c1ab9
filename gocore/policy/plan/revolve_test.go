package plan

import "velocpy/gocore/model"

// opcode is a step of a reversal schedule on a store: a write, a restore or a drop.
type opcode struct {
	what byte // 'w', 'r', 'd'
	key  int64
}

// binomial returns the binomial coefficient of n over k, small enough for schedules in tests.
func binomial(n, k int) int {
	b := 1
	for i := 1; i <= k; i++ {
		b = b * (n - k + i) / i
	}
	return b
}

// revolve returns a schedule in the manner of Revolve: it reverses n steps while it keeps at most slots states. With s slots and r repetitions,
// binomial(s+r, s) steps can be reversed. The next state is kept where one slot less suffices for the steps behind it. Keys are the numbers of steps.
// The state that the forward computation has reached needs no restore. A state is dropped right after its last restore.
func revolve(n, slots int) []opcode {
	ops := []opcode{{'w', 0}}
	stands := 0
	stand := func(at int) {
		if stands != at {
			ops = append(ops, opcode{'r', int64(at)})
		}
	}
	var reverse func(from, to, free int)
	reverse = func(from, to, free int) { // state from is kept; reverses the steps in [from, to)
		if free == 0 || to-from == 1 {
			for range to - from {
				stand(from)
				stands = -1
			}
			return
		}
		mid := from + split(to-from, free+1)
		stand(from)
		ops = append(ops, opcode{'w', int64(mid)})
		stands = mid
		reverse(mid, to, free-1)
		ops = append(ops, opcode{'d', int64(mid)})
		reverse(from, mid, free)
	}
	reverse(0, n, slots-1)
	return append(ops, opcode{'d', 0})
}

// split is how far to advance before the next state is kept, with n steps to reverse and s slots, one of which holds the start.
func split(n, s int) int {
	r := 0
	for binomial(s+r, s) < n {
		r++
	}
	return max(1, min(n-1, n-binomial(s+r-1, s-1)))
}

// play drives the history by a schedule and returns its restores.
func (h *history) play(ops []opcode) (restores []model.Key) {
	for _, op := range ops {
		k := model.NumberKey(op.key)
		switch op.what {
		case 'w':
			h.Written(k)
		case 'd':
			h.Dropped(k)
		case 'r':
			h.restore(k)
			restores = append(restores, k)
		}
	}
	return restores
}
