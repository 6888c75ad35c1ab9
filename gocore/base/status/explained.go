package status

import "errors"

// Explained converts an error of a tier's storage to one of the contract, unless it is one already; nil stays nil.
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
