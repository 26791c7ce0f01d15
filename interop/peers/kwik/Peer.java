import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.DatagramSocket;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import tech.kwik.agent15.TlsConstants.CipherSuite;
import tech.kwik.core.QuicClientConnection;
import tech.kwik.core.QuicClientConnection.StreamEarlyData;
import tech.kwik.core.QuicConnection;
import tech.kwik.core.QuicConnection.QuicVersion;
import tech.kwik.core.QuicSessionTicket;
import tech.kwik.core.QuicStream;
import tech.kwik.core.impl.QuicClientConnectionImpl;
import tech.kwik.core.log.NullLogger;
import tech.kwik.core.server.ApplicationProtocolConnection;
import tech.kwik.core.server.ApplicationProtocolConnectionFactory;
import tech.kwik.core.server.ServerConnectionConfig;
import tech.kwik.core.server.ServerConnector;

/**
 * kwik as a peer of `courser interop matrix`: `Peer server|client`, with the variables of the QUIC interop
 * runner and LISTEN, WWW, CERTS and DOWNLOADS.
 */
public final class Peer {
    private static final String PROTOCOL = "hq-interop";

    /** kwik marks no packets and has no preferred addresses; HTTP/3 is a library of its own. */
    private static final Set<String> SUPPORTED =
            Set.of(
                    "handshake",
                    "transfer",
                    "chacha20",
                    "multiconnect",
                    "retry",
                    "resumption",
                    "zerortt",
                    "keyupdate",
                    "v2");

    /** The streams of one connection at the same time. */
    private static final int PARALLEL = 100;

    private Peer() {}

    public static void main(String[] arguments) throws Exception {
        String test = System.getenv("TESTCASE");
        if (!SUPPORTED.contains(test)) {
            System.exit(127);
        }
        if (arguments[0].equals("server")) {
            serve(test);
        } else {
            fetch(test);
            System.exit(0);
        }
    }

    private static void serve(String test) throws Exception {
        URI listen = URI.create("https://" + System.getenv("LISTEN"));
        warmUp(test);
        start(test, new InetSocketAddress(listen.getHost(), listen.getPort()));
    }

    /** Makes a handshake with itself: the first one of a process takes up to a second. */
    private static void warmUp(String test) throws Exception {
        InetAddress here = InetAddress.getLoopbackAddress();
        int port;
        try (DatagramSocket socket = new DatagramSocket(new InetSocketAddress(here, 0))) {
            port = socket.getLocalPort();
        }
        try (ServerConnector connector = start(test, new InetSocketAddress(here, port))) {
            QuicClientConnection connection =
                    QuicClientConnection.newBuilder()
                            .uri(URI.create("https://127.0.0.1:" + port))
                            .applicationProtocol(PROTOCOL)
                            .noServerCertificateCheck()
                            .logger(new NullLogger())
                            .build();
            connection.connect();
            connection.closeAndWait(Duration.ofMillis(200));
        }
    }

    private static ServerConnector start(String test, InetSocketAddress address) throws Exception {
        ServerConnectionConfig config =
                ServerConnectionConfig.builder()
                        .maxIdleTimeoutInSeconds(60)
                        .maxConnectionBufferSize(1 << 20)
                        .maxBidirectionalStreamBufferSize(1 << 18)
                        .maxOpenPeerInitiatedBidirectionalStreams(PARALLEL)
                        .retryRequired(test.equals("retry"))
                        .build();
        char[] password = "peer".toCharArray();
        ServerConnector connector =
                ServerConnector.builder()
                        .withSocket(new DatagramSocket(address))
                        .withKeyStore(identity(password), "peer", password)
                        .withSupportedVersions(List.of(QuicVersion.V1, QuicVersion.V2))
                        .withConfiguration(config)
                        .withLogger(new NullLogger())
                        .build();
        connector.registerApplicationProtocol(PROTOCOL, new Service());
        connector.start();
        return connector;
    }

