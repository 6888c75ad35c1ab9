package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"

	"github.com/minio/minio-go/v7"

	"velocpy/gocore/base/wire"
)

// kinds says what the codes of a server mean for the core.
var kinds = map[string]wire.Why{
	minio.PreconditionFailed:      wire.Exists,
	"ConditionalRequestConflict":  wire.Exists,
	minio.NoSuchKey:               wire.Absent,
	"InvalidRange":                wire.Absent, // the object is empty
	"NoSuchUpload":                wire.Absent,
	"InvalidPart":                 wire.Absent, // another process has sent other bytes
	minio.NoSuchBucket:            wire.NoBucket,
	"InvalidBucketName":           wire.NoBucket,
	minio.AccessDenied:            wire.Denied,
	"InvalidAccessKeyId":          wire.Denied,
	"SignatureDoesNotMatch":       wire.Denied,
	"ExpiredToken":                wire.Denied,
	"InvalidToken":                wire.Denied,
	"AllAccessDisabled":           wire.Denied,
	"BadDigest":                   wire.Altered,
	"XAmzContentSHA256Mismatch":   wire.Altered,
	"XAmzContentChecksumMismatch": wire.Altered,
}

// byStatus says what the status of a reply means whose code is not known.
var byStatus = map[int]wire.Why{
	http.StatusConflict:           wire.Exists,
	http.StatusPreconditionFailed: wire.Exists,
	http.StatusForbidden:          wire.Denied,
	http.StatusUnauthorized:       wire.Denied,
	http.StatusServiceUnavailable: wire.Unreachable,
	http.StatusBadGateway:         wire.Unreachable,
	http.StatusGatewayTimeout:     wire.Unreachable,
	http.StatusTooManyRequests:    wire.Unreachable,
}

// explain says what kind of failure an error is. The text has no address, and nothing that was signed.
func explain(err error) (wire.Why, string) {
	var of minio.ErrorResponse
	if errors.As(err, &of) && (of.StatusCode != 0 || of.Code != "") {
		why, known := kinds[of.Code]
		if !known {
			why, known = byStatus[of.StatusCode]
		}
		if !known {
			why = wire.Refused
		}
		return why, "the server says " + of.Code
	}
	err = cause(err)
	var network net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return wire.Unreachable, "the server has not answered in time"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return wire.Unreachable, "the connection was cut"
	case errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.ECONNREFUSED):
		return wire.Unreachable, err.Error()
	}
	return wire.Refused, err.Error()
}
