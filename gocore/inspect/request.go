// Package inspect answers questions about stores on disk that this process does not use as a cache: their contents, and whether they are sound. It
// also repairs them, removes unused files, and makes backups.
//
// A request is a JSON object. An answer is a line of JSON, which a body may follow: lines of text or JSON, or bytes. No answer is longer than the
// caller's room; longer results come page by page.
package inspect

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"velocpy/gocore/base/strictjson"
	"velocpy/gocore/model"
	"velocpy/gocore/tier/disk/archive"
	"velocpy/gocore/tier/disk/durable"
)

// ErrRequest marks invalid requests.
var ErrRequest = errors.New("not a request")

// Request is one request. Names and paths are hexadecimal bytes, because not all of them are valid text.
type Request struct {
	Op      string `json:"op"`
	Path    Bytes  `json:"path"`    // open, collect, repair, backup, pull: a directory, or s3://bucket/prefix
	To      Bytes  `json:"to"`      // backup, pull: an empty directory; push: an archive, likewise
	View    uint64 `json:"view"`    // open, backup, pull, push: a number that the caller chooses for what it opens; all later requests to it
	From    int    `json:"from"`    // the page: 0, or the next of the previous answer
	History Bytes  `json:"history"` // rows, row, blob, lineage
	Key     *Key   `json:"key"`     // row, blob, lineage
	What    string `json:"what"`    // blob: layout, meta, spans, sums or extents; findings: faults or unused; lineage: objects or regions
	Bins    int    `json:"bins"`    // lineage with regions: of each region
	Head    string `json:"head"`    // histories, rows: begin of a JSON object, for lines of JSON; empty: a table
	// check: at most one of these
	Data  bool    `json:"data"`
	Part  uint64  `json:"part"`
	Parts uint64  `json:"parts"`
	Share float64 `json:"share"`
	Seed  uint64  `json:"seed"`

	// push, its step push_step, and share_upload
	Ranks     []Rank  `json:"ranks"`     // each with a store
	Files     int     `json:"files"`     // 0: those that are there, or one
	Writers   int     `json:"writers"`   // 0: the default
	Leaders   int     `json:"leaders"`   // by plans: ranks that write into one file; 0: the default
	Stripe    int64   `json:"stripe"`    // bytes; 0: the default
	Partial   bool    `json:"partial"`   // keys that not all ranks have, too
	Histories []Bytes `json:"histories"` // null: all

	Rank int `json:"rank"` // pull: whose parts; share: the rank that asks

	Catalogs []Catalog `json:"catalogs"` // push_metadata: what the buffer has, one behind the other
	// push_plan
	Nodes []int `json:"nodes"` // numbers of the ranks' nodes, by ranks ascending
	// push, of ranks on several nodes: what an earlier push has answered; null: nothing
	Paces archive.Paces `json:"paces"`
	// share_read, share_copy, share_write
	Copy   int    `json:"copy"`   // its number in the plan
	File   int64  `json:"file"`   // its number in the plan
	At     int64  `json:"at"`     // where in the copy, or, of a write, in the archive
	Length int64  `json:"length"` // share_copy: how many bytes
	Sum    uint64 `json:"sum"`    // that the rank has told which has read the bytes

	Descriptors []int   `json:"descriptors"` // connections: the sockets of the program velocpy-s3
	Age         float64 `json:"age"`         // collect, in a bucket: seconds that what is removed is old, at least

	Milliseconds int64    `json:"milliseconds"` // step, backup_step, push_step: duration
	Dry          bool     `json:"dry"`          // collect
	Victims      []Victim `json:"victims"`      // repair
	Rebuild      bool     `json:"rebuild"`      // repair
	Unproven     bool     `json:"unproven"`     // repair with rebuild
}

// Catalog is the length of the metadata of a rank's store.
type Catalog struct {
	Rank  int `json:"rank"`
	Bytes int `json:"bytes"`
}

// Bytes are encoded in hexadecimal.
type Bytes string

// UnmarshalJSON implements json.Unmarshaler.
func (b *Bytes) UnmarshalJSON(text []byte) error {
	var digits string
	if err := json.Unmarshal(text, &digits); err != nil {
		return err
	}
	p, err := hex.DecodeString(digits)
	*b = Bytes(p)
	return err
}

// Key is a number or a text.
type Key struct {
	Number *int64 `json:"number"`
	Text   *Bytes `json:"text"`
}

func (k *Key) plan() (model.Key, error) {
	switch {
	case k == nil || (k.Number == nil) == (k.Text == nil):
		return model.Key{}, fmt.Errorf("%w: a key is a number or a text", ErrRequest)
	case k.Number != nil:
		return model.NumberKey(*k.Number), nil
	}
	return model.TextKey(string(*k.Text)), nil
}

// Victim is a checkpoint to drop.
type Victim struct {
	History Bytes  `json:"history"`
	Key     Key    `json:"key"`
	Serial  uint64 `json:"serial"`
}

func victims(given []Victim) ([]durable.Victim, error) {
	all := make([]durable.Victim, len(given))
	for i, v := range given {
		key, err := v.Key.plan()
		if err != nil {
			return nil, err
		}
		all[i] = durable.Victim{History: string(v.History), Key: key, Serial: v.Serial}
	}
	return all, nil
}

// ParseRequest reads a request.
func ParseRequest(text []byte) (Request, error) {
	var q Request
	if err := strictjson.Decode(text, &q); err != nil {
		return q, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	if q.From < 0 {
		return q, fmt.Errorf("%w: page %d", ErrRequest, q.From)
	}
	return q, nil
}
