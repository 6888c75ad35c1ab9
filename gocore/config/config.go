// Package config holds the configuration of a store as a caller gives it, and checks it.
package config

import (
	"encoding/json"
	"strings"
	"time"

	"velocpy/gocore/base/quantity"
	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/device"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/coldstart"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/policy/evict"
)

// Config describes a store. All sizes are hard budgets in bytes; nil means that the tier is not used, except the disk of a durable store that is open for reading only.
type Config struct {
	Devices  []Device `json:"devices"`
	Kernels  string   `json:"kernels"` // path of the file with the device kernels
	Pinning  string   `json:"pinning"` // auto (default), pipeline, concurrent, sequential, direct, off
	Host     *int64   `json:"host"`
	Disk     *int64   `json:"disk"`
	Path     string   `json:"path"`    // the folder of the disk tier
	Durable  bool     `json:"durable"` // the disk tier outlives the store; otherwise its files are private and vanish with the store
	ReadOnly bool     `json:"read_only"`
	Flush    string   `json:"flush"`    // lazy (default), eager
	Policy   string   `json:"policy"`   // score (default), lru, fifo
	Verify   string   `json:"verify"`   // moved (default), first, always, off
	Checksum bool     `json:"checksum"` // taken in the capture pass
	Prefetch bool     `json:"prefetch"`
	Guess    bool     `json:"guess"`
	Together bool     `json:"together"` // small checkpoints leave a device together
	Debug    bool     `json:"debug"`    // finds callers that write into a shared lease
	Workers  int      `json:"workers"`  // transfers that a pool reads or writes at once, per direction, besides those that restores wait for; 0: 2
	Copiers  int      `json:"copiers"`  // goroutines that help large copies; 0: with the caller one per processor, at most 8
	Direct   bool     `json:"direct"`   // O_DIRECT where the file system allows it
	Timeline int      `json:"timeline"` // number of events kept for the timeline, the first ones
	Idle     float64  `json:"idle"`     // seconds after which free memory of the host tier is given back; 0: never

	FS           vfs.FS        `json:"-"` // nil: the operating system's
	SegmentBytes int64         `json:"-"` // size of a durable store's data files; 0: the default
	CatalogSlack int64         `json:"-"` // durable.Options.Slack
	StallAfter   time.Duration `json:"-"` // the watchdog warns when the disk has not answered for so long; 0: stallAfter
	GiveUpAfter  time.Duration `json:"-"` // callers stop waiting for the disk after so long; 0: giveUpAfter
	RetryAfter   time.Duration `json:"-"` // disk.Options.RetryAfter
	LazyRows     bool          `json:"-"` // a stored checkpoint gets a record only when it is first accessed
	PinPiece     int64         `json:"-"` // host.Options.PinPiece
	// PinRest is host.Options.PinRest.
	PinRest time.Duration `json:"-"`
	// PinRates is host.Options.PinRates.
	PinRates *coldstart.Rates `json:"-"`
	// Prefaulting is host.Options.Prefaulting.
	Prefaulting func(off int64) `json:"-"`
	Cut         int64           `json:"-"` // 0: cut
	// Clock tells the time of captures; nil: the system's clock.
	Clock func() time.Time `json:"-"`
	// LookEvery is devicememory.Options.LookEvery.
	LookEvery  time.Duration `json:"-"`
	Turns      string        `json:"-"` // lock file by which the processes of a node take turns to pin; empty: one file per user
	OpenDevice DeviceOpener  `json:"-"` // nil: no devices can be opened
	// LinkRates returns the one-way bandwidth of each device's link, in bytes/s before protocol overhead, in the order of devices; 0: unknown. The
	// store calls it in a goroutine of its own, and it may take long. nil: the devices' own report of their link applies.
	LinkRates func(devices []device.Device) []float64 `json:"-"`
	// Describes checks the text of a layout that comes from a store on disk against the layout; see package description. nil: texts are not checked.
	Describes func(*model.Layout) error `json:"-"`
	// WatchDevices is called with the devices of a store that opens; the store calls end when it closes. Neither may block. nil: no watch.
	WatchDevices func(devices []device.Device) (end func()) `json:"-"`
}

// ParseConfig reads a Config. Fields that the text does not name have their defaults.
func ParseConfig(text []byte) (Config, error) {
	c := Config{Checksum: true, Prefetch: true, Guess: true, Together: true, Direct: true}
	if err := json.Unmarshal(text, &c); err != nil {
		return c, status.Wrap(status.Invalid, err, "the configuration is not understood")
	}
	return c, nil
}

// Budgets are the budgets that Resize sets; a nil budget stays as it is.
type Budgets struct {
	Devices []Device `json:"devices"`
	Host    *int64   `json:"host"`
	Disk    *int64   `json:"disk"`
	Trim    bool     `json:"trim"` // gives back the memory of the host tier that is free at the time of the call
}

// ParseBudgets reads Budgets.
func ParseBudgets(text []byte) (b Budgets, err error) {
	if err := json.Unmarshal(text, &b); err != nil {
		return b, status.Wrap(status.Invalid, err, "the budgets are not understood")
	}
	return b, nil
}

// Verification says when the bytes in the fastest tier are verified before they are lent.
type Verification uint8

const (
	VerifyMoved  Verification = iota // once after they were moved there; of those captured there, a sample
	VerifyFirst                      // once after they were moved or captured there
	VerifyAlways                     // before each lease
	VerifyOff
)

// Settings are a Config that has been checked, with its words as values.
type Settings struct {
	Config
	FlushMode engine.FlushMode
	Eviction  evict.Kind
	Verifies  Verification
}

