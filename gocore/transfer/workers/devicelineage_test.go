package workers

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"velocpy/gocore/base/logring"
	"velocpy/gocore/cache"
	lineages "velocpy/gocore/device/lineage"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/transfer/path"
)

// The warning about a checkpoint that a device leaves to the host names the cause and what helps, once for each cause.
func TestWarningsTellTheCause(t *testing.T) {
	l := &deviceLineage{area: &cache.LineageArea{}, x: &engine.Transfer{Rec: &engine.Record{Hist: &engine.History{Name: "h"}}}}
	causes := map[error]string{
		cache.ErrArea:   "twentieth of the device's tier",
		cache.ErrOthers: "fewer histories",
		cache.ErrResult: "longer chunks",
		fmt.Errorf("%w: the name of region 3 is too long, or taken", lineages.ErrRegion): "the name of region 3 is too long",
		lineages.ErrBusy: "opened anew",
	}
	for cause, told := range causes {
		logring.Drain(logring.Kept)
		for range 2 {
			if err := l.leaveToHost(cause); !errors.Is(err, path.ErrDeduplication) || !errors.Is(err, cause) {
				t.Errorf("%v: %v", cause, err)
			}
		}
		var warnings []string
		for _, r := range logring.Drain(logring.Kept) {
			if r.Level == logring.Warning {
				warnings = append(warnings, r.Message)
			}
		}
		if len(warnings) != 1 || !strings.Contains(warnings[0], told) || !strings.HasPrefix(warnings[0], `history "h": `+cause.Error()) {
			t.Errorf("%v: %q", cause, warnings)
		}
	}
}
