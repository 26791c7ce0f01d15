// quic-go's side: GET /bytes/N is answered with the first N bytes of the endless repetition of a
// block, POST /hash with length and SHA-256 of what came.
//
//	quic-go server CERTIFICATE KEY [ADDRESS:PORT]
//	quic-go client ROOT PORT UPLOADS SIZE COUNT
//	quic-go pooled ROOT PORT COUNT
//	quic-go get ROOT URL
//
// The client takes from the server at PORT and sends to the one at UPLOADS, which may be the same.
package main

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/quic-go/quic-go/http3"
)

const blockLen = 65521

var block = func() []byte {
	block := make([]byte, blockLen)
	for n := range block {
		block[n] = byte(n*7 + n>>8)
	}
	return block
}()

// pattern reads the first bytes of the endless repetition of the block.
type pattern struct{ at, left int64 }

func (p *pattern) Read(out []byte) (int, error) {
	if p.left == 0 {
		return 0, io.EOF
	}
	read := copy(out[:min(int64(len(out)), p.left)], block[p.at:])
	p.at = (p.at + int64(read)) % blockLen
	p.left -= int64(read)
	return read, nil
}

func text(digest hash.Hash) string { return hex.EncodeToString(digest.Sum(nil)) }

func hashOf(body io.Reader) (int64, string, error) {
	digest := sha256.New()
	length, err := io.Copy(digest, body)
	return length, text(digest), err
}

func serve(certificate, key, address string) error {
	handler := http.NewServeMux()
	handler.HandleFunc("/bytes/{count}", func(w http.ResponseWriter, r *http.Request) {
		count, err := strconv.ParseInt(r.PathValue("count"), 10, 64)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		io.Copy(w, &pattern{left: count})
	})
	handler.HandleFunc("/hash", func(w http.ResponseWriter, r *http.Request) {
		length, digest, err := hashOf(r.Body)
		if err == nil {
			fmt.Fprintf(w, "%d %s", length, digest)
		}
	})
	handler.HandleFunc("/{$}", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "hello over HTTP/3\n")
	})
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	local, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return err
	}
	socket, err := net.ListenUDP("udp", local)
	if err != nil {
		return err
	}
	fmt.Println("listening on", socket.LocalAddr())
	config := http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{pair}})
	server := http3.Server{Handler: handler, TLSConfig: config}
	return server.Serve(socket)
}

// trusting returns the client's end, which trusts what the root has signed.
func trusting(root string) (*http3.Transport, error) {
	pem, err := os.ReadFile(root)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, errors.New("no certificate in " + root)
	}
	return &http3.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}, nil
}

// get takes one resource and prints its length.
func get(root, url string) error {
	transport, err := trusting(root)
	if err != nil {
		return err
	}
	defer transport.Close()
	response, err := (&http.Client{Transport: transport}).Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	length, err := io.Copy(io.Discard, response.Body)
	fmt.Println(length)
	return errors.Join(err, check("status", response.StatusCode, http.StatusOK))
}

func ask(root, port, uploads, size, count string) error {
	transport, err := trusting(root)
	if err != nil {
		return err
	}
	defer transport.Close()
	client := &http.Client{Transport: transport}
	origin := "https://localhost:" + port
	length, err := strconv.ParseInt(size, 10, 64)
	if err != nil {
		return err
	}
	expected, err := down(client, origin, length)
	if err != nil {
		return err
	}
	if err := up(client, "https://localhost:"+uploads, length, expected); err != nil {
		return err
	}
	response, err := client.Get(origin + "/not/there")
	if err != nil {
		return err
	}
	if err := check("status", response.StatusCode, http.StatusNotFound); err != nil {
		return err
	}
	number, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	begun := time.Now()
	if err := atOnce(client, origin, number); err != nil {
		return err
	}
	fmt.Printf("%d requests at once in %v\n", number, time.Since(begun))
	return nil
}

