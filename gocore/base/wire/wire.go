// Package wire encodes the messages between the core and the program velocpy-s3, which sends requests to an object store. A connection is a stream socket. The core
// writes a request to it and reads the reply before it writes the next request.
//
// Large bodies do not go through the socket. A request may come with the descriptor of memory, which the connection has from then on. Both processes map it, and the
// head of a message says that its body lies there.
//
// The program exists because a client of an object store makes the core slower to load, also for callers that never use one.
package wire

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
)

// Operations of a request.
const (
	Get      = "get"      // bytes of an object, from From on; the reply's body has up to Bytes of them
	Put      = "put"      // makes an object of the body; with New only if there is none
	List     = "list"     // objects whose keys begin with Prefix, behind After, at most Most
	Delete   = "delete"   // removes Keys
	Begin    = "begin"    // begins an upload in parts
	Part     = "part"     // uploads the body as part Number of Upload
	Complete = "complete" // makes an object of Parts of Upload
	Abort    = "abort"    // gives Upload up
	Uploads  = "uploads"  // uploads in parts that were begun, of keys that begin with Prefix
	Parts    = "parts"    // parts of Upload that the server has, behind Number
)

// Why says what kind of failure a request has met.
type Why string

// Kinds of failures.
const (
	Exists      Why = "exists"      // there is an object of that key already
	Absent      Why = "absent"      // there is no object, or no upload, of that key
	NoBucket    Why = "no bucket"   // there is no bucket of that name
	Denied      Why = "denied"      // the credentials are wrong, or do not allow it
	Unreachable Why = "unreachable" // no server has answered in time
	Altered     Why = "altered"     // the server has got other bytes than were sent
	Refused     Why = "refused"     // the server has answered with another error
)

// Request is what the core asks for.
type Request struct {
	Op     string   `json:"op"`
	Bucket string   `json:"bucket"`
	Key    string   `json:"key,omitempty"`
	Prefix string   `json:"prefix,omitempty"`
	After  string   `json:"after,omitempty"`
	Upload string   `json:"upload,omitempty"`
	From   int64    `json:"from,omitempty"`
	Bytes  int64    `json:"bytes,omitempty"`
	Number int      `json:"number,omitempty"`
	Most   int      `json:"most,omitempty"`
	New    bool     `json:"new,omitempty"`
	Sum    string   `json:"sum,omitempty"` // CRC-32C of the body, as the header x-amz-checksum-crc32c has it
	Parts  []Tag    `json:"parts,omitempty"`
	Keys   []string `json:"keys,omitempty"`

	Share  int64 `json:"share,omitempty"`  // length of the memory whose descriptor comes with this message; 0: none comes
	Held   int64 `json:"held,omitempty"`   // bytes of the body in the connection's memory, from its beginning on; 0: the body follows the head
	Return bool  `json:"return,omitempty"` // the body of the reply goes into the connection's memory
}

// Tag is what the server has said of a part.
type Tag struct {
	Number int    `json:"number"`
	ETag   string `json:"etag"`
	Sum    string `json:"sum"`
	Bytes  int64  `json:"bytes,omitempty"` // in a listing
}

// Object is an object of a listing, or an upload that was begun.
type Object struct {
	Key    string  `json:"key"`
	Bytes  int64   `json:"bytes,omitempty"`
	Age    float64 `json:"age"` // seconds by the server's clock
	Upload string  `json:"upload,omitempty"`
	ETag   string  `json:"etag,omitempty"` // changes when the object is made anew
}

// Reply is what has come of a request.
type Reply struct {
	Why      Why      `json:"why,omitempty"`  // empty: it was carried out
	Text     string   `json:"text,omitempty"` // of a failure
	Upload   string   `json:"upload,omitempty"`
	Tag      Tag      `json:"tag"`
	Tags     []Tag    `json:"tags,omitempty"`
	Objects  []Object `json:"objects,omitempty"`
	More     bool     `json:"more,omitempty"` // the listing goes on behind its last object
	Requests int64    `json:"requests"`       // that were sent to the server, repeated ones included
	Sent     int64    `json:"sent"`           // bytes of their bodies
	Received int64    `json:"received"`       // bytes of the replies' bodies
	Held     int64    `json:"held,omitempty"` // bytes of the body in the connection's memory, after a request with Return
}

const (
	frontBytes = 12      // lengths of head and body
	mostHead   = 8 << 20 // a listing of 1000 keys takes some 100 KiB
	// MostBody bounds the body of a message.
	MostBody = 1 << 30
)

// ErrMessage: the bytes are no message.
var ErrMessage = errors.New("not a message between the core and velocpy-s3")

// Write writes a message.
func Write(w io.Writer, head any, body []byte) error {
	text, err := json.Marshal(head)
	if err != nil {
		return err
	}
	if len(text) > mostHead || len(body) > MostBody {
		return ErrMessage
	}
	front := binary.LittleEndian.AppendUint32(nil, uint32(len(text)))
	front = binary.LittleEndian.AppendUint64(front, uint64(len(body)))
	if _, err := w.Write(append(front, text...)); err != nil || len(body) == 0 {
		return err
	}
	_, err = w.Write(body)
	return err
}

// Read reads a message. room returns the buffer for a body of n bytes, or an error.
func Read(r io.Reader, head any, room func(n int64) ([]byte, error)) (body []byte, err error) {
	var front [frontBytes]byte
	if _, err := io.ReadFull(r, front[:]); err != nil {
		return nil, err
	}
	n, bytes := binary.LittleEndian.Uint32(front[:]), binary.LittleEndian.Uint64(front[4:])
	if n > mostHead || bytes > MostBody {
		return nil, ErrMessage
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, head); err != nil {
		return nil, errors.Join(ErrMessage, err)
	}
	if bytes == 0 {
		return nil, nil
	}
	if body, err = room(int64(bytes)); err != nil {
		return nil, err
	}
	if int64(len(body)) != int64(bytes) {
		return nil, ErrMessage
	}
	_, err = io.ReadFull(r, body)
	return body, err
}
