package cuda

import (
	"slices"
	"testing"
	"unsafe"
)

// heap is slabs of the Go heap.
type heap struct{ words [][]uint64 }

func (h *heap) more(atLeast int) (block, error) {
	h.words = append(h.words, make([]uint64, max(atLeast, 64)))
	return block{Pointer(unsafe.Pointer(&h.words[len(h.words)-1][0])), max(atLeast, 64)}, nil
}

func (h *heap) free() error { return nil }

// The words of results are free after Take and Discard, and a second call frees nothing.
func TestCodecResultsAreFreed(t *testing.T) {
	h := &heap{}
	d := &Device{}
	d.pinned.slabs = h
	for i := range 100 {
		words, err := d.pinned.take(3)
		if err != nil {
			t.Fatal(err)
		}
		copy(words.onHost(), []uint64{0, 5, uint64(i)})
		r := results{d, words}
		switch i % 3 {
		case 0:
			l := lengths{r}
			if n := l.Take(); !slices.Equal(n, []int64{0, 5, int64(i)}) || l.Take() != nil {
				t.Errorf("lengths %v", n)
			}
			l.Discard()
		case 1:
			f := faults{r}
			if bad := f.Take(); !slices.Equal(bad, []int{1, 2}) || f.Take() != nil {
				t.Errorf("damaged %v", bad)
			}
		default:
			r.Discard()
			r.Discard()
		}
	}
	if len(h.words) != 1 || len(d.pinned.idle[class(3)]) != 1 {
		t.Errorf("%d slabs, %d free blocks", len(h.words), len(d.pinned.idle[class(3)]))
	}
}
