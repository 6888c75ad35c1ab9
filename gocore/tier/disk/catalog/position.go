package catalog

// MostSerial is the largest serial: a signed 64-bit number can always hold a larger one.
const MostSerial = 1 << 62

// position is how far the log has come: the largest serial in it, and the commit area that continues it.
type position struct {
	serial  uint64
	commits uint64 // the data file with this commit area
}

// MaxSerial is the largest serial of any put, drop or clear; later versions have larger ones. 0: none.
func (p *position) MaxSerial() uint64 { return p.serial }

// Commits is the number of the data file whose commit area continues the log; 0: none was named since the last snapshot.
func (p *position) Commits() uint64 { return p.commits }

// seen updates the largest serial.
func (p *position) seen(serial uint64) error {
	if err := checkSerial(serial); err != nil {
		return err
	}
	p.serial = max(p.serial, serial)
	return nil
}

func checkSerial(serial uint64) error {
	if serial > MostSerial {
		return malformed("serial %d is too large", serial)
	}
	return nil
}

// number applies an item that gives a serial alone.
func (p *position) number(i item) error {
	f := fields{p: i.body()}
	serial := f.u64()
	if err := f.end(); err != nil {
		return err
	}
	return p.seen(serial)
}

// nameArea applies an item that names the data file whose commit area continues the log.
func (p *position) nameArea(i item) error {
	f := fields{p: i.body()}
	file := f.u64()
	if err := f.end(); err != nil {
		return err
	}
	p.commits = file
	return nil
}

// CommitsIn is a record that names the data file whose commit area continues the log after the batch with this record.
func CommitsIn(file uint64) []byte {
	p, start := beginItem(nil, kindCommits)
	return endItem(appendNumbers(p, file), start)
}
