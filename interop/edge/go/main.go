// Go's net/http as an upstream server (`server ADDRESS`) and as a client (`client VERSION ROOT URL`).
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

func main() {
	var err error
	switch os.Args[1] {
	case "server":
		err = serve(os.Args[2])
	case "client":
		err = ask(os.Args[2], os.Args[3], os.Args[4])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve tells what arrived, over HTTP/1.1 and over HTTP/2 with prior knowledge.
func serve(address string) error {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	answer := func(w http.ResponseWriter, r *http.Request) {
		content, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if r.URL.Path == "/slow" {
			// The client sends what is wrong before it has a whole answer.
			time.Sleep(250 * time.Millisecond)
		}
		fmt.Fprintf(w, "%s %s host=%s length=%d\n", r.Method, r.RequestURI, r.Host, len(content))
	}
	server := http.Server{Addr: address, Handler: http.HandlerFunc(answer), Protocols: protocols}
	return server.ListenAndServe()
}

// ask sends GET and POST and prints what comes back.
func ask(version, root, url string) error {
	pem, err := os.ReadFile(root)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	protocols := new(http.Protocols)
	protocols.SetHTTP1(version == "1")
	protocols.SetHTTP2(version == "2")
	transport := http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots},
		Protocols:       protocols,
	}
	client := http.Client{Transport: &transport}
	content := bytes.Repeat([]byte("x"), 100_000)
	for _, method := range []string{"GET", "POST"} {
		var body io.Reader
		if method == "POST" {
			body = bytes.NewReader(content)
		}
		request, err := http.NewRequest(method, url, body)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(response.Body)
		if err != nil {
			return err
		}
		fmt.Printf("%d %d %s", response.ProtoMajor, response.StatusCode, text)
	}
	return nil
}
