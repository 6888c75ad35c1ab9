package lint

import (
	"go/ast"
	"slices"
	"strings"
)

// layers says which packages of the core a package may import: the first row that fits it counts. A name that ends in a slash stands for everything below that
// folder, other names for one package. Tests may import what they like.
var layers = []struct {
	from string
	may  []string
}{
	{"model", nil},
	{"base/", []string{"base/", "model"}},
	{"checkpoint", []string{"reduction/difference", "base/checksum", "base/status", "model"}},
	// Policy is pure: time, sizes and rates are its inputs.
	{"policy/schedule", []string{"policy/", "checkpoint", "model", "base/quantity", "base/strictjson"}},
	{"policy/encoding", []string{"reduction/codec", "reduction/regions"}},
	{"policy/", []string{"policy/", "checkpoint", "model", "base/quantity"}},
	{"transfer/copier", []string{"base/", "model"}},
	{"transfer/findings", []string{"policy/engine", "base/"}},
	{"transfer/pending", []string{"transfer/borrow", "tier/devicememory", "checkpoint", "device"}},
	{"transfer/borrow", []string{"transfer/copier", "device", "model"}},
	{"device", []string{"base/memory", "model", "reduction/codec", "reduction/difference", "reduction/digest"}},
	{"device/hazard", []string{"device"}},
	{"device/lineage", []string{"device", "model", "reduction/difference", "reduction/digest"}},
	{"device/cuda/kernel", []string{"device", "reduction/codec", "reduction/difference", "reduction/digest", "transfer/copier", "base/", "model"}},
	{"device/devicetest", []string{"device", "device/hazard", "device/lineage", "reduction/", "base/", "model"}},
	{"device/topology/", []string{"device/topology"}},
	{"device/", []string{"device/", "reduction/codec", "transfer/copier", "base/", "model"}},
	{"reduction/codec", []string{"base/checksum", "base/safego"}},
	{"figures", []string{"policy/engine", "base/", "model"}},
	{"config", []string{"policy/", "device", "base/", "model"}},
	{"tier", nil},
	{"tier/host", []string{"tier", "policy/coldstart", "device", "base/"}},
	{"tier/devicememory", []string{"tier", "transfer/borrow", "device", "device/hazard", "base/", "model"}},
	{"tier/disk", []string{"tier", "tier/disk/", "policy/engine", "checkpoint", "base/", "model"}},
	{"tier/disk/durable", []string{"tier", "tier/disk/", "reduction/codec", "reduction/difference", "reduction/object", "base/", "model"}},
	{"tier/disk/archive", []string{"tier/disk/", "policy/aggregation", "base/", "model"}},
	{"tier/disk/bucket/buckettest", []string{"base/wire"}},
	{"tier/disk/bucket", []string{"tier/disk/journal", "tier/disk/segment", "base/"}},
	{"tier/disk/segment", []string{"tier", "base/"}},
	{"tier/disk/", []string{"base/", "model"}},
	{"tier/tiertest", []string{"tier", "base/"}},
	{"transfer/slots", []string{"cache", "checkpoint", "tier/", "transfer/", "policy/engine", "device", "base/", "model"}},
	{"transfer/path", []string{"cache", "checkpoint", "config", "transfer/", "tier/", "tier", "policy/engine", "device", "device/lineage", "base/", "model", "policy/encoding", "reduction/"}},
	{"transfer/workers", []string{"cache", "checkpoint", "config", "transfer/", "tier/", "policy/engine", "policy/schedule", "device", "device/lineage", "base/", "model", "policy/encoding", "reduction/"}},
	{"cache", []string{"checkpoint", "config", "figures", "tier/", "transfer/", "policy/", "reduction/difference", "reduction/digest", "reduction/object", "device", "device/lineage", "base/", "model"}},
	{"operation", []string{"cache", "checkpoint", "config", "figures", "tier/", "transfer/", "policy/", "device", "base/", "model"}},
	{"store", []string{"operation", "cache", "config", "figures", "checkpoint", "tier/", "transfer/", "policy/", "device", "device/hazard", "base/", "model", "reduction/"}},
	{"inspect", []string{"tier/disk/", "reduction/difference", "base/", "model"}},
	{"doctor", []string{"device/", "base/"}},
	{"cabi", []string{"store", "operation", "config", "inspect", "doctor", "tier/", "transfer/", "policy/", "device/", "base/", "model"}},
	{"reduction/digest", nil},
	{"reduction/regions", []string{"reduction/codec", "base/memory", "base/quantity", "base/safego", "model"}},
	{"reduction/object", []string{"reduction/", "base/quantity", "base/safego", "model"}},
	{"reduction/dedup", []string{"reduction/"}},
	{"reduction/", []string{"reduction/digest"}},
	{"lint", nil},
}

// within tells whether a name of the table stands for a package.
func within(name, dir string) bool {
	folder, all := strings.CutSuffix(name, "/")
	return dir == folder || all && strings.HasPrefix(dir, name)
}

// findUpward reports imports that the table of layers does not allow.
func findUpward(s *source, report func(ast.Node, string)) {
	row := slices.IndexFunc(layers, func(l struct {
		from string
		may  []string
	}) bool {
		return within(l.from, s.dir)
	})
	s.eachImport(func(n ast.Node, where string) {
		dir, own := strings.CutPrefix(where, module+"gocore/")
		if !own {
			return
		}
		if row < 0 || !slices.ContainsFunc(layers[row].may, func(name string) bool { return within(name, dir) }) {
			report(n, s.dir+" imports "+dir)
		}
	})
}
