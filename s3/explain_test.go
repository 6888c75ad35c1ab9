package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/minio/minio-go/v7"

	"velocpy/gocore/base/lane"
)

func TestFailuresHaveKindsAndNoSecrets(t *testing.T) {
	const secret = "X-Amz-Signature=5ec7e7"
	wire := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for _, c := range []struct {
		err  error
		want lane.Why
	}{
		{minio.ErrorResponse{Code: minio.PreconditionFailed, StatusCode: 412, Message: secret}, lane.Exists},
		{minio.ErrorResponse{Code: "ConditionalRequestConflict", StatusCode: 409}, lane.Exists},
		{minio.ErrorResponse{Code: minio.NoSuchKey, StatusCode: 404}, lane.Absent},
		{minio.ErrorResponse{Code: minio.NoSuchBucket, StatusCode: 404}, lane.NoBucket},
		{minio.ErrorResponse{Code: "SignatureDoesNotMatch", StatusCode: 403, Message: secret}, lane.Denied},
		{minio.ErrorResponse{Code: "something new", StatusCode: 403}, lane.Denied},
		{minio.ErrorResponse{Code: "SlowDown", StatusCode: 503}, lane.Unreachable},
		{minio.ErrorResponse{Code: "BadDigest", StatusCode: 400}, lane.Altered},
		{minio.ErrorResponse{Code: "something new", StatusCode: 400}, lane.Refused},
		{&url.Error{Op: "Put", URL: "http://host/key?" + secret, Err: wire}, lane.Unreachable},
		{fmt.Errorf("read: %w", &url.Error{Op: "Get", URL: "http://host/key?" + secret, Err: io.EOF}), lane.Unreachable},
		{context.DeadlineExceeded, lane.Unreachable},
		{io.ErrUnexpectedEOF, lane.Unreachable},
		{errors.New("another error"), lane.Refused},
	} {
		why, text := explain(c.err)
		if why != c.want || text == "" || strings.Contains(text, secret) {
			t.Errorf("%v: %q, %q; want %q", c.err, why, text, c.want)
		}
	}
}
