package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
	"golang.org/x/sys/unix"
)

// checksumHeader makes the server compare a body with its CRC-32C, as it does for velocpy.
const checksumHeader = "X-Amz-Checksum-Crc32c"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sumOf(p []byte) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, crc32.Checksum(p, castagnoli)))
}

// span is a part of an object.
type span struct {
	object, number int
	from, bytes    int64
}

// spans cuts all objects of a task into parts.
func spans(t *task) (all []span) {
	for i, o := range t.Objects {
		for from, number := int64(0), 1; from < o.Bytes; from, number = from+t.Part, number+1 {
			all = append(all, span{i, number, from, min(t.Part, o.Bytes-from)})
		}
	}
	return all
}

// each shares the numbers below count among so many goroutines. After an error the others get no more.
func each(threads, count int, f func(i int) error) error {
	var next atomic.Int64
	var failed atomic.Bool
	errs := make([]error, min(threads, count))
	var busy sync.WaitGroup
	for k := range errs {
		busy.Go(func() {
			for i := int(next.Add(1) - 1); i < count && !failed.Load(); i = int(next.Add(1) - 1) {
				if errs[k] = f(i); errs[k] != nil {
					failed.Store(true)
					return
				}
			}
		})
	}
	busy.Wait()
	return errors.Join(errs...)
}

// upload reads parts of the files and sends each with its CRC-32C. An object that is no longer than a part goes by one request.
func (c *client) upload(t *task) (a answer, err error) {
	sources := make([]*source, len(t.Objects))
	began := time.Now()
	for i := range t.Objects {
		if sources[i], err = open(&t.Objects[i], true); err != nil {
			return a, err
		}
	}
	err = c.send(t, func(x span) ([]byte, string, error) {
		p, err := take(t.Part)
		if err != nil {
			return nil, "", err
		}
		if _, err = sources[x.object].ReadAt(p[:x.bytes], x.from); err != nil && !errors.Is(err, io.EOF) {
			return nil, "", err
		}
		return p[:x.bytes], sumOf(p[:x.bytes]), nil
	}, giveBack)
	a.Seconds = time.Since(began).Seconds()
	for _, s := range sources {
		err = errors.Join(err, s.close())
	}
	return a, err
}

// uploadFromMemory sends parts that were read, and whose checksums were taken, before the clock starts: no client that reads files can be faster.
func (c *client) uploadFromMemory(t *task) (a answer, err error) {
	type ready struct {
		p   []byte
		sum string
	}
	all := map[span]ready{}
	for _, x := range spans(t) {
		s, err := open(&t.Objects[x.object], true)
		if err != nil {
			return a, err
		}
		p, err := take(t.Part)
		if err != nil {
			return a, err
		}
		if _, err = s.ReadAt(p[:x.bytes], x.from); err != nil && !errors.Is(err, io.EOF) {
			return a, err
		}
		if err := s.close(); err != nil {
			return a, err
		}
		all[x] = ready{p[:x.bytes], sumOf(p[:x.bytes])}
	}
	began := time.Now()
	err = c.send(t, func(x span) ([]byte, string, error) { return all[x].p, all[x].sum, nil }, func([]byte) {})
	a.Seconds = time.Since(began).Seconds()
	for _, r := range all {
		giveBack(r.p)
	}
	return a, err
}

// send uploads objects in parts, those of all objects together.
func (c *client) send(t *task, get func(x span) (p []byte, sum string, err error), done func(p []byte)) error {
	ctx := context.Background()
	uploads := make([]string, len(t.Objects))
	tags := make([][]minio.CompletePart, len(t.Objects))
	left := make([]atomic.Int64, len(t.Objects))
	for i, o := range t.Objects {
		count := (o.Bytes + t.Part - 1) / t.Part
		tags[i] = make([]minio.CompletePart, count)
		left[i].Store(count)
		if count > 1 {
			var err error
			options := minio.PutObjectOptions{UserMetadata: map[string]string{"X-Amz-Checksum-Algorithm": "CRC32C"}}
			if uploads[i], err = c.NewMultipartUpload(ctx, t.Bucket, o.Key, options); err != nil {
				return err
			}
		}
	}
	all := spans(t)
	return each(t.Threads, len(all), func(k int) error {
		x := all[k]
		p, sum, err := get(x)
		if err != nil {
			return err
		}
		defer done(p)
		key, upload := t.Objects[x.object].Key, uploads[x.object]
		if upload == "" {
			o := minio.PutObjectOptions{UserMetadata: map[string]string{checksumHeader: sum}, DisableContentSha256: true}
			_, err := c.PutObject(ctx, t.Bucket, key, bytes.NewReader(p), x.bytes, "", "", o)
			return err
		}
		o := minio.PutObjectPartOptions{CustomHeader: http.Header{checksumHeader: {sum}}, DisableContentSha256: true}
		got, err := c.PutObjectPart(ctx, t.Bucket, key, upload, x.number, bytes.NewReader(p), x.bytes, o)
		if err != nil {
			return err
		}
		tags[x.object][x.number-1] = minio.CompletePart{PartNumber: x.number, ETag: got.ETag, ChecksumCRC32C: sum}
		if left[x.object].Add(-1) > 0 {
			return nil
		}
		_, err = c.CompleteMultipartUpload(ctx, t.Bucket, key, upload, tags[x.object], minio.PutObjectOptions{})
		return err
	})
}

