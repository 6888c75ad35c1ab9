package workers

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"velocpy/gocore/base/logring"
	"velocpy/gocore/base/memory"
	"velocpy/gocore/cache"
	"velocpy/gocore/device"
	"velocpy/gocore/device/hostdevice"
	lineages "velocpy/gocore/device/lineage"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/reduction/difference"
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

// After a checkpoint was lost on the device, later ones go to the host as they are, also where their lineage would have to forget others or to begin anew.
func TestALineageThatLostACheckpoint(t *testing.T) {
	dev := hostdevice.New(hostdevice.Options{})
	lane, err := dev.Lane(device.Waited)
	if err != nil {
		t.Fatal(err)
	}
	o := lineages.Options{Method: difference.Basic, Chunk: 256, Seed: 1, MaxReferences: 4}
	const bytes = 4096
	room, err := memory.Map("a lineage", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = room.Unmap() }()
	w, err := lineages.New(o, 0)
	if err != nil {
		t.Fatal(err)
	}
	at := device.AddressOf(room.Bytes(0, room.Size()))
	regions := []lineages.Region{{Name: "u", At: at, Bytes: bytes}}
	m := lineages.Memory{Result: at + 256<<10, Scratch: at + 512<<10, Digests: at + 768<<10}
	if _, err := w.Dedup(lane, 1, regions, m); err != nil { // neither finished nor dropped
		t.Fatal(err)
	}
	ended, err := lane.Event()
	if err != nil {
		t.Fatal(err)
	}
	if err := ended.Wait(); err != nil {
		t.Fatal(err)
	}
	l := &deviceLineage{
		area: &cache.LineageArea{}, x: &engine.Transfer{Rec: &engine.Record{Hist: &engine.History{Name: "h"}}},
		state: &cache.DeviceLineage{Lineage: w, Objects: map[uint32]*engine.Object{}},
	}
	if err := l.forget([]uint32{1}); !errors.Is(err, path.ErrDeduplication) || !errors.Is(err, lineages.ErrBusy) {
		t.Error(err)
	}
}