    /** Reads cert.pem and priv.key. */
    private static KeyStore identity(char[] password) throws Exception {
        Path folder = Path.of(System.getenv("CERTS"));
        Certificate[] chain;
        try (InputStream file = Files.newInputStream(folder.resolve("cert.pem"))) {
            CertificateFactory factory = CertificateFactory.getInstance("X.509");
            chain = factory.generateCertificates(file).toArray(Certificate[]::new);
        }
        String text = Files.readString(folder.resolve("priv.key"));
        String base64 = text.replaceAll("-----[A-Z ]+-----", "").replaceAll("\\s", "");
        PKCS8EncodedKeySpec key = new PKCS8EncodedKeySpec(Base64.getDecoder().decode(base64));
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, password);
        store.setKeyEntry(
                "peer", KeyFactory.getInstance("EC").generatePrivate(key), password, chain);
        return store;
    }

    /** Answers requests of HTTP/0.9. */
    private static final class Service implements ApplicationProtocolConnectionFactory {
        @Override
        public int maxConcurrentPeerInitiatedBidirectionalStreams() {
            return PARALLEL;
        }

        @Override
        public long maxTotalPeerInitiatedBidirectionalStreams() {
            return Long.MAX_VALUE;
        }

        @Override
        public ApplicationProtocolConnection createConnection(
                String protocol, QuicConnection connection) {
            return new ApplicationProtocolConnection() {
                @Override
                public void acceptPeerInitiatedStream(QuicStream stream) {
                    Thread thread = new Thread(() -> answer(stream));
                    thread.setDaemon(true);
                    thread.start();
                }
            };
        }
    }

    private static void answer(QuicStream stream) {
        try (OutputStream output = stream.getOutputStream()) {
            byte[] request = stream.getInputStream().readNBytes(4096);
            String path = new String(request, StandardCharsets.US_ASCII).strip();
            path = path.replaceFirst("^GET /", "");
            if (path.contains("/") || path.startsWith(".")) {
                stream.resetStream(404);
                return;
            }
            Path file = Path.of(System.getenv("WWW")).resolve(path);
            output.write(Files.readAllBytes(file));
        } catch (IOException error) {
            stream.resetStream(404);
        }
    }

    private static void fetch(String test) throws Exception {
        List<URI> urls = new ArrayList<>();
        for (String url : System.getenv("REQUESTS").split(" ")) {
            urls.add(URI.create(url));
        }
        switch (test) {
            case "multiconnect":
                for (URI url : urls) {
                    connectAndDownload(test, List.of(url), null);
                }
                break;
            case "resumption":
            case "zerortt":
                QuicSessionTicket ticket = connectAndDownload(test, urls.subList(0, 1), null);
                if (ticket == null) {
                    throw new IOException("the server sent no ticket");
                }
                connectAndDownload(test, urls.subList(1, urls.size()), ticket);
                break;
            default:
                connectAndDownload(test, urls, null);
        }
    }

    /** Downloads files over one connection, and returns a ticket if the test needs one. */
    private static QuicSessionTicket connectAndDownload(
            String test, List<URI> urls, QuicSessionTicket ticket) throws Exception {
        QuicClientConnection.Builder builder =
                QuicClientConnection.newBuilder()
                        .uri(urls.get(0))
                        .applicationProtocol(PROTOCOL)
                        .connectTimeout(Duration.ofSeconds(60))
                        .maxIdleTimeout(Duration.ofSeconds(60))
                        .defaultStreamReceiveBufferSize(1L << 18)
                        .noServerCertificateCheck()
                        .logger(new NullLogger())
                        .version(QuicVersion.V1);
        if (System.getenv("SSLKEYLOGFILE") != null) {
            builder.secrets(Path.of(System.getenv("SSLKEYLOGFILE")));
        }
        if (test.equals("chacha20")) {
            builder.cipherSuite(CipherSuite.TLS_CHACHA20_POLY1305_SHA256);
        }
        if (test.equals("v2")) {
            builder.preferredVersion(QuicVersion.V2);
        }
        if (ticket != null) {
            builder.sessionTicket(ticket);
        }
        QuicClientConnection connection = builder.build();
        List<QuicStream> early = List.of();
        if (ticket != null && test.equals("zerortt")) {
            List<StreamEarlyData> requests = new ArrayList<>();
            for (URI url : urls) {
                requests.add(new StreamEarlyData(request(url), true));
            }
            early = connection.connect(requests);
        } else {
            connection.connect();
        }
        if (test.equals("keyupdate")) {
            // kwik ignores the call before the handshake is confirmed, about which it says nothing.
            Thread update =
                    new Thread(
                            () -> {
                                pause(300);
                                ((QuicClientConnectionImpl) connection).updateKeys();
                            });
            update.setDaemon(true);
            update.start();
        }
        download(connection, urls, early);
        QuicSessionTicket received = null;
        if (test.equals("resumption") || test.equals("zerortt")) {
            for (int wait = 0; wait < 40 && connection.getNewSessionTickets().isEmpty(); wait++) {
                pause(50);
            }
            List<QuicSessionTicket> tickets = connection.getNewSessionTickets();
            received = tickets.isEmpty() ? null : tickets.get(0);
        }
        connection.closeAndWait(Duration.ofMillis(200));
        return received;
    }

    private static void pause(long milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    private static byte[] request(URI url) {
        return ("GET " + url.getPath() + "\r\n").getBytes(StandardCharsets.US_ASCII);
    }

    private static void download(
            QuicClientConnection connection, List<URI> urls, List<QuicStream> early)
            throws Exception {
        var threads = Executors.newFixedThreadPool(Math.min(PARALLEL, urls.size()));
        List<Future<?>> downloads = new ArrayList<>();
        for (int number = 0; number < urls.size(); number++) {
            URI url = urls.get(number);
            QuicStream begun = number < early.size() ? early.get(number) : null;
            downloads.add(
                    threads.submit(
                            () -> {
                                get(connection, url, begun);
                                return null;
                            }));
        }
        try {
            for (Future<?> download : downloads) {
                download.get();
            }
        } catch (ExecutionException error) {
            throw new IOException("a download failed", error.getCause());
        } finally {
            threads.shutdownNow();
        }
    }

    /** Downloads a file. `begun` is the stream of a request that was made in early data. */
    private static void get(QuicClientConnection connection, URI url, QuicStream begun)
            throws IOException {
        QuicStream stream = begun;
        if (stream == null) {
            stream = connection.createStream(true);
            try (OutputStream output = stream.getOutputStream()) {
                output.write(request(url));
            }
        }
        Path folder = Path.of(System.getenv("DOWNLOADS"));
        Files.write(
                folder.resolve(url.getPath().substring(1)), stream.getInputStream().readAllBytes());
    }
}
