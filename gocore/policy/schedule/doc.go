// Package schedule
package schedule
