// An IP proxy and its client on connect-ip-go, with plain TUN devices: one packet per system call.
//
//	tunnel proxy ADDRESS CERTIFICATE KEY DEVICE IPV4 IPV6   a proxy at /vpn for one client, which gets these addresses
//	tunnel client URL ROOT DEVICE ROUTE...                  a tunnel, until it is killed
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"time"

	connectip "github.com/quic-go/connect-ip-go"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/yosida95/uritemplate/v3"
	"golang.org/x/sys/unix"
)

func main() {
	arguments := os.Args[1:]
	var err error
	switch {
	case len(arguments) == 7 && arguments[0] == "proxy":
		err = proxy(arguments[1:])
	case len(arguments) > 3 && arguments[0] == "client":
		err = client(arguments[1:])
	default:
		err = errors.New("see the comment at the beginning of the source")
	}
	if err != nil {
		log.Fatal(err)
	}
}

func ip(arguments string) {
	if output, err := exec.Command("ip", strings.Fields(arguments)...).CombinedOutput(); err != nil {
		log.Fatalf("ip %s: %v %s", arguments, err, output)
	}
}

// open creates a TUN device.
func open(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	request, err := unix.NewIfreq(name)
	if err != nil {
		return nil, err
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, err
	}
	ip("link set " + name + " mtu 1300 up")
	return os.NewFile(uintptr(fd), name), nil
}

// carry copies packets between a device and a tunnel, until either ends.
func carry(device *os.File, conn *connectip.Conn) error {
	ended := make(chan error, 2)
	go func() {
		buffer := make([]byte, 65536)
		for {
			n, err := device.Read(buffer)
			if err != nil {
				ended <- err
				return
			}
			// The system's own solicitations have sources that were not assigned.
			icmp, err := conn.WritePacket(buffer[:n])
			if err != nil && errors.Is(err, os.ErrClosed) {
				ended <- err
				return
			}
			if len(icmp) > 0 {
				_, _ = device.Write(icmp)
			}
		}
	}()
	go func() {
		buffer := make([]byte, 65536)
		for {
			n, err := conn.ReadPacket(buffer)
			if err != nil {
				ended <- err
				return
			}
			_, _ = device.Write(buffer[:n])
		}
	}()
	return <-ended
}

func proxy(arguments []string) error {
	address, certificate, key, name := arguments[0], arguments[1], arguments[2], arguments[3]
	v4, v6 := netip.MustParseAddr(arguments[4]), netip.MustParseAddr(arguments[5])
	device, err := open(name)
	if err != nil {
		return err
	}
	ip("route add " + v4.String() + " dev " + name)
	ip("-6 route add " + v6.String() + " dev " + name)
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	template := uritemplate.MustNew("https://" + address + "/vpn")
	mux := http.NewServeMux()
	mux.HandleFunc("/vpn", func(w http.ResponseWriter, r *http.Request) {
		request, err := connectip.ParseProxyRequest(r, template)
		if err != nil {
			log.Print(err)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		conn, err := (&connectip.Proxy{}).Proxy(w, request)
		if err != nil {
			log.Print(err)
			return
		}
		prefixes := []netip.Prefix{netip.PrefixFrom(v4, 32), netip.PrefixFrom(v6, 128)}
		if err := conn.AssignAddresses(prefixes); err != nil {
			log.Print(err)
			return
		}
		go func() {
			for {
				asked, err := conn.ReceiveAddressRequest(context.Background())
				if err != nil {
					return
				}
				given := make([]netip.Prefix, len(asked.Prefixes))
				for i, prefix := range asked.Prefixes {
					given[i] = prefixes[map[bool]int{true: 0, false: 1}[prefix.Addr().Is4()]]
				}
				if err := asked.Respond(given, nil); err != nil {
					log.Print(err)
				}
			}
		}()
		all := []connectip.IPRoute{
			{StartIP: netip.MustParseAddr("0.0.0.0"), EndIP: netip.MustParseAddr("255.255.255.255")},
			{StartIP: netip.MustParseAddr("::"), EndIP: netip.MustParseAddr("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")},
		}
		if err := conn.AdvertiseRoute(all); err != nil {
			log.Print(err)
			return
		}
		log.Print("ended: ", carry(device, conn))
	})
	server := http3.Server{
		Addr:            address,
		Handler:         mux,
		EnableDatagrams: true,
		TLSConfig:       http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{pair}}),
		QUICConfig:      &quic.Config{EnableDatagrams: true, InitialPacketSize: 1400},
	}
	fmt.Println("listening on", address)
	return server.ListenAndServe()
}

func client(arguments []string) error {
	url, root, name := arguments[0], arguments[1], arguments[2]
	pem, err := os.ReadFile(root)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	context, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	request, err := connectip.NewRequest(context, uritemplate.MustNew(url))
	if err != nil {
		return err
	}
	transport := connectip.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, NextProtos: []string{http3.NextProtoH3}},
		QUICConfig:      &quic.Config{EnableDatagrams: true, InitialPacketSize: 1400, KeepAlivePeriod: 5 * time.Second},
	}
	conn, _, err := transport.Dial(request)
	if err != nil {
		return err
	}
	// A proxy assigns addresses of its own accord, or answers a request.
	_, err = conn.RequestAddresses([]netip.Prefix{netip.MustParsePrefix("0.0.0.0/32"), netip.MustParsePrefix("::/128")})
	if err != nil {
		return err
	}
	var v4, v6 netip.Addr
	for !v4.IsValid() || !v6.IsValid() {
		assigned, err := conn.ReceiveAddressAssignment(context)
		if err != nil {
			return err
		}
		for _, it := range assigned {
			if it.IPPrefix.Addr().Is4() {
				v4 = it.IPPrefix.Addr()
			} else {
				v6 = it.IPPrefix.Addr()
			}
		}
	}
	if _, err := conn.Routes(context); err != nil {
		return err
	}
	device, err := open(name)
	if err != nil {
		return err
	}
	ip("address add " + v4.String() + "/32 dev " + name)
	ip("address add " + v6.String() + "/128 dev " + name + " nodad")
	for _, route := range arguments[3:] {
		ip("route add " + route + " dev " + name)
	}
	fmt.Println("connected:", v4, v6)
	return carry(device, conn)
}
