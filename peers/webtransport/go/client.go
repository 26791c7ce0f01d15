package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/webtransport-go"
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

// Opens a session on a connection of its own.
func connect(o *options) (*webtransport.Session, error) {
	certificate, err := os.ReadFile(filepath.Join(o.identity, "certificate.pem"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(certificate) {
		return nil, errors.New("the certificate cannot be read")
	}
	_, port, err := net.SplitHostPort(o.server)
	if err != nil {
		return nil, err
	}
	server, err := net.ResolveUDPAddr("udp", o.server)
	if err != nil {
		return nil, err
	}
	client := &webtransport.Transport{
		Config: sessions(),
		TLSClientConfig: &tls.Config{
			RootCAs:          roots,
			ServerName:       serverName,
			MinVersion:       tls.VersionTLS13,
			CurvePreferences: []tls.CurveID{tls.X25519},
			NextProtos:       []string{http3.NextProtoH3},
		},
		QUICConfig: transport(o),
		DialAddr: func(ctx context.Context, _ string, tls *tls.Config, config *quic.Config) (*quic.Conn, error) {
			socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
			if err != nil {
				return nil, err
			}
			if err := enlarge(socket); err != nil {
				return nil, err
			}
			return quic.DialEarly(ctx, socket, server, tls, config)
		},
	}
	_, session, err := client.Dial(context.Background(), "https://localhost:"+port+"/", nil)
	return session, err
}

func work(o *options) error {
	result := clientResult{Version: version(), Scenario: o.scenario}
	session, err := connect(o)
	if err != nil {
		return err
	}
	switch o.scenario {
	case "up":
		err = transfer(session, o, 1, 0, &result)
	case "down":
		err = transfer(session, o, 0, 1, &result)
	case "rr":
		err = requests(session, o, &result)
	case "datagrams":
		err = send(session, o, &result)
	default:
		err = fmt.Errorf("this program does not do %s", o.scenario)
	}
	if err != nil {
		return err
	}
	if err := session.CloseWithError(0, ""); err != nil {
		return err
	}
	// The end of the session is on its way.
	time.Sleep(100 * time.Millisecond)
	result.PeakRssKiB = peakKiB()
	return printLine(result)
}

// Moves all bytes, times up there, times down back.
func transfer(session *webtransport.Session, o *options, up, down uint64, result *clientResult) error {
	share := o.bytes / uint64(o.parallel)
	failures := make(chan error, o.parallel)
	start := time.Now()
	for range o.parallel {
		go func() { failures <- exchange(session, up*share, down*share) }()
	}
	for range o.parallel {
		if err := <-failures; err != nil {
			return err
		}
	}
	result.Seconds = time.Since(start).Seconds()
	result.Bytes = share * uint64(o.parallel)
	return nil
}

func exchange(session *webtransport.Session, up, down uint64) error {
	stream, err := session.OpenStreamSync(session.Context())
	if err != nil {
		return err
	}
	var header [9]byte
	binary.BigEndian.PutUint64(header[:], down)
	upload := header[:8]
	if up == 1 {
		// A request leaves in one write.
		upload, up = header[:], 0
	}
	if _, err := stream.Write(upload); err != nil {
		return err
	}
	if err := writeZeros(stream, up); err != nil {
		return err
	}
	if err := stream.Close(); err != nil {
		return err
	}
	received, err := readAll(stream)
	if err == nil && received != down {
		return fmt.Errorf("received %d bytes, wanted %d", received, down)
	}
	return err
}

func requests(session *webtransport.Session, o *options, result *clientResult) error {
	var left atomic.Int64
	left.Store(int64(o.count))
	var mutex sync.Mutex
	var samples []time.Duration
	var failure error
	var group sync.WaitGroup
	start := time.Now()
	for range o.inFlight {
		group.Go(func() {
			var own []time.Duration
			var err error
			for err == nil && left.Add(-1) >= 0 {
				begin := time.Now()
				err = exchange(session, 1, 1)
				own = append(own, time.Since(begin))
			}
			mutex.Lock()
			defer mutex.Unlock()
			samples = append(samples, own...)
			failure = errors.Join(failure, err)
		})
	}
	group.Wait()
	result.Seconds = time.Since(start).Seconds()
	if failure != nil {
		return failure
	}
	result.Count = o.count
	slices.Sort(samples)
	at := func(quantile float64) float64 {
		index := min(int(quantile*float64(len(samples))), len(samples)-1)
		return float64(samples[index].Nanoseconds()) / 1e3
	}
	result.Latency = &latency{P50: at(0.5), P99: at(0.99)}
	return nil
}

// SendDatagram waits while the queue is full.
func send(session *webtransport.Session, o *options, result *clientResult) error {
	payload := make([]byte, o.payload)
	start := time.Now()
	for range o.count {
		if err := session.SendDatagram(payload); err != nil {
			return err
		}
	}
	result.Seconds = time.Since(start).Seconds()
	result.Count = o.count
	time.Sleep(time.Second)
	return nil
}
