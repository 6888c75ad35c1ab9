// Package lint holds the test that keeps the core's own rules: each is in rules_test.go, with its
// reason, and with a snippet that it has to reject.
package lint
