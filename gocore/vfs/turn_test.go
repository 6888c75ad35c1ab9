package vfs

import (
	"errors"
	"path/filepath"
	"testing"
)

func TestTurn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "turn")
	first, err := TryTurn(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := TryTurn(file); !errors.Is(err, ErrTaken) {
		t.Fatalf("a second turn beside the first: %v", err)
	}
	if err := first.End(); err != nil {
		t.Fatal(err)
	}
	second, err := TryTurn(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.End(); err != nil {
		t.Fatal(err)
	}
	if _, err := TryTurn(filepath.Join(file, "below")); err == nil || errors.Is(err, ErrTaken) {
		t.Fatalf("a turn without a file: %v", err)
	}
}
