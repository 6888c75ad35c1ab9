package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"

	"github.com/minio/minio-go/v7"

	"velocpy/gocore/base/lane"
)

// kinds says what the codes of a server mean for the core.
var kinds = map[string]lane.Why{
	minio.PreconditionFailed:      lane.Exists,
	"ConditionalRequestConflict":  lane.Exists,
	minio.NoSuchKey:               lane.Absent,
	"InvalidRange":                lane.Absent, // the object is empty
	"NoSuchUpload":                lane.Absent,
	minio.NoSuchBucket:            lane.NoBucket,
	"InvalidBucketName":           lane.NoBucket,
	minio.AccessDenied:            lane.Denied,
	"InvalidAccessKeyId":          lane.Denied,
	"SignatureDoesNotMatch":       lane.Denied,
	"ExpiredToken":                lane.Denied,
	"InvalidToken":                lane.Denied,
	"AllAccessDisabled":           lane.Denied,
	"BadDigest":                   lane.Altered,
	"XAmzContentSHA256Mismatch":   lane.Altered,
	"XAmzContentChecksumMismatch": lane.Altered,
}

// byStatus says what the status of a reply means whose code is not known.
var byStatus = map[int]lane.Why{
	http.StatusConflict:           lane.Exists,
	http.StatusPreconditionFailed: lane.Exists,
	http.StatusForbidden:          lane.Denied,
	http.StatusUnauthorized:       lane.Denied,
	http.StatusServiceUnavailable: lane.Unreachable,
	http.StatusBadGateway:         lane.Unreachable,
	http.StatusGatewayTimeout:     lane.Unreachable,
	http.StatusTooManyRequests:    lane.Unreachable,
}

// explain says what kind of failure an error is. The text has no address, and nothing that was signed.
func explain(err error) (lane.Why, string) {
	var of minio.ErrorResponse
	if errors.As(err, &of) && (of.StatusCode != 0 || of.Code != "") {
		why, known := kinds[of.Code]
		if !known {
			why, known = byStatus[of.StatusCode]
		}
		if !known {
			why = lane.Refused
		}
		return why, "the server says " + of.Code
	}
	err = cause(err)
	var wire net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return lane.Unreachable, "the server has not answered in time"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return lane.Unreachable, "the connection was cut"
	case errors.As(err, &wire), errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.ECONNREFUSED):
		return lane.Unreachable, err.Error()
	}
	return lane.Refused, err.Error()
}
