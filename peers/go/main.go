// HTTP/3 of quic-go as a peer: peer-http-quic-go server|client, with the command line and the
// lines of output that all peer programs have.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/quic-go/quic-go"
)

// What the settings of the other programs say, as far as quic-go has them.
const (
	streamWindow     = 16 << 20
	connectionWindow = 32 << 20
	chunkSize        = 64 << 10
	idleTimeout      = 600 * time.Second
	serverName       = "localhost"
)

type options struct {
	identity    string
	listen      string
	streams     int64
	server      string
	scenario    string
	bytes       uint64
	count       uint64
	inFlight    int
	connections int
	datagram    uint
	ownSettings bool
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "peer-http-quic-go:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) < 2 {
		return fmt.Errorf("server or client is missing")
	}
	var o options
	flags := flag.NewFlagSet(os.Args[1], flag.ContinueOnError)
	flags.StringVar(&o.identity, "identity", "", "folder with certificate.pem and key.pem")
	flags.StringVar(&o.listen, "listen", "127.0.0.1:0", "address to listen on")
	flags.Int64Var(&o.streams, "streams", 100, "streams that a client may have open")
	flags.StringVar(&o.server, "server", "", "address of the server")
	flags.StringVar(&o.scenario, "scenario", "http", "the work")
	flags.Uint64Var(&o.bytes, "bytes", 0, "length of each response")
	flags.Uint64Var(&o.count, "count", 0, "requests to do")
	flags.IntVar(&o.inFlight, "in-flight", 1, "requests under way at once")
	flags.IntVar(&o.connections, "connections", 1, "connections to spread them over")
	flags.UintVar(&o.datagram, "datagram", 1452, "UDP payload of full packets")
	flags.BoolVar(&o.ownSettings, "own-settings", false, "the stack's own sizes and windows")
	if err := flags.Parse(os.Args[2:]); err != nil {
		return err
	}
	switch os.Args[1] {
	case "server":
		return serve(&o)
	case "client":
		if o.scenario != "http" {
			return fmt.Errorf("this program does HTTP alone, not %s", o.scenario)
		}
		return work(&o)
	}
	return fmt.Errorf("%s is neither server nor client", os.Args[1])
}

func transport(o *options) *quic.Config {
	config := &quic.Config{
		MaxIdleTimeout:     idleTimeout,
		MaxIncomingStreams: o.streams,
	}
	if o.ownSettings {
		return config
	}
	config.InitialStreamReceiveWindow = streamWindow
	config.MaxStreamReceiveWindow = streamWindow
	config.InitialConnectionReceiveWindow = connectionWindow
	config.MaxConnectionReceiveWindow = connectionWindow
	config.InitialPacketSize = uint16(o.datagram)
	config.DisablePathMTUDiscovery = true
	return config
}

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "?"
	}
	for _, dependency := range info.Deps {
		if dependency.Path == "github.com/quic-go/quic-go" {
			return strings.TrimPrefix(dependency.Version, "v")
		}
	}
	return "?"
}

func printLine(line any) error {
	return json.NewEncoder(os.Stdout).Encode(line)
}

// The kernel's own word; getrusage begins with the memory of the process that did the fork.
func peakKiB() uint64 {
	status, _ := os.ReadFile("/proc/self/status")
	for _, line := range strings.Split(string(status), "\n") {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			fields := strings.Fields(rest)
			if len(fields) > 0 {
				kib, _ := strconv.ParseUint(fields[0], 10, 64)
				return kib
			}
		}
	}
	return 0
}
