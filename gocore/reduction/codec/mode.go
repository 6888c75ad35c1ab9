package codec

// Mode is the form of a chunk's payload. The numbers are part of the format.
type Mode uint8

// The modes.
const (
	Raw   Mode = iota // the plain bytes
	Const             // one word, repeated
	Diff              // differences of neighbouring words
	Exp               // short codes for exponents; floats only
	Xrz               // XOR with the reference, without zero bytes
	Step              // differences of neighbouring changes since the reference
	modes
)

// ModeCount is the number of modes.
const ModeCount = int(modes)

var modeNames = [ModeCount]string{"raw", "const", "diff", "exp", "xrz", "step"}

// String is the mode's name in lower case.
func (m Mode) String() string {
	if m >= modes {
		return "unknown"
	}
	return modeNames[m]
}

// referenced tells whether decoding needs the reference.
func (m Mode) referenced() bool { return Referenced&(1<<m) != 0 }

// Modes is a set of modes. Raw is in every set.
type Modes uint8

// Referenced are the modes whose decoding needs the reference.
const Referenced = Modes(1<<Xrz | 1<<Step)

// AllModes are all modes that the kind and the presence of a reference permit.
const AllModes = Modes(1<<modes - 1)

// Only is the set of the given modes and Raw.
func Only(list ...Mode) Modes {
	set := Modes(1 << Raw)
	for _, m := range list {
		set |= 1 << m
	}
	return set
}

// Has tells whether a mode is in the set.
func (s Modes) Has(m Mode) bool { return m == Raw || s>>m&1 != 0 }

// permitted is the part of the set that works for a kind, with or without a reference.
func (s Modes) permitted(k Kind, reference bool) Modes {
	set := s&AllModes | 1<<Raw
	if !k.Float() {
		set &^= 1 << Exp
	}
	if !reference {
		set &^= 1<<Xrz | 1<<Step
	}
	return set
}
