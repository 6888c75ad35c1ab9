package cache

import (
	"velocpy/gocore/device"
	"velocpy/gocore/tier/devicememory"
)

// A device that encodes needs memory for what it has encoded and the link has not taken yet, and for what it is about to decode. That memory is the beginning of
// its tier, so it is part of the tier's budget.

// stagings keeps account of that memory.
type stagings struct {
	*state
	byTier map[int]*deviceStaging
	groups map[int]int64 // by tier: bytes of a group of the memory that was set aside first, here or behind it
}

// Staging is the part of it that one worker uses. It has room for two groups of containers: the kernels for the next group are queued before the host waits for
// the lengths of the one before, so that the device does not wait for the host.
type Staging struct {
	At    int64 // offset in the tier
	Group int64 // plain bytes of the containers of a group, at most
}

const (
	// stagingShare is the part of a tier (as a divisor of its budget) that staging memory may take.
	stagingShare = 20
	// stagers is how many workers encode or decode for one device at once: those of the links down and up, and the one for awaited loads.
	stagers                = 5
	leastGroup, mostGroup  = 256 << 10, 8 << 20
	mostContainersOfAGroup = 512
)

// devicePart is the plain bytes of a container that a device makes. A launch for fewer would not occupy the device.
const devicePart = 4 << 20

// Part is how many plain bytes a container has.
func (s *Staging) Part() int64 { return partOf(s.Group) }

func partOf(group int64) int64 { return min(devicePart, group) }

// PartOf is that of the device with a tier; 0: it does not encode. The lock is held.
func (sg *stagings) PartOf(t int) int64 {
	s := sg.byTier[t]
	if s == nil {
		return 0
	}
	return partOf(s.group)
}

// MostContainers bounds the containers of a group.
func (s *Staging) MostContainers() int { return mostContainersOfAGroup }

// Room is how many bytes the containers of a group may have.
func (s *Staging) Room() int64 { return groupRoom(s.Group) }

// Place is the offset in the tier of one of the two groups: of its containers, and of the device's scratch memory.
func (s *Staging) Place(turn int) (containers, scratch int64) {
	at := s.At + int64(turn%2)*groupBytes(s.Group)
	return at, at + groupRoom(s.Group)
}

// groupRoom is enough for the containers of large regions, and for many small ones.
func groupRoom(group int64) int64 { return group + group/16 + 64<<10 }

func groupBytes(group int64) int64 {
	return groupRoom(group) + device.CodecScratch(group, mostContainersOfAGroup)
}

// groupFor is the largest group for which a tier of such a budget has the memory; 0: it is too small to encode.
func groupFor(budget int64) int64 {
	for group := int64(mostGroup); group >= leastGroup; group /= 2 {
		if stagingBytes(group) <= budget/stagingShare {
			return group
		}
	}
	return 0
}

func stagingBytes(group int64) int64 { return stagers * 2 * groupBytes(group) }

// deviceStaging is the staging memory of a device. The cache's lock guards it.
type deviceStaging struct {
	group int64
	taken int // workers that have their part
}

// SetStagingAside keeps the beginning of every device's tier free from now on. What lies there stays until it is given up. A tier that has shrunk meanwhile to
// less than that gets none.
func (sg *stagings) SetStagingAside() {
	for t, a := range sg.Devices {
		if sg.byTier[t] != nil {
			continue
		}
		group := sg.groupOf(t, min(a.Reserved(), sg.Engine.Capacity(t)))
		if group == 0 {
			continue
		}
		sg.byTier[t] = &deviceStaging{group: group}
		a.Keep(stagingBytes(group))
		sg.Engine.Retire(t, 0, stagingBytes(group))
	}
}

// groupOf is the group for a tier, whose budget is so large when it is asked for first. What lies behind the staging memory keeps its place, also when the budget changes.
func (sg *stagings) groupOf(t int, budget int64) int64 {
	if _, known := sg.groups[t]; !known {
		sg.groups[t] = groupFor(budget)
	}
	return sg.groups[t]
}

// TakeStaging gives a worker its part of a device's staging memory, to keep; nil while the memory is not free, or if the tier has none.
func (sg *stagings) TakeStaging(a *devicememory.Memory) *Staging {
	s := sg.byTier[a.Tier]
	if s == nil || s.group == 0 || s.taken == stagers {
		return nil
	}
	all := stagingBytes(s.group)
	if a.Mapped() < all || sg.Engine.Idle(a.Tier, 0, all, func(int64, int64) {}) < all {
		return nil
	}
	s.taken++
	return &Staging{At: int64(s.taken-1) * all / stagers, Group: s.group}
}
