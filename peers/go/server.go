package main

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

type serverResult struct {
	Version     string `json:"version"`
	Connections uint64 `json:"connections"`
	Answers     uint64 `json:"answers"`
	Received    uint64 `json:"received"`
	Sent        uint64 `json:"sent"`
	PeakRssKiB  uint64 `json:"peak_rss_kib"`
}

var zeros [chunkSize]byte

// GET /N is answered with N bytes.
type answering struct {
	answers, sent atomic.Uint64
}

func (a *answering) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	size, err := strconv.ParseUint(strings.TrimPrefix(r.URL.Path, "/"), 10, 64)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	a.answers.Add(1)
	a.sent.Add(size)
	w.Header().Set("Content-Length", strconv.FormatUint(size, 10))
	for left := size; left > 0; {
		next := min(left, chunkSize)
		if _, err := w.Write(zeros[:next]); err != nil {
			return
		}
		left -= next
	}
}

func serve(o *options) error {
	pair, err := tls.LoadX509KeyPair(
		filepath.Join(o.identity, "certificate.pem"), filepath.Join(o.identity, "key.pem"))
	if err != nil {
		return err
	}
	config := &tls.Config{
		Certificates:           []tls.Certificate{pair},
		MinVersion:             tls.VersionTLS13,
		CurvePreferences:       []tls.CurveID{tls.X25519},
		SessionTicketsDisabled: true,
	}
	address, err := net.ResolveUDPAddr("udp", o.listen)
	if err != nil {
		return err
	}
	socket, err := net.ListenUDP("udp", address)
	if err != nil {
		return err
	}
	endpoint := &quic.Transport{Conn: socket}
	listener, err := endpoint.ListenEarly(http3.ConfigureTLSConfig(config), transport(o))
	if err != nil {
		return err
	}
	var app answering
	var connections atomic.Uint64
	server := &http3.Server{Handler: &app}
	ready := map[string]string{"listening": socket.LocalAddr().String()}
	if err := printLine(ready); err != nil {
		return err
	}
	go func() {
		for {
			connection, err := listener.Accept(context.Background())
			if err != nil {
				return
			}
			connections.Add(1)
			// The error is the client's close.
			go func() { _ = server.ServeQUICConn(connection) }()
		}
	}()
	_, _ = io.Copy(io.Discard, os.Stdin)
	return printLine(serverResult{
		Version:     version(),
		Connections: connections.Load(),
		Answers:     app.answers.Load(),
		Sent:        app.sent.Load(),
		PeakRssKiB:  peakKiB(),
	})
}