// pooled sends so many requests as a gateway would: 64 at a time on one connection, and one in ten is
// given up long before its response. Over HTTP/2 it is a client of net/http.
func pooled(root, port, count string, isHTTP2 bool) error {
	transport, err := trusting(root)
	if err != nil {
		return err
	}
	defer transport.Close()
	client := &http.Client{Transport: transport}
	if isHTTP2 {
		client.Transport = &http.Transport{TLSClientConfig: transport.TLSClientConfig, ForceAttemptHTTP2: true}
	}
	number, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	get := func(n int) error {
		path, limit := fmt.Sprintf("/image/%d.svg", n), time.Minute
		if n%10 == 0 {
			path, limit = fmt.Sprintf("/slow?ms=1000&n=%d", n), 30*time.Millisecond
		}
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, "GET", "https://localhost:"+port+path, nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if n%10 == 0 && errors.Is(err, context.DeadlineExceeded) {
			return nil
		}
		if err != nil {
			return err
		}
		defer response.Body.Close()
		_, err = io.Copy(io.Discard, response.Body)
		return errors.Join(err, check("status", response.StatusCode, http.StatusOK))
	}
	numbers, results := make(chan int), make(chan error)
	for range 64 {
		go func() {
			var failed error
			for n := range numbers {
				failed = errors.Join(failed, get(n))
			}
			results <- failed
		}()
	}
	for n := range number {
		numbers <- n
	}
	close(numbers)
	for range 64 {
		err = errors.Join(err, <-results)
	}
	return err
}

// down gets so many bytes, and returns their hash.
func down(client *http.Client, origin string, size int64) (string, error) {
	begun := time.Now()
	response, err := client.Get(fmt.Sprintf("%s/bytes/%d", origin, size))
	if err != nil {
		return "", err
	}
	length, digest, err := hashOf(response.Body)
	if err != nil {
		return "", err
	}
	took := time.Since(begun)
	_, expected, _ := hashOf(&pattern{left: size})
	err = errors.Join(check("protocol", response.Proto, "HTTP/3.0"),
		check("bytes received", length, size), check("hash", digest, expected))
	if err != nil {
		return "", err
	}
	fmt.Printf("%d bytes down in %v, the hashes agree\n", size, took)
	return expected, nil
}

// up sends as many to a server that tells their hash.
func up(client *http.Client, origin string, size int64, expected string) error {
	begun := time.Now()
	response, err := client.Post(origin+"/hash", "application/octet-stream", &pattern{left: size})
	if err != nil {
		return err
	}
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if err := check("what was sent", string(answer), fmt.Sprintf("%d %s", size, expected)); err != nil {
		return err
	}
	fmt.Printf("%d bytes up in %v, the hashes agree\n", size, time.Since(begun))
	return nil
}

func atOnce(client *http.Client, origin string, count int) error {
	results := make([]error, count)
	var group sync.WaitGroup
	for number := range count {
		group.Go(func() {
			size := int64(number % 1000)
			response, err := client.Get(fmt.Sprintf("%s/bytes/%d", origin, size))
			if err != nil {
				results[number] = err
				return
			}
			defer response.Body.Close()
			_, expected, _ := hashOf(&pattern{left: size})
			_, digest, err := hashOf(response.Body)
			results[number] = errors.Join(err, check("hash", digest, expected))
		})
	}
	group.Wait()
	return errors.Join(results...)
}

func check[T comparable](what string, seen, expected T) error {
	if seen != expected {
		return fmt.Errorf("%s: %v, expected %v", what, seen, expected)
	}
	return nil
}

func main() {
	err := errors.New("usage: " + strings.Join([]string{"server CERTIFICATE KEY [ADDRESS:PORT]",
		"client ROOT PORT UPLOADS SIZE COUNT", "pooled ROOT PORT COUNT", "pooled-http2 ROOT PORT COUNT", "get ROOT URL"}, " | "))
	switch arguments := os.Args[1:]; {
	case len(arguments) == 3 && arguments[0] == "server":
		err = serve(arguments[1], arguments[2], "127.0.0.1:0")
	case len(arguments) == 4 && arguments[0] == "server":
		err = serve(arguments[1], arguments[2], arguments[3])
	case len(arguments) == 3 && arguments[0] == "get":
		err = get(arguments[1], arguments[2])
	case len(arguments) == 6 && arguments[0] == "client":
		err = ask(arguments[1], arguments[2], arguments[3], arguments[4], arguments[5])
	case len(arguments) == 4 && arguments[0] == "pooled":
		err = pooled(arguments[1], arguments[2], arguments[3], false)
	case len(arguments) == 4 && arguments[0] == "pooled-http2":
		err = pooled(arguments[1], arguments[2], arguments[3], true)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
