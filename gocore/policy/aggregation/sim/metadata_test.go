package sim

import "testing"

// A file for each rank depends on how fast files are made: of 4096 ranks with 256 MiB, a push with its plans and commits takes longer on the server of Frontier(), and
// less long where a directory takes 3000 files a second.
func TestWhereManyFilesAreSlow(t *testing.T) {
	if testing.Short() {
		t.Skip("plays two million pieces")
	}
	bytes, nodes := uneven(4096, 256<<20)
	for _, c := range []struct {
		rate  float64 // files a second
		ahead bool
	}{{Frontier().CreateRate, false}, {3000, true}} {
		cluster := Frontier()
		cluster.CreateRate = c.rate
		files, err := FilePerRank(cluster, Default(bytes, nodes, len(bytes)), 8)
		if err != nil {
			t.Fatal(err)
		}
		archive, err := Together(cluster, ThisSoftware(), Default(bytes, nodes, len(bytes)/ofNode))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%.0f files a second: a file for each rank takes %.2f s, an archive %.2f s", c.rate, files.Elapsed, archive.Elapsed)
		if ahead := archive.Elapsed < files.Elapsed; ahead != c.ahead {
			t.Errorf("with %.0f files a second the archive is ahead: %t", c.rate, ahead)
		}
	}
}
