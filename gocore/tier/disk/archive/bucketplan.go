package archive

import (
	"fmt"
	"slices"

	"velocpy/gocore/policy/aggregation"
	"velocpy/gocore/tier/disk/bucket"
)

// Ranks on several nodes push into a bucket by plans, too. On each node, one rank uploads what the node's stores have, as packs. No bytes go from rank to rank. The
// planning process names the packs, uploads the lists of the keys, and makes the commit.

// list fills a plan with what the batch under way needs: packs of each node that has bytes.
func (b *bucketPush) list(in *planning) error {
	p, plan, under, start := b.push, in.plan, b.push.under, b.image.Offset()
	parts := b.lacking(under.batch)
	leaders := aggregation.Representatives(bytesOf(parts), in.nodes)
	var contents []*content
	for _, node := range leaders {
		of := make([][]*part, 0, len(node.Ranks))
		for _, i := range node.Ranks {
			of = append(of, parts[i])
		}
		for _, c := range b.pack(of, start+int64(len(contents))*bucket.SegmentBytes) {
			contents = append(contents, c)
			plan.Packs = append(plan.Packs, PlannedPack{Leader: p.ranks[node.Leader].number})
		}
	}
	p.refer(under.batch)
	under.lists, _, under.numbers = listsOf(under.batch)
	layLists(under.lists, start+int64(len(contents))*bucket.SegmentBytes)
	var err error
	if under.packs, err = b.plan(append(slices.Clone(contents), &content{numbers: under.numbers})); err != nil {
		return err
	}
	numbers, places := in.number()
	leads := make([]int, len(p.ranks)) // by place of a rank: the rank that reads its parts
	for _, node := range leaders {
		for _, i := range node.Ranks {
			leads[i] = p.ranks[node.Leader].number
		}
	}
	for x, number := range numbers {
		plan.Parts[number].Reader = leads[places[x.of]]
	}
	for k, c := range contents {
		plan.Packs[k].Pack = *under.packs[k]
		for _, room := range c.rooms {
			m := room.move
			plan.Copies = append(plan.Copies, Transfer{numbers[room.of], under.packs[k].File(), plan.Packs[k].Leader, m.room.From, m.room.End, m.at})
		}
	}
	return nil
}

// bytesOf is how many bytes parts bring, by the places of their ranks.
func bytesOf(parts [][]*part) []int64 {
	all := make([]int64, len(parts))
	for i := range parts {
		for _, x := range parts[i] {
			for _, m := range x.news {
				all[i] += m.room.End - m.room.From
			}
		}
	}
	return all
}

// land uploads the lists of the keys of a plan, whose other packs the ranks have uploaded, and commits the keys.
func (b *bucketPush) land(under *planned, reports []Report) error {
	conflict := false
	for _, r := range reports {
		b.elsewhere = b.elsewhere.Add(r.Costs)
		conflict = conflict || r.Conflict
		for k := range r.Packs {
			if err := under.noteUpload(&r.Packs[k]); err != nil {
				return err
			}
		}
	}
	if conflict {
		return b.repeat(under.batch, fmt.Errorf("%s: %w", b.at.Place(), bucket.ErrConflict))
	}
	rest := &content{numbers: under.numbers}
	if err := b.at.Upload(b.push.o.writers(), rest.filling(under.packs[len(under.packs)-1])); err != nil {
		return b.uploadFailed(under.batch, err)
	}
	return b.settle(under.batch, under.lists, under.packs)
}

// noteUpload notes under which ID a rank has uploaded a pack of the plan.
func (u *planned) noteUpload(as *bucket.Pack) error {
	for _, x := range u.packs[:len(u.packs)-1] {
		if x.Number == as.Number && x.Bytes == as.Bytes && x.Commit == as.Commit {
			x.ID = as.ID
			return nil
		}
	}
	return fmt.Errorf("a report of pack %d, which is not in the plan", as.Number)
}
