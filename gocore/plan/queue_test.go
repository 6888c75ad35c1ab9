package plan

import "testing"

func hints(op Op, keys ...int64) []Hint {
	var list []Hint
	for _, k := range keys {
		list = append(list, Hint{Op: op, Key: Number(k)})
	}
	return list
}

func TestRestoresAtTheHead(t *testing.T) {
	o := New(Options{})
	o.Append(hints(Restore, 3, 2, 1)...)
	for i, k := range []int64{3, 2, 1} {
		if d, ok := o.Distance(Number(1)); !ok || d != int64(2-i) {
			t.Fatalf("distance %d %v", d, ok)
		}
		if v := o.Restored(Number(k)); !v.Expected || v.Ahead != 0 || v.Last || v.Guessed {
			t.Fatalf("%+v", v)
		}
	}
	if o.Len() != 0 || o.Head() != 3 {
		t.Fatal(o.Len(), o.Head())
	}
}

func TestOvertakenHintsArePatient(t *testing.T) {
	o := New(Options{Patience: 2})
	o.Append(hints(Restore, 9, 8, 7, 6, 5, 9)...)
	for _, k := range []int64{8, 7} {
		if v := o.Restored(Number(k)); !v.Expected || v.Ahead != 1 || len(v.Withdrawn) != 0 {
			t.Fatalf("%+v", v)
		}
	}
	if d, _ := o.Distance(Number(5)); d != 2 {
		t.Fatal(d)
	}
	if v := o.Restored(Number(6)); len(v.Withdrawn) != 0 || o.Head() != 4 {
		t.Fatalf("9 is expected again, but: %+v", v)
	}
	if s, _ := o.Seq(Number(9)); s != 5 {
		t.Fatal(s)
	}
}
