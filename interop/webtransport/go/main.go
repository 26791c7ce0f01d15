// webtransport-go as a server and as a client of the same cases as ../src: `server CERTIFICATE KEY` prints its port,
// `client PORT [CASE..]` prints a line for each case.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/webtransport-go"
)

var (
	limits = &webtransport.Config{MaxIncomingStreams: 100, MaxIncomingUniStreams: 100, MaxIncomingData: 1 << 20}
	config = &quic.Config{
		EnableDatagrams:                  true,
		EnableStreamResetPartialDelivery: true,
		MaxIncomingStreams:               2000,
		MaxIncomingUniStreams:            2000,
	}
	lastMutex sync.Mutex
	last      string
)

func main() {
	arguments := os.Args[1:]
	var err error
	switch {
	case len(arguments) == 3 && arguments[0] == "server":
		err = serve(arguments[1], arguments[2])
	case len(arguments) >= 2 && arguments[0] == "client":
		run(arguments[1], arguments[2:])
	default:
		err = errors.New("server CERTIFICATE KEY, or client PORT [CASE..]")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(certificate, key string) error {
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	handler := http.NewServeMux()
	server := &webtransport.Server{
		H3: &http3.Server{
			Handler:    handler,
			TLSConfig:  http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{pair}}),
			QUICConfig: config,
		},
		Config:               limits,
		ApplicationProtocols: []string{"echo"},
		CheckOrigin:          func(*http.Request) bool { return true },
	}
	webtransport.ConfigureHTTP3Server(server.H3)
	handler.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		session, err := server.Upgrade(w, r)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if err := handle(session, r.URL.Path); err != nil {
			fmt.Fprintln(os.Stderr, r.URL.Path, err)
		}
	})
	socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	fmt.Println(socket.LocalAddr().(*net.UDPAddr).Port)
	return server.Serve(socket)
}

func handle(session *webtransport.Session, path string) error {
	ctx := session.Context()
	if count, found := strings.CutPrefix(path, "/open/"); found {
		number, err := strconv.Atoi(count)
		if err != nil {
			return err
		}
		return open(session, number)
	}
	switch path {
	case "/close":
		stream, err := session.AcceptStream(ctx)
		if err != nil {
			return err
		}
		if _, err := stream.Read(make([]byte, 10)); err != nil {
			return err
		}
		return session.CloseWithError(9, "server")
	case "/last":
		// The end of the session before this one may still be on its way.
		time.Sleep(200 * time.Millisecond)
		stream, err := session.OpenUniStreamSync(ctx)
		if err != nil {
			return err
		}
		lastMutex.Lock()
		text := last
		lastMutex.Unlock()
		if _, err := io.WriteString(stream, text); err != nil {
			return err
		}
		stream.Close()
		<-ctx.Done()
		return nil
	}
	go func() {
		for {
			stream, err := session.AcceptStream(ctx)
			if err != nil {
				return
			}
			go echo(stream)
		}
	}()
	go func() {
		for {
			stream, err := session.AcceptUniStream(ctx)
			if err != nil {
				return
			}
			go func() {
				all, err := io.ReadAll(stream)
				if err != nil {
					return
				}
				back, err := session.OpenUniStreamSync(ctx)
				if err != nil {
					return
				}
				back.Write(all)
				back.Close()
			}()
		}
	}()
	for {
		payload, err := session.ReceiveDatagram(ctx)
		if err != nil {
			break
		}
		session.SendDatagram(payload)
	}
	<-ctx.Done()
	lastMutex.Lock()
	last = reason(session)
	lastMutex.Unlock()
	return nil
}

// reason returns code and message of a session that has ended.
func reason(session *webtransport.Session) string {
	_, err := session.AcceptStream(context.Background())
	var closed *webtransport.SessionError
	if errors.As(err, &closed) {
		return fmt.Sprintf("%d %s", closed.ErrorCode, closed.Message)
	}
	return fmt.Sprint(err)
}

// echo returns bytes and codes.
func echo(stream *webtransport.Stream) {
	buffer := make([]byte, 64*1024)
	for {
		read, err := stream.Read(buffer)
		if read > 0 {
			if _, err := stream.Write(buffer[:read]); err != nil {
				stream.CancelRead(code(err))
				return
			}
		}
		if err == io.EOF {
			stream.Close()
			return
		}
		if err != nil {
			stream.CancelWrite(code(err))
			return
		}
	}
}

