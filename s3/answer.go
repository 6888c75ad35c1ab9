package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/minio/minio-go/v7"

	"velocpy/gocore/base/wire"
)

// checksumHeader makes the server compare the bytes that it has got with their CRC-32C. The header is signed, so the body need not be.
const checksumHeader = "X-Amz-Checksum-Crc32c"

// answer carries a request out. The costs of requests of other connections at the same time may be counted here or there, and all of them once.
func (c *client) answer(q *wire.Request, body []byte, room func(int64) ([]byte, error)) (r wire.Reply, reply []byte) {
	within := smallWithin + time.Duration(max(q.Bytes, int64(len(body)))/slowestRate)*time.Second
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	var err error
	if q.Op == wire.Get {
		reply, err = c.get(ctx, q, room)
	} else {
		err = c.do(ctx, q, body, &r)
	}
	if err != nil {
		r.Why, r.Text = explain(err)
	}
	r.Requests, r.Sent, r.Received = c.counts.requests.Swap(0), c.counts.sent.Swap(0), c.counts.received.Swap(0)
	return r, reply
}

func (c *client) do(ctx context.Context, q *wire.Request, body []byte, r *wire.Reply) (err error) {
	switch q.Op {
	case wire.Put:
		return c.put(ctx, q, body)
	case wire.List:
		return c.list(ctx, q, r)
	case wire.Delete:
		return c.remove(ctx, q)
	case wire.Begin:
		o := minio.PutObjectOptions{UserMetadata: map[string]string{"X-Amz-Checksum-Algorithm": "CRC32C"}}
		r.Upload, err = c.NewMultipartUpload(ctx, q.Bucket, q.Key, o)
		return err
	case wire.Part:
		r.Tag, err = c.part(ctx, q, body)
		return err
	case wire.Complete:
		return c.complete(ctx, q)
	case wire.Abort:
		return c.AbortMultipartUpload(ctx, q.Bucket, q.Key, q.Upload)
	case wire.Uploads:
		return c.uploads(ctx, q, r)
	case wire.Parts:
		return c.parts(ctx, q, r)
	}
	return errors.New("an operation that this program does not know")
}

// get reads bytes of an object. minio-go does not repeat a request whose reply was cut in the middle, so this function does.
func (c *client) get(ctx context.Context, q *wire.Request, room func(int64) ([]byte, error)) ([]byte, error) {
	p, err := room(q.Bytes)
	if err != nil {
		return nil, err
	}
	at := 0
	for try := 1; ; try++ {
		n, began, err := c.getSome(ctx, q, int64(at), p[at:])
		if at += n; err == nil {
			return p[:at], nil
		}
		if !began || try == mostTries || ctx.Err() != nil {
			return nil, err
		}
		time.Sleep(time.Duration(try) * time.Duration(rand.Int64N(int64(100*time.Millisecond))))
	}
}

// getSome reads the rest of a range, and returns how much of it has come. A range beyond the object's end is cut. began tells whether the server has begun to
// send it.
func (c *client) getSome(ctx context.Context, q *wire.Request, done int64, p []byte) (n int, began bool, err error) {
	var o minio.GetObjectOptions
	from := q.From + done
	o.Set("Range", "bytes="+strconv.FormatInt(from, 10)+"-"+strconv.FormatInt(from+int64(len(p))-1, 10))
	reader, info, _, err := c.GetObject(ctx, q.Bucket, q.Key, o)
	if err != nil {
		return 0, false, err
	}
	defer reader.Close()
	p = p[:min(int64(len(p)), info.Size)]
	n, err = io.ReadFull(reader, p)
	return n, true, err
}

func (c *client) put(ctx context.Context, q *wire.Request, body []byte) error {
	o := minio.PutObjectOptions{UserMetadata: map[string]string{checksumHeader: q.Sum}, DisableContentSha256: true}
	if q.New {
		o.SetMatchETagExcept("*")
	}
	_, err := c.PutObject(ctx, q.Bucket, q.Key, bytes.NewReader(body), int64(len(body)), "", "", o)
	return err
}

func (c *client) list(ctx context.Context, q *wire.Request, r *wire.Reply) error {
	var got minio.ListBucketV2Result
	came := make(chan error, 1)
	go func() { // minio-go takes no context for one page of a listing
		page, err := c.ListObjectsV2(q.Bucket, q.Prefix, q.After, "", "", q.Most)
		got = page
		came <- err
	}()
	select {
	case err := <-came:
		if err != nil {
			return err
		}
	case <-ctx.Done():
		return ctx.Err()
	}
	for _, x := range got.Contents {
		r.Objects = append(r.Objects, wire.Object{Key: x.Key, Bytes: x.Size, Age: c.counts.age(x.LastModified), ETag: x.ETag})
	}
	r.More = got.IsTruncated
	return nil
}

// remove removes objects. One that is gone already is no error.
func (c *client) remove(ctx context.Context, q *wire.Request) error {
	for _, key := range q.Keys {
		if err := c.RemoveObject(ctx, q.Bucket, key, minio.RemoveObjectOptions{}); err != nil {
			if why, _ := explain(err); why != wire.Absent {
				return err
			}
		}
	}
	return nil
}

func (c *client) part(ctx context.Context, q *wire.Request, body []byte) (wire.Tag, error) {
	o := minio.PutObjectPartOptions{CustomHeader: http.Header{checksumHeader: {q.Sum}}, DisableContentSha256: true}
	got, err := c.PutObjectPart(ctx, q.Bucket, q.Key, q.Upload, q.Number, bytes.NewReader(body), int64(len(body)), o)
	return wire.Tag{Number: q.Number, ETag: got.ETag, Sum: q.Sum}, err
}

func (c *client) complete(ctx context.Context, q *wire.Request) error {
	parts := make([]minio.CompletePart, len(q.Parts))
	for i, tag := range q.Parts {
		parts[i] = minio.CompletePart{PartNumber: tag.Number, ETag: tag.ETag, ChecksumCRC32C: tag.Sum}
	}
	_, err := c.CompleteMultipartUpload(ctx, q.Bucket, q.Key, q.Upload, parts, minio.PutObjectOptions{})
	return err
}

// mostUploads bounds a listing of uploads.
const mostUploads = 1000

func (c *client) uploads(ctx context.Context, q *wire.Request, r *wire.Reply) error {
	got, err := c.ListMultipartUploads(ctx, q.Bucket, q.Prefix, "", "", "", mostUploads)
	if err != nil {
		return err
	}
	for _, x := range got.Uploads {
		r.Objects = append(r.Objects, wire.Object{Key: x.Key, Upload: x.UploadID, Age: c.counts.age(x.Initiated)})
	}
	r.More = got.IsTruncated
	return nil
}

// mostListed bounds a listing of parts.
const mostListed = 1000

func (c *client) parts(ctx context.Context, q *wire.Request, r *wire.Reply) error {
	got, err := c.ListObjectParts(ctx, q.Bucket, q.Key, q.Upload, q.Number, mostListed)
	if err != nil {
		return err
	}
	for _, x := range got.ObjectParts {
		r.Tags = append(r.Tags, wire.Tag{Number: x.PartNumber, ETag: x.ETag, Sum: x.ChecksumCRC32C, Bytes: x.Size})
	}
	r.More = got.IsTruncated
	return nil
}
