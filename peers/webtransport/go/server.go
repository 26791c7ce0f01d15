package main

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/webtransport-go"
)

type datagrams struct {
	Received uint64  `json:"received"`
	Seconds  float64 `json:"seconds"`
}

type serverResult struct {
	Version     string     `json:"version"`
	Connections uint64     `json:"connections"`
	Answers     uint64     `json:"answers"`
	Received    uint64     `json:"received"`
	Sent        uint64     `json:"sent"`
	PeakRssKiB  uint64     `json:"peak_rss_kib"`
	Datagrams   *datagrams `json:"datagrams"`
}

var zeros [chunkSize]byte

var buffers = sync.Pool{New: func() any { return new([chunkSize]byte) }}

type tally struct {
	connections, answers, received, sent atomic.Uint64
	mutex                                sync.Mutex
	datagrams                            *datagrams
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
	handler := http.NewServeMux()
	server := &webtransport.Server{
		H3: &http3.Server{
			Handler:    handler,
			TLSConfig:  http3.ConfigureTLSConfig(config),
			QUICConfig: transport(o),
		},
		Config: sessions(),
	}
	webtransport.ConfigureHTTP3Server(server.H3)
	var counts tally
	handler.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		session, err := server.Upgrade(w, r)
		if err != nil {
			fmt.Fprintln(os.Stderr, "session:", err)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		counts.connections.Add(1)
		if o.datagrams {
			counts.countDatagrams(session)
		}
		for {
			stream, err := session.AcceptStream(session.Context())
			if err != nil {
				return
			}
			go func() {
				if err := counts.answer(stream); err != nil {
					fmt.Fprintln(os.Stderr, "stream:", err)
				}
			}()
		}
	})
	address, err := net.ResolveUDPAddr("udp", o.listen)
	if err != nil {
		return err
	}
	socket, err := net.ListenUDP("udp", address)
	if err != nil {
		return err
	}
	if err := enlarge(socket); err != nil {
		return err
	}
	if err := printLine(map[string]string{"listening": socket.LocalAddr().String()}); err != nil {
		return err
	}
	go func() { _ = server.Serve(socket) }()
	_, _ = io.Copy(io.Discard, os.Stdin)
	counts.mutex.Lock()
	defer counts.mutex.Unlock()
	return printLine(serverResult{
		Version:     version(),
		Connections: counts.connections.Load(),
		Answers:     counts.answers.Load(),
		Received:    counts.received.Load(),
		Sent:        counts.sent.Load(),
		PeakRssKiB:  peakKiB(),
		Datagrams:   counts.datagrams,
	})
}

func enlarge(socket *net.UDPConn) error {
	return errors.Join(socket.SetReadBuffer(socketBuffer), socket.SetWriteBuffer(socketBuffer))
}

// answer reads the wanted length and the upload, and sends as many bytes as were wanted.
func (t *tally) answer(stream *webtransport.Stream) error {
	var header [8]byte
	if _, err := io.ReadFull(stream, header[:]); err != nil {
		return err
	}
	received, err := readAll(stream)
	if err != nil {
		return err
	}
	wanted := binary.BigEndian.Uint64(header[:])
	if err := writeZeros(stream, wanted); err != nil {
		return err
	}
	if err := stream.Close(); err != nil {
		return err
	}
	t.answers.Add(1)
	t.received.Add(received)
	t.sent.Add(wanted)
	return nil
}

func readAll(stream io.Reader) (uint64, error) {
	buffer := buffers.Get().(*[chunkSize]byte)
	defer buffers.Put(buffer)
	var length uint64
	for {
		count, err := stream.Read(buffer[:])
		length += uint64(count)
		if err == io.EOF {
			return length, nil
		} else if err != nil {
			return length, err
		}
	}
}

func writeZeros(stream io.Writer, length uint64) error {
	for left := length; left > 0; {
		next := min(left, chunkSize)
		if _, err := stream.Write(zeros[:next]); err != nil {
			return err
		}
		left -= next
	}
	return nil
}

func (t *tally) countDatagrams(session *webtransport.Session) {
	var received uint64
	var first, last time.Time
	for {
		if _, err := session.ReceiveDatagram(context.Background()); err != nil {
			break
		}
		received++
		last = time.Now()
		if received == 1 {
			first = last
		}
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.datagrams = &datagrams{Received: received, Seconds: last.Sub(first).Seconds()}
}