// Check checks a configuration, and fills in what it leaves open.
func (c Config) Check() (Settings, error) {
	s := Settings{Config: c}
	var ok bool
	switch strings.ToLower(c.Flush) {
	case "", "lazy":
	case "eager":
		s.FlushMode = engine.Eager
	default:
		return s, status.New(status.Invalid, "flush is %q; it can be lazy or eager", c.Flush)
	}
	if c.Policy == "" {
		c.Policy = evict.Score.String()
	}
	if s.Eviction, ok = evict.ParseKind(c.Policy); !ok {
		return s, status.New(status.Invalid, "policy is %q; it can be score, lru or fifo", c.Policy)
	}
	switch c.Verify {
	case "", "moved":
	case "first":
		s.Verifies = VerifyFirst
	case "always":
		s.Verifies = VerifyAlways
	case "off":
		s.Verifies = VerifyOff
	default:
		return s, status.New(status.Invalid, "verify is %q; it can be moved, first, always or off", c.Verify)
	}
	if !c.Checksum {
		s.Verifies = VerifyOff
	}
	return s, s.checkSizes()
}

func (s *Settings) checkSizes() error {
	for name, n := range map[string]*int64{"host": s.Host, "disk": s.Disk} {
		if n != nil && (*n <= 0 || *n > MostBytes) {
			return status.New(status.Invalid, "the budget of %s is %s; it must be above zero and at most %s", name, quantity.Exact(*n), quantity.Sized(MostBytes))
		}
	}
	if err := s.checkDevices(); err != nil {
		return err
	}
	switch {
	case len(s.Devices) > 0 && s.Host == nil:
		return status.New(status.Invalid, "a device tier needs a host tier below it")
	case len(s.Devices) > mostDevices:
		return status.New(status.Invalid, "%d devices; a store can have %d", len(s.Devices), mostDevices)
	case s.Durable && s.Path == "":
		return status.New(status.Invalid, "a durable store needs a path")
	case s.Durable && s.Disk == nil && !s.ReadOnly:
		return status.New(status.Invalid, "a durable store needs a disk budget")
	case s.ReadOnly && !s.Durable:
		return status.New(status.Invalid, "only a durable store can be open for reading only")
	case s.Host == nil && s.Disk == nil && !s.Durable:
		return status.New(status.Invalid, "no tier has a budget")
	case s.Disk != nil && s.Path == "":
		return status.New(status.Invalid, "the disk tier has a budget but no path")
	case s.Workers < 0 || s.Workers > mostThreads || s.Copiers < 0 || s.Copiers > mostThreads:
		return status.New(status.Invalid, "workers is %d and copiers %d; they can be 0 (chosen for the machine) to %d", s.Workers, s.Copiers, mostThreads)
	case !(s.Idle >= 0 && s.Idle <= mostIdle):
		return status.New(status.Invalid, "idle is %g seconds; it cannot be negative or above %g", s.Idle, float64(mostIdle))
	case s.Timeline < 0:
		return status.New(status.Invalid, "timeline is %d events; it cannot be negative", s.Timeline)
	}
	if s.Workers == 0 {
		s.Workers = defaultWorkers
	}
	if s.Cut == 0 {
		s.Cut = cut
	}
	if s.StallAfter == 0 {
		s.StallAfter = stallAfter
	}
	if s.GiveUpAfter == 0 {
		s.GiveUpAfter = giveUpAfter
	}
	if s.FS == nil {
		s.FS = vfs.OS()
	}
	return nil
}

// mostDevices is the number of engine tiers left beside host, disk and archive.
const mostDevices = engine.MaxTiers - 3

func (s *Settings) checkDevices() error {
	seen := map[int]bool{}
	for _, d := range s.Devices {
		switch {
		case d.Ordinal < 0 || seen[d.Ordinal]:
			return status.New(status.Invalid, "device %d is named twice, or is no number of a device", d.Ordinal)
		case d.Bytes < 0 || d.Bytes > MostBytes || d.Share < 0 || d.Share > 1 || (d.Bytes == 0) == (d.Share == 0):
			return status.New(status.Invalid, "the budget of device %d is %s or a share of %g; one of them must be above zero", d.Ordinal, quantity.Exact(d.Bytes), d.Share)
		}
		seen[d.Ordinal] = true
	}
	switch s.Pinning {
	case "", "auto", "pipeline", "concurrent", "sequential", "direct", "off":
		return nil
	}
	return status.New(status.Invalid, "pinning is %q; it can be auto, pipeline, concurrent, sequential, direct or off", s.Pinning)
}

// mostIdle is a year, in seconds.
const mostIdle = 366 * 24 * 3600

// mostThreads bounds the configured numbers of goroutines: a typing error must not start a million of them.
const mostThreads = 256

// defaultWorkers is two, so that the disk stays busy while one transfer ends and the next begins. A large transfer is divided into pieces that run in
// parallel anyway.
const defaultWorkers = 2

// IdleAfter is the time after which free memory of the host tier is given back.
func (s *Settings) IdleAfter() time.Duration { return time.Duration(s.Idle * float64(time.Second)) }

// Device is the budget of one device: bytes, or a share of the memory that is free when the store opens.
type Device struct {
	Ordinal int     `json:"ordinal"`
	Bytes   int64   `json:"bytes"`
	Share   float64 `json:"share"`
}

// DeviceOpener opens a device by its number. kernels is the path of the file with its kernels.
type DeviceOpener func(ordinal int, kernels string) (device.Device, error)

// Defaults of Config.StallAfter and Config.GiveUpAfter.
const (
	stallAfter  = 2 * time.Second
	giveUpAfter = 20 * time.Second
)

// MostBytes bounds slots and budgets, so that sums of sizes cannot overflow.
const MostBytes = 1 << 60

// cut is the number of bytes of a transfer that are queued in a lane at once. Half as much costs a few percent of the rate in both directions.
const cut = 32 << 20
