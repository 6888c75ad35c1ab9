// Package bandwidth estimates the rate of transfers.
package bandwidth

type Estimator struct{ rate float64 }

func New(prior float64) *Estimator {
	if prior <= 0 {
		prior = 1e9
	}
	return &Estimator{prior}
}
func (e *Estimator) Observe(bytes, ns int64) {
	if ns > 0 {
		e.rate += 0.2 * (float64(bytes)/float64(ns)*1e9 - e.rate)
	}
}
func (e *Estimator) Predict(bytes int64) int64 { return int64(float64(bytes) / e.rate * 1e9) }
func (e *Estimator) Rate() float64             { return e.rate }
