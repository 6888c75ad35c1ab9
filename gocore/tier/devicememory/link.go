package devicememory

import "velocpy/gocore/device"

// assumedLinkRate is assumed until a link has been measured, where nothing is known of it: PCIe 4, less what other devices take of it.
const assumedLinkRate = 20e9

// LinkShare is the part of its link's rate that a device copies with: 55.4 of 63 GB/s on PCIe 5 with 16 lanes (measured), the rest being protocol.
const LinkShare = 0.88

// LinkRate is what copies of a device are assumed to do, bytes/s, until some have been measured: as the kernel says, or else what is assumed of any device.
func LinkRate(d device.Device) float64 {
	if rate := d.Place().LinkRate; rate > 0 {
		return rate * LinkShare
	}
	return assumedLinkRate
}
