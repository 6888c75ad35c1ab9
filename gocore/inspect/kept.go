package inspect

import "velocpy/gocore/tier/disk/catalog"

// kept returns the bytes of the objects that the rows of each history need and that no row has as its own any more: those of dropped and replaced checkpoints.
// Each object counts once.
func kept(s *catalog.State) map[uint32]int64 {
	type room struct {
		history uint32
		bytes   int64
	}
	rooms := map[place]room{}
	s.EachDifference(func(row catalog.Row) bool {
		for _, extents := range row.Sources {
			rooms[placeOf(extents)] = room{row.History, bytesOf(extents)}
		}
		return true
	})
	s.EachDifference(func(row catalog.Row) bool {
		delete(rooms, placeOf(row.Extents))
		return true
	})
	bytes := map[uint32]int64{}
	for _, r := range rooms {
		bytes[r.history] += r.bytes
	}
	return bytes
}

// place is where an object begins.
type place struct {
	file   uint64
	offset int64
}

func placeOf(extents []catalog.Extent) place { return place{extents[0].File, extents[0].Offset} }

func bytesOf(extents []catalog.Extent) (bytes int64) {
	for _, x := range extents {
		bytes += x.Bytes
	}
	return bytes
}
