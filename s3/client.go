package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// Bounds of one request. A request that fails in a way that may pass is sent again, mostTries times in all, with pauses of up to a second that minio-go draws.
const (
	dialWithin    = 5 * time.Second
	headerWithin  = 30 * time.Second
	metadataLimit = 2 * time.Second // the metadata service of an instance answers at once, or there is none
	mostTries     = 5
	smallWithin   = 60 * time.Second // of all attempts of a request without many bytes
	slowestRate   = 1 << 20          // bytes in a second that a transfer is given time for
)

// defaultEndpoint is that of Amazon.
const defaultEndpoint = "https://s3.amazonaws.com"

// client sends requests to one object store.
type client struct {
	minio.Core
	counts *counting
}

// newClient reads the environment.
func newClient() (*client, error) {
	given := cmp.Or(os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"))
	at, err := url.Parse(cmp.Or(given, defaultEndpoint))
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, errors.New("AWS_ENDPOINT_URL_S3, or AWS_ENDPOINT_URL, is no address such as https://s3.example.org")
	}
	lookup := minio.BucketLookupAuto
	if given != "" {
		lookup = minio.BucketLookupPath
	}
	counts := newCounting(&http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: dialWithin}).DialContext,
		MaxIdleConnsPerHost:   64,
		IdleConnTimeout:       time.Minute,
		TLSHandshakeTimeout:   dialWithin,
		ResponseHeaderTimeout: headerWithin,
		ExpectContinueTimeout: dialWithin,
		DisableCompression:    true,
	})
	region := cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"))
	if region == "" && given != "" {
		region = "us-east-1" // other stores than Amazon's have one region, and most of them call it so
	}
	core, err := minio.NewCore(at.Host, &minio.Options{
		Creds: credentials.NewChainCredentials([]credentials.Provider{
			&credentials.EnvAWS{},
			&credentials.FileAWSCredentials{},
			&credentials.IAM{Client: &http.Client{Timeout: metadataLimit, Transport: http.DefaultTransport}},
		}),
		Secure:       at.Scheme == "https",
		Transport:    counts,
		Region:       region,
		BucketLookup: lookup,
		MaxRetries:   mostTries,
	})
	if err != nil {
		return nil, fmt.Errorf("the endpoint is refused: %w", err)
	}
	return &client{*core, counts}, nil
}
