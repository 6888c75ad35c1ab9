package status

import "errors"

// Explained turns an error of what a tier is made of into one of the contract, unless it is one already; nil stays nil.
func Explained(err error, tier int, explain func(error) *Error) error {
	var known *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return known
	}
	return explain(err).AtTier(tier)
}
