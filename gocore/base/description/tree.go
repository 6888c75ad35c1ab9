package description

import "velocpy/gocore/model"

const (
	mostTreeDepth = 100     // nested containers of a tree: a client walks it recursively
	mostTreeBytes = 4 << 20 // of the text of a structure
)

// tree is the text of a structure, as far as it has been read. docs/format.md defines it.
type tree struct {
	json   json
	arrays int // nodes that stand for the next region
	values int // nodes that stand for the next value beside the meta
}

// checkTree tells whether a text is the structure of a tree with that many arrays, and counts its values.
func checkTree(text string, regions int) (values int, err error) {
	if len(text) > mostTreeBytes {
		return 0, malformed("the structure has %d bytes, and %d are the most", len(text), mostTreeBytes)
	}
	t := tree{json: json{p: text}}
	switch {
	case !wellFormed(text):
		return 0, malformed("the structure is no UTF-8")
	case !t.container(1) || !t.json.ends():
		return 0, malformed("the structure is none, from byte %d on", len(text)-len(t.json.p))
	case t.arrays != regions:
		return 0, malformed("the structure has %d arrays, and the layout %d regions", t.arrays, regions)
	}
	return t.values, nil
}

// node consumes a container, an array or a value, at a depth.
func (t *tree) node(depth int) bool {
	t.json.space()
	if len(t.json.p) > 0 && t.json.p[0] == '[' {
		return t.container(depth)
	}
	kind, ok := t.json.text()
	switch {
	case ok && kind == "array":
		t.arrays++
	case ok && kind == "value":
		t.values++
	default:
		return false
	}
	return true
}

// container consumes a list that begins with the kind of the container. Its items follow, in a dict each behind its key.
func (t *tree) container(depth int) bool {
	if depth > mostTreeDepth {
		return false
	}
	kind, keyed, atKey := "", false, false
	var seen map[string]bool
	ok := t.json.list(func() bool {
		switch {
		case kind == "":
			var ok bool
			kind, ok = t.json.text()
			keyed = kind == "dict" || kind == "ordered"
			atKey = keyed
			return ok && (keyed || kind == "list" || kind == "tuple")
		case atKey:
			atKey = false
			key, ok := t.json.key()
			if !ok || seen[key] {
				return false
			}
			if seen == nil {
				seen = map[string]bool{}
			}
			seen[key] = true
			return true
		}
		atKey = keyed
		return t.node(depth + 1)
	})
	return ok && kind != "" && atKey == keyed
}

// key consumes a text, which is returned behind a quote, or an integer, returned as its digits.
func (j *json) key() (string, bool) {
	j.space()
	before := j.p
	if before != "" && before[0] == '"' {
		text, ok := j.text()
		return `"` + text, ok
	}
	if before != "" && before[0] == '-' {
		j.p = j.p[1:]
	}
	digits := j.p
	n := j.whole()
	zero := len(before) > len(digits) && n == 1 && digits[0] == '0'
	return before[:len(before)-len(j.p)], n > 0 && n <= mostDigits && !zero
}

// CheckAnnotation tells whether a text is a valid meta of a layout that Check has accepted: beside a tree's meta there are as many values as the tree
// has.
func CheckAnnotation(l *model.Layout, meta string) error {
	if err := CheckMeta(meta); err != nil {
		return err
	}
	f := fields{p: l.Text[min(2, len(l.Text)):]}
	if f.u8() != treeKind {
		return nil
	}
	f.u32()
	for _, span := range l.Spans {
		if _, err := f.region(span); err != nil {
			return err
		}
	}
	want, err := checkTree(f.p, len(l.Spans))
	if err != nil {
		return err
	}
	if values, ok := valuesBeside(meta); !ok || values != want {
		return malformed("the meta has not the %d values of the tree beside it", want)
	}
	return nil
}

// valuesBeside counts the values beside the meta of a tree: both form a list of two, and the values are a list themselves.
func valuesBeside(text string) (values int, ok bool) {
	j := json{p: text}
	part := 0
	ok = j.list(func() bool {
		part++
		switch part {
		case 1:
			return j.list(func() bool {
				values++
				return j.plain()
			})
		case 2:
			return j.value(1)
		}
		return false
	})
	return values, ok && part == 2 && j.ends()
}

// plain consumes a value that is neither a list nor an object.
func (j *json) plain() bool {
	j.space()
	return j.p != "" && j.p[0] != '[' && j.p[0] != '{' && j.value(0)
}
