package status

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

const header = "../../../cshim/velocpy_abi.h"

// goCodes must name every constant of this package; TestCodesMatchHeader fails when the header has
// one that is missing here, and TestEveryCodeHasAName when names lacks one.
var goCodes = map[string]Code{
	"OK": OK, "PENDING": Pending, "AGAIN": Again,
	"E_INVALID": Invalid, "E_NOT_FOUND": NotFound, "E_CLOSED": Closed, "E_STALE": Stale, "E_TIER_FULL": TierFull,
	"E_IO": IO, "E_CORRUPT": Corrupt, "E_DROPPED": Dropped, "E_CHANGED": Changed, "E_POISONED": Poisoned,
	"E_FORKED": Forked, "E_TIMEOUT": Timeout, "E_UNAVAILABLE": Unavailable, "E_INTERNAL": Internal, "E_DURABILITY": Durability, "E_DEVICE_LOST": DeviceLost,
	"E_BELATED": Belated,
	"E_LOCKED":  Locked, "E_NO_STORE": NoStore, "E_LATER": Later, "E_DAMAGED": Damaged, "E_READ_ONLY": ReadOnly, "E_LOST": Lost,
}

var goTiers = map[string]int{
	"TIER_NONE": TierNone, "TIER_DEVICE": TierDevice, "TIER_HOST": TierHost, "TIER_DISK": TierDisk, "TIER_ARCHIVE": TierArchive,
}

// headerEnums returns, per enum of the header, its names (without VELOC_) and numbers.
func headerEnums(t *testing.T) []map[string]int {
	t.Helper()
	text, err := os.ReadFile(header)
	if err != nil {
		t.Fatal(err)
	}
	plain := regexp.MustCompile(`(?s)/\*.*?\*/`).ReplaceAllString(string(text), "")
	var enums []map[string]int
	for _, body := range regexp.MustCompile(`(?s)enum\s*\{(.*?)\}`).FindAllStringSubmatch(plain, -1) {
		enum := map[string]int{}
		for _, item := range regexp.MustCompile(`VELOC_(\w+)\s*=\s*(-?\d+)`).FindAllStringSubmatch(body[1], -1) {
			number, err := strconv.Atoi(item[2])
			if err != nil {
				t.Fatal(err)
			}
			enum[item[1]] = number
		}
		enums = append(enums, enum)
	}
	return enums
}

func enumWith(t *testing.T, member string) map[string]int {
	t.Helper()
	for _, enum := range headerEnums(t) {
		if _, ok := enum[member]; ok {
			return enum
		}
	}
	t.Fatalf("%s has no enum with VELOC_%s", header, member)
	return nil
}

func compare[T ~int | ~int32](t *testing.T, inHeader map[string]int, inGo map[string]T) {
	t.Helper()
	for name, number := range inHeader {
		if got, ok := inGo[name]; !ok || int(got) != number {
			t.Errorf("VELOC_%s is %d in the header, %d (known: %v) in Go", name, number, got, ok)
		}
	}
	for name := range inGo {
		if _, ok := inHeader[name]; !ok {
			t.Errorf("VELOC_%s is not in the header", name)
		}
	}
}

func TestCodesMatchHeader(t *testing.T) { compare(t, enumWith(t, "E_INVALID"), goCodes) }
func TestTiersMatchHeader(t *testing.T) { compare(t, enumWith(t, "TIER_HOST"), goTiers) }

func TestEveryCodeHasAName(t *testing.T) {
	seen := map[string]bool{}
	for name, code := range goCodes {
		text := code.String()
		if strings.HasPrefix(text, "status") || seen[text] {
			t.Errorf("%s: name %q is missing or not unique", name, text)
		}
		seen[text] = true
	}
	if len(names) != len(goCodes) || Code(-99).String() != "status -99" {
		t.Errorf("%d names for %d codes; unknown code is %q", len(names), len(goCodes), Code(-99))
	}
}

func TestErrorSaysWhereAndWhy(t *testing.T) {
	err := Wrap(IO, fmt.Errorf("write at 4096: %w", syscall.ENOSPC), "flush of %q", "u").AtTier(TierDisk).AtRegion(3)
	if want := `disk tier: region 3: flush of "u": write at 4096: no space left on device`; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
	if err.Errno != int(syscall.ENOSPC) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("errno %d", err.Errno)
	}
	if got := Of(Closed).Error(); got != "closed" {
		t.Errorf("%q", got)
	}
	plain := New(Invalid, "size %d", -1)
	if plain.Tier != TierNone || plain.Region != RegionNone || plain.Errno != 0 || plain.Error() != "size -1" {
		t.Errorf("%+v", plain)
	}
	if again := plain.AtTier(TierHost); again == plain || plain.Tier != TierNone {
		t.Error("AtTier must copy")
	}
}

func TestIsComparesCodes(t *testing.T) {
	err := fmt.Errorf("outer: %w", New(Closed, "store %d", 7))
	if !errors.Is(err, Of(Closed)) || errors.Is(err, Of(Stale)) || errors.Is(err, New(Closed, "store 8")) {
		t.Error("errors.Is by code is wrong")
	}
}

// TestWithout: a cause adds only what the text does not contain, and stays unchanged itself.
func TestWithout(t *testing.T) {
	sentinel := errors.New("no store")
	cause := fmt.Errorf("/a: %w: %w", sentinel, syscall.ENOENT)
	e := Wrap(NoStore, Without(cause, "/a", sentinel.Error()), "there is no store in %q", "/a")
	want := `there is no store in "/a": no such file or directory`
	if e.Message() != want || e.Error() != want || !errors.Is(e, sentinel) || e.Errno != int(syscall.ENOENT) {
		t.Errorf("%+v, %s", e, e)
	}
	e = Wrap(NoStore, Without(sentinel, sentinel.Error()), "there is no store")
	if e.Message() != "there is no store" || e.Error() != "there is no store" || !errors.Is(e, sentinel) {
		t.Errorf("%+v, %s", e, e)
	}
}
