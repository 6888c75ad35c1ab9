package durable

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"velocpy/gocore/base/vfs"
)

const backupDir = "/backup"

func (p *player) backupOptions() Options {
	o := p.options(p.mem)
	o.Dir = backupDir
	return o
}

// copied runs a backup to its end, and calls between before each step. seen is the content of the store at the last read.
func copied(p *player, between func(step int)) (done BackedUp, seen reference, err error) {
	b, err := NewBackup(p.options(p.mem), p.backupOptions())
	if err != nil {
		return done, seen, err
	}
	for step := 0; ; step++ {
		between(step)
		if b.to != nil {
			seen = p.sure
		}
		asked := 0
		done, err := b.Step(func() bool { asked++; return asked > 1 })
		if err != nil || done {
			return b.Done(), seen, errors.Join(err, b.Close())
		}
	}
}

// A copy of a store at rest equals the store.
func TestABackupIsTheStore(t *testing.T) {
	for _, s := range scenarios {
		p := newPlayer(5, func(m *vfs.Mem) vfs.FS { return m })
		s.play(p, true)
		if p.wrong != nil || !p.close() || !p.open() {
			t.Fatal(p.wrong)
		}
		done, _, err := copied(p, func(int) {})
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		got, err := recovered(p.backupOptions(), []reference{p.sure})
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		if done.Checkpoints != len(got.rows) || done.Damaged > 0 || done.Older > 0 {
			t.Errorf("%s: %+v of %v", s.name, done, got)
		}
		p.close()
	}
}

// Beside a writer that replaces and drops checkpoints at every step, each checkpoint of the copy is a complete version that the store had. If the rounds
// ended because nothing was new, the copy equals the store at the last read.
func TestABackupBesideAWriter(t *testing.T) {
	still := 0
	for seed := range uint64(60) {
		p := newPlayer(seed, func(m *vfs.Mem) vfs.FS { return m })
		p.blocks = 200
		if !p.open() {
			t.Fatal("it does not open")
		}
		for i := range 20 {
			p.commit(p.put("a", p.key(i), p.size()))
		}
		r := rand.New(rand.NewPCG(seed, 3))
		rests := 5 + r.IntN(30)
		had := map[slot]map[version]bool{}
		note := func() {
			for at, v := range p.sure.rows {
				if had[at] == nil {
					had[at] = map[version]bool{}
				}
				had[at][v] = true
			}
		}
		note()
		done, seen, err := copied(p, func(step int) {
			if step >= rests {
				return
			}
			for range r.IntN(6) {
				if n := r.IntN(25); r.IntN(4) == 0 {
					p.commit(p.drop("a", p.key(n)))
				} else {
					p.commit(p.put("a", p.key(n), p.size()))
				}
				note()
			}
		})
		if err != nil || p.wrong != nil {
			t.Fatalf("seed %d: %v", seed, errors.Join(err, p.wrong))
		}
		if n := len(shownIn(t, p.backupOptions()).rows); n != done.Checkpoints {
			t.Fatalf("seed %d: %d checkpoints are in it, %+v", seed, n, done)
		}
		if err := wholeIn(p.backupOptions(), had, seen, done.Rounds < mostRounds); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if done.Rounds < mostRounds {
			still++
		}
		p.close()
	}
	if still == 0 || still == 60 {
		t.Errorf("of 60 backups %d ended as nothing was new", still)
	}
}

func shownIn(t *testing.T, o Options) reference {
	t.Helper()
	view, err := Read(o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = view.Close() }()
	return shown(view.State())
}

// wholeIn verifies that the store once had every checkpoint of the copy, and tells for each key of the store whether the copy has it.
func wholeIn(o Options, had map[slot]map[version]bool, now reference, same bool) error {
	view, err := Read(o)
	if err != nil {
		return err
	}
	defer func() { _ = view.Close() }()
	got := shown(view.State())
	for at, v := range got.rows {
		if !had[at][v] {
			return fmt.Errorf("%v is %v, which the store never had", at, v)
		}
	}
	if same && !got.equal(now) {
		return fmt.Errorf("it holds\n  %v\nand the store\n  %v", got, now)
	}
	return errors.Join(view.Damage(), readable(view.contents, view.Space().Read, anyRow))
}

// Damaged checkpoints of the store are counted, and the others are copied.
func TestABackupOfADamagedStore(t *testing.T) {
	p := newPlayer(1, func(m *vfs.Mem) vfs.FS { return m })
	if !p.open() || !p.commit(p.put("a", p.key(0), 4096), p.put("a", p.key(1), 4096)) || !p.close() {
		t.Fatal("no store was made")
	}
	view, err := Read(p.options(p.mem))
	if err != nil {
		t.Fatal(err)
	}
	id, _ := view.State().History("a")
	row, _ := view.State().Find(id, p.key(0))
	at := row.Extents[0]
	if err := errors.Join(view.Close(), flip(p.mem, dir+"/data-0000000000000001", view.InFile(at)*8+77)); err != nil {
		t.Fatal(err)
	}
	done, _, err := copied(p, func(int) {})
	if err != nil || done.Checkpoints != 2 || done.Damaged != 1 {
		t.Fatalf("%+v, %v", done, err)
	}
}

func TestABackupNeedsADirectoryOfItsOwn(t *testing.T) {
	p := newPlayer(1, func(m *vfs.Mem) vfs.FS { return m })
	if !p.open() || !p.close() {
		t.Fatal("no store was made")
	}
	if err := p.mem.MkdirAll(backupDir); err != nil {
		t.Fatal(err)
	}
	p.mem.PutFile(backupDir + "/something")
	if _, err := NewBackup(p.options(p.mem), p.backupOptions()); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("%v", err)
	}
	if n := p.mem.OpenFiles(); n != 0 {
		t.Errorf("%d files are open", n)
	}
}