// code returns the code of the other application.
func code(err error) webtransport.StreamErrorCode {
	var broken *webtransport.StreamError
	if errors.As(err, &broken) {
		return broken.ErrorCode
	}
	return 0
}

func open(session *webtransport.Session, count int) error {
	ctx := session.Context()
	var group sync.WaitGroup
	failures := make(chan error, count)
	for index := range count {
		stream, err := session.OpenStreamSync(ctx)
		if err != nil {
			return err
		}
		uni, err := session.OpenUniStreamSync(ctx)
		if err != nil {
			return err
		}
		group.Go(func() {
			text := fmt.Sprintf("stream %d", index)
			io.WriteString(uni, text)
			uni.Close()
			if err := exchange(stream, text); err != nil {
				failures <- err
			}
		})
	}
	group.Wait()
	stream, err := session.OpenUniStreamSync(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(stream, "failed %d", len(failures))
	stream.Close()
	<-ctx.Done()
	return nil
}

func exchange(stream *webtransport.Stream, text string) error {
	if _, err := io.WriteString(stream, text); err != nil {
		return err
	}
	stream.Close()
	back, err := io.ReadAll(stream)
	if err != nil {
		return err
	}
	if string(back) != text {
		return errors.New("another echo")
	}
	return nil
}

var cases = []string{
	"protocol", "bi-1", "bi-100", "bi-1000", "uni-1", "uni-100", "uni-1000", "open-1", "open-100", "open-1000", "bulk",
	"datagrams", "reset", "stop", "close-client", "close-server", "two",
}

func run(port string, only []string) {
	for _, name := range cases {
		if len(only) > 0 && !slices.Contains(only, name) {
			continue
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		err := try(ctx, port, name)
		cancel()
		word, text := "ok", ""
		if err != nil {
			word, text = "FAILED", strings.ReplaceAll(err.Error(), "\n", " ")
		}
		fmt.Printf("%s\t%s\t%s\t%d ms\n", name, word, text, time.Since(began).Milliseconds())
	}
}

func connect(ctx context.Context, port, path string) (*webtransport.Session, error) {
	transport := &webtransport.Transport{
		Config:               limits,
		TLSClientConfig:      &tls.Config{InsecureSkipVerify: true, NextProtos: []string{http3.NextProtoH3}},
		QUICConfig:           config,
		ApplicationProtocols: []string{"echo"},
	}
	_, session, err := transport.Dial(ctx, "https://localhost:"+port+path, nil)
	return session, err
}

func try(ctx context.Context, port, name string) error {
	kind, number, _ := strings.Cut(name, "-")
	count, _ := strconv.Atoi(number)
	path := "/echo"
	switch {
	case kind == "open":
		path = "/open/" + number
	case name == "close-server":
		path = "/close"
	}
	session, err := connect(ctx, port, path)
	if err != nil {
		return err
	}
	defer session.CloseWithError(0, "")
	switch kind {
	case "protocol":
		if protocol := session.SessionState().ApplicationProtocol; protocol != "echo" {
			return fmt.Errorf("protocol %q", protocol)
		}
		return nil
	case "bi":
		return bidirectional(ctx, session, count)
	case "uni":
		return unidirectional(ctx, session, count)
	case "open":
		return opened(ctx, session, count)
	case "bulk":
		return bulk(ctx, session)
	case "datagrams":
		return datagrams(ctx, session)
	case "reset", "stop":
		return broken(ctx, session, kind)
	case "two":
		second, err := connect(ctx, port, path)
		if err != nil {
			return err
		}
		defer second.CloseWithError(0, "")
		if err := bidirectional(ctx, session, 50); err != nil {
			return err
		}
		return unidirectional(ctx, second, 50)
	}
	if name == "close-server" {
		stream, err := session.OpenStreamSync(ctx)
		if err != nil {
			return err
		}
		io.WriteString(stream, "x")
		<-session.Context().Done()
		if seen := reason(session); seen != "9 server" {
			return fmt.Errorf("the client saw %q", seen)
		}
		return nil
	}
	if err := bidirectional(ctx, session, 1); err != nil {
		return err
	}
	session.CloseWithError(7, "bye")
	second, err := connect(ctx, port, "/last")
	if err != nil {
		return err
	}
	defer second.CloseWithError(0, "")
	stream, err := second.AcceptUniStream(ctx)
	if err != nil {
		return err
	}
	if seen, err := io.ReadAll(stream); err != nil || string(seen) != "7 bye" {
		return fmt.Errorf("the server saw %q %v", seen, err)
	}
	return nil
}

func bidirectional(ctx context.Context, session *webtransport.Session, count int) error {
	errs := make(chan error, count)
	for index := range count {
		stream, err := session.OpenStreamSync(ctx)
		if err != nil {
			return err
		}
		go func() { errs <- exchange(stream, fmt.Sprintf("stream %d", index)) }()
	}
	for range count {
		select {
		case err := <-errs:
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func unidirectional(ctx context.Context, session *webtransport.Session, count int) error {
	sent := make(chan error, 1)
	go func() {
		for index := range count {
			stream, err := session.OpenUniStreamSync(ctx)
			if err != nil {
				sent <- err
				return
			}
			fmt.Fprintf(stream, "stream %d", index)
			stream.Close()
		}
		sent <- nil
	}()
	if err := collect(ctx, session, count, ""); err != nil {
		return err
	}
	return <-sent
}

// collect reads unidirectional streams whose texts must differ.
func collect(ctx context.Context, session *webtransport.Session, count int, wanted string) error {
	seen := map[string]bool{}
	for range count {
		stream, err := session.AcceptUniStream(ctx)
		if err != nil {
			return err
		}
		all, err := io.ReadAll(stream)
		if err != nil {
			return err
		}
		seen[string(all)] = true
	}
	if len(seen) != count || (wanted != "" && !seen[wanted]) {
		return fmt.Errorf("%d of %d streams", len(seen), count)
	}
	return nil
}

func opened(ctx context.Context, session *webtransport.Session, count int) error {
	go func() {
		for range count {
			stream, err := session.AcceptStream(ctx)
			if err != nil {
				return
			}
			go func() {
				if all, err := io.ReadAll(stream); err == nil {
					stream.Write(all)
					stream.Close()
				}
			}()
		}
	}()
	return collect(ctx, session, count+1, "failed 0")
}

func bulk(ctx context.Context, session *webtransport.Session) error {
	const size = 10 << 20
	stream, err := session.OpenStreamSync(ctx)
	if err != nil {
		return err
	}
	sent := bytes.Repeat([]byte("0123456789abcdef"), size/16)
	go func() {
		stream.Write(sent)
		stream.Close()
	}()
	deadline, _ := ctx.Deadline()
	stream.SetReadDeadline(deadline)
	back, err := io.ReadAll(stream)
	if err != nil {
		return fmt.Errorf("%w after %d bytes", err, len(back))
	}
	if !bytes.Equal(back, sent) {
		return fmt.Errorf("other bytes, %d", len(back))
	}
	return nil
}

func datagrams(ctx context.Context, session *webtransport.Session) error {
	seen := 0
	for index := range 50 {
		if err := session.SendDatagram(bytes.Repeat([]byte{byte(index)}, 100)); err != nil {
			return err
		}
		short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		if payload, err := session.ReceiveDatagram(short); err == nil && len(payload) == 100 {
			seen++
		}
		cancel()
	}
	if seen <= 40 {
		return fmt.Errorf("%d of 50 came back", seen)
	}
	return nil
}

// broken resets or stops a stream, and waits for the same code from the server.
func broken(ctx context.Context, session *webtransport.Session, kind string) error {
	stream, err := session.OpenStreamSync(ctx)
	if err != nil {
		return err
	}
	io.WriteString(stream, "x")
	if _, err := stream.Read(make([]byte, 1)); err != nil {
		return err
	}
	deadline, _ := ctx.Deadline()
	stream.SetDeadline(deadline)
	if kind == "reset" {
		stream.CancelWrite(77)
		_, err := io.ReadAll(stream)
		if code(err) != 77 {
			return fmt.Errorf("%v", err)
		}
		return nil
	}
	stream.CancelRead(78)
	for {
		if _, err := io.WriteString(stream, "y"); err != nil {
			if code(err) != 78 {
				return err
			}
			return nil
		}
		time.Sleep(5 * time.Millisecond)
	}
}
