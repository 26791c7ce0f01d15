// A UDP proxy and its clients on quic-go's http3, with datagrams and contexts by hand (RFC 9298).
//
//	masque echo CERTIFICATE KEY              targets: prints the ports of a UDP echo and of a QUIC echo
//	masque proxy CERTIFICATE KEY             a proxy: prints its port
//	masque client ROOT PROXY TARGET COUNT    COUNT datagrams through the proxy at port PROXY and back
//	masque quic ROOT PROXY TARGET            a QUIC connection of quic-go inside of the tunnel
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, "masque:", err)
		os.Exit(1)
	}
	return value
}

func server(protocols ...string) *tls.Config {
	pair := must(tls.LoadX509KeyPair(os.Args[2], os.Args[3]))
	return &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: protocols}
}

func client(protocol string) *tls.Config {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(must(os.ReadFile(os.Args[2]))) {
		must(0, errors.New("no root"))
	}
	return &tls.Config{RootCAs: roots, ServerName: "localhost", NextProtos: []string{protocol}}
}

func listen() *net.UDPConn {
	return must(net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}))
}

func port(conn net.PacketConn) int { return conn.LocalAddr().(*net.UDPAddr).Port }

// echo returns every packet, and every stream of QUIC connections.
func echo() {
	packets, socket := listen(), listen()
	listener := must(quic.Listen(socket, server("echo"), nil))
	fmt.Println(port(packets), port(socket))
	go func() {
		for {
			conn := must(listener.Accept(context.Background()))
			go func() {
				for {
					stream, err := conn.AcceptStream(context.Background())
					if err != nil {
						return
					}
					go func() { io.Copy(stream, stream); stream.Close() }()
				}
			}()
		}
	}()
	buffer := make([]byte, 65536)
	for {
		length, from, err := packets.ReadFrom(buffer)
		if err == nil {
			packets.WriteTo(buffer[:length], from)
		}
	}
}

// relay is one tunnel of the proxy.
func relay(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(r.URL.EscapedPath(), "/")
	if r.Method != http.MethodConnect || r.Proto != "connect-udp" || len(parts) != 7 {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	host, _ := url.PathUnescape(parts[4])
	target, err := net.Dial("udp", net.JoinHostPort(host, parts[5]))
	if err != nil {
		w.Header().Set("Proxy-Status", "quic-go; error=dns_error")
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer target.Close()
	w.Header().Set(http3.CapsuleProtocolHeader, "?1")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	stream := must(w.(http3.HTTPStreamer).HTTPStream())
	go func() {
		buffer := make([]byte, 65536)
		for {
			length, err := target.Read(buffer[1:])
			if err != nil {
				return
			}
			// A datagram that does not fit is dropped.
			stream.SendDatagram(buffer[:length+1])
		}
	}()
	go func() {
		for {
			datagram, err := stream.ReceiveDatagram(context.Background())
			if err != nil {
				return
			}
			if len(datagram) > 0 && datagram[0] == 0 {
				target.Write(datagram[1:])
			}
		}
	}()
	io.Copy(io.Discard, stream)
}

func proxy() {
	socket := listen()
	fmt.Println(port(socket))
	config := &quic.Config{EnableDatagrams: true, InitialPacketSize: 1350}
	serving := &http3.Server{
		TLSConfig: http3.ConfigureTLSConfig(server("h3")), QUICConfig: config, EnableDatagrams: true,
		Handler: http.HandlerFunc(relay),
	}
	must(0, serving.Serve(socket))
}

// tunnel is the client's end as a socket without an address.
type tunnel struct {
	*http3.RequestStream
	target *net.UDPAddr
	local  net.Addr
}

func open(target int) *tunnel {
	ctx := context.Background()
	config := &quic.Config{EnableDatagrams: true, InitialPacketSize: 1350}
	conn := must(quic.DialAddr(ctx, "127.0.0.1:"+os.Args[3], client("h3"), config))
	link := (&http3.Transport{EnableDatagrams: true}).NewClientConn(conn)
	<-link.ReceivedSettings()
	if settings := link.Settings(); !settings.EnableDatagrams || !settings.EnableExtendedConnect {
		must(0, fmt.Errorf("settings %+v", settings))
	}
	stream := must(link.OpenRequestStream(ctx))
	path := fmt.Sprintf("https://localhost:%s/.well-known/masque/udp/127.0.0.1/%d/", os.Args[3], target)
	request := &http.Request{
		Method: http.MethodConnect, Proto: "connect-udp", Host: "localhost:" + os.Args[3],
		URL: must(url.Parse(path)), Header: http.Header{http3.CapsuleProtocolHeader: {"?1"}},
	}
	must(0, stream.SendRequestHeader(request))
	response := must(stream.ReadResponse())
	if response.StatusCode != http.StatusOK || response.Header.Get("capsule-protocol") != "?1" {
		must(0, fmt.Errorf("status %s, fields %v", response.Status, response.Header))
	}
	address := &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: target}
	return &tunnel{stream, address, conn.LocalAddr()}
}

func (t *tunnel) ReadFrom(buffer []byte) (int, net.Addr, error) {
	for {
		datagram, err := t.ReceiveDatagram(context.Background())
		if err != nil {
			return 0, nil, err
		}
		if len(datagram) > 0 && datagram[0] == 0 {
			return copy(buffer, datagram[1:]), t.target, nil
		}
	}
}

func (t *tunnel) WriteTo(payload []byte, _ net.Addr) (int, error) {
	t.SendDatagram(append([]byte{0}, payload...))
	return len(payload), nil
}

func (t *tunnel) LocalAddr() net.Addr { return t.local }

// packets sends datagrams one by one, each of another length.
func packets(t *tunnel, count int) {
	buffer := make([]byte, 2000)
	for number := range count {
		sent := bytes.Repeat([]byte{byte(number)}, number%1000)
		for try := 0; ; try++ {
			t.WriteTo(sent, nil)
			done := make(chan bool, 1)
			var length int
			go func() { length, _, _ = t.ReadFrom(buffer); done <- true }()
			select {
			case <-done:
			case <-time.After(5 * time.Second):
				must(0, fmt.Errorf("no answer to datagram %d", number))
			}
			if bytes.Equal(buffer[:length], sent) {
				break
			}
			must(0, fmt.Errorf("another answer to datagram %d", number))
		}
	}
	fmt.Println(count, "datagrams")
}

// inner exchanges a megabyte on a QUIC connection inside of the tunnel.
func inner(t *tunnel) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	conn := must((&quic.Transport{Conn: t}).Dial(ctx, t.target, client("echo"), &quic.Config{}))
	stream := must(conn.OpenStreamSync(ctx))
	sent := bytes.Repeat([]byte("courser "), 125_000)
	go func() { must(stream.Write(sent)); stream.Close() }()
	if received := must(io.ReadAll(stream)); !bytes.Equal(received, sent) {
		must(0, fmt.Errorf("%d other bytes", len(received)))
	}
	fmt.Println(len(sent), "bytes of QUIC")
}

// SetDeadline and the like complete net.PacketConn.
func (t *tunnel) SetDeadline(time.Time) error      { return nil }
func (t *tunnel) SetReadDeadline(time.Time) error  { return nil }
func (t *tunnel) SetWriteDeadline(time.Time) error { return nil }

func main() {
	switch os.Args[1] {
	case "echo":
		echo()
	case "proxy":
		proxy()
	case "client":
		packets(open(must(strconv.Atoi(os.Args[4]))), must(strconv.Atoi(os.Args[5])))
	case "quic":
		inner(open(must(strconv.Atoi(os.Args[4]))))
	}
}
