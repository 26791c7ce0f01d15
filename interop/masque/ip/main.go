// An IP proxy and its client on connect-ip-go (RFC 9484), at the level of packets: hosts behind the proxy answer each ping.
//
//	ip proxy CERTIFICATE KEY        a proxy: prints its port
//	ip client ROOT PROXY COUNT      COUNT pings through the proxy at port PROXY and back, and an error
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"time"

	connectip "github.com/quic-go/connect-ip-go"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/yosida95/uritemplate/v3"
)

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, "ip:", err)
		os.Exit(1)
	}
	return value
}

func sum(parts ...[]byte) uint16 {
	var total uint32
	for _, part := range parts {
		for i := 0; i < len(part); i += 2 {
			word := uint32(part[i]) << 8
			if i+1 < len(part) {
				word |= uint32(part[i+1])
			}
			total += word
		}
	}
	for total > 0xffff {
		total = total&0xffff + total>>16
	}
	return ^uint16(total)
}

// message returns a packet with an ICMP message; body begins behind the checksum.
func message(source, destination netip.Addr, kind byte, body []byte) []byte {
	icmp := append([]byte{kind, 0, 0, 0}, body...)
	length := uint16(len(icmp))
	if source.Is4() {
		header := []byte{0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 1, 0, 0}
		binary.BigEndian.PutUint16(header[2:], 20+length)
		header = append(append(header, source.AsSlice()...), destination.AsSlice()...)
		binary.BigEndian.PutUint16(header[10:], sum(header))
		binary.BigEndian.PutUint16(icmp[2:], sum(icmp))
		return append(header, icmp...)
	}
	header := []byte{0x60, 0, 0, 0, byte(length >> 8), byte(length), 58, 64}
	header = append(append(header, source.AsSlice()...), destination.AsSlice()...)
	binary.BigEndian.PutUint16(icmp[2:], sum(header[8:], header[4:6], []byte{0, 58}, icmp))
	return append(header, icmp...)
}

// split returns the addresses, the type and the rest of an ICMP message.
func split(packet []byte) (source, destination netip.Addr, kind byte, body []byte) {
	if packet[0]>>4 == 4 {
		source, _ = netip.AddrFromSlice(packet[12:16])
		destination, _ = netip.AddrFromSlice(packet[16:20])
		return source, destination, packet[20], packet[24:]
	}
	source, _ = netip.AddrFromSlice(packet[8:24])
	destination, _ = netip.AddrFromSlice(packet[24:40])
	return source, destination, packet[40], packet[44:]
}

var (
	template = "https://localhost:%s/vpn"
	given    = []netip.Prefix{netip.MustParsePrefix("10.88.0.2/32"), netip.MustParsePrefix("fd00:88::2/128")}
	routes   = []connectip.IPRoute{
		{StartIP: netip.MustParseAddr("192.0.2.0"), EndIP: netip.MustParseAddr("192.0.2.255")},
		{StartIP: netip.MustParseAddr("2001:db8::"), EndIP: netip.MustParseAddr("2001:db8::ffff")},
	}
)

// serve answers the pings of one client.
func serve(conn *connectip.Conn) {
	must(0, conn.AssignAddresses(given))
	must(0, conn.AdvertiseRoute(routes))
	go func() {
		for {
			request, err := conn.ReceiveAddressRequest(context.Background())
			if err != nil {
				return
			}
			must(0, request.Respond(given, nil))
		}
	}()
	buffer := make([]byte, 2000)
	for {
		length, err := conn.ReadPacket(buffer)
		if err != nil {
			return
		}
		source, destination, kind, body := split(buffer[:length])
		switch kind {
		case 8:
			kind = 0
		case 128:
			kind = 129
		}
		conn.WritePacket(message(destination, source, kind, body))
	}
}

func proxy() {
	socket := must(net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}))
	port := strconv.Itoa(socket.LocalAddr().(*net.UDPAddr).Port)
	fmt.Println(port)
	pair := must(tls.LoadX509KeyPair(os.Args[2], os.Args[3]))
	own := uritemplate.MustNew(fmt.Sprintf(template, port))
	handler := func(w http.ResponseWriter, r *http.Request) {
		request, err := connectip.ParseProxyRequest(r, own)
		if err != nil {
			fmt.Fprintln(os.Stderr, "ip:", err)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		serve(must((&connectip.Proxy{}).Proxy(w, request)))
	}
	serving := &http3.Server{
		TLSConfig:  http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{pair}}),
		QUICConfig: &quic.Config{EnableDatagrams: true, InitialPacketSize: 1350}, EnableDatagrams: true,
		Handler: http.HandlerFunc(handler),
	}
	must(0, serving.Serve(socket))
}

func client(count int) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(must(os.ReadFile(os.Args[2]))) {
		must(0, errors.New("no root"))
	}
	config := &tls.Config{RootCAs: roots, ServerName: "localhost", NextProtos: []string{"h3"}}
	settings := &quic.Config{EnableDatagrams: true, InitialPacketSize: 1350}
	link := must(quic.DialAddr(ctx, "127.0.0.1:"+os.Args[3], config, settings))
	session := must((&connectip.Transport{}).NewClientConn(link))
	request := must(connectip.NewRequest(ctx, uritemplate.MustNew(fmt.Sprintf(template, os.Args[3]))))
	conn, response, err := session.Dial(request)
	must(0, err)
	if response.StatusCode != http.StatusOK {
		must(0, errors.New(response.Status))
	}
	wanted := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/32"), netip.MustParsePrefix("::/128"), netip.MustParsePrefix("::/128")}
	ids := must(conn.RequestAddresses(wanted))
	var own []netip.Addr
	for len(own) < 2 {
		// The first assignment is not asked for.
		own = nil
		for _, assigned := range must(conn.ReceiveAddressAssignment(ctx)) {
			if assigned.RequestID == ids[len(own)] && !assigned.Rejected() {
				own = append(own, assigned.IPPrefix.Addr())
			}
		}
	}
	if found := must(conn.Routes(ctx)); len(found) != 2 {
		must(0, fmt.Errorf("routes %v", found))
	}
	hosts := []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}
	buffer := make([]byte, 2000)
	for number := range count {
		version := number % 2
		body := bytes.Repeat([]byte{byte(number)}, 4+number%1000)
		must(conn.WritePacket(message(own[version], hosts[version], []byte{8, 128}[version], body)))
		source, destination, kind, answer := split(buffer[:must(conn.ReadPacket(buffer))])
		if source != hosts[version] || destination != own[version] || kind%129 != 0 || !bytes.Equal(answer, body) {
			must(0, fmt.Errorf("another answer to ping %d: %v %v %d", number, source, destination, kind))
		}
	}
	// A destination that the policy prohibits.
	must(conn.WritePacket(message(own[0], netip.MustParseAddr("10.1.1.1"), 8, make([]byte, 8))))
	if _, _, kind, _ := split(buffer[:must(conn.ReadPacket(buffer))]); kind != 3 {
		must(0, fmt.Errorf("ICMP type %d", kind))
	}
	must(0, conn.Close())
	fmt.Println(count, "pings, addresses", own)
}

func main() {
	switch os.Args[1] {
	case "proxy":
		proxy()
	case "client":
		client(must(strconv.Atoi(os.Args[4])))
	}
}
