// A server with Encrypted Client Hello over TCP (Go's TLS) and over QUIC (quic-go). It prints its port, its
// ECHConfigList, and one with the same public name and another key, and writes its certificate to
// cert.pem. Each response reports the server name that it has seen, and whether it was encrypted.
package main

import (
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/quic-go/quic-go/http3"
)

const publicName = "public.test"

// Returns an ECHConfig (RFC 9849, section 4).
func echConfig(id byte, key *ecdh.PrivateKey) []byte {
	public := key.PublicKey().Bytes()
	contents := []byte{id, 0, 0x20, 0, byte(len(public))} // DHKEM(X25519, HKDF-SHA256)
	contents = append(contents, public...)
	contents = append(contents, 0, 4, 0, 1, 0, 1, 32, byte(len(publicName))) // HKDF-SHA256, AES-128-GCM
	contents = append(contents, publicName...)
	contents = append(contents, 0, 0)
	return append([]byte{0xfe, 0x0d, 0, byte(len(contents))}, contents...)
}

func echConfigList(config []byte) string {
	return base64.StdEncoding.EncodeToString(append([]byte{0, byte(len(config))}, config...))
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	key := must(ecdh.X25519().GenerateKey(rand.Reader))
	lost := must(ecdh.X25519().GenerateKey(rand.Reader))
	config := echConfig(7, key)

	signer := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		DNSNames:     []string{"secret.test", publicName},
	}
	der := must(x509.CreateCertificate(rand.Reader, template, template, &signer.PublicKey, signer))
	block := &pem.Block{Type: "CERTIFICATE", Bytes: der}
	if err := os.WriteFile("cert.pem", pem.EncodeToMemory(block), 0o644); err != nil {
		panic(err)
	}

	settings := &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: signer}},
		EncryptedClientHelloKeys: []tls.EncryptedClientHelloKey{
			{Config: config, PrivateKey: key.Bytes(), SendAsRetry: true},
		},
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s %v\n", r.Proto, r.TLS.ServerName, r.TLS.ECHAccepted)
	})
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	port := listener.Addr().(*net.TCPAddr).Port
	packets := must(net.ListenPacket("udp", fmt.Sprintf("127.0.0.1:%d", port)))
	fmt.Println(port)
	fmt.Println(echConfigList(config))
	fmt.Println(echConfigList(echConfig(9, lost)))

	quic := &http3.Server{Handler: handler, TLSConfig: http3.ConfigureTLSConfig(settings.Clone())}
	go quic.Serve(packets)
	settings.NextProtos = []string{"h2", "http/1.1"}
	panic((&http.Server{Handler: handler, TLSConfig: settings}).ServeTLS(listener, "", ""))
}
