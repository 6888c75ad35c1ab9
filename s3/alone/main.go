// Command alone moves bytes between files or memory and an object store by minio-go and nothing else. The benchmark `bucket` builds it and compares velocpy with it;
// no installation has it.
//
// It reads one task from each line of its standard input, and writes a line with the seconds that the task took. It reaches the server of AWS_ENDPOINT_URL_S3 with the
// credentials of the environment.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// task is a transfer of objects.
type task struct {
	Op      string   `json:"op"`
	Bucket  string   `json:"bucket"`
	Objects []object `json:"objects"`
	Part    int64    `json:"part"`    // bytes of a part of an upload, or of a read
	Threads int      `json:"threads"` // parts that are under way at once
}

// object is an object, and the pieces of local files that have its bytes, in their order.
type object struct {
	Key    string  `json:"key"`
	Bytes  int64   `json:"bytes"`
	Pieces []piece `json:"pieces"`
	To     string  `json:"to"` // file that download-to-files makes
}

type piece struct {
	File  string `json:"file"`
	From  int64  `json:"from"`
	Bytes int64  `json:"bytes"`
}

// answer is what has come of a task.
type answer struct {
	Seconds   float64 `json:"seconds"`
	Differing int64   `json:"differing"` // bytes that are not those of the files
	Error     string  `json:"error,omitempty"`
}

func main() {
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve() error {
	client, err := connect()
	if err != nil {
		return err
	}
	lines, answers := bufio.NewReader(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return nil // the benchmark has closed the input
		}
		var t task
		if err := json.Unmarshal(line, &t); err != nil {
			return err
		}
		done, err := client.do(&t)
		if err != nil {
			done.Error = err.Error()
		}
		if err := answers.Encode(done); err != nil {
			return err
		}
	}
}

// client carries tasks out.
type client struct {
	minio.Core
	memory []byte // of downloads; it is kept, so that its pages are there already
}

// connect makes a client with as many connections as threads need. Trailers are on, so that minio-go's own uploads have checksums.
func connect() (*client, error) {
	at, err := url.Parse(os.Getenv("AWS_ENDPOINT_URL_S3"))
	if err != nil {
		return nil, err
	}
	core, err := minio.NewCore(at.Host, &minio.Options{
		Creds:           credentials.NewEnvAWS(),
		Secure:          at.Scheme == "https",
		Transport:       &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true},
		Region:          "us-east-1",
		BucketLookup:    minio.BucketLookupPath,
		TrailingHeaders: true,
	})
	if err != nil {
		return nil, err
	}
	return &client{Core: *core}, nil
}

func (c *client) do(t *task) (answer, error) {
	switch t.Op {
	case "upload":
		return c.upload(t)
	case "upload-by-putobject":
		return c.uploadByPutObject(t)
	case "upload-from-memory":
		return c.uploadFromMemory(t)
	case "download":
		return c.download(t)
	case "download-to-files":
		return c.downloadToFiles(t)
	case "download-to-nowhere":
		return c.downloadToNowhere(t)
	}
	return answer{}, fmt.Errorf("%q is no task", t.Op)
}
