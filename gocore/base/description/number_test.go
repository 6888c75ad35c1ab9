package description

import (
	stdjson "encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const (
	flatText = "L\x02\x00\x00\x00\x00\x00"
	treeText = "L\x02\x02\x00\x00\x00\x00" + `["list","value"]`
)

func TestNumber(t *testing.T) {
	nan := math.NaN() // stands for no number
	for _, c := range []struct {
		text, meta, names string
		want              float64
	}{
		{flatText, `{"loss": 0.25}`, "loss", 0.25},
		{"", `{"loss": 0.25}`, "loss", 0.25},
		{flatText, ` { "a" : [{"loss":1}], "loss" : -1.5e3 } `, "loss", -1500},
		{flatText, `{"val": {"loss": 7, "other": {}}, "loss": 1}`, "val loss", 7},
		{flatText, `{"loss": 1, "loss": 2}`, "loss", 2},
		{flatText, `{"loss": 1, "loss": null}`, "loss", nan},
		{flatText, `{"val": {"loss": 1}, "val": {"b": 2}}`, "val loss", nan},
		{flatText, `{"val": {"loss": 1}, "val": 3}`, "val loss", nan},
		{flatText, `{"l\u006fss": 3}`, "loss", 3},
		{flatText, `{"\ud83d\ude00": 3}`, "😀", 3},
		{flatText, `{"\ud800": 3}`, "\xed\xa0\x80", 3},
		{flatText, `{"loss": NaN}`, "loss", nan},
		{flatText, `{"loss": Infinity}`, "loss", nan},
		{flatText, `{"loss": -Infinity}`, "loss", nan},
		{flatText, `{"loss": 1e999}`, "loss", nan},
		{flatText, `{"loss": -1e999}`, "loss", nan},
		{flatText, `{"loss": 1e-999}`, "loss", 0},
		{flatText, `{"loss": ` + strings.Repeat("9", 400) + `}`, "loss", nan},
		{flatText, `{"loss": 9007199254740993}`, "loss", 9007199254740992},
		{flatText, `{"loss": true}`, "loss", nan},
		{flatText, `{"loss": "1"}`, "loss", nan},
		{flatText, `{"loss": [1]}`, "loss", nan},
		{flatText, `{"loss": {"loss": 1}}`, "loss", nan},
		{flatText, `{"loss": 1}`, "loss loss", nan},
		{flatText, `{"loss": 1}`, "los", nan},
		{flatText, `{"loss": 1} x`, "loss", nan},
		{flatText, `{"loss": 1, }`, "loss", nan},
		{flatText, `{"loss": 01}`, "loss", nan},
		{flatText, `{"loss": 1`, "loss", nan},
		{flatText, `[null,{"loss": 1}]`, "loss", nan},
		{flatText, `3`, "loss", nan},
		{flatText, ``, "loss", nan},
		{flatText, strings.Repeat(`{"a":`, 999) + "1" + strings.Repeat("}", 999), strings.Repeat(" a", 999), 1},
		{flatText, strings.Repeat(`{"a":`, 1001) + "1" + strings.Repeat("}", 1001), strings.Repeat(" a", 1001), nan},
		{treeText, `[[null], {"loss": 4}]`, "loss", 4},
		{treeText, `[[{"loss": 1}], {"loss": 4}]`, "loss", 4},
		{treeText, `[[1], null]`, "loss", nan},
		{treeText, `[[1], {"loss": 4}, {"loss": 5}]`, "loss", nan},
		{treeText, `[{"loss": 4}]`, "loss", nan},
		{treeText, `{"loss": 4}`, "loss", nan},
		{treeText, `[[1], {"loss": 4}]]`, "loss", nan},
	} {
		n, ok := Number(c.text, c.meta, strings.Fields(c.names))
		if ok == math.IsNaN(c.want) || ok && n != c.want {
			t.Errorf("%.60s by %.20s: %v, %v, not %v", c.meta, c.names, n, ok, c.want)
		}
	}
}

// For any JSON object, the number at a path is the one that Go's JSON finds there.
func TestNumberIsThatOfAnotherReader(t *testing.T) {
	names := rapid.SampledFrom([]string{"a", "b", "ä\n", ""})
	leaf := rapid.OneOf(
		rapid.Map(rapid.Float64(), func(f float64) any { return f }), rapid.Map(rapid.Int64(), func(n int64) any { return stdjson.Number(strconv.FormatInt(n, 10)) }),
		rapid.SampledFrom([]any{nil, true, "1", []any{1.0}}))
	var node func(depth int) *rapid.Generator[any]
	node = func(depth int) *rapid.Generator[any] {
		if depth == 0 {
			return leaf
		}
		return rapid.OneOf(leaf, rapid.Map(rapid.MapOfN(names, node(depth-1), 0, 3), func(m map[string]any) any { return m }))
	}
	rapid.Check(t, func(t *rapid.T) {
		root := node(3).Draw(t, "meta")
		path := rapid.SliceOfN(names, 1, 3).Draw(t, "path")
		meta, err := stdjson.Marshal(root)
		if err != nil {
			t.Fatal(err)
		}
		var at any
		if err := stdjson.Unmarshal(meta, &at); err != nil {
			t.Fatal(err)
		}
		for _, name := range path {
			inner, _ := at.(map[string]any)
			at = inner[name]
		}
		want, is := at.(float64)
		for text, meta := range map[string]string{flatText: string(meta), treeText: "[[1]," + string(meta) + "]"} {
			if n, ok := Number(text, meta, path); ok != is || n != want {
				t.Fatalf("%s by %q: %v, %v, not %v, %v", meta, path, n, ok, want, is)
			}
		}
	})
}

// Number returns only finite numbers, and none from an invalid meta.
func FuzzNumber(f *testing.F) {
	for _, meta := range []string{`{"a": {"b": -1.5e-3}, "a": 1}`, `[[1], {"a": 2}]`, `{"a": NaN}`, `{"\u0061": 1e999}`, `{"a": 1`} {
		f.Add(meta, false)
		f.Add(meta, true)
	}
	f.Fuzz(func(t *testing.T, meta string, tree bool) {
		text := flatText
		if tree {
			text = treeText
		}
		for _, names := range [][]string{{"a"}, {"a", "b"}} {
			n, ok := Number(text, meta, names)
			if ok && (math.IsNaN(n) || math.IsInf(n, 0) || wellFormed(meta) && CheckMeta(meta) != nil) {
				t.Fatalf("%q by %q is %v", meta, names, n)
			}
		}
	})
}

func BenchmarkNumber(b *testing.B) {
	meta := `{"step": 1200, "epoch": 3, "lr": 0.0001, "val": {"loss": 0.731, "accuracy": 0.81}, "loss": 0.69, "config": "baseline, second run"}`
	for b.Loop() {
		if _, ok := Number(flatText, meta, []string{"loss"}); !ok {
			b.Fatal("there is none")
		}
	}
}
