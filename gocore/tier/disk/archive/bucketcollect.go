package archive

import (
	"errors"

	"velocpy/gocore/tier/disk/bucket"
	"velocpy/gocore/tier/disk/catalog"
)

// CollectBucket removes from a bucket what no checkpoint of the archive needs and is so many seconds old: packs of which all checkpoints were replaced or
// dropped, and what pushes have left that died. With dry it only counts. A pack of which one checkpoint is needed stays as a whole.
func CollectBucket(at *bucket.Bucket, age float64, dry bool) (done bucket.Collected, err error) {
	image, err := at.Read()
	if err != nil {
		return done, err
	}
	view, err := ViewBucket(image)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, view.Close()) }()
	if err := view.Fit(); err != nil {
		return done, err
	}
	left, err := image.Leftovers(true)
	if err != nil {
		return done, err
	}
	needed := packsOf(view.State())
	now := image.Without(needed)
	if !dry {
		if now, err = fence(image, view.State(), needed); err != nil {
			return done, err
		}
	}
	if done, err = left.Collect(now, age, dry); err != nil {
		return done, err
	}
	commits, bytes, err := now.Replace(age, dry)
	done.Commits, done.Bytes = commits, done.Bytes+bytes
	return done, err
}

// packsOf tells which packs have bytes that checkpoints need.
func packsOf(state *catalog.State) func(number uint64) bool {
	needed := map[uint64]bool{}
	for _, h := range state.Histories() {
		state.Each(h.ID, func(row catalog.Row) bool {
			for _, x := range row.Extents {
				needed[x.File] = true
			}
			for _, extents := range row.Sources {
				for _, x := range extents {
					needed[x.File] = true
				}
			}
			return true
		})
	}
	return func(number uint64) bool { return needed[number] }
}

// fence makes a commit without a change, on a whole catalog that names the packs alone that are needed.
func fence(image *bucket.Image, state *catalog.State, needed func(uint64) bool) (*bucket.Image, error) {
	whole, err := image.Whole(state.Snapshot, needed)
	if err != nil {
		return nil, err
	}
	return whole.Commit(&bucket.Change{})
}
