package object

import "velocpy/gocore/model"

// Container says where a byte of a checkpoint lies.
type Container struct {
	Source int        // index of the object in model.Difference.Sources, or Own
	At     model.Span // of the container in the object
	Plain  int64      // bytes of the container before they were encoded
	Offset int64      // of the byte among these
}

// Container returns the container that has a byte of a region.
func (r *Reader) Container(region int, at int64) Container {
	p := r.addPieces(nil, region, at, 1, 0)[0]
	source, _, _ := r.object(int(p.object))
	in := r.places[p.object]
	return Container{
		Source: source, At: model.Span{Offset: in.at[p.container], Bytes: in.at[p.container+1] - in.at[p.container]},
		Plain: in.plain(int(p.container)), Offset: p.from,
	}
}
