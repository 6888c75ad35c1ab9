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

	"velocpy/gocore/base/wire"
)

func TestFailuresHaveKindsAndNoSecrets(t *testing.T) {
	const secret = "X-Amz-Signature=5ec7e7"
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for _, c := range []struct {
		err  error
		want wire.Why
	}{
		{minio.ErrorResponse{Code: minio.PreconditionFailed, StatusCode: 412, Message: secret}, wire.Exists},
		{minio.ErrorResponse{Code: "ConditionalRequestConflict", StatusCode: 409}, wire.Exists},
		{minio.ErrorResponse{Code: minio.NoSuchKey, StatusCode: 404}, wire.Absent},
		{minio.ErrorResponse{Code: minio.NoSuchBucket, StatusCode: 404}, wire.NoBucket},
		{minio.ErrorResponse{Code: "SignatureDoesNotMatch", StatusCode: 403, Message: secret}, wire.Denied},
		{minio.ErrorResponse{Code: "something new", StatusCode: 403}, wire.Denied},
		{minio.ErrorResponse{Code: "SlowDown", StatusCode: 503}, wire.Unreachable},
		{minio.ErrorResponse{Code: "BadDigest", StatusCode: 400}, wire.Altered},
		{minio.ErrorResponse{Code: "something new", StatusCode: 400}, wire.Refused},
		{&url.Error{Op: "Put", URL: "http://host/key?" + secret, Err: refused}, wire.Unreachable},
		{fmt.Errorf("read: %w", &url.Error{Op: "Get", URL: "http://host/key?" + secret, Err: io.EOF}), wire.Unreachable},
		{context.DeadlineExceeded, wire.Unreachable},
		{io.ErrUnexpectedEOF, wire.Unreachable},
		{errors.New("another error"), wire.Refused},
	} {
		why, text := explain(c.err)
		if why != c.want || text == "" || strings.Contains(text, secret) {
			t.Errorf("%v: %q, %q; want %q", c.err, why, text, c.want)
		}
	}
}
