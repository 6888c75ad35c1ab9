package codec

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"sync"
)

// Test data: weights of a model, a change of them, and wavefields.

func source(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// weights are Gaussian with a scale for each row of 1024.
func weights(n int, seed uint64) []float32 {
	r := source(seed)
	w := make([]float32, n)
	scale := 0.0
	for i := range w {
		if i%1024 == 0 {
			scale = 0.02 * math.Exp(0.5*r.NormFloat64())
		}
		w[i] = float32(scale * r.NormFloat64())
	}
	return w
}

// stepped are the weights after a step of an optimiser with a uniform change of at most rate each.
func stepped(w []float32, rate float64, seed uint64) []float32 {
	r := source(seed)
	next := make([]float32, len(w))
	for i, x := range w {
		next[i] = x + float32(rate*(2*r.Float64()-1))
	}
	return next
}

// bfloat16 rounds to nearest, ties to even.
func bfloat16(x float32) uint16 {
	b := math.Float32bits(x)
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

func bytesOfBFloat16(w []float32) []byte {
	p := make([]byte, 0, 2*len(w))
	for _, x := range w {
		p = binary.LittleEndian.AppendUint16(p, bfloat16(x))
	}
	return p
}

// bytesOfFloat16 truncates; the values have to be normal.
func bytesOfFloat16(w []float32) []byte {
	p := make([]byte, 0, 2*len(w))
	for _, x := range w {
		b := math.Float32bits(x)
		e := int(b>>23&0xff) - 127 + 15
		h := uint16(b >> 16 & 0x8000)
		if e > 0 && e < 31 {
			h |= uint16(e)<<10 | uint16(b>>13&0x3ff)
		}
		p = binary.LittleEndian.AppendUint16(p, h)
	}
	return p
}

func bytesOfFloat32(w []float32) []byte {
	p := make([]byte, 0, 4*len(w))
	for _, x := range w {
		p = binary.LittleEndian.AppendUint32(p, math.Float32bits(x))
	}
	return p
}

func bytesOfFloat64(w []float64) []byte {
	p := make([]byte, 0, 8*len(w))
	for _, x := range w {
		p = binary.LittleEndian.AppendUint64(p, math.Float64bits(x))
	}
	return p
}

const waveSide = 352

// waves are wavefields of one simulation: an acoustic wave of a Ricker source in layered rock, with reflecting borders, as fp32 of waveSide rows.
type waves struct {
	early, middle, late, later []float32 // later is the step behind late
	late64                     []float64
}

var (
	simulated = sync.OnceValue(func() waves { return simulate(0.005, 720) })
	smooth    = sync.OnceValue(func() waves { return simulate(0.0025, 900) })
)

// simulate does some steps, with a source whose spectrum has its peak at frequency, in cycles a step. The waves' speed is 0.3 to 0.5 cells a step.
func simulate(frequency float64, steps int) (w waves) {
	now, before := make([]float64, waveSide*waveSide), make([]float64, waveSide*waveSide)
	speed := rock()
	for t := range steps + 1 {
		step(now, before, speed)
		now, before = before, now
		a := math.Pi * (frequency*float64(t) - 1.1)
		shoot(now, (1-2*a*a)*math.Exp(-a*a))
		switch t {
		case 50:
			w.early = single(now)
		case 260:
			w.middle = single(now)
		case steps - 1:
			w.late = single(now)
			w.late64 = append(w.late64, now...)
		case steps:
			w.later = single(now)
		}
	}
	return w
}

// rock is the square of the Courant number, in dipping layers.
func rock() []float64 {
	speed := make([]float64, waveSide*waveSide)
	for i := range speed {
		layer := (i/waveSide + i%waveSide/6) / 48
		speed[i] = 0.10 + 0.025*float64(layer%7)
	}
	return speed
}

// shoot adds a source, which is a few cells wide so that the grid can carry its waves.
func shoot(field []float64, strength float64) {
	for y := -9; y <= 9; y++ {
		for x := -9; x <= 9; x++ {
			field[(waveSide/4+y)*waveSide+waveSide/2+x] += strength * math.Exp(-float64(x*x+y*y)/18)
		}
	}
}

// step replaces the field before by the field after now.
func step(now, before, speed []float64) {
	for y := 1; y < waveSide-1; y++ {
		for x := 1; x < waveSide-1; x++ {
			i := y*waveSide + x
			l := now[i-1] + now[i+1] + now[i-waveSide] + now[i+waveSide] - 4*now[i]
			before[i] = 2*now[i] - before[i] + speed[i]*l
		}
	}
}

func single(field []float64) []float32 {
	w := make([]float32, len(field))
	for i, x := range field {
		if math.Abs(x) > 1e-30 { // a solver in fp32 has no smaller ones
			w[i] = float32(x)
		}
	}
	return w
}

// sample is a named region.
type sample struct {
	name             string
	kind             Kind
	plain, reference []byte
}

// samples are what ratios and speeds are measured on.
var samples = sync.OnceValue(func() []sample {
	w := weights(1<<19, 1)
	f := simulated()
	exps := func(rate float64) []byte { return bytesOfBFloat16(stepped(w, rate, 2)) }
	wide := make([]float64, len(w))
	for i, x := range w {
		wide[i] = float64(x) * (1 + 1e-9*float64(i%1000))
	}
	random := make([]byte, 1<<20)
	fillFamily(random, Int32, 0, 7)
	return []sample{
		{"weights bf16", BFloat16, bytesOfBFloat16(w), nil},
		{"weights fp16", Float16, bytesOfFloat16(w), nil},
		{"weights fp32", Float32, bytesOfFloat32(w), nil},
		{"weights fp64", Float64, bytesOfFloat64(wide), nil},
		{"wavefield early", Float32, bytesOfFloat32(f.early), nil},
		{"wavefield middle", Float32, bytesOfFloat32(f.middle), nil},
		{"wavefield late", Float32, bytesOfFloat32(f.late), nil},
		{"wavefield late, smooth", Float32, bytesOfFloat32(smooth().late), nil},
		{"wavefield late, smooth, reference", Float32, bytesOfFloat32(smooth().later), bytesOfFloat32(smooth().late)},
		{"wavefield late fp64", Float64, bytesOfFloat64(f.late64), nil},
		{"wavefield late, reference", Float32, bytesOfFloat32(f.later), bytesOfFloat32(f.late)},
		{"step 1e-6 bf16", BFloat16, exps(1e-6), bytesOfBFloat16(w)},
		{"step 1e-5 bf16", BFloat16, exps(1e-5), bytesOfBFloat16(w)},
		{"step 1e-4 bf16", BFloat16, exps(1e-4), bytesOfBFloat16(w)},
		{"step 1e-5 fp32", Float32, bytesOfFloat32(stepped(w, 1e-5, 2)), bytesOfFloat32(w)},
		{"ramp int8", Int8, ramp(1, 1<<20), nil},
		{"ramp int16", Int16, ramp(2, 1<<20), nil},
		{"ramp int64", Int64, ramp(8, 1<<20), nil},
		{"random", Int32, random, nil},
	}
})

// ramp has words that increase by 0 to 6.
func ramp(size, bytes int) []byte {
	r := source(9)
	p := make([]byte, bytes)
	x := uint64(0)
	for i := 0; i < bytes; i += size {
		x += r.Uint64N(7)
		for j := range size {
			p[i+j] = byte(x >> (8 * j))
		}
	}
	return p
}
