// quic-go as a peer of `courser interop matrix`: quic-go server|client, with the variables of the
// QUIC interop runner and LISTEN, WWW, CERTS and DOWNLOADS.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

const alpn = "hq-interop"

// quic-go updates keys after a number of packets that only this variable of its tests changes, and
// crypto/tls does not let a client offer one suite of TLS 1.3 only.
var supported = []string{
	"handshake", "transfer", "multiconnect", "retry", "resumption", "zerortt", "http3", "ecn", "v2",
}

func main() {
	test := os.Getenv("TESTCASE")
	isServer := len(os.Args) > 1 && os.Args[1] == "server"
	// A server has no part in the choice of the suite.
	if !slices.Contains(supported, test) && !(isServer && test == "chacha20") {
		os.Exit(127)
	}
	run := client
	if isServer {
		run = server
	}
	if err := run(test); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func keyLog() io.Writer {
	file, err := os.OpenFile(os.Getenv("SSLKEYLOGFILE"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return io.Discard
	}
	return file
}

func config(test string) *quic.Config {
	config := &quic.Config{
		Allow0RTT:             true,
		HandshakeIdleTimeout:  60 * time.Second,
		MaxIdleTimeout:        60 * time.Second,
		MaxIncomingStreams:    100,
		MaxIncomingUniStreams: 10,
		Versions:              []quic.Version{quic.Version1},
	}
	if test == "v2" {
		config.Versions = []quic.Version{quic.Version2, quic.Version1}
	}
	return config
}

func server(test string) error {
	certs, www := os.Getenv("CERTS"), os.Getenv("WWW")
	pair, err := tls.LoadX509KeyPair(filepath.Join(certs, "cert.pem"), filepath.Join(certs, "priv.key"))
	if err != nil {
		return err
	}
	tlsConfig := &tls.Config{
		Certificates: []tls.Certificate{pair},
		NextProtos:   []string{alpn, http3.NextProtoH3},
		KeyLogWriter: keyLog(),
	}
	address, err := net.ResolveUDPAddr("udp", os.Getenv("LISTEN"))
	if err != nil {
		return err
	}
	socket, err := net.ListenUDP("udp", address)
	if err != nil {
		return err
	}
	transport := &quic.Transport{
		Conn:                socket,
		VerifySourceAddress: func(net.Addr) bool { return test == "retry" },
	}
	listener, err := transport.ListenEarly(tlsConfig, config(test))
	if err != nil {
		return err
	}
	web := &http3.Server{Handler: http.FileServer(http.Dir(www))}
	for {
		conn, err := listener.Accept(context.Background())
		if err != nil {
			return err
		}
		go func() {
			if conn.ConnectionState().TLS.NegotiatedProtocol == http3.NextProtoH3 {
				_ = web.ServeQUICConn(conn)
				return
			}
			for {
				stream, err := conn.AcceptStream(context.Background())
				if err != nil {
					return
				}
				go answer(stream, www)
			}
		}()
	}
}

func answer(stream *quic.Stream, www string) {
	request, err := io.ReadAll(io.LimitReader(stream, 4096))
	path, isGet := strings.CutPrefix(strings.TrimRight(string(request), "\r\n"), "GET /")
	if err != nil || !isGet || !filepath.IsLocal(path) {
		stream.CancelWrite(0)
		return
	}
	file, err := os.Open(filepath.Join(www, path))
	if err != nil {
		stream.CancelWrite(0)
		return
	}
	defer file.Close()
	if _, err := io.Copy(stream, file); err == nil {
		_ = stream.Close()
	}
}

func client(test string) error {
	var urls []*url.URL
	for _, text := range strings.Fields(os.Getenv("REQUESTS")) {
		parsed, err := url.Parse(text)
		if err != nil {
			return err
		}
		urls = append(urls, parsed)
	}
	if len(urls) == 0 {
		return errors.New("REQUESTS is empty")
	}
	tlsConfig := &tls.Config{
		InsecureSkipVerify: true,
		ServerName:         "localhost",
		NextProtos:         []string{alpn},
		KeyLogWriter:       keyLog(),
		ClientSessionCache: tls.NewLRUClientSessionCache(4),
	}
	if test == "http3" {
		return overHTTP3(tlsConfig, config(test), urls)
	}
	connect := func(urls []*url.URL) error {
		conn, err := quic.DialAddrEarly(context.Background(), urls[0].Host, tlsConfig, config(test))
		if err != nil {
			return err
		}
		if test != "zerortt" {
			<-conn.HandshakeComplete()
		}
		if err := download(conn, urls); err != nil {
			return err
		}
		return conn.CloseWithError(0, "")
	}
	switch test {
	case "multiconnect":
		for _, one := range urls {
			if err := connect([]*url.URL{one}); err != nil {
				return err
			}
		}
		return nil
	case "resumption", "zerortt":
		if err := connect(urls[:1]); err != nil {
			return err
		}
		return connect(urls[1:])
	default:
		return connect(urls)
	}
}

// all runs a download for each URL and returns the first error.
func all(urls []*url.URL, one func(*url.URL) error) error {
	var group sync.WaitGroup
	failed := make([]error, len(urls))
	for index, each := range urls {
		group.Go(func() { failed[index] = one(each) })
	}
	group.Wait()
	return errors.Join(failed...)
}

func download(conn *quic.Conn, urls []*url.URL) error {
	return all(urls, func(one *url.URL) error {
		stream, err := conn.OpenStreamSync(context.Background())
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(stream, "GET %s\r\n", one.Path); err != nil {
			return err
		}
		if err := stream.Close(); err != nil {
			return err
		}
		return save(one, stream)
	})
}

func save(one *url.URL, content io.Reader) error {
	file, err := os.Create(filepath.Join(os.Getenv("DOWNLOADS"), filepath.Base(one.Path)))
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(file, content)
	return err
}

func overHTTP3(tlsConfig *tls.Config, config *quic.Config, urls []*url.URL) error {
	tlsConfig.NextProtos = nil
	transport := &http3.Transport{TLSClientConfig: tlsConfig, QUICConfig: config}
	defer transport.Close()
	web := &http.Client{Transport: transport}
	return all(urls, func(one *url.URL) error {
		response, err := web.Get(one.String())
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return errors.New(response.Status)
		}
		return save(one, response.Body)
	})
}
