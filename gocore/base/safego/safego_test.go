package safego

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

const hang = 10 * time.Second

// fresh gives the test its own core, and restores the process's core afterwards.
func fresh(t *testing.T) {
	t.Helper()
	reset := func() {
		core.mu.Lock()
		defer core.mu.Unlock()
		core.text, core.wake = "", nil
		core.set.Store(false)
	}
	reset()
	t.Cleanup(reset)
}

func wait(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(hang):
		t.Fatalf("hangs: %s", what)
	}
}

func deepFunctionThatPanics() { panic(errors.New("deliberate")) }

func TestGoroutinePanicPoisons(t *testing.T) {
	fresh(t)
	if text, bad := Poisoned(); bad || text != "" {
		t.Fatalf("poisoned before any panic: %q", text)
	}
	told := make(chan struct{})
	OnPoison(func() { close(told) })
	Go("worker", deepFunctionThatPanics)
	wait(t, told, "callback")
	text, bad := Poisoned()
	if !bad {
		t.Fatal("not poisoned")
	}
	for _, want := range []string{"goroutine worker", "deliberate", "deepFunctionThatPanics"} {
		if !strings.Contains(text, want) {
			t.Errorf("text lacks %q:\n%s", want, text)
		}
	}
}

func TestOnlyFirstPanicIsKept(t *testing.T) {
	fresh(t)
	Poison("first", "one")
	Poison("second", "two")
	text, _ := Poisoned()
	if !strings.HasPrefix(text, "panic in first: one\n") || strings.Contains(text, "two") {
		t.Fatalf("%.80q", text)
	}
}

func TestTextIsBounded(t *testing.T) {
	fresh(t)
	stop := make(chan struct{})
	var all sync.WaitGroup
	for range 2000 {
		all.Add(1)
		Go("parked", func() { defer all.Done(); <-stop })
	}
	Poison("here", strings.Repeat("x", 1<<20))
	close(stop)
	all.Wait()
	text, _ := Poisoned()
	if len(text) > MaxText || len(text) < MaxText/2 {
		t.Fatalf("%d bytes of text", len(text))
	}
	if !strings.Contains(text, "TestTextIsBounded") {
		t.Fatal("the panicking goroutine's stack is cut off")
	}
}

func TestCallbacksRunOnceEachAndAtOnceWhenLate(t *testing.T) {
	fresh(t)
	var mu sync.Mutex
	calls := map[string]int{}
	done := make(chan struct{}, 16)
	note := func(name string) func() {
		return func() {
			mu.Lock()
			calls[name]++
			mu.Unlock()
			done <- struct{}{}
		}
	}
	OnPoison(func() { panic("a callback's own panic must not matter") })
	OnPoison(func() { select {} }) // one that blocks for ever must not keep the others from running
	OnPoison(note("a"))
	remove := OnPoison(note("removed"))
	remove()
	remove()
	OnPoison(note("b"))
	Poison("x", 1)
	Poison("x", 2)
	wait(t, done, "first callback")
	wait(t, done, "second callback")
	OnPoison(note("late"))()
	wait(t, done, "late callback")
	mu.Lock()
	defer mu.Unlock()
	if calls["a"] != 1 || calls["b"] != 1 || calls["late"] != 1 || calls["removed"] != 0 {
		t.Fatalf("%v", calls)
	}
}

func guarded(v any) (err error) {
	defer Guard("guarded", &err)
	if v != nil {
		panic(v)
	}
	return errors.New("its own")
}

func TestGuard(t *testing.T) {
	fresh(t)
	if err := guarded(nil); errors.Is(err, ErrPoisoned) || err.Error() != "its own" {
		t.Fatalf("without a panic: %v", err)
	}
	if _, bad := Poisoned(); bad {
		t.Fatal("poisoned by an ordinary error")
	}
	err := guarded("boom")
	if !errors.Is(err, ErrPoisoned) || !strings.Contains(err.Error(), "boom") {
		t.Fatalf("%v", err)
	}
	if text, bad := Poisoned(); !bad || !strings.Contains(text, "panic in guarded: boom") {
		t.Fatalf("%.80q", text)
	}
}

func TestConcurrentPanicsKeepOneWholeText(t *testing.T) {
	fresh(t)
	before := runtime.NumGoroutine()
	var all sync.WaitGroup
	for range 50 {
		all.Add(1)
		Go("p", func() { panic("same") })
		Go("r", func() {
			defer all.Done()
			if text, bad := Poisoned(); bad && !strings.HasPrefix(text, "panic in goroutine p: same") {
				t.Errorf("%.80q", text)
			}
		})
	}
	all.Wait()
	for runtime.NumGoroutine() > before { // the callbacks of some may still run
		time.Sleep(time.Millisecond)
	}
	if text, bad := Poisoned(); !bad || strings.Count(text, "panic in ") != 1 {
		t.Errorf("%.80q", text)
	}
}

// Goroutines are counted by their names until they have ended, also by a panic.
func TestRunningGoroutinesHaveNames(t *testing.T) {
	fresh(t)
	end := make(chan struct{})
	for range 3 {
		Go("waiting", func() { <-end })
	}
	Go("panicking", deepFunctionThatPanics)
	if n := Running()["waiting"]; n != 3 {
		t.Errorf("%d goroutines are said to wait, not 3", n)
	}
	close(end)
	for deadline := time.Now().Add(hang); ; time.Sleep(time.Millisecond) {
		left := Running()
		if left["waiting"]+left["panicking"] == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still running: %v", left)
		}
	}
}