// uploadByPutObject lets minio-go cut files into parts, read them, and send each with the CRC-32C behind it. All objects are sent at once.
func (c *client) uploadByPutObject(t *task) (a answer, err error) {
	began := time.Now()
	err = each(len(t.Objects), len(t.Objects), func(i int) error {
		o := &t.Objects[i]
		s, err := open(o, false)
		if err != nil {
			return err
		}
		_, err = c.Client.PutObject(context.Background(), t.Bucket, o.Key, io.NewSectionReader(s, 0, o.Bytes), o.Bytes, minio.PutObjectOptions{
			PartSize: uint64(t.Part), NumThreads: uint(max(t.Threads/len(t.Objects), 1)), DisableContentSha256: true, AutoChecksum: minio.ChecksumCRC32C,
		})
		return errors.Join(err, s.close())
	})
	a.Seconds = time.Since(began).Seconds()
	return a, err
}

// get reads a part of an object.
func (c *client) get(t *task, x span, p []byte) error {
	var o minio.GetObjectOptions
	o.Set("Range", "bytes="+strconv.FormatInt(x.from, 10)+"-"+strconv.FormatInt(x.from+x.bytes-1, 10))
	body, _, _, err := c.GetObject(context.Background(), t.Bucket, t.Objects[x.object].Key, o)
	if err != nil {
		return err
	}
	_, err = io.ReadFull(body, p)
	return errors.Join(err, body.Close())
}

// download reads objects into memory. The bytes are compared with those of the files afterwards.
func (c *client) download(t *task) (a answer, err error) {
	begins, total := make([]int64, len(t.Objects)), int64(0)
	for i, o := range t.Objects {
		begins[i] = total
		total += o.Bytes
	}
	if int64(len(c.memory)) < total {
		if c.memory, err = mapped(total); err != nil {
			return a, err
		}
	}
	clear(c.memory)
	all := spans(t)
	began := time.Now()
	err = each(t.Threads, len(all), func(k int) error {
		x := all[k]
		return c.get(t, x, c.memory[begins[x.object]+x.from:][:x.bytes])
	})
	a.Seconds = time.Since(began).Seconds()
	for i := range t.Objects {
		if err == nil {
			var wrong int64
			wrong, err = differing(&t.Objects[i], c.memory[begins[i]:])
			a.Differing += wrong
		}
	}
	return a, err
}

// downloadToNowhere reads objects into one buffer of each thread: no client that keeps the bytes can be faster.
func (c *client) downloadToNowhere(t *task) (a answer, err error) {
	all := spans(t)
	began := time.Now()
	err = each(t.Threads, len(all), func(k int) error {
		p, err := take(t.Part)
		if err != nil {
			return err
		}
		defer giveBack(p)
		return c.get(t, all[k], p[:all[k].bytes])
	})
	a.Seconds = time.Since(began).Seconds()
	return a, err
}

// downloadToFiles reads each object into a file, past the page cache, and syncs it.
func (c *client) downloadToFiles(t *task) (a answer, err error) {
	began := time.Now()
	files := make([]*os.File, len(t.Objects))
	for i, o := range t.Objects {
		if files[i], err = os.OpenFile(o.To, os.O_CREATE|os.O_WRONLY|unix.O_DIRECT, 0o600); errors.Is(err, unix.EINVAL) {
			files[i], err = os.OpenFile(o.To, os.O_CREATE|os.O_WRONLY, 0o600)
		}
		if err != nil {
			return a, err
		}
	}
	all := spans(t)
	err = each(t.Threads, len(all), func(k int) error {
		x := all[k]
		p, err := take(t.Part)
		if err != nil {
			return err
		}
		defer giveBack(p)
		if err := c.get(t, x, p[:x.bytes]); err != nil {
			return err
		}
		_, err = files[x.object].WriteAt(p[:x.bytes], x.from)
		return err
	})
	for _, f := range files {
		err = errors.Join(err, f.Sync(), f.Close())
	}
	a.Seconds = time.Since(began).Seconds()
	for i := range t.Objects {
		if err == nil {
			var wrong int64
			wrong, err = differingFile(&t.Objects[i])
			a.Differing += wrong
		}
	}
	return a, err
}

// differingFile counts the bytes of the file that was made of an object which are not those of its files.
func differingFile(o *object) (int64, error) {
	p, err := os.ReadFile(o.To)
	if err != nil {
		return 0, err
	}
	if int64(len(p)) != o.Bytes {
		return o.Bytes, nil
	}
	return differing(o, p)
}
