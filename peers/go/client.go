package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

type latency struct {
	P50 float64 `json:"p50_us"`
	P99 float64 `json:"p99_us"`
}

type clientResult struct {
	Version    string   `json:"version"`
	Scenario   string   `json:"scenario"`
	Bytes      uint64   `json:"bytes"`
	Count      uint64   `json:"count"`
	Seconds    float64  `json:"seconds"`
	Latency    *latency `json:"latency"`
	PeakRssKiB uint64   `json:"peak_rss_kib"`
}

func connect(o *options, roots *x509.CertPool) (*http3.ClientConn, error) {
	server, err := net.ResolveUDPAddr("udp", o.server)
	if err != nil {
		return nil, err
	}
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	config := &tls.Config{
		RootCAs:          roots,
		ServerName:       serverName,
		MinVersion:       tls.VersionTLS13,
		CurvePreferences: []tls.CurveID{tls.X25519},
		NextProtos:       []string{http3.NextProtoH3},
	}
	endpoint := &quic.Transport{Conn: socket}
	connection, err := endpoint.Dial(context.Background(), server, config, transport(o))
	if err != nil {
		return nil, err
	}
	// Asking for compression would add a field to every request.
	client := &http3.Transport{DisableCompression: true}
	return client.NewClientConn(connection), nil
}

func work(o *options) error {
	certificate, err := os.ReadFile(filepath.Join(o.identity, "certificate.pem"))
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(certificate) {
		return errors.New("no certificate in certificate.pem")
	}
	clients := make([]*http3.ClientConn, o.connections)
	for i := range clients {
		if clients[i], err = connect(o, roots); err != nil {
			return err
		}
	}
	url := fmt.Sprintf("https://%s/%d", serverName, o.bytes)
	samples := make([][]time.Duration, o.inFlight)
	failures := make([]error, o.inFlight)
	var taken atomic.Uint64
	var workers sync.WaitGroup
	start := time.Now()
	for worker := range o.inFlight {
		client := clients[worker%len(clients)]
		workers.Go(func() {
			for taken.Add(1) <= o.count {
				begin := time.Now()
				if err := get(client, url, o.bytes); err != nil {
					failures[worker] = err
					return
				}
				samples[worker] = append(samples[worker], time.Since(begin))
			}
		})
	}
	workers.Wait()
	seconds := time.Since(start).Seconds()
	if err := errors.Join(failures...); err != nil {
		return err
	}
	for _, client := range clients {
		_ = client.CloseWithError(0x100, "")
	}
	all := slices.Concat(samples...)
	slices.Sort(all)
	rank := func(percent int) float64 {
		index := (len(all)*percent + 99) / 100
		return float64(all[index-1].Nanoseconds()) / 1e3
	}
	return printLine(clientResult{
		Version:    version(),
		Scenario:   o.scenario,
		Bytes:      o.bytes * o.count,
		Count:      o.count,
		Seconds:    seconds,
		Latency:    &latency{rank(50), rank(99)},
		PeakRssKiB: peakKiB(),
	})
}

func get(client *http3.ClientConn, url string, size uint64) error {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.RoundTrip(request)
	if err != nil {
		return err
	}
	received, err := io.Copy(io.Discard, response.Body)
	if err != nil {
		return err
	}
	if uint64(received) != size {
		return fmt.Errorf("received %d bytes, wanted %d", received, size)
	}
	return response.Body.Close()
}
