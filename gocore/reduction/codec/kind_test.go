package codec

import "testing"

func TestKindsOfDtypes(t *testing.T) {
	for dtype, want := range map[string]Kind{
		"<f2": Float16, "=complex32": Float16, "=bfloat16": BFloat16, "<f4": Float32, "<c8": Float32, "<f8": Float64, "<c16": Float64, "<i2": Int16, "<u2": Int16,
		"<i4": Int32, "<u4": Int32, "<i8": Int64, "<u8": Int64, "|i1": Int8, "|u1": Int8, "|b1": Int8, "<U7": Int32, "<M8[ns]": Int64, "<m8[D]": Int64,
		">f4": Int8, ">i8": Int8, "|S5": Int8, "=float8_e4m3fn": Int8, "=unknown": Int8, "": Int8, `{"names":["a"],"formats":["<f4"]}`: Int8,
	} {
		if got := KindOf(dtype); got != want {
			t.Errorf("%s: %+v, not %+v", dtype, got, want)
		}
	}
}
