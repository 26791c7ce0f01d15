// Sessions of webtransport-go as a peer: peer-sessions-webtransport-go server|client, with the command line and the lines
// of output that all peer programs have.
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
	"github.com/quic-go/webtransport-go"
)

// What the settings of the other programs say, as far as quic-go has them.
const (
	streamWindow     = 16 << 20
	connectionWindow = 32 << 20
	chunkSize        = 64 << 10
	socketBuffer     = 7 << 20
	idleTimeout      = 600 * time.Second
	serverName       = "localhost"
)

type options struct {
	identity    string
	listen      string
	streams     int64
	datagrams   bool
	server      string
	scenario    string
	bytes       uint64
	count       uint64
	inFlight    int
	connections int
	parallel    int
	payload     int
	datagram    uint
	ownSettings bool
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "peer-sessions-webtransport-go:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) < 2 {
		return fmt.Errorf("server or client is missing")
	}
	var o options
	role := os.Args[1]
	flags := flag.NewFlagSet(role, flag.ContinueOnError)
	flags.StringVar(&o.identity, "identity", "", "folder with certificate.pem and key.pem")
	flags.StringVar(&o.listen, "listen", "127.0.0.1:0", "address to listen on")
	flags.BoolVar(&o.datagrams, "datagrams", false, "count datagrams")
	flags.StringVar(&o.server, "server", "", "address of the server")
	flags.StringVar(&o.scenario, "scenario", "", "the work")
	flags.Uint64Var(&o.bytes, "bytes", 0, "bytes to move")
	flags.Uint64Var(&o.count, "count", 0, "requests or datagrams")
	flags.IntVar(&o.inFlight, "in-flight", 1, "requests under way at once")
	flags.IntVar(&o.connections, "connections", 1, "connections")
	flags.IntVar(&o.payload, "payload", 1200, "bytes of each datagram")
	flags.UintVar(&o.datagram, "datagram", 1452, "UDP payload of full packets")
	flags.BoolVar(&o.ownSettings, "own-settings", false, "the stack's own sizes and windows")
	// The flag is about streams in parallel at a client, and about those that are granted at a server.
	if role == "server" {
		flags.Int64Var(&o.streams, "streams", 100, "streams that a client may have open")
	} else {
		flags.IntVar(&o.parallel, "streams", 1, "streams that move the bytes")
	}
	if err := flags.Parse(os.Args[2:]); err != nil {
		return err
	}
	switch role {
	case "server":
		return serve(&o)
	case "client":
		return work(&o)
	}
	return fmt.Errorf("%s is neither server nor client", role)
}

func transport(o *options) *quic.Config {
	config := &quic.Config{
		MaxIdleTimeout:                   idleTimeout,
		MaxIncomingStreams:               o.streams + 1,
		EnableDatagrams:                  true,
		EnableStreamResetPartialDelivery: true,
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

// No limits of a session beside those of QUIC: without this, the library speaks of none.
func sessions() *webtransport.Config { return nil }

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "?"
	}
	for _, dependency := range info.Deps {
		if dependency.Path == "github.com/quic-go/webtransport-go" {
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
