// Package sim plays the push of an archive by many ranks on a virtual clock: nodes, their network and storage servers are rates and delays, and no byte is moved.
//
// The groups of ranks, the places of their bytes, the leaders, the writer of each copy and the order of copies come from package aggregation, as in a real push. What one
// rank does of a plan (buffers, threads, messages, by turns) is the twin of velocpy/archive/shares.py: process.go has its steps under the same names.
//
// A resource serves requests in the order in which they come. Requests have at most 4 MiB, so that this is close to equal shares.
package sim

import (
	"errors"
	"fmt"

	"velocpy/gocore/base/quantity"
)

// Cluster is the machines and the storage that a push runs on. Rates are in bytes per second, delays in seconds.
type Cluster struct {
	// A node.
	Cores     int     // that the push may use, shared equally by the node's ranks where one rank computes
	HashRate  float64 // of the checksums that one core takes
	ReadRate  float64 // of the local disk, all readers together
	ReadDelay float64 // until a read begins

	// The network.
	LinkRate  float64 // of messages that leave a node, and of those that reach it
	LinkDelay float64 // from one node to another

	// The storage.
	StoreRate  float64   // of what a node writes to the storage
	StoreDelay float64   // from a node to a server, and as long back
	Slow       []float64 // by node: what its StoreRate is divided by; behind the end of the list: 1
	Servers    int
	ServerRate float64 // of one server
	ServerCost float64 // of one request, beside its bytes
	Stripe     int64   // bytes of a file on one server, before those on the next; files begin at servers by turns
	LockDelay  float64 // until a server lets a node write to a file that another node has written to last
	CreateRate float64 // files a second that are made in one directory
	SyncDelay  float64 // until what is written to a file is on the medium

	// OneMachine: all nodes are processes of one machine. They share its cores, its memory, through which messages go at LinkRate, and one disk, which has the stores
	// and the archive and reads and writes at ServerRate together.
	OneMachine bool
}

// Frontier is the machine of Gossman et al., section 5, as far as the paper describes it. docs/archive.md has the source of every number, and which ones are assumed.
func Frontier() Cluster {
	return Cluster{
		Cores:      64,
		HashRate:   10e9,
		ReadRate:   8e9,
		ReadDelay:  100e-6,
		LinkRate:   25e9,
		LinkDelay:  2e-6,
		StoreRate:  2.5 * (1 << 30),
		StoreDelay: 100e-6,
		Servers:    450,
		ServerRate: 4.6e12 / 450,
		ServerCost: 20e-6,
		Stripe:     4 << 20,
		LockDelay:  1e-3,
		CreateRate: 29e3,
		SyncDelay:  2e-3,
	}
}

// Software is what the steps of a push cost that move no bytes of checkpoints. Times are in seconds.
type Software struct {
	CatalogBytes int64   // of a store's metadata, which go to the lowest rank
	ReadCatalog  float64 // a rank reads its store's metadata
	OpenStore    float64 // a processor of the lowest rank opens a store by them
	OpenAlone    float64 // the part of that in which the processors of a rank do not help each other, as in Amdahl's law
	ListStore    float64 // the lowest rank lists the keys of a store, alone
	PlanPart     float64 // the lowest rank plans a part, beside its copies
	PlanCopy     float64 // the lowest rank plans a copy and writes it down
	ParseCopy    float64 // a rank reads a copy of the plan, with its part
	CommitPart   float64 // the lowest rank commits a part
}

// ThisSoftware is what velocpy's own steps cost on one core of an AMD EPYC: BenchmarkPlanning of package tier/disk/archive says so, rounded up. OpenAlone is that of two
// processors which other processes used too, in the runs that these disturbed least; that it holds for more processors is assumed. A rank parses a plan twice, in Go and
// in Python.
func ThisSoftware() Software {
	return Software{
		CatalogBytes: 10 << 10,
		ReadCatalog:  300e-6,
		OpenStore:    60e-6,
		OpenAlone:    0.35,
		ListStore:    3e-6,
		PlanPart:     8e-6,
		PlanCopy:     0.5e-6,
		ParseCopy:    6e-6,
		CommitPart:   35e-6,
	}
}

