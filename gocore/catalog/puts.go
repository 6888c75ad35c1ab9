package catalog

// Puts are the rows that records put which have not been applied. What they rely on, the State defines or they do.
func (s *State) Puts(records [][]byte) (rows []Row, err error) {
	shapes := map[uint32]*layout{}
	for _, record := range records {
		for len(record) > 0 {
			var i item
			if i, record, err = nextItem(record); err != nil {
				return nil, err
			}
			switch i.kind() {
			case kindLayout:
				l, err := parseLayout(i.body())
				if err != nil {
					return nil, err
				}
				shapes[l.ID] = l
			case kindPut:
				row, err := s.putRow(i, shapes)
				if err != nil {
					return nil, err
				}
				rows = append(rows, row)
			}
		}
	}
	return rows, nil
}

func (s *State) putRow(i item, shapes map[uint32]*layout) (Row, error) {
	p, err := parsePut(i)
	if err != nil {
		return Row{}, err
	}
	l := shapes[p.layout]
	if l == nil {
		l = s.layout(p.layout)
	}
	if l == nil {
		return Row{}, malformed("layout %d is not defined", p.layout)
	}
	if p.content == Raw {
		if _, err := p.parseRest(l); err != nil {
			return Row{}, err
		}
	}
	return decode(i, l), nil
}
