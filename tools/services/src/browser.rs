//! Headless Chromium, controlled through its DevTools protocol over a pipe: JSON messages that end with a zero
//! byte.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

/// A browser with one page. Dropping it ends the browser.
pub(crate) struct Browser {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    profile: PathBuf,
    session: Option<String>,
    calls: u64,
}

impl Browser {
    /// Starts Chromium. Reports the test as skipped if Chromium is not installed.
    pub(crate) fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// Starts Chromium with further flags.
    pub(crate) fn start_with(flags: &[String]) -> Option<Self> {
        let Some(program) = find() else {
            let name = std::thread::current().name().unwrap_or_default().to_owned();
            // Written to stderr directly, because captured output does not reach `.ci/run`, which counts it.
            let _ = writeln!(std::io::stderr(), "SKIPPED {name}: Chromium is missing");
            return None;
        };
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let profile =
            std::env::temp_dir().join(format!("courser-page-{}-{number}", std::process::id()));
        let mut child = Command::new("sh")
            // Chromium reads its commands from file descriptor 3 and writes to 4.
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 >/dev/null </dev/null"])
            .arg(program)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
                "--disable-sync",
            ])
            .args([
                "--disable-background-networking",
                "--disable-component-update",
                "--mute-audio",
            ])
            .args(["--hide-scrollbars", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", profile.display()))
            .args(flags)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        let to = child.stdin.take().expect("a pipe");
        let output = child.stdout.take().expect("a pipe");
        let (sender, from) = channel();
        std::thread::spawn(move || {
            let messages = BufReader::new(output).split(0).map_while(Result::ok);
            for message in messages {
                let value = serde_json::from_slice(&message).expect("JSON");
                if sender.send(value).is_err() {
                    return;
                }
            }
        });
        Some(Self {
            child,
            to,
            from,
            profile,
            session: None,
            calls: 0,
        })
    }

    /// Opens a page in a window of this size.
    pub(crate) fn visit(&mut self, url: &str, width: u32, height: u32) {
        self.session = None;
        let downloads = json!({"behavior": "allow", "downloadPath": self.downloads()});
        self.call("Browser.setDownloadBehavior", downloads);
        let target = self.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = self.call("Target.attachToTarget", attach);
        self.session = attached["sessionId"].as_str().map(str::to_owned);
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", size);
        self.scheme("light");
        self.call("Page.navigate", json!({"url": url}));
    }

    /// Returns the folder to which the browser saves downloads.
    pub(crate) fn downloads(&self) -> PathBuf {
        self.profile.join("downloads")
    }

    /// Emulates the preferred colour scheme, `light` or `dark`.
    pub(crate) fn scheme(&mut self, scheme: &str) {
        let feature = json!({"name": "prefers-color-scheme", "value": scheme});
        self.call("Emulation.setEmulatedMedia", json!({"features": [feature]}));
    }

    /// Evaluates an expression on the page, and awaits it if it is a promise.
    pub(crate) fn run(&mut self, expression: &str) -> Value {
        let parameters =
            json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.call("Runtime.evaluate", parameters);
        assert!(
            answer["exceptionDetails"].is_null(),
            "{expression}: {answer:#}"
        );
        answer["result"]["value"].clone()
    }

    /// Waits until an expression becomes true on the page.
    pub(crate) fn wait(&mut self, expression: &str) {
        let is_true = self.run(&format!(
            "new Promise(done => {{
                const end = Date.now() + {WAIT_MS};
                const look = () => {{
                    let seen = false;
                    try {{ seen = Boolean({expression}); }} catch {{ }}
                    if (seen || Date.now() > end) done(seen); else setTimeout(look, 20);
                }};
                look();
            }})"
        ));
        if is_true != true {
            let text = self.run("document.body.innerText");
            panic!(
                "never true: {expression}\n{}",
                text.as_str().unwrap_or_default()
            );
        }
    }

    /// Presses and releases a key.
    pub(crate) fn press(&mut self, key: &str) {
        let mut down = json!({"type": "keyDown", "key": key});
        match key {
            "Enter" => {
                down["text"] = json!("\r");
                down["windowsVirtualKeyCode"] = json!(13);
            }
            "Escape" => down["windowsVirtualKeyCode"] = json!(27),
            _ if key.chars().count() == 1 => down["text"] = json!(key),
            _ => {}
        }
        self.call("Input.dispatchKeyEvent", down);
        self.call(
            "Input.dispatchKeyEvent",
            json!({"type": "keyUp", "key": key}),
        );
    }

    /// Clicks the centre of the first element that matches a selector.
    pub(crate) fn click(&mut self, selector: &str) {
        let place = self.run(&format!(
            "(() => {{ const it = document.querySelector({selector:?}).getBoundingClientRect();
                return [it.x + it.width / 2, it.y + it.height / 2]; }})()"
        ));
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({"type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1});
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    /// Returns a screenshot of the page as PNG in base64.
    pub(crate) fn picture(&mut self) -> String {
        let picture = self.call("Page.captureScreenshot", json!({"format": "png"}));
        picture["data"].as_str().expect("base64").to_owned()
    }

    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.calls += 1;
        let id = self.calls;
        let mut message = json!({"id": id, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).expect("Chromium runs");
        self.to.flush().expect("Chromium runs");
        loop {
            let answer = self.from.recv_timeout(PATIENCE);
            let mut answer = answer.unwrap_or_else(|error| panic!("{method}: {error}"));
            if answer["id"] == id {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].take();
            }
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Fails if the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}

fn find() -> Option<PathBuf> {
    if let Some(program) = std::env::var_os("CHROMIUM") {
        return Some(program.into());
    }
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    std::env::split_paths(&path)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|program| program.is_file())
}

const WAIT_MS: u32 = 20_000;
const PATIENCE: Duration = Duration::from_secs(30);