// opening is the seconds in which so many processors open stores and list their keys.
func (s *Software) opening(stores, processors int) float64 {
	each := s.OpenStore * (s.OpenAlone + (1-s.OpenAlone)/float64(processors))
	return (each + s.ListStore) * float64(stores)
}

// Push is what ranks have, and how they push it.
type Push struct {
	Bytes   []int64 // of each checkpoint of a rank, by ranks
	Keys    int     // checkpoints of each rank
	Nodes   []int   // the number of each rank's node, by ranks
	Files   int
	Leaders int   // of a file; 0: as many as let every node lead
	Writers int   // threads of a rank that read and write
	Buffer  int64 // bytes of a message
	Buffers int   // of a rank for receiving, and as many for sending
	Front   int64 // where the bytes of checkpoints begin in a file
	Even    bool  // plans take no account of how fast nodes have written
}

// Default is the push of velocpy.archive.push with its defaults: 8 threads, 8 buffers of 4 MiB, and so many leaders that every node leads.
func Default(bytes []int64, nodes []int, files int) Push {
	return Push{Bytes: bytes, Keys: 1, Nodes: nodes, Files: files, Writers: 8, Buffer: 4 << 20, Buffers: 8}
}

// Errors of parameters.
var (
	ErrPush    = errors.New("no push")
	ErrCluster = errors.New("no cluster")
)

func (p *Push) check() error {
	switch {
	case len(p.Bytes) == 0 || len(p.Bytes) != len(p.Nodes):
		return fmt.Errorf("%w: %d ranks with bytes, %d with a node", ErrPush, len(p.Bytes), len(p.Nodes))
	case p.Files < 1 || p.Files > len(p.Bytes) || p.Leaders < 0:
		return fmt.Errorf("%w: %d ranks push into %d files with %d leaders each", ErrPush, len(p.Bytes), p.Files, p.Leaders)
	case p.Keys < 1 || p.Writers < 1 || p.Buffers < 1 || p.Buffer < 1:
		return fmt.Errorf("%w: keys, writers, buffers and their bytes must be above zero", ErrPush)
	}
	for rank, n := range p.Bytes {
		if n < 0 || p.Nodes[rank] < 0 {
			return fmt.Errorf("%w: rank %d has %s, on node %d", ErrPush, rank, quantity.Exact(n), p.Nodes[rank])
		}
	}
	return nil
}

func (c *Cluster) check() error {
	for _, x := range []float64{c.HashRate, c.ReadRate, c.LinkRate, c.StoreRate, c.ServerRate, c.CreateRate} {
		if !(x > 0) {
			return fmt.Errorf("%w: rates must be above zero", ErrCluster)
		}
	}
	for _, x := range []float64{c.ReadDelay, c.LinkDelay, c.StoreDelay, c.ServerCost, c.LockDelay, c.SyncDelay} {
		if !(x >= 0) {
			return fmt.Errorf("%w: delays must not be below zero", ErrCluster)
		}
	}
	for _, x := range c.Slow {
		if !(x > 0) || c.OneMachine {
			return fmt.Errorf("%w: a node is slow by a factor above zero, and not on one machine", ErrCluster)
		}
	}
	if c.Cores < 1 || c.Servers < 1 || c.Stripe < 1 {
		return fmt.Errorf("%w: cores, servers and stripes must be above zero", ErrCluster)
	}
	return nil
}

// slowness is what the rate is divided by at which a node writes.
func (c *Cluster) slowness(node int) float64 {
	if node < len(c.Slow) {
		return c.Slow[node]
	}
	return 1
}

// total is the bytes of a push.
func (p *Push) total() (sum int64) {
	for _, n := range p.Bytes {
		sum += n * int64(p.Keys)
	}
	return sum
}
